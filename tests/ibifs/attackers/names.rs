//! Users who may mint and make items of their own, and peers with a token, claim names that are not
//! theirs: names that this Archive has not minted, places where they may not write, names of other
//! items. None is admitted, whichever way it comes, and minting goes on.

use crate::http::served::Served;
use crate::support::TestEnv;

/// `as UID COMMAND` runs it as a stranger. `$own` is the Archive's name space, `$ip` its IBIp prefix.
const TOOLS: &str = r#"
as() { local uid=$1; shift; setpriv --reuid=$uid --regid=$uid --clear-groups "$@"; }
own=example.org/archive-a
ip=$(sed -n 's/^ibi.archiveservice.* ibip \([^/]*\).*/\1/p' A.store/archive.ibi 2> /dev/null || true)
service=$(sed -n 's/^ibi.archiveservice //p' A.store/archive.ibi 2> /dev/null || true)
# Puts the file $3 as the sidecar of the item $2 of A, as user $1, in the way $4.
put() {
    case $4 in
        cp) as $1 cp $3 A/$2/.ibi;;
        rsync) mkdir -p from; cp $3 from/.ibi; as $1 rsync -rt from/ A/$2/;;
        mv) as $1 cp $3 A/$2/tmp; as $1 mv A/$2/tmp A/$2/.ibi;;
        in-place) as $1 truncate -s 0 A/$2/.ibi 2> /dev/null || test ! -s A/$2/.ibi
            as $1 bash -c 'cat $1 >> $2' - $3 A/$2/.ibi;;
        over) as $1 bash -c 'echo "ibi {ibip $1}" > A/$1/.ibi; cp $2 A/$1/tmp; mv -T A/$1/tmp A/$1/.ibi' - $2 $3;;
        link) as $1 cp $3 A/$2/tmp; as $1 ln A/$2/tmp A/$2/.ibi;;
        mapped) as $1 /usr/bin/python3 -c '
import mmap, os, sys
text = open(sys.argv[1], "rb").read()
file = os.open(sys.argv[2], os.O_RDWR | os.O_CREAT, 0o644)
os.ftruncate(file, len(text))
memory = mmap.mmap(file, len(text))
try:
    os.close(file)
except OSError as error:
    assert error.errno == 22
memory[:] = text
memory.flush()
memory.close()' $3 A/$2/.ibi;;
    esac
}
"#;

const WAYS: [&str; 7] = ["cp", "rsync", "mv", "in-place", "over", "link", "mapped"];

/// The script after every attack: the store, looked over, made again from the tree, with a lost index and
/// repaired, mints in the present, and the item named by `$bad` is never the original.
const GOES_ON: &str = r#"
mints() {
    ibifs mint $1 > minted
    head -n 1 minted | cut -d/ -f1-3 | grep -qx "$own/$(date -u +%Y)"
    ibifs fsck $1 --json > report || true
    jq -r '.findings[].code' report | no grep -q '^date-'
    for name in $bad; do
        ibifs show --store $1 $name > shown 2> missing || continue
        no grep -q '^state *Original' shown
    done
}
goes_on() {
    mints $1
    ibifs reindex $1 2> printed; mints $1
    lose_index $1; mints $1
    lose_index $1; ibifs fsck --repair $1 > printed || true; mints $1
    lose_index $1; rm $1/ledger; mints $1
}
"#;

/// The Archive A, in which any user may mint.
fn open_world() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh("chmod 1777 A; mkdir -p A/closed.org/w/2020");
    env
}

fn run(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{TOOLS}{GOES_ON}{script}"))
}

/// Reps that a user who may make things in the root of the mount must not get by way of an IBIp.
const REPS: [&str; 9] = [
    "example.org/archive-a/9999/12.31.23.59.59",
    "EXAMPLE.org/Archive-A/9999/12.31.23.59.59",
    "example.org./archive-a/9999/12.31.23.59.59",
    "example.org/archive-a@80/9999/12.31.23.59.59",
    "example.org/archive-a.80/9999/12.31.23.59.59",
    "example.org/archive-a.0080/9999/12.31.23.59.59",
    "example.org/archive-a/2020/01.01.01.01",
    "closed.org/w/2020/01.01.01.01",
    "CLOSED.org./W/2020/01.01.01.01",
];

/// An item arrives by its IBIp and says that it has such a rep: it stays where it is, the sidecar is
/// not accepted, fsck says so, and minting goes on.
#[test]
fn a_sidecar_takes_no_rep_that_its_writer_could_not_make() {
    for way in WAYS {
        let env = open_world();
        run(
            &env,
            &format!(
                r#"n=0; suffixes=23456789A
                for rep in {}; do for last in B C; do
                    ibip=8JMKD3MGP8W/34PGR${{suffixes:n:1}}$last; as 1001 mkdir -p A/$ibip
                    echo "ibi {{rep $rep ibip $ibip}}" > claim
                    test $last = B || echo "ibi.archiveservice $service" >> claim
                    chmod 644 claim; put 1001 $ibip claim {way}
                    cmp claim A/$ibip/.ibi; test ! -e A/$rep
                    test $(state A/$ibip) = Copy; no rep A/$ibip; as 1001 touch A/$ibip/file
                    echo $ibip >> refused
                done; n=$((n + 1)); done; test $n = 9"#,
                REPS.join(" ")
            ),
        );
        run(
            &env,
            "test ! -e A/$own/9999; test ! -e A.store/col/$own/9999; test ! -e A.store/col/$own/2020
             test -z \"$(ls A.store/col/closed.org/w/2020)\"; test $(ls A.store/col | wc -l) = 2
             mkdir A/.mint/more; ibifs umount A
             ibifs fsck A.store --json > report
             jq -r '.findings[] | \"\\(.code) \\(.subject)\"' report | sort > found
             sed 's/^/name-refused /' refused | sort | diff - found
             bad=$(<refused); goes_on A.store; ibifs mount A.store A
             for i in $(<refused); do test -d A/$i; test $(state A/$i) = Copy; done",
        );
    }
}

/// The same where the user may make the place: it is made as he would make it, with his own levels.
#[test]
fn an_item_is_moved_as_its_writer_would_move_it() {
    let env = open_world();
    run(
        &env,
        "ibip=8JMKD3MGP8W/34PGRBS; as 1001 mkdir -p A/$ibip
         echo \"ibi {rep new.org/w/2020/01.01.01.01 ibip $ibip}\" > claim; chmod 644 claim
         as 1001 cp claim A/$ibip/.ibi
         for level in new.org new.org/w new.org/w/2020 new.org/w/2020/01.01.01.01; do
             test $(stat -c %u A/$level) = 1001
         done
         test $(ibip A/new.org/w/2020/01.01.01.01) = $ibip; as 1001 mkdir A/new.org/w/2020/02.02.02.02",
    );
    // Another user may not put anything there.
    run(
        &env,
        "ibip=8JMKD3MGP8W/34PGRBT; as 1002 mkdir -p A/$ibip
         echo \"ibi {rep new.org/w/2020/03.03.03.03 ibip $ibip}\" > claim; chmod 644 claim
         as 1002 cp claim A/$ibip/.ibi; test ! -e A/new.org/w/2020/03.03.03.03; test -d A/$ibip
         as 1001 chmod 777 A/new.org/w/2020; as 1002 cp claim A/$ibip/.ibi; test ! -e A/new.org/w/2020/03.03.03.03 ||
             test $(stat -c %u A/new.org/w/2020/03.03.03.03) = 1002",
    );
    // Nor does a user who may write into the item of another take it out of a sticky directory.
    run(
        &env,
        "ibip=8JMKD3MGP8W/34PGRBU; as 1001 mkdir -p A/$ibip; as 1001 chmod 777 A/$ibip
         echo \"ibi {rep mine.org/w/2020/03.03.03.03 ibip $ibip}\" > claim; chmod 644 claim
         as 1002 cp claim A/$ibip/.ibi; test ! -e A/mine.org; test -d A/$ibip",
    );
    // The administrator moves it by writing the same once more.
    run(
        &env,
        "rm A/8JMKD3MGP8W/34PGRBU/.ibi; cp claim A/8JMKD3MGP8W/34PGRBU/.ibi
         test -d A/mine.org/w/2020/03.03.03.03
         ibifs umount A; ibifs fsck A.store; ibifs reindex A.store; ibifs fsck A.store",
    );
}

/// An item with a rep says that it has such an IBIp.
#[test]
fn a_sidecar_takes_no_ibip_that_is_not_its_own() {
    for way in ["cp", "rsync", "mv", "in-place", "link"] {
        let env = open_world();
        run(
            &env,
            &format!(
                "mint A victim > victim; taken=$(ibip A/$(<victim))
                 as 1002 mkdir -p A/8JMKD3MGP8W/34PGRBS
                 as 1001 mkdir -p A/mine.org/w/2020; n=10; : > refused
                 for claim in $ip/UUUUUUU $ip/uuuuuuu $taken ${{taken,,}} 8JMKD3MGP8W/34PGRBS 8jmkd3mgp8w/34pgrbs; do
                     for line in '' \"ibi.archiveservice $service\"; do
                         n=$((n + 1)); item=mine.org/w/2020/01.01.01.$n; as 1001 mkdir A/$item
                         printf 'ibi {{rep %s ibip %s}}\\n%s\\n' $item $claim \"$line\" > claim
                         chmod 644 claim; put 1001 $item claim {way}
                         no ibip A/$item; test $(state A/$item) = Copy; echo $item >> refused
                     done
                 done
                 test ! -e A/$ip/UUUUUUU; test $(rep A/$taken) = $(<victim)
                 as 1002 touch A/8JMKD3MGP8W/34PGRBS/file; no rep A/8JMKD3MGP8W/34PGRBS
                 ibifs umount A; ibifs fsck A.store > printed || true
                 for item in $(<refused); do grep -q \"^[a-z-]*: $item: \" printed; done
                 bad=\"$(<refused) $ip/UUUUUUU\"; goes_on A.store; ibifs mount A.store A
                 test $(rep A/$taken) = $(<victim); test -e A/8JMKD3MGP8W/34PGRBS/file; test ! -e A/$ip/UUUUUUU"
            ),
        );
    }
}

/// Without the right to make things in the root of the mount, no user takes an IBIp for an item.
#[test]
fn a_second_name_needs_the_right_to_make_it() {
    let env = TestEnv::new().with_a();
    run(
        &env,
        "mkdir -p A/his.org/w/2020; chown 1001 A/his.org/w/2020; item=his.org/w/2020/01.01.01.01
         as 1001 mkdir A/$item; as 1001 mkdir A/8JMKD3MGP8W 2> printed && exit 1
         echo \"ibi {rep $item ibip 8JMKD3MGP8W/34PGRBS}\" > claim; chmod 644 claim
         as 1001 cp claim A/$item/.ibi; no ibip A/$item; test ! -e A/8JMKD3MGP8W
         ibifs umount A; ibifs fsck A.store > printed; grep -q \"^name-refused: $item: \" printed
         ibifs reindex A.store 2> printed; ibifs mount A.store A; no ibip A/$item
         cp claim A/$item/.ibi; test $(ibip A/$item) = 8JMKD3MGP8W/34PGRBS
         ibifs umount A; ibifs fsck A.store; ibifs reindex A.store; ibifs fsck A.store",
    );
}

/// `mkdir` makes no such name, however it is spelled, and no user takes the identity of a removed item
/// by the name whose directory he may write.
#[test]
fn mkdir_makes_no_name_that_was_not_minted() {
    let env = open_world();
    for rep in &REPS[..6] {
        run(
            &env,
            &format!("mkdir -p A/$(dirname {rep}); no mkdir A/{rep}; no as 1001 mkdir A/{rep}"),
        );
    }
    run(
        &env,
        "no mkdir -p A/$ip/UUUUUUU; no as 1001 mkdir -p A/${ip,,}/uuuuuuu
         mint A gone > gone; ibip=$(ibip A/$(<gone)); rm -r A/$(<gone)
         no as 1001 mkdir A/$ibip; no as 1001 mkdir A/${ibip,,}; test ! -e A/$(<gone)
         mkdir A/$ibip; test -d A/$(<gone); test $(stat -c %u A/$(<gone)) = 0
         bad=$ip/UUUUUUU; ibifs umount A; goes_on A.store",
    );
}

/// In the own name space nothing becomes an original because a user's sidecar says so; what the
/// administrator puts back does.
#[test]
fn a_forged_sidecar_makes_no_original() {
    let env = open_world();
    run(
        &env,
        "past=$ip/34PGRBS; as 1001 mkdir -p A/$past
         printf 'ibi {ibip %s}\\nibi.archiveservice %s\\n' $past \"$service\" > claim; chmod 644 claim
         as 1001 cp claim A/$past/.ibi; test $(state A/$past) = Copy
         as 1001 mkdir -p A/mine.org/w/2020/01.01.01.01
         printf 'ibi {rep mine.org/w/2020/01.01.01.01 ibip %s}\\nibi.archiveservice %s\\n' $ip/34PGRBT \"$service\" > second
         chmod 644 second; as 1001 cp second A/mine.org/w/2020/01.01.01.01/.ibi
         test $(state A/mine.org/w/2020/01.01.01.01) = Copy
         ibifs umount A; ibifs fsck A.store > printed; grep -c ^name-refused: printed | grep -qx 2
         bad=\"$past mine.org/w/2020/01.01.01.01\"; goes_on A.store; ibifs mount A.store A
         mkdir -p A/$own/2020/01.01.01.01
         printf 'ibi {rep %s}\\nibi.archiveservice %s\\n' $own/2020/01.01.01.01 \"$service\" > back
         cp back A/$own/2020/01.01.01.01/.ibi; test $(state A/$own/2020/01.01.01.01) = Original
         mint A kept > kept; cp -a A/$(<kept) copy; rm -r A/$(<kept); cp -a copy A/$(<kept)
         test $(state A/$(<kept)) = Original",
    );
}

/// An alias that another item has, or that is an identifier, is refused where it is set, and not
/// recorded where a sidecar says it.
#[test]
fn an_alias_is_one_items() {
    let env = open_world();
    run(
        &env,
        "mint A first > first; as 1001 mkdir A/.mint/second; labelled A second as 1001 > second
         setfattr -n user.ibi.alias -v 6RPa7umaZ/UaJFT A/$(<first)
         set_alias() { as 1001 setfattr -n user.ibi.alias -v $1 A/$(<second) 2> printed && exit 1; grep -q \"$2\" printed; }
         set_alias 6RPa7umaZ/UaJFT 'File exists'
         set_alias $(ibip A/$(<first)) 'File exists'
         lower=$(ibip A/$(<first)); set_alias ${lower,,} 'File exists'
         set_alias $ip/UUUUUUU 'Invalid argument'; set_alias 8JMKD3MGP8W/34PGRBS 'Invalid argument'
         no grep -q alias A/$(<second)/.ibi
         setfattr -n user.ibi.alias -v 6RPa7umaZ/UaJFT A/$(<first)",
    );
    for way in ["cp", "rsync", "mv", "in-place"] {
        run(
            &env,
            &format!(
                "grep -v alias A/$(<second)/.ibi > claim
                 echo \"ibi.alias {{6RPa7umaZ/UaJFT 8JMKD3MGP8W/34PGRBS $ip/uuuuuuu good/one}}\" >> claim
                 chmod 644 claim; as 1001 rm -f A/$(<second)/.ibi; put 1001 $(<second) claim {way}
                 test $(rep A/6RPa7umaZ/UaJFT/) = $(<first); test $(rep A/good/one/) = $(<second)
                 test ! -e A/8JMKD3MGP8W/34PGRBS; test ! -e A/$ip/UUUUUUU
                 as 1002 mkdir -p A/8JMKD3MGP8W/34PGRBS; rmdir A/8JMKD3MGP8W/34PGRBS"
            ),
        );
    }
    run(
        &env,
        "ibifs umount A; ibifs fsck A.store > printed
         grep -q \"^alias-taken: $(<second): \" printed; no grep -q index-differs printed
         for again in 1 2; do ibifs reindex A.store 2> printed; done; bad=; goes_on A.store
         ibifs mount A.store A; test $(rep A/6RPa7umaZ/UaJFT/) = $(<first)",
    );
}

/// Aliases that differ in case only are one name, and so one item's; in base 53 case counts.
#[test]
fn an_alias_is_one_items_whatever_its_case() {
    for index in ["", "--index \"$(database)\""] {
        let env = TestEnv::new().with_index_file().with_postgres();
        let script = format!(
            "chmod 755 .; mkdir A; ibifs init A.store --host archive-a.example.org {index} > /dev/null
             ibifs mount A.store A; chmod 1777 A
             as 1001 mkdir A/.mint/one; as 1002 mkdir A/.mint/two
             labelled A one as 1001 > one; labelled A two as 1002 > two
             as 1001 setfattr -n user.ibi.alias -v foo/bar A/$(<one)
             no as 1002 setfattr -n user.ibi.alias -v FOO/BAR A/$(<two)
             is() {{ test $(rep A/$1/.) = $(<$2); }}
             for_all() {{ for name in foo/bar FOO/BAR Foo/baR; do is $name one; done; is 6RPa7umaZ/UaJFT two; }}
             cat A/$(<two)/.ibi > claim; echo 'ibi.alias {{Foo/Bar 6RPa7umaZ/UaJFT}}' >> claim
             chmod 644 claim; as 1002 cp claim A/$(<two)/.ibi; for_all; no ls A/6rpa7UMAZ/uajft
             ibifs show fOO/bar --store A.store | grep -q $(<one)
             ibifs umount A; ibifs fsck A.store > printed || true
             grep -q \"^alias-taken: $(<two): \" printed; no grep -q index-differs printed
             ibifs reindex A.store > /dev/null || :; ibifs mount A.store A; for_all; ibifs umount A
             # An earlier version has recorded both.
             if test -e A.store/relations.sqlite3; then
                 in_database A.store/relations.sqlite3 \"INSERT INTO alias SELECT 'Foo/Bar', id FROM item WHERE rep = '$(<two)'\"
                 ibifs mount A.store A; for_all; ibifs umount A
                 ibifs fsck --repair A.store > /dev/null || :; ibifs mount A.store A; for_all
             fi"
        );
        run(&env, &script);
    }
}

/// An alias belongs, when the index is rebuilt, to the item which had it, whatever comes first in the tree.
#[test]
fn the_old_index_says_whose_a_name_is() {
    let env = TestEnv::new().with_a();
    run(
        &env,
        "for item in a.org/w/2020/01.01.01.01 b.org/w/2020/01.01.01.01; do mkdir -p A/$item; done
         printf 'ibi {rep b.org/w/2020/01.01.01.01 ibip 8JMKD3MGP8W/34PGRBS}\\nibi.alias {old/name}\\n' > claim
         cp claim A/b.org/w/2020/01.01.01.01/.ibi; sed 's/b.org/a.org/' claim > second
         cp second A/a.org/w/2020/01.01.01.01/.ibi
         for again in 1 2 3; do
             test $(rep A/8JMKD3MGP8W/34PGRBS/) = b.org/w/2020/01.01.01.01
             test $(rep A/old/name/) = b.org/w/2020/01.01.01.01; no ibip A/a.org/w/2020/01.01.01.01
             ibifs umount A; ibifs fsck A.store > printed || true; grep -q ' a.org/w/2020/01.01.01.01: ' printed
             ibifs reindex A.store 2> printed; ibifs mount A.store A
         done",
    );
    // An item that lies under its IBIp has it before one that says so.
    run(
        &env,
        "mkdir -p A/8JMKD3MGP8W/34PGRBT A/a.org/w/2020/02.02.02.02; echo x > A/8JMKD3MGP8W/34PGRBT/file
         echo 'ibi {rep a.org/w/2020/02.02.02.02 ibip 8jmkd3mgp8w/34pgrbt}' > claim; ibifs umount A
         cp claim A.store/col/a.org/w/2020/02.02.02.02/.ibi; lose_index A.store
         ibifs mount A.store A; test $(< A/8JMKD3MGP8W/34PGRBT/file) = x; no rep A/8JMKD3MGP8W/34PGRBT
         no ibip A/a.org/w/2020/02.02.02.02",
    );
}

/// A store in which such directories lie already, from before they were refused: they are named and not
/// served, minting goes on, and it goes on after they are removed.
#[test]
fn what_got_in_before_is_named() {
    let env = TestEnv::new();
    run(
        &env,
        "ibifs init A.store --host archive-a.example.org > printed; service=$(sed -n 's/^ibi.archiveservice //p' A.store/archive.ibi)
         bad=$own/9999/12.31.23.59.59; mkdir -p A.store/col/$bad A.store/deleted/col/$own/9998; mkdir A
         printf 'ibi {rep %s}\\nibi.archiveservice %s\\n' $bad \"$service\" > A.store/col/$bad/.ibi
         printf 'ibi {rep %s}\\nstate Deleted\\ntimestamp 2026-01-01T00:00:00Z\\n' $own/9998/01.01.01.01 > A.store/deleted/col/$own/9998/01.01.01.01
         ibifs mount A.store A; no cat A/$bad/.ibi; mint A more > more; ibifs umount A
         ibifs fsck A.store > printed || true; grep -q \"^not-minted: $bad: \" printed; goes_on A.store
         rm -r A.store/col/$bad; ibifs mount A.store A; mint A last > last; ibifs umount A; ibifs fsck A.store
         bad=; goes_on A.store",
    );
}

/// A collection that is adopted raises no mark and makes no original of what is dated later than now.
#[test]
fn an_adopted_collection_stops_no_minting() {
    let env = TestEnv::new();
    run(
        &env,
        "mkdir -p A.store/col/$own/9999/12.31.23.59.59/doc A.store/col/$own/2020/01.01.01.01/doc A
         ibifs init --adopt A.store --host archive-a.example.org > printed 2>&1; grep -q not-minted printed
         bad=$own/9999/12.31.23.59.59; ibifs show --store A.store $own/2020/01.01.01.01 | grep -q '^state *Original'
         test ! -e A.store/col/$bad/.ibi; goes_on A.store",
    );
}

/// A table gives no item a name or an alias that it may not have.
#[test]
fn a_table_gives_no_such_name() {
    let env = TestEnv::new().with_a();
    run(
        &env,
        "mkdir -p A/a.org/w/2020/01.01.01.01 A/b.org/w/2020/01.01.01.01; mint A first > first
         taken=$(ibip A/$(<first)); setfattr -n user.ibi.alias -v old/name A/$(<first)
         for mounted in yes no; do
             test $mounted = yes || ibifs umount A
             for ibip in $ip/UUUUUUU ${ip,,}/uuuuuuu $taken ${taken,,}; do
                 printf 'rep\\tibip\\na.org/w/2020/01.01.01.01\\t%s\\n' $ibip > table.tsv
                 ibifs import --store A.store table.tsv > printed 2>&1 && exit 1
             done
             for alias in old/name $taken $ip/UUUUUUU; do
                 printf 'rep\\talias\\na.org/w/2020/01.01.01.01\\t%s\\n' $alias > table.tsv
                 ibifs import --store A.store table.tsv > printed 2>&1 && exit 1
             done
         done
         test ! -e A.store/col/a.org/w/2020/01.01.01.01/.ibi; ibifs fsck A.store; bad=; goes_on A.store",
    );
}

/// A peer with a token brings no such name, in either form, with the store mounted or not.
#[test]
fn a_peer_brings_no_such_name() {
    for mounted in [false, true] {
        let env = TestEnv::new();
        env.sh(
            "ibifs init A.store --host archive-a.example.org > printed; mkdir A
             head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > token; cp token tokens; chmod 600 token tokens",
        );
        if mounted {
            env.sh("ibifs mount A.store A");
        }
        let served = Served::start(&env, "A.store --transfer-token-file tokens");
        run(
            &env,
            &format!(
                "send() {{
                     printf 'ibi {{%s}}\\n' \"$1\" > side; printf 'directory 755 1.0 \\n' > list
                     {{ stat -c %s side; cat side list; }} > body
                     curl -s -o answer -w '%{{http_code}}' -X POST -H \"Authorization: Bearer $(<token)\" --data-binary @body \
                         \"{}/transfer?step=complete&$2&from.rep=peer.example/x/2020/01.01.01.01\" > status
                     no grep -q ^2 status
                 }}
                 for rep in $own/9999/12.31.23.59.59 ${{own^^}}/9999/12.31.23.59.59 $own@80/9999/12.31.23.59.59; do
                     send \"rep $rep\" rep=$rep
                     send \"rep $rep ibip 8JMKD3MGP8W/34PGRBS\" ibip=8JMKD3MGP8W/34PGRBS
                 done
                 send \"ibip $ip/UUUUUUU\" ibip=$ip/UUUUUUU; send \"ibip ${{ip,,}}/uuuuuuu\" ibip=${{ip,,}}/uuuuuuu
                 send \"rep peer.example/x/2020/02.02.02.02 ibip $ip/UUUUUUU\" rep=peer.example/x/2020/02.02.02.02
                 ibifs show --store A.store $ip/UUUUUUU && exit 1; find A.store/col -path '*9999/*' | no grep .",
                served.url
            ),
        );
        drop(served);
        run(
            &env,
            "! mountpoint -q A || ibifs umount A; bad=; goes_on A.store",
        );
    }
}

/// A vain claim of a depositor is named, and delays no backup; neither the backup nor the check fails for that.
#[test]
fn a_refused_claim_fails_nothing_for_others() {
    let env = TestEnv::new().with_a();
    run(
        &env,
        "mkdir -p A/his.org/w/2020; chown 1001 A/his.org/w/2020; item=his.org/w/2020/01.01.01.01
         as 1001 mkdir A/$item; echo \"ibi {rep $item ibip 8JMKD3MGP8W/34PGRBS}\" > claim; chmod 644 claim
         as 1001 cp claim A/$item/.ibi; printf 'titel: x\\nno field\\n' > text; chmod 644 text; as 1001 cp text A/$item/.ibi.metadata",
    );
    // Twice five seconds were waited for the index to follow, each time. Beside other programs one may take as long by chance.
    let is_delayed = |_| {
        let began = std::time::Instant::now();
        run(&env, "rm -rf copy; ibifs backup A.store copy");
        began.elapsed() >= std::time::Duration::from_secs(10)
    };
    assert!(!(0..3).all(is_delayed));
    run(
        &env,
        "cmp claim copy/col/his.org/w/2020/01.01.01.01/.ibi; ibifs fsck copy > printed; grep -q ^name-refused: printed
         ibifs fsck A.store > printed; grep -q ^name-refused: printed; grep -q ^unknown-field: printed
         ibifs umount A; ibifs fsck A.store > printed; grep -q ^name-refused: printed",
    );
}

/// An item without a rep is removed by its owner, as one with a rep is, also where the level is root's, and by no other
/// user.
#[test]
fn an_owner_removes_an_item_without_a_rep() {
    let env = open_world();
    run(
        &env,
        "item=A/8JMKD3MGP8W/34PGRBS; as 1001 mkdir -p $item; no as 1002 rmdir $item; no as 1002 rm -r $item; test -d $item
         as 1001 rmdir $item; test ! -e $item
         as 1001 mkdir -p A/8JMKD3MGP8W/34PGRBT; chmod 755 A; no as 1002 rmdir A/8JMKD3MGP8W/34PGRBT
         as 1001 rmdir A/8JMKD3MGP8W/34PGRBT; test ! -e A/8JMKD3MGP8W/34PGRBT",
    );
}
