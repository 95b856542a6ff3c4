//! The tree is the truth and the index lags at worst: what reindex, fsck, adoption and a restored
//! backup promise.

use crate::support::TestEnv;

/// Everything that the command line prints of a store, in the files NAME.ls and NAME.show.
#[track_caller]
fn printed(env: &TestEnv, store: &str, name: &str) {
    env.sh(&format!(
        "ibifs ls {store} --json > {name}.ls
         jq -r '.[] | .rep // .ibip' {name}.ls | while read n; do
             ibifs show \"$n\" --store {store} --json
         done > {name}.show"
    ));
}

/// Rebuilding the index gives back everything that was there: editions, translations, metadata,
/// tombstones, aliases, items known by an IBIp alone, copies, and relations across Archives.
#[test]
fn reindex_gives_back_what_was_there() {
    let env = TestEnv::new().with_a().with_b();
    env.sh("ibifs mint A | head -1 > report
        ibifs mint A --edition-of $(<report) | head -1 > second
        ibifs mint A --edition-of $(<second) | head -1 > third
        ibifs mint A --translation-of $(<third) --lang pt | head -1 > pt
        ibifs mint A --translation-of $(<report) --lang pt-BR | head -1 > br
        ibifs mint A --metadata-of $(<report) | head -1 > metadata
        echo text > A/$(<report)/doc/text
        setfattr -n user.ibi.alias -v 6RPa7umaZ/UaJFT A/$(<report)
        setfattr -n user.ibi.language -v en A/$(<report)
        setfattr -n user.ibi.target -v text A/$(<report)
        mint A gone > gone; rm -r A/$(<gone)
        rm -r A/$(<br)
        mkdir -p A/8JMKD3MGP8W/34PGRBS A/lk47b6w/362SFKH A/sid.inpe.br/MTC-m13@80/2005/05.05.05.05.05
        mint B theirs > theirs; echo theirs > B/$(<theirs)/doc/text
        mkdir -p A/$(dirname $(<theirs)); cp -a B/$(<theirs) A/$(<theirs)
        ibifs mint A --translation-of $(<theirs) --lang fr > fr
        ibifs relate A/$(<pt) --metadata sid.inpe.br/elsewhere/2009/01.01.00.00
        ibifs umount A");
    env.prints(
        "ibifs ls A.store | cut -d' ' -f1 | sort | uniq -c | xargs",
        "4 Copy 2 Deleted 7 Original",
    );
    printed(&env, "A.store", "before");
    env.prints("ibifs reindex A.store", "11 items indexed");
    printed(&env, "A.store", "again");
    env.sh("diff before.ls again.ls; diff before.show again.show");
    env.sh("lose_index A.store");
    env.complains("ibifs ls A.store", "reindex");
    env.prints("ibifs reindex A.store", "11 items indexed");
    printed(&env, "A.store", "after");
    env.sh("jq -S 'sort_by(.rep, .ibip)' before.ls > x; jq -S 'sort_by(.rep, .ibip)' after.ls | diff x -
        jq -sS 'sort_by(.rep, .ibip)' before.show > x; jq -sS 'sort_by(.rep, .ibip)' after.show | diff x -");
    // A translation was removed.
    env.prints(
        "ibifs fsck A.store | sed 's/: .*//'",
        "removed-target\n11 items, 1 finding",
    );
    env.sh("ibifs mount A.store A; ls A/6RPa7umaZ/UaJFT/doc/text; readlink \"A/$(<report)!+(pt)\"");
}

/// A start after a kill finishes what was under way, and does not say again what an item had said of
/// another before that one came to say otherwise.
#[test]
fn a_start_does_not_repeat_a_relation_that_is_over() {
    let env = TestEnv::new().with_a();
    env.sh(
        "again() { cp A/$far/.ibi said; kill -9 $(daemon A.store); ibifs umount A; ibifs mount A.store A
             diff said A/$far/.ibi; grep -q \"ibi.metadataof {rep $copy}\" A/$far/.ibi; }
         near=$(ibifs mint A | head -1); far=$(ibifs mint A | head -1); copy=example.net/b/2024/01.01.10.00.01; mkdir -p A/$copy
         # By an attribute: the copy says nothing itself.
         setfattr -n user.ibi.metadata -v $far A/$near; setfattr -n user.ibi.metadataof -v $copy A/$far; again
         # What is not about this relation leaves it.
         setfattr -n user.ibi.nextedition -v $far A/$near; again
         # By a sidecar, while the original was elsewhere.
         setfattr -n user.ibi.metadata -v $far A/$near; grep -q \"metadataof {rep $near\" A/$far/.ibi
         sed '/^ibi.archiveservice/s,archive-a,archive-b,g; /^ibi.archiveservice/s, ibip [^}]*,,; /metadataof/d' said > copied; sed \"/^ibi.metadataof/s,{.*,{rep $copy},\" said > back
         cp copied A/$far/.ibi; cp back A/$far/.ibi; again",
    );
}

/// The date from which minting goes on survives the loss of the index: also where the latest item
/// has been removed, and where the clock's minute has not passed.
#[test]
fn reindex_never_mints_again_what_was_minted() {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A.store --host archive-a.example.org; mkdir A; : > minted
        for i in $(seq 6); do
            ibifs mint A.store | head -1 >> minted
            ibifs mount A.store A; mint A last | sed -e '$a\\' >> minted; rm -r A/$(tail -1 minted)
            pid=$(daemon A.store)
            if test $((i % 2)) = 0; then kill -9 $pid; fi
            ibifs umount A
            lose_index A.store; ibifs reindex A.store
        done",
    );
    env.prints("wc -l < minted; sort -u minted | wc -l", "12\n12");
}

/// A restored backup, whole or beside the original, never mints a label that has been handed out.
#[test]
fn a_restored_backup_never_mints_a_label_twice() {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A.store --host archive-a.example.org --ip 192.0.2.1; : > minted
        m() { for i in 1 2 3; do ibifs mint A.store 2> printed | sed -n ${1}p >> minted; done; }
        m 1; cp -a A.store backup; m 1
        mv A.store away; mv backup A.store; m 1; m 1
        rm -rf A.store; cp -a away A.store; m 1",
    );
    env.prints("wc -l < minted; sort -u minted | wc -l", "15\n15");
}

/// Nor does a backup that is put back over the store itself, file by file, within the minute whose
/// short label was handed out in between.
#[test]
fn a_backup_put_back_in_place_never_mints_a_label_twice() {
    let env = TestEnv::new();
    // With the last date far in the past the first label of a mint is the present minute's.
    env.sh(
        "ibifs init A.store --host archive-a.example.org --ip 192.0.2.1
        sed -i 's/^last .*/last 2026-01-01T00:00:00Z/' A.store/ledger
        in_database A.store/relations.sqlite3 \"update ledger set last='2026-01-01T00:00:00Z'\"
        cp -a A.store backup
        ibifs mint A.store | head -n 1 > one
        rm -r A.store/col/$(cat one)
        cp -a backup/. A.store/",
    );
    env.complains(
        "ibifs mint A.store > two; false",
        "this store was copied or restored",
    );
    env.prints("cat one <(head -n 1 two) | sort -u | wc -l", "2");
}

/// Makes a col/ tree as URLib left it: 310 repositories of several Archives, with none of our
/// sidecars, and things that do not belong there.
const COL: &str = "mkdir -p old/col && cd old/col
    for i in $(seq 100 159); do
        mkdir -p sid.inpe.br/MTC-m13@80/2005/01.01.12.${i:1}/doc
        echo $i > sid.inpe.br/MTC-m13@80/2005/01.01.12.${i:1}/doc/@relatorio.pdf
    done
    for i in $(seq 10 59); do
        mkdir -p dpi.inpe.br/banon-pc3@1905/2006/02.03.04.$i/doc
        mkdir -p dpi.inpe.br/banon-pc3@1905/2006/02.03.05.06.$i/doc
        mkdir -p iconet.com.br/banon/1998/08.02.08.$i/doc
        mkdir -p iconet.com.br/banon/1999/08.02.08.02.$i/doc
        mkdir -p sid.inpe.br/mtc-m18/2009/02.16.17.$i/doc
    done
    echo stray > README; echo stray > sid.inpe.br/index.html; echo x > sid.inpe.br/mtc-m18/2009/.DS_Store
    mkdir -p lost+found sid.inpe.br/mtc-m18/2009/backup sid.inpe.br/mtc-m18/2009/02.30.00.00 sid.inpe.br/mtc_m18/2009/01.01.00.00
    cd ../..
    (cd old && find . -path ./deleted -prune -o -type f -printf '%p %s %T@\\n' | sort) > before";

/// `ibifs init --adopt` takes a col/ tree over as it is: items of the own name space become
/// originals, the others copies; other spellings are links; nothing that was there is touched; what
/// does not belong there is named by fsck and stays; a second time is refused.
#[test]
fn adopting_takes_a_tree_as_it_is() {
    let env = TestEnv::new();
    env.sh(COL);
    env.sh("chmod 700 old; ibifs init --adopt old/col --host mtc-m18.sid.inpe.br; mkdir A");
    env.prints(
        "ibifs ls old | cut -d' ' -f1 | sort | uniq -c | xargs",
        "260 Copy 51 Original",
    );
    env.prints(
        "ibifs ls old --state Original sid.inpe.br/mtc-m18/2009 | wc -l",
        "50",
    );
    env.sh(
        "(cd old && find col -type f ! -name .ibi -printf './%p %s %T@\\n' | sort) | diff before -",
    );
    env.prints("find old/col -name .ibi | wc -l", "51");
    for again in ["old", "old/col"] {
        env.exits(
            &format!("ibifs init --adopt {again} --host x.example.org"),
            4,
        );
    }
    env.prints("grep ^host old/archive.ibi", "host mtc-m18.sid.inpe.br");
    env.exits("ibifs init --adopt nowhere", 3);
    env.exits("ibifs fsck old > report", 1);
    env.prints(
        "cut -d: -f1,2 report | head -n -1 | sort",
        "stray-name: col/sid.inpe.br/mtc-m18/2009/02.30.00.00\n\
         stray-name: col/sid.inpe.br/mtc-m18/2009/backup\n\
         stray-name: col/sid.inpe.br/mtc_m18/2009/01.01.00.00",
    );
    env.sh("ibifs mount old A");
    env.prints("readlink A/sid.inpe.br/mtc-M13@80", "MTC-m13@80");
    env.prints("readlink A/SID.inpe.br", "sid.inpe.br");
    env.prints(
        "cat A/sid.INPE.br/mtc-m13@80/2005/01.01.12.42/doc/@relatorio.pdf",
        "142",
    );
    env.prints("state A/sid.inpe.br/mtc-m18/2009/02.16.17.42", "Original");
    env.prints("state A/iconet.com.br/banon/1999/08.02.08.02.10", "Copy");
    env.prints(
        "find A -mindepth 4 -maxdepth 4 | wc -l; ls A; ls A/sid.inpe.br/mtc-m18/2009 | grep -c -e backup -e 02.30 || true",
        "311\ndpi.inpe.br\niconet.com.br\nsid.inpe.br\n0",
    );
    env.sh("test ! -e A/README; test ! -e A/lost+found; test ! -e A/sid.inpe.br/index.html");
    env.sh("mint A new > new; ibifs umount A; test -f old/col/README; test -d old/col/lost+found");
    env.prints("cut -d/ -f1,2 new", "sid.inpe.br/mtc-m18");
}

/// A store with two related items and a third, offline; names in a, b, c.
fn fixture() -> TestEnv {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org; mkdir A
        for n in a b c; do ibifs mint A.store | head -1 > $n; done
        ibifs relate $(<a) --next-edition $(<b) --store A.store
        ibifs fsck A.store > /dev/null");
    env
}

/// Breaks a store, expects these findings, repairs, and expects none or those left.
#[track_caller]
fn finds(script: &str, codes: &str, left: &str) -> TestEnv {
    let env = fixture();
    env.sh(&format!(
        "I() {{ in_database A.store/relations.sqlite3 \"PRAGMA foreign_keys=on; $1\"; }}
        {script}"
    ));
    let all = "jq -r '.findings[].code' report | sort | uniq -c | xargs";
    let checked = "code=0; ibifs fsck A.store --json > report || code=$?
        test $code = $(jq 'if .errors + .warnings > 0 then 1 else 0 end' report)";
    env.sh(checked);
    env.prints(all, codes);
    env.sh("ibifs fsck A.store --repair > repaired || true");
    env.sh(checked);
    env.prints(all, left);
    env
}

/// fsck names an item that the index does not know, and adds it.
#[test]
fn fsck_finds_what_is_not_indexed() {
    let env = finds(
        "mkdir -p A.store/col/sid.inpe.br/x/2009/01.01.00.00; I \"DELETE FROM item WHERE rep = '$(<c)'\"",
        "2 not-indexed",
        "",
    );
    env.prints("ibifs ls A.store | wc -l", "5");
    env.prints("ibifs show $(<c) --store A.store | grep -c Original", "1");
}

/// fsck names what the index says otherwise than the tree, and accepts the tree.
#[test]
fn fsck_finds_where_the_index_differs() {
    let env = finds(
        "I \"UPDATE item SET state = 'Copy' WHERE rep = '$(<c)'; DELETE FROM relation\"",
        "3 index-differs",
        "",
    );
    env.prints(
        "ibifs show $(<a) --store A.store | grep -c ^nextedition",
        "1",
    );
}

/// fsck names items whose directories are gone, and records them as removed.
#[test]
fn fsck_finds_what_is_not_in_the_tree() {
    let env = finds("rm -r A.store/col/$(<c)", "1 not-in-tree", "");
    env.prints(
        "ibifs show $(<c) --store A.store --json | jq -r .state",
        "Deleted",
    );
}

/// fsck names a sidecar that is not to be accepted, or another item's, and repairs both.
#[test]
fn fsck_finds_sidecars_that_are_broken_or_foreign() {
    let env = finds(
        "echo garbage > A.store/col/$(<a)/.ibi; cp A.store/col/$(<b)/.ibi A.store/col/$(<c)/.ibi",
        "1 broken-sidecar 1 foreign-sidecar",
        "",
    );
    env.prints("cat A.store/col/$(<a)/.ibi.broken-1", "garbage");
    env.prints(
        "ibifs show $(<a) --store A.store | grep -c ^nextedition",
        "1",
    );
}

/// fsck names a tombstone that cannot be read; the item stays removed, and the tombstone is
/// written again from the index.
#[test]
fn fsck_finds_a_broken_tombstone() {
    let env = finds(
        "ibifs mount A.store A; rm -r A/$(<c); ibifs umount A; echo garbage > A.store/deleted/col/$(<c)",
        "1 broken-tombstone",
        "",
    );
    env.prints("ibifs show $(<c) --store A.store --json | jq -r '.state, (.ibip|length>3), (.timestamp|length)'", "Deleted\ntrue\n20");
}

/// fsck names directories and tombstones whose names are no identifiers; it leaves them alone.
#[test]
fn fsck_finds_stray_names() {
    let env = finds(
        "mkdir -p A.store/col/a/b/c/d A.store/ibip/x/y A.store/deleted/col/a/b/c; echo > A.store/deleted/col/a/b/c/d",
        "3 stray-name",
        "3 stray-name",
    );
    env.sh("test -d A.store/col/a/b/c/d");
}

/// fsck names an item that claims another's name; both stay readable, also after reindex.
#[test]
fn fsck_finds_a_name_that_is_taken() {
    let env = finds(
        "ip=$(sed -n 's/^ibi {rep .* ibip \\(.*\\)}$/\\1/p' A.store/col/$(<a)/.ibi)
         sed -i \"s,^ibi {.*,ibi {rep $(<c) ibip $ip},\" A.store/col/$(<c)/.ibi",
        "1 name-taken",
        "1 name-taken",
    );
    env.sh("ibifs mount A.store A; ls A/$(<a)/doc A/$(<c)/doc");
}

/// fsck names editions in a circle and ends that disagree; a person decides which one is right.
#[test]
fn fsck_finds_relations_that_do_not_fit() {
    finds(
        "echo \"ibi.nextedition {rep $(<a)}\" >> A.store/col/$(<b)/.ibi; ibifs reindex A.store",
        "2 edition-cycle",
        "2 edition-cycle",
    );
    finds(
        "echo \"ibi.editionof {rep $(<a)}\" >> A.store/col/$(<c)/.ibi; ibifs reindex A.store",
        "1 relations-differ",
        "1 relations-differ",
    );
}

/// fsck names a last date that lies in the future.
#[test]
fn fsck_finds_a_date_ahead() {
    let env = finds(
        "I \"UPDATE ledger SET last = '2999-01-01T00:00:00Z'\"",
        "1 date-ahead 1 ledger-differs",
        "1 date-ahead",
    );
    env.exits("ibifs mint A.store", 4);
    env.complains("ibifs mint A.store", "ibifs: ");
}

/// The mount returns of a sidecar, in either tree, what lies on disk. It does so right after a relation has been
/// declared at either end or a tool has renamed a new text into place.
#[test]
fn a_sidecar_is_never_read_stale() {
    let env = TestEnv::new().with_a();
    env.sh("mint A x > a; mint A y > b; ibip A/.mint/x > ai; ibip A/.mint/y > bi
        same() { for n in a b; do for p in A/$(<$n) A/$(<${n}i); do cmp $p/.ibi A.store/col/$(<$n)/.ibi; done; done; }
        for i in 1 2 3; do
            same; ibifs relate A/$(<a) --next-edition $(<b)
            same; grep -q nextedition A/$(<a)/.ibi; grep -q editionof A/$(<bi)/.ibi
            sed -i \"\\$a note n$i\" A/$(<a)/.ibi
            same; ln -sfn ../../../../$(<b) \"A/$(<a)+(pt)\"
            same; grep -q 'translation(pt)' A/$(<a)/.ibi; grep -q n$i A/$(<a)/.ibi
            rm \"A/$(<a)+(pt)\"; ibifs unrelate A/$(<a) --next-edition
            same; ! grep -q nextedition A/$(<ai)/.ibi
        done");
}

/// A sidecar is replaced when a relation is declared. Who opens it then never gets the former one, even if the
/// kernel still has its name: a file that only an open descriptor leads to has become stale.
#[test]
fn a_replaced_sidecar_is_not_opened_again() {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"mint A x > a; mint A y > b; sed '$a note of a tool' A/$(< a)/.ibi > A/$(< a)/new
        python3 - A/$(< a) $(< b) << 'END'
import errno, os, sys
item, other = sys.argv[1:]
new = os.open(item + '/new', os.O_RDONLY)
os.rename(item + '/new', item + '/.ibi')
os.symlink('../../../../' + other, item + '+(pt)')
assert b'translation(pt)' in open(item + '/.ibi', 'rb').read()
try:
    open(f'/proc/self/fd/{new}', 'rb')
    assert False, 'opened'
except OSError as error:
    assert error.errno == errno.ESTALE, error
END
        cmp A/$(< a)/.ibi A.store/col/$(< a)/.ibi"#,
    );
}

/// An item that was removed under one of its names and comes back with both leaves no record of a
/// removal, and what was staged as a link to be its metadata leaves nothing behind.
#[test]
fn what_has_come_back_was_not_removed() {
    let env = TestEnv::new().with_a();
    env.sh(
        r#"item=example.net/archive-b/2009/02.16.17.46; ibip=8JMKD3MGP8W/34PGRBS
        names="ibi {rep $item ibip $ibip}"
        mkdir -p A/$ibip; echo "ibi {ibip $ibip}" > A/$ibip/.ibi; rm -r A/$ibip
        mkdir -p A/$ibip; echo "$names" > A/$ibip/.ibi; test -d A/$item; test -z "$(find A.store/deleted -type f)"
        rm -r A/$item; mkdir A/$ibip; echo "$names" > A/$ibip/.ibi; test -z "$(find A.store/deleted -type f)"
        mint A it > it; ln -s ../../../$item "A/$(dirname $(< it))/.staged"
        mv -T "A/$(dirname $(< it))/.staged" "A/$(< it):"; readlink "A/$(< it):"; test -z "$(ls A.store/staging)"
        ibifs umount A; ibifs fsck A.store"#,
    );
}

/// A crash may take from the index all that was not synced of an item that came and was removed again:
/// its tombstone has both its names.
#[test]
fn a_removed_item_has_the_names_of_its_tombstone() {
    let env = TestEnv::new().with_a();
    let rep = "example.net/library/2005/08.30.11.30.40";
    for left in [
        "UPDATE item SET ibip = NULL, ibip_key = NULL, state = 'Copy', sidecar = NULL, removed_at = NULL
             WHERE state = 'Deleted'",
        // Its directory has outlived the crash as well.
        "SELECT 1",
    ] {
        env.sh(&format!(
            "mkdir -p A/{rep}; echo 'ibi {{rep {rep} ibip 32G4GL2W/Q6LG2Q}}' > A/{rep}/.ibi
             ls -d A/32G4GL2W/Q6LG2Q; rm -r A/{rep}; kill -9 $(daemon A.store); ibifs umount A
             test \"{left}\" != 'SELECT 1' || mkdir A.store/col/{rep}
             in_database A.store/relations.sqlite3 \"{left}\" \
                 \"INSERT OR IGNORE INTO touched VALUES ('col/example.net/library/2005')\"
             ibifs mount A.store A; ibifs umount A; ibifs fsck A.store | grep ' 0 findings$'
             ibifs show 32G4GL2W/Q6LG2Q --store A.store | grep -q {rep}; ibifs mount A.store A"
        ));
    }
}

/// A sidecar that was not synced comes back from a crash empty, or with its length and nothing but zeros. The sidecar
/// of an original is written again, that of a copy that never said anything goes.
#[test]
fn a_sidecar_of_zeros_says_nothing() {
    let env = TestEnv::new().with_a();
    for zeros in [": >", "head -c 200 /dev/zero >"] {
        env.sh(&format!(
            "mint A one > one; cp A.store/col/$(< one)/.ibi kept; copy=example.net/library/2003/08.25.08.47.40
             mkdir -p A/$copy; kill -9 $(daemon A.store); ibifs umount A
             {zeros} A.store/col/$(< one)/.ibi; {zeros} A.store/col/$copy/.ibi
             in_database A.store/relations.sqlite3 \
                 \"INSERT OR IGNORE INTO touched VALUES ('col/$(dirname $(< one))')\"
             ibifs mount A.store A; cmp kept A/$(< one)/.ibi; test -d A/$copy; test ! -e A/$copy/.ibi
             rmdir A/$copy; ibifs umount A; ibifs fsck A.store | grep ' 0 findings$'
             ibifs mount A.store A"
        ));
    }
}
