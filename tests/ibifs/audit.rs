//! `ibifs audit`: items are compared with their copies, oldest comparison first, both sides learn what was found, and what is
//! damaged is mended.

use crate::copies::KNOWN;
use crate::repair::{TOOLS, environment};
use crate::support::{Disk, Format, TestEnv};

/// The output of an audit, without paths before the file, texts after the codes, and the bytes.
const AUDITS: &str = r#"
audits() { ibifs audit "$@" > said || echo "status $?"; sed -E 's/: .*\/(doc\/[^:]*): /: \1: /; s/^([^ ]*: [^ ]*): .*/\1/; s/, [0-9]* bytes?//' said; }
"#;

fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{TOOLS}{AUDITS}{KNOWN}\n{script}"))
}

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    assert_eq!(sh(env, script).trim_end(), expected, "{script}");
}

/// A byte that has flipped in the copy is mended within one pass, whichever side audits, and the original is as it was. Both
/// sides note the comparison.
#[test]
fn a_damaged_copy_is_mended() {
    for (here, there) in [("D", "S"), ("S", "D")] {
        let env = environment();
        sh(
            &env,
            "echo 'place {br sp}' >> S/archive.ibi; echo 'place {de bonn}' >> D/archive.ibi; rm S/fixity/col/$item/copies D/fixity/col/$item/copies",
        );
        prints(
            &env,
            &format!(
                "harm $d/doc/one x; find $s -printf '%p %T@ %C@\\n' > before
                 audits {here} --with {there}; cat $d/doc/one D/damaged/$item/doc/one; find $s -printf '%p %T@ %C@\\n' | diff before -
                 known S $item; known D $item; ls -A D/fixity/damaged S/fixity/damaged D/handover/incoming D/staging S/staging
                 audits {here} --with {there}; ibifs fsck S | tail -n 1; ibifs fsck D | tail -n 1"
            ),
            "mended: doc/one\n1 item compared, 4 files: 1 file mended, 0 left to see to\none\nxne\n\
             archive br sp good, archive de bonn good; 2 2 true\narchive de bonn good, archive br sp good; 2 2 true\n\
             D/fixity/damaged:\n\nD/handover/incoming:\n\nD/staging:\n\nS/fixity/damaged:\n\nS/staging:\n\
             1 item compared, 2 files: 0 files mended, 0 left to see to\n2 items, 0 findings\n2 items, 0 findings",
        );
    }
}

/// An original is mended where its archive.ibi says so, or by command; otherwise its damage is remembered.
#[test]
fn an_original_is_mended_where_that_is_wanted() {
    let env = environment();
    prints(
        &env,
        "harm $s/doc/one x; for pass in 'S --with D' 'D --with S' 'S --with D'; do audits $pass; done; cat $s/doc/one $d/doc/one
         ibifs show --store S $item --json | jq -c '[.damaged[].path]'
         ibifs copies D $item --json | jq -r '.copies[].outcome'",
        "status 1\ndamaged: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\n\
         status 1\ndamaged: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\n\
         status 1\ndamaged: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\nxne\none\n[\"doc/one\"]\ngood\nbad",
    );
    prints(
        &env,
        "echo 'repair {original yes}' >> S/archive.ibi; audits S --with D; cat $s/doc/one S/damaged/$item/doc/one
         ibifs show --store S $item --json | jq -c '[.damaged[].path]'; known D $item",
        "mended: doc/one\n1 item compared, 4 files: 1 file mended, 0 left to see to\none\nxne\n[]\narchive  good, archive  good; 2 0 true",
    );
    // What only the other store says concerns its own originals.
    prints(
        &env,
        "sed -i '/^repair/d' S/archive.ibi; echo 'repair {original yes}' >> D/archive.ibi; harm $s/doc/one x; audits S --with D; cat $s/doc/one
         ibifs repair S --all --from D > /dev/null; cat $s/doc/one; audits S --with D",
        "status 1\ndamaged: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\nxne\none\n\
         1 item compared, 2 files: 0 files mended, 0 left to see to",
    );
    env.complains(
        "echo 'repair {original maybe}' >> S/archive.ibi; ibifs audit S --with D",
        "'original maybe' is not a valid value of 'repair'",
    );
}

/// Nothing is overwritten where both sides are damaged, where the recorded digest is the wrong one, and where one side was
/// written and not the other.
#[test]
fn nothing_is_overwritten_without_the_recorded_content() {
    let env = environment();
    prints(
        &env,
        "echo 'repair {original yes}' >> S/archive.ibi; harm $s/doc/one x; harm $d/doc/one y; audits S --with D; cat $s/doc/one $d/doc/one; no ls S/damaged D/damaged",
        "status 1\nno-copy: doc/one\nno-copy: doc/one\n1 item compared, 4 files: 0 files mended, 2 left to see to\nxne\nyne",
    );
    let env = environment();
    prints(
        &env,
        "k=D/fixity/col/$item; wrong() { sed -i '/doc\\/one/s/^..../0000/' $1; }
         wrong $k/manifest-sha256.txt; audits S --with D
         wrong $k/written.txt; cp -a D/fixity before; audits S --with D; cat $d/doc/one; no ls D/damaged; diff -r -x copies before D/fixity
         ibifs scrub D --accept $item > /dev/null; audits S --with D",
        "status 1\nwrong-record: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\n\
         status 1\nwrong-record: doc/one\n1 item compared, 2 files: 0 files mended, 1 left to see to\none\n\
         1 item compared, 2 files: 0 files mended, 0 left to see to",
    );
    let env = environment();
    prints(
        &env,
        "echo more >> $s/doc/one; echo new > $s/doc/new; audits S --with D; known S $item
         ibifs copy --store S $item D > /dev/null; audits S --with D; known S $item | sed 's/;.*//'",
        "status 1\ndiffers: doc/new\ndiffers: doc/one\n1 item compared, 3 files: 0 files mended, 2 left to see to\n\
         archive  good, archive  bad; 1 0 true\n1 item compared, 3 files: 0 files mended, 0 left to see to\narchive  good, archive  good",
    );
    // A file that was removed is not damage, one that is lost is.
    let env = environment();
    prints(
        &env,
        "ibifs backup S B > /dev/null; rm $s/doc/deep/two; audits S --with D; audits S --with B; find S/fixity/damaged -type f
         ibifs copy --store S $item D > /dev/null; ibifs scrub S > /dev/null; ibifs scrub D > /dev/null
         lose() { rm $1; touch -d '1 hour' $2/fixity/col/$item/written.txt; }
         lose $d/doc/one D; audits S --with D; cat $d/doc/one; lose $s/doc/one S; audits S --with D; ibifs show --store S $item --json | jq -c '[.damaged[].path]'
         ibifs repair S --all --from D > /dev/null; audits D --with S",
        "status 1\ndiffers: doc/deep/two\n1 item compared, 1 file: 0 files mended, 1 left to see to\n\
         older: doc/deep/two\n2 items compared, 1 file: 0 files mended, 0 left to see to\n\
         mended: doc/one\n1 item compared, 2 files: 1 file mended, 0 left to see to\none\n\
         status 1\nlost: doc/one\n1 item compared, 0 files: 0 files mended, 1 left to see to\n[\"doc/one\"]\n\
         1 item compared, 1 file: 0 files mended, 0 left to see to",
    );
    let env = environment();
    sh(&env, "audits S --with D");
    // A whole item, there and here.
    prints(
        &env,
        "mv $d away; audits S --with D | sed 's;D/.*;D;'; mv away $d; audits S --with D > /dev/null
         ibifs remove --store D $item; audits S --with D | sed 's;D/.*;D;'; audits S --with D",
        "status 1\ngone: D\n1 item compared, 2 files: 0 files mended, 1 left to see to\n\
         status 1\ngone: D\n0 items compared, 0 files: 0 files mended, 1 left to see to\n\
         0 items compared, 0 files: 0 files mended, 0 left to see to",
    );
}

/// Four items of S with copies in D that were never compared. `proved` prints which of them are by now, as `items` has them.
fn several() -> TestEnv {
    let env = environment();
    sh(
        &env,
        "cp item items; echo >> items; for n in 2 3 4; do ibifs mint S | head -n 1 >> items; done
         for i in $(< items); do echo $i > S/col/$i/doc/file; ibifs copy --store S $i D > /dev/null; done
         find S/fixity D/fixity -name copies -delete",
    );
    env
}

const PROVED: &str = r#"
proved() { local n=0 all=; for i in $(< items); do n=$((n + 1)); ! grep -qs "proved $1.*good" ${2:-S}/fixity/col/$i/copies || all+=" $n"; done; echo $all; }
"#;

/// Items that were never compared come first, then the oldest comparison; the time is up after an item, and the next pass goes on.
#[test]
fn the_oldest_comparison_comes_first() {
    let env = several();
    prints(
        &env,
        &format!(
            "{PROVED} audits S --with D > /dev/null; proved 20 S; proved 20 D
             at() {{ sed -i \"s/proved 20../proved $2/\" S/fixity/col/$(sed -n $1p items)/copies; }}
             at 1 2002; at 2 2001; at 3 2003; rm S/fixity/col/$(sed -n 4p items)/copies
             for pass in 1 2 3 4; do ibifs audit S --with D --minutes 0 | sed 's/.*; //'; proved 202; done
             ibifs audit S --with D --minutes 9 --json | jq -c '[.items, .good, .left, .remaining]'"
        ),
        "1 2 3 4\n1 2 3 4\n3 items for the next time\n4\n3 items for the next time\n2 4\n\
         3 items for the next time\n1 2 4\n3 items for the next time\n1 2 3 4\n[4,4,0,0]",
    );
}

/// A pass that is killed has noted what it has compared, and the next one begins with the others.
#[test]
fn a_pass_that_is_killed_goes_on() {
    let env = several();
    // At the beginning of a rename: each item has one in each store.
    for (killed, noted) in [(1, 0), (2, 1), (3, 1), (6, 3)] {
        let script = format!(
            "{PROVED} find S/fixity D/fixity -name copies -delete
             no strace -f -o calls -e trace=/rename -e inject=/rename:signal=KILL:when={killed} ibifs audit S --with D > /dev/null 2>&1
             proved 20 | wc -w; ibifs audit S --with D --minutes 0 > /dev/null; proved 20 | wc -w
             ibifs audit S --with D > /dev/null; proved 20; proved 20 D; find S/fixity D/fixity S/staging D/staging -name '*.new'"
        );
        prints(
            &env,
            &script,
            &format!("{noted}\n{}\n1 2 3 4\n1 2 3 4", noted + 1),
        );
    }
}

/// A backup is compared, counts for the items that are good in it, and is mended; one that is read only, or a generation, stays.
#[test]
fn a_backup_is_audited() {
    let env = environment();
    prints(
        &env,
        "sleep 1.1; ibifs backup S B > /dev/null; rm S/fixity/col/$item/copies; b=B/col/$item; known S $item; audits S --with B; known S $item
         harm $b/doc/one x; audits S --with B; cat $b/doc/one B/damaged/$item/doc/one; ls -A B/fixity/damaged B/handover/incoming
         ibifs fsck B | tail -n 1; ibifs backup S B > /dev/null; audits S --with B",
        "archive  good, backup  null; 1 0 true\n2 items compared, 2 files: 0 files mended, 0 left to see to\n\
         archive  good, backup  good; 2 0 true\nmended: doc/one\n2 items compared, 4 files: 1 file mended, 0 left to see to\none\nxne\n\
         B/fixity/damaged:\n\nB/handover/incoming:\n2 items, 0 findings\n2 items compared, 2 files: 0 files mended, 0 left to see to",
    );
    // What was written since is no fault, and not in the backup.
    prints(
        &env,
        "echo more >> $s/doc/one; touch -d '1 hour ago' $s/doc/one; audits S --with B; known S $item; ibifs scrub S > said; ibifs backup S B > /dev/null; audits S --with B; known S $item",
        "older: doc/one\n2 items compared, 2 files: 0 files mended, 0 left to see to\narchive  good, backup  bad; 1 0 true\n\
         2 items compared, 2 files: 0 files mended, 0 left to see to\narchive  good, backup  good; 2 0 true",
    );
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 64);
    prints(
        &env,
        "cp -a B disk; ibifs backup S disk/B > /dev/null; b=disk/B/col/$item; harm $b/doc/one x; mount -o remount,ro disk
         audits S --with disk/B; ibifs copies S $item --json | jq -c '[.copies[].outcome]'
         mount -o remount,rw disk; rm $b/doc/one; ibifs backup S disk/B > /dev/null; mount -o remount,ro disk; audits S --with disk/B
         ibifs copies S $item --json | jq -c '[.copies[].outcome]'",
        "status 1\ndamaged: doc/one\n2 items compared, 2 files: 0 files mended, 1 left to see to\n[\"good\",\"good\",\"bad\"]\n\
         2 items compared, 2 files: 0 files mended, 0 left to see to\n[\"good\",\"good\",\"good\"]",
    );
    drop(disk);
    prints(
        &env,
        "ibifs backup S G --keep 9d > /dev/null; sleep 1.1; ibifs backup S G --keep 9d > /dev/null; g=$(ls -d G/2* | tail -n 1)
         first=$(ls -d G/2* | head -n 1); audits S --with G; ibifs copies S $item --json | jq -r '.copies[] | select(.holder | endswith(\"/G\")).outcome'
         harm $g/col/$item/doc/one x; find $g -printf '%p %T@ %C@\\n' > before; audits S --with G; { ibifs audit S --with G || true; } | grep -c \": $g/col/\"; find $g -printf '%p %T@ %C@\\n' | diff before -
         rm $g/col/$item/doc/one; sleep 1.1; ibifs backup S G --keep 9d > /dev/null; audits S --with G; audits S --with G@20; audits S --with G@2001",
        "2 items compared, 2 files: 0 files mended, 0 left to see to\ngood\n\
         status 1\ndamaged: doc/one\n2 items compared, 2 files: 0 files mended, 1 left to see to\n1\n\
         2 items compared, 2 files: 0 files mended, 0 left to see to\n\
         2 items compared, 2 files: 0 files mended, 0 left to see to\nstatus 3",
    );
}

/// What a backup has lost, or has in another content, is no change of the store.
#[test]
fn losses_of_a_backup_are_told() {
    let env = environment();
    let good = "2 items compared, 2 files: 0 files mended, 0 left to see to";
    prints(
        &env,
        "sleep 1.1; ibifs backup S B > /dev/null; b=B/col/$item; echo other > $b/doc/one; audits S --with B; known S $item
         ibifs backup S B > /dev/null; audits S --with B; cat $b/doc/one
         rm $b/doc/deep/two; audits S --with B; ibifs backup S B > /dev/null
         rm -r $b; audits S --with B | sed 's;B/.*;B;'; grep -o 'ibifs backup' said; ibifs backup S B > /dev/null; audits S --with B; known S $item",
        &format!(
            "status 1\ndamaged: doc/one\n2 items compared, 2 files: 0 files mended, 1 left to see to\narchive  good, archive  good, backup  bad; 2 0 true\n\
             {good}\none\nstatus 1\nlost: doc/deep/two\n2 items compared, 2 files: 0 files mended, 1 left to see to\nstatus 1\ngone: B\n2 items compared, 2 files: 0 files mended, 1 left to see to\nibifs backup\n\
             {good}\narchive  good, archive  good, backup  good; 3 0 true"
        ),
    );
    // The record of the item is younger than the backup.
    prints(
        &env,
        "sleep 1.1; ibifs backup S B > /dev/null; sleep 1.1; b=B/col/$item; echo new > $s/doc/new; ibifs scrub S > /dev/null; echo other > $b/doc/one; rm $b/doc/deep/two
         audits S --with B; ibifs backup S B > /dev/null; audits S --with B; rm $s/doc/new; ibifs scrub S > /dev/null",
        "status 1\nlost: doc/deep/two\nolder: doc/new\ndamaged: doc/one\n2 items compared, 3 files: 0 files mended, 2 left to see to\n\
         2 items compared, 3 files: 0 files mended, 0 left to see to",
    );
    // What was changed in the store since, before and after a scrub.
    let older = "older: doc/deep/two\nolder: doc/new\nolder: doc/one\nolder: doc/two\n2 items compared, 3 files: 0 files mended, 0 left to see to";
    prints(
        &env,
        "sleep 1.1; ibifs backup S B > /dev/null; echo more >> $s/doc/one; mv $s/doc/deep/two $s/doc/two; echo new > $s/doc/new
         audits S --with B; ibifs scrub S > /dev/null; audits S --with B",
        &format!("{older}\n{older}"),
    );
}

/// An item that is missing is marked as lost in its store, whichever side audits, and is brought back by the command that is named.
#[test]
fn a_lost_original_is_marked() {
    for (here, there) in [("S", "D"), ("D", "S")] {
        let env = environment();
        prints(
            &env,
            &format!(
                "damaged() {{ ibifs status S --json | jq -c '[.[0].damaged[].files]'; }}
                 audits S --with D > /dev/null; rm -r $s; audits {here} --with {there} > /dev/null; grep -o 'is not there.*' said; damaged; known S $item; ibifs show --store S $item | grep -c ', lost;'; no ibifs fsck S > said; grep -o ^damaged-files said
                 ibifs repair S $item --from D > said; cut -d: -f1 said | head -n 1; audits {here} --with {there}; damaged; known S $item"
            ),
            "is not there; bring the item back with 'ibifs repair'\n[2]\narchive  bad, archive  good; 1 0 true\n2\ndamaged-files\nbrought-back\n\
             1 item compared, 2 files: 0 files mended, 0 left to see to\n[]\narchive  good, archive  good; 2 0 true",
        );
    }
}

/// Both histories have an event of each pass, and one of an item whose outcome changed.
#[test]
fn both_histories_tell_of_it() {
    let env = environment();
    let events = "told() { for store in S D; do ibifs history $store --json | jq -r 'select(.event | test(\"audited|differs|damaged|mended\")) | .event + \" \" + (if .item then .note | sub(\"^[^ ]*/[^ ]*, \"; \"\") | sub(\": .*\"; \"\") | sub(\"^example.org.*\"; \"S\") | sub(\"^example.net.*\"; \"D\") else \"pass\" end)' | tr '\\n' ,; echo; done; }";
    prints(
        &env,
        &format!(
            "{events}\n for store in S D; do echo 'history yes' >> $store/archive.ibi; mkdir -p M; ibifs mount $store M; ibifs umount M; done
             for n in 1 2; do ibifs audit S --with D > /dev/null; done; told
             harm $d/doc/one x; ibifs audit S --with D > /dev/null; told
             harm $s/doc/one x; for n in 1 2; do no ibifs audit D --with S > /dev/null; done; told
             ibifs repair S --all --from D > /dev/null; ibifs audit D --with S > /dev/null; told"
        ),
        "audited pass,audited pass,\naudited pass,audited pass,\n\
         audited pass,audited pass,audited pass,\naudited pass,audited pass,mended doc/one,audited pass,\n\
         audited pass,audited pass,audited pass,damaged damaged doc/one,audited pass,audited pass,\n\
         audited pass,audited pass,mended doc/one,audited pass,differs damaged doc/one,audited pass,audited pass,\n\
         audited pass,audited pass,audited pass,damaged damaged doc/one,audited pass,audited pass,mended doc/one,audited D,audited pass,\n\
         audited pass,audited pass,mended doc/one,audited pass,differs damaged doc/one,audited pass,audited pass,audited pass,",
    );
}

/// A mount shows what is mended in its store at once, and is audited as its store.
#[test]
fn mounted_stores_are_audited() {
    let env = environment();
    prints(
        &env,
        "mkdir M N; ibifs mount S M; ibifs mount D N; cat N/$item/doc/one; harm $d/doc/one x; audits M --with N; cat N/$item/doc/one
         ibifs umount N; ibifs umount M; ibifs fsck D | tail -n 1",
        "one\nmended: doc/one\n1 item compared, 4 files: 1 file mended, 0 left to see to\none\n2 items, 0 findings",
    );
    // A user who may not enter the store audits nothing.
    sh(&env, "ibifs mount S M; chmod 755 .");
    env.exits("setpriv --reuid=60001 --regid=60001 --clear-groups env HOME=/nonexistent ibifs audit M --with M", 4);
    env.exits("ibifs audit S --with S", 2);
    env.exits("ibifs audit S --with nowhere", 3);
    env.exits(
        "ibifs umount M; ibifs audit S 8JMKD3MGP8W/34PGRBS --with D",
        3,
    );
}

/// A stranger who owns the other store puts links and pipes in the place of its files and ledger: they lead root nowhere.
#[test]
fn a_stranger_owns_the_other_store() {
    let env = environment();
    prints(
        &env,
        "echo secret > secret; chmod 600 secret; chmod 755 . D; chown -R 60001 D
         for trick in \"ln -s $PWD/secret\" mkfifo mkdir 'ln secret'; do for path in $d/doc/one D/fixity/col/$item/copies D/fixity/col/$item/written.txt D/fixity/damaged D/damaged; do
             rm -rf kept; mv -T $path kept 2> /dev/null || true; rm -rf $path; $trick $path 2> /dev/null || true
             timeout 60 ibifs audit S --with D > said 2>&1 || test $? = 1 || echo \"$trick $path $(< said)\"
             rm -rf $path; test ! -e kept || mv -T kept $path; test \"$(< secret)\" = secret; test \"$(stat -c '%U %a' secret)\" = 'root 600'
         done; done; cat $s/doc/one; audits S --with D | tail -n 1",
        "one\n1 item compared, 2 files: 0 files mended, 0 left to see to",
    );
    // The lock of its ledger, which is held for ever, delays one item, by five seconds.
    prints(
        &env,
        "for n in {1..9}; do ibifs mint S | head -n 1 > other; ibifs copy --store S $(< other) D > /dev/null; done
         flock D/fixity sleep 60 & sleep=$!; until ! flock -n D/fixity true; do :; done
         timeout 40 ibifs audit S --with D | sed 's/,.*//'; kill $(pgrep -P $sleep); wait $sleep || true",
        "10 items compared",
    );
    // A directory that is exchanged again and again. A pass may record its files under another name, and what comes back as new:
    // then both contents are recorded, and it names the remedy.
    prints(
        &env,
        r#"mkdir aim; echo aim > aim/two; touch -r $s/doc/deep/two aim/two
        cat > swap.py <<'P'
import os, sys
os.chdir(sys.argv[1]); os.setuid(60001)
while True:
    os.rename('deep', 'away'); os.rename('link', 'deep'); os.rename('deep', 'link'); os.rename('away', 'deep')
P
        for n in $(seq 8); do
            harm $d/doc/deep/two x; ln -s $PWD/aim $d/doc/link; chown -h 60001 $d/doc/link; python3 swap.py $d/doc & other=$!
            ibifs audit S --with D > /dev/null || true; kill $other || true; wait $other || true
            cd $d/doc; test ! -L deep || mv -T deep link; test ! -d away || mv -T away deep || rm -r away; rm -f link; cd - > /dev/null
            ibifs audit S --with D > said || { grep -q "^differs.*/deep/two.*copy --verify'" said; ibifs copy --verify --store S $item D > /dev/null; }
            cat $d/doc/deep/two
        done 2> /dev/null | uniq -c | sed 's/^ *//'; cat aim/*; ls aim"#,
        "8 two\naim\ntwo",
    );
}

/// On a full disk the ledger stays as it was, and the next pass notes what it finds; that of the other store is not needed.
#[test]
fn a_full_disk_keeps_the_ledger() {
    let env = environment();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 200);
    prints(
        &env,
        "cp -a D disk/D; ledger=disk/D/fixity/col/$item/copies; sed -i 's/proved 20../proved 2001/' $ledger; cp $ledger before; mkdir M; ibifs mount disk/D M
         for n in 1M 1K; do dd if=/dev/zero of=disk/filler$n bs=$n status=none 2> /dev/null || true; done; ! ibifs audit disk/D --with S > /dev/null 2> said; cmp before $ledger; grep -c 'No space' said
         ibifs audit S --with disk/D 2> said | sed 's/.*: //'; cmp before $ledger; grep -c 'not noted' said
         rm disk/filler*; ibifs umount M; audits disk/D --with S; grep -c 'proved 2001' $ledger || true",
        "1\n0 files mended, 0 left to see to\n1\n1 item compared, 2 files: 0 files mended, 0 left to see to\n0",
    );
    drop(disk);
}

/// A withdrawal or removal in one store is said to the other one, whichever side audits; it is changed by neither.
#[test]
fn the_other_store_learns_what_is_gone() {
    for (here, there) in [("S", "D"), ("D", "S")] {
        let env = environment();
        prints(
            &env,
            &format!(
                r#"gone() {{ ibifs copies D $item --json | jq -c '[.copies[1:][] | .gone.what, .outcome]'; ibifs status D --json | jq -c '[.[0].originals_gone[].gone.reason]'; }}
                   ibifs audit S --with D > said; ibifs withdraw --store S $item --reason why 2> /dev/null; audits {here} --with {there} | sed 's;S/.*;S;'; gone
                   ibifs restore --store S $item; audits {here} --with {there} | sed 's;S/.*;S;'; gone
                   ibifs remove --store S $item 2> /dev/null; audits {here} --with {there} | sed 's;S/.*;S;'; gone; test -e $d/doc/one; audits {here} --with {there} | sed 's;S/.*;S;'; ibifs fsck D | tail -n 1"#
            ),
            &if here == "S" {
                "1 item compared, 2 files: 0 files mended, 0 left to see to\n[\"withdrawn\",\"good\"]\n[\"why\"]\n\
                 1 item compared, 2 files: 0 files mended, 0 left to see to\n[null,\"good\"]\n[]\n\
                 0 items compared, 0 files: 0 files mended, 0 left to see to\n[\"removed\",\"good\"]\n[\"\"]\n\
                 0 items compared, 0 files: 0 files mended, 0 left to see to\n2 items, 0 findings"
                    .to_owned()
            } else {
                "withdrawn: S\n1 item compared, 2 files: 0 files mended, 0 left to see to\n[\"withdrawn\",\"good\"]\n[\"why\"]\n\
                 1 item compared, 2 files: 0 files mended, 0 left to see to\n[null,\"good\"]\n[]\n\
                 removed: S\n0 items compared, 0 files: 0 files mended, 0 left to see to\n[\"removed\",\"good\"]\n[\"\"]\n\
                 removed: S\n0 items compared, 0 files: 0 files mended, 0 left to see to\n2 items, 0 findings"
                    .to_owned()
            },
        );
    }
}
