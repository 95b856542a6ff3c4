//! Root imports what lies in a directory of another user: nothing is written through what that user puts or exchanges
//! there.

use super::deposits::{field, sh};

/// `ibifs import` of a table goes through no link in the item, and the sidecar keeps its owner and mode.
#[test]
fn a_table_is_written_through_no_link() {
    let env = field();
    sh(
        &env,
        r#"as mkdir -p A/.mint/x/doc; rep=$(labelled A x as); item=A/$rep; echo precious > precious; chmod 600 precious
        as sh -c "echo 'ssh-ed25519 AAAA' >> $item/.ibi"; as chmod 640 $item/.ibi
        printf 'rep,language\n%s,pt\n' $rep > t.csv
        # The links are made for the number of the process that then becomes the command.
        timeout -k 1 30 bash -c '. ./names; as ln -s $PWD/precious $0/.ibi.new-$$; as mkfifo $0/.ibi.new; exec ibifs import A t.csv' $item
        [ $(< precious) = precious ]; grep -q '^language pt$' $item/.ibi; grep -q '^ssh-ed25519 AAAA$' $item/.ibi
        [ "$(stat -c '%u %g %a' $item/.ibi)" = '1001 1001 640' ]; [ -z "$(find $item -name '.ibi.*' -type f)" ]"#,
    );
}

/// Exchanges the directory in which a command prepares files for one with links to a directory outside.
const EXCHANGE: &str = r#"
import os, sys, time
os.chdir('theirs'); end = time.monotonic() + 60; number = 0
print('ready', flush=True)
while not os.path.exists('over') and time.monotonic() < end:
    for name in os.listdir('.'):
        if not name.startswith('.ibifs-') or os.path.islink(name + '/unpacked'): continue
        number += 1
        try:
            os.rename(name, 'away%d' % number); os.mkdir(name)
            for link in ['unpacked', 'item']: os.symlink(sys.argv[1], name + '/' + link)
        except OSError: pass
"#;

/// Zip and tar files and packed bags are unpacked where no other user can exchange anything.
#[test]
fn nothing_is_unpacked_outside() {
    let env = field();
    sh(
        &env,
        &format!(
            r#"cat > exchange.py <<'END'
{EXCHANGE}
END
            mkdir one outside; for i in $(seq 600); do echo $i > one/f$i; done
            tar -C one -cf theirs/x.tar .; (cd one; python3 -m zipfile -c ../theirs/x.zip .)
            name=$(mint A bag); cp one/* A/$name/doc/; ibifs export --bagit --zip A/$name bags > /dev/null; cp bags/$name.zip theirs/bag.zip
            ibifs init B.store --host archive-b.example.org > /dev/null; ibifs init C.store --host archive-c.example.org > /dev/null
            mkdir C; ibifs mount C.store C; chown -R 1001:1001 theirs; as mkdir theirs/bags; as cp theirs/bag.zip theirs/bags
            as python3 exchange.py $PWD/outside > ready & until_ready
            imports() {{ timeout -k 1 60 ibifs import "$@" > said 2> why || [ $? -lt 124 ]; }}
            for source in x.tar x.zip; do for place in A B.store; do
                imports --mint $place theirs/$source
                [ $(find A/$(head -n 1 said)/doc B.store/col/$(head -n 1 said)/doc -name 'f*' 2> /dev/null | wc -l) = 600 ]
            done; done
            imports B.store theirs/bag.zip; imports C theirs/bags
            as touch theirs/over; wait
            diff -r A/$name B.store/col/$name; diff -r A/$name C/$name
            [ -z "$(ls -A outside)" ]; [ -z "$(find theirs -user root -type f)" ]"#
        ),
    );
}

/// Exchanges a bag for a link to one that is root's alone, again and again.
const SWAP: &str = r#"
import ctypes, os, time
libc = ctypes.CDLL(None); end = time.monotonic() + 60
print('ready', flush=True)
while not os.path.exists('over') and time.monotonic() < end:
    libc.renameat2(-100, b'bags/one', -100, b'link', 2)
"#;

/// A package is read where it was found: a link that is put there meanwhile leads nowhere.
#[test]
fn a_package_is_read_through_no_link() {
    let env = field();
    sh(
        &env,
        &format!(
            r#"cat > swap.py <<'END'
{SWAP}
END
            ibifs init B.store --host archive-b.example.org > /dev/null; mkdir -m 700 hidden
            for name in one secret; do
                item=$(ibifs mint B.store | head -n 1); ibifs export --bagit --store B.store $item of-$name > /dev/null
                echo $item > $name; bag=$(dirname "$(find of-$name -name bagit.txt)"); [ $name = one ] || mv "$bag" hidden/bag
            done
            mkdir theirs/bags; mv "$(dirname "$(find of-one -name bagit.txt)")" theirs/bags/one; ln -s $PWD/hidden/bag theirs/link
            chown -Rh 1001:1001 theirs
            (cd theirs; as python3 ../swap.py) > ready & until_ready
            for turn in {{1..40}}; do tries ibifs import --dry-run A theirs/bags || :; cat said; done > all
            as touch theirs/over; wait
            grep -q "would be taken.*$(< one)" all; ! grep -q $(< secret) all"#
        ),
    );
}

/// Root exports into a directory of another user, who has given a directory of root the name of the staging directory.
#[test]
fn an_export_empties_no_directory_of_others() {
    let env = field();
    sh(
        &env,
        r#"item=$(< secret)
        for format in --bagit --ocfl; do
            as mkdir theirs/to$format; staging=theirs/to$format/.ibifs-export
            [ $format = --bagit ] || { ibifs export --ocfl A/$item theirs/to--ocfl > /dev/null; staging=theirs/to--ocfl/extensions/ibifs-export; chown -R 1001:1001 theirs/to--ocfl; }
            mkdir -m 700 $staging.x; cp precious $staging.x/file; as mv $staging.x $staging
            refuses ibifs export $format A/$item theirs/to$format; grep -q 'was not made by an export' said; [ $(< $staging/file) = precious ]
            rm -r $staging; as mkdir -m 700 $staging; refuses ibifs export $format A/$item theirs/to$format; rm -r $staging
            # What an export has left is removed.
            mkdir -m 700 $staging; touch $staging/.made-by-ibifs-export; echo old > $staging/old
            echo more >> A/$item/doc/secret; tries ibifs export $format A/$item theirs/to$format; [ ! -e $staging ]
        done"#,
    );
}
