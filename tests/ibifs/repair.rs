//! `ibifs repair`: damaged and lost files are mended from good copies, the damaged ones are kept, and what is not damaged stays.

use crate::http::served::Served;
use crate::support::{Disk, Format, TestEnv};

/// The functions that these scripts use: the item `$item`, its directories `$s` in the store S and `$d` in D.
pub const TOOLS: &str = r#"
item=$(< item); s=S/col/$item; d=D/col/$item
# Writes the bytes $2 over the beginning of the file $1 and sets its time back: damage.
harm() { touch -r "$1" time; printf %s "$2" | dd of="$1" conv=notrunc status=none; touch -r time "$1"; }
# What repair says, without the paths before the codes and after the sums.
mends() { ibifs repair "$@" > said || true; sed 's/: col[^ ]*\/2[0-9]*\/[0-9.]*\//: /; s/ again, from .*/ again/; s/;.*//' said; }
"#;

/// A store S with an item, and a copy of it in the store D, both scrubbed. The files were written an hour ago.
pub fn environment() -> TestEnv {
    let env = TestEnv::new();
    env.sh(&format!(
        "ibifs init S --host a.example.org > /dev/null; ibifs init D --host b.example.net > /dev/null
         ibifs mint S | head -n 1 | tr -d '\\n' > item; {TOOLS}
         mkdir $s/doc/deep; echo one > $s/doc/one; echo two > $s/doc/deep/two; ln -s one $s/doc/way
         setfattr -n user.note -v kept $s/doc/one; chmod 640 $s/doc/one
         touch -d '1 hour ago' $s/doc/one $s/doc/deep/two
         ibifs copy --store S $item D > /dev/null; ibifs scrub S > /dev/null; ibifs scrub D > /dev/null
         echo $s"
    ));
    env
}

fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{TOOLS}\n{script}"))
}

#[track_caller]
fn prints(env: &TestEnv, script: &str, expected: &str) {
    assert_eq!(sh(env, script).trim_end(), expected, "{script}");
}

/// A byte that has flipped in one of two stores is mended in one pass, in a copy and in an original. Owner, mode, times and
/// attributes stay, the damaged file is kept, and the other store is as it was.
#[test]
fn a_damaged_file_is_mended() {
    let env = environment();
    for (here, there) in [("D", "S"), ("S", "D")] {
        let script = format!(
            "i={here}/col/$item; find {there} -type f -printf '%p %T@ %C@\\n' | grep -v 'fixity\\|handover\\|relations\\|lock' | sort > before
             look() {{ stat -c '%U %G %a %y' $i/doc/one; stat -c %y $i/doc; getfattr --only-values -n user.note $i/doc/one; echo; }}
             chown 60001:60002 $i/doc/one; look > looked
             harm $i/doc/one x; mends {here} --all --from {there}; look | diff looked -; cat $i/doc/one {here}/damaged/$item/doc/one
             find {there} -type f -printf '%p %T@ %C@\\n' | grep -v 'fixity\\|handover\\|relations\\|lock' | sort | diff before -
             stat -c %a {here}/damaged; mends {here} --all --from {there}; ibifs scrub {here}; ls -A {here}/handover/incoming {here}/staging
             ibifs fsck {here} | tail -n 1"
        );
        prints(
            &env,
            &script,
            &format!(
                "mended: doc/one: has the recorded content again\n2 items: 1 file mended, 0 left damaged\none\nxne\n700\n\
                 2 items: 0 files mended, 0 left damaged\n2 items, 2 files, 8 bytes\n{here}/handover/incoming:\n\n{here}/staging:\n\
                 2 items, 0 findings"
            ),
        );
    }
}

/// A second damaged file of a path is kept beside the first; a lost file comes back; a file with two names keeps both.
#[test]
fn lost_files_and_files_with_several_names() {
    let env = environment();
    prints(
        &env,
        "for n in x y; do harm $d/doc/one $n; mends D $item --from S | head -n 1; done; cat D/damaged/$item/doc/*; cat $d/doc/one
         mends D $item --from S > /dev/null; ibifs scrub D > /dev/null; sed -i s/two/TWO/ D/fixity/col/$item/written.txt
         ibifs copy --store S $item D > /dev/null; sleep 1.1; ibifs scrub D > /dev/null",
        "mended: doc/one: has the recorded content again\nmended: doc/one: has the recorded content again\nxne\nyne\none",
    );
    // The record says that the directory has not changed since.
    prints(
        &env,
        "rm $d/doc/deep/two; touch -d '1 hour' D/fixity/col/$item/written.txt; { ibifs scrub D || true; } | cut -d: -f1 | head -n 1
         touch -d '1 hour' D/fixity/col/$item/written.txt; mends D --all --from S; cat $d/doc/deep/two
         stat -c %Y $s/doc/deep/two $d/doc/deep/two | uniq | wc -l; find D/fixity/damaged -type f",
        "lost\nmended: doc/deep/two: has the recorded content again\n2 items: 1 file mended, 0 left damaged\ntwo\n1",
    );
    prints(
        &env,
        "ln $d/doc/one $d/doc/same; ibifs scrub D > /dev/null; harm $d/doc/one z; mends D $item --from S | tail -n 1
         stat -c '%i %h' $d/doc/one $d/doc/same | uniq | cut -d' ' -f2; cat $d/doc/one $d/doc/same",
        "1 item: 1 file mended, 0 left damaged\n2\none\none",
    );
}

/// What no place has as it was recorded is left: where all copies are damaged, and where the recorded digest is the wrong one.
#[test]
fn nothing_is_overwritten_without_the_recorded_content() {
    let env = environment();
    prints(
        &env,
        "cp -a D E; harm $d/doc/one x; harm $s/doc/one y; harm E/col/$item/doc/one z; cp -a $d before
         mends D --all --from S --from E; ibifs repair D --all --from S > /dev/null || echo $?; diff -r before $d; no ls D/damaged",
        "no-copy: doc/one: no place that was asked has the recorded content, and nothing is changed\n\
         2 items: 0 files mended, 1 left damaged\n1",
    );
    // Both of the record, or the manifest alone, have another digest on purpose.
    let env = environment();
    prints(
        &env,
        "k=D/fixity/col/$item; cp -a $k record; wrong() { sed -i '/doc\\/one/s/^..../0000/' $1; }
         wrong $k/manifest-sha256.txt; mends D --all --from S; { ibifs scrub D || true; } | cut -d: -f1 | head -n 1
         wrong $k/written.txt; mends D --all --from S; cat $d/doc/one; no ls D/damaged
         ibifs scrub D --accept $item > /dev/null; mends D --all --from S; ls -A D/fixity/damaged",
        "wrong-record: doc/one: all copies that were asked are like the file here, so the recorded digest is the wrong one\n\
         2 items: 0 files mended, 1 left damaged\nbroken-manifest\n\
         wrong-record: doc/one: all copies that were asked are like the file here, so the recorded digest is the wrong one\n\
         2 items: 0 files mended, 1 left damaged\none\n2 items: 0 files mended, 0 left damaged",
    );
}

/// A store is mended while it is mounted: the mount shows the mended file at once, also of a sealed item.
#[test]
fn a_mounted_store_is_mended() {
    let env = environment();
    prints(
        &env,
        "mkdir M; ibifs seal --store S $item > /dev/null; ibifs copy --store S $item D > /dev/null; ibifs mount S M
         cat M/$item/doc/one M/$item/doc/deep/two; exec 5< M/$item/doc/one
         harm $s/doc/one x; rm $s/doc/deep/two; touch -d '1 hour' S/fixity/col/$item/written.txt
         mends M --all --from D; cat M/$item/doc/one M/$item/doc/deep/two; cat <&5 > /dev/null; exec 5<&-
         no touch M/$item/doc/one; ls -A M/$item/doc; ibifs umount M; ibifs scrub S; ibifs fsck S | tail -n 1",
        "one\ntwo\nmended: doc/deep/two: has the recorded content again\nmended: doc/one: has the recorded content again\n\
         2 items: 2 files mended, 0 left damaged\none\ntwo\ndeep\none\nway\n2 items, 2 files, 8 bytes\n2 items, 0 findings",
    );
}

/// The Archive that has the good copy is asked by its URL, whether a scrub has recorded digests there or not.
#[test]
fn an_archive_is_asked_by_its_url() {
    let env = environment();
    sh(&env, "chmod -R a+rX $s");
    for prepare in ["true", "rm -r S/fixity"] {
        env.sh(prepare);
        let served = Served::start(&env, "S");
        let url = &served.url;
        prints(
            &env,
            &format!(
                "harm $d/doc/one x; mends D --all --from {url}; cat $d/doc/one
                 rm $d/doc/deep/two; touch -d '1 hour' D/fixity/col/$item/written.txt; mends D $item --from {url}/; cat $d/doc/deep/two
                 cmp $s/doc/one $d/doc/one; ls -A D/handover/incoming"
            ),
            "mended: doc/one: has the recorded content again\n2 items: 1 file mended, 0 left damaged\none\n\
             mended: doc/deep/two: has the recorded content again\n1 item: 1 file mended, 0 left damaged\ntwo",
        );
    }
    // One that does not answer is named, and one that has other content changes nothing.
    prints(
        &env,
        "harm $d/doc/one x; mends D $item --from http://127.0.0.1:1 | cut -d: -f1; cat $d/doc/one",
        "no-copy\n1 item\nxne",
    );
}

/// A file that was found damaged is not sent over HTTP, alone or with the rest, and the page and the metrics say why; what was
/// written since is sent. The history tells that it is mended.
#[test]
fn a_damaged_file_is_not_served() {
    let env = environment();
    sh(
        &env,
        "chmod -R a+rX $s; echo 'history yes' >> S/archive.ibi; harm $s/doc/one x; ibifs scrub S > /dev/null || true",
    );
    let mut served = Served::start(&env, "S --metrics 127.0.0.1:0");
    let line = served.line();
    let metrics = line.trim_start_matches("metrics at ").trim_end();
    let url = &served.url;
    let look = format!(
        "{TOOLS}\n for u in {url}/$item/doc/one {url}/col/$item/doc/one {url}/dav/$item/doc/one {url}/archive.cgi/$item {url}/$item?bag {url}/$item/doc/deep/two; do
             curl -s -o /dev/null -w '%{{http_code}} ' $u; done
         curl -s {url}/$item?page | grep -c 'Damaged here.*doc/one' || true; curl -s {metrics} | sed -n 's/^ibifs_damaged_files //p'"
    );
    assert_eq!(env.sh(&look).trim_end(), "503 503 503 503 503 200 1\n1");
    sh(&env, "ibifs repair S --all --from D > /dev/null; sleep 1.2");
    assert_eq!(env.sh(&look).trim_end(), "200 200 200 200 200 200 0\n0");
    drop(served);
    prints(
        &env,
        "mkdir M; ibifs mount S M; ibifs umount M; ibifs history --store S $item --json | jq -r .event | tail -n 3",
        "damaged\nmended\naudited",
    );
    // No path of this machine.
    prints(
        &env,
        "ibifs history --store S $item --json | jq -r 'select(.event == \"mended\").note' | sed 's/2[0-9]*.[0-9.]*$/REP/'",
        "doc/one: mended from example.net/b/REP",
    );
}

/// Damage is remembered until the file is whole: by show, status and fsck.
#[test]
fn damage_is_remembered() {
    let env = environment();
    let look = "ibifs show --store D $item | grep -c ^damaged || true; ibifs status D | grep -c ^damaged || true
                { ibifs fsck D || true; } | sed -n 's/:.*//p'; ibifs show --store D $item --json | jq -c '[.damaged[].path]'
                ibifs status D --json | jq -c '[.[0].damaged[].files]'";
    prints(&env, look, "0\n0\n[]\n[]");
    let marked = "1\n1\ndamaged-files\n[\"doc/one\"]\n[1]";
    prints(
        &env,
        &format!("harm $d/doc/one x; ibifs scrub D > /dev/null || true; {look}"),
        marked,
    );
    prints(
        &env,
        &format!("ibifs scrub D --dry-run > /dev/null || true; {look}"),
        marked,
    );
    // A backup has it as the store has it, and nothing that was kept; of a file that was edited or mended there is none.
    prints(
        &env,
        "ibifs backup D B > /dev/null; find B/fixity/damaged -type f | wc -l; no ls B/damaged",
        "1",
    );
    for whole in [
        "printf o | dd of=$d/doc/one conv=notrunc status=none; touch -r $s/doc/one $d/doc/one; ibifs scrub D > /dev/null",
        "ibifs repair D $item --from S > /dev/null",
        "ibifs scrub D --accept $item > /dev/null",
        "ibifs copy --store S $item D 2> said > /dev/null; grep -q '1 file that was damaged' said; cmp $s/doc/one $d/doc/one",
    ] {
        prints(&env, &format!("{whole}; {look}"), "0\n0\n[]\n[]");
        sh(&env, "ibifs repair D --all --from S > /dev/null || true; cp -a $s/doc/one $d/doc/one; ibifs scrub D --accept $item > /dev/null; touch -d '1 hour ago' $d/doc/one
                  cp -a $s/doc/one $d/doc/one; ibifs scrub D --accept $item > /dev/null; harm $d/doc/one x; ibifs scrub D > /dev/null || true");
    }
}

/// A copy that is found damaged when it is copied again is copied again: one that is marked, and with --verify any. What
/// the destination knows to be whole is not overwritten.
#[test]
fn a_copy_is_mended_by_copying() {
    let env = environment();
    prints(
        &env,
        "harm $d/doc/one x; ibifs copy --store S $item D | cut -d: -f1 | head -n 1; cat $d/doc/one
         ibifs copy --verify --store S $item D --json 2> /dev/null | jq -c '[.outcome, .mended]' | head -n 1; cat $d/doc/one
         ibifs copy --verify --store S $item D | cut -d: -f1 | head -n 1",
        "unchanged\nxne\n[\"copied\",1]\none\nunchanged",
    );
    // The source was damaged before it was scrubbed for the first time.
    prints(
        &env,
        "harm $s/doc/one x; rm -r S/fixity; ibifs scrub S > /dev/null
         { ibifs copy --verify --store S $item D || true; } | cut -d: -f1,3 | head -n 1; cat $d/doc/one",
        "skipped: disputed\none",
    );
    // A damaged source is not sent.
    let env = environment();
    prints(
        &env,
        "harm $s/doc/one x; ibifs scrub S > /dev/null || true; harm $d/doc/one y; ibifs scrub D > /dev/null || true
         { ibifs copy --store S $item D || true; } | cut -d: -f1,3 | head -n 1; cat $d/doc/one",
        "skipped: damaged\nyne",
    );
}

/// What a stranger who owns the directory of the item puts in the place of a file, while root repairs it, gets no rights and is
/// not opened.
#[test]
fn a_stranger_in_the_item() {
    let env = environment();
    prints(
        &env,
        "echo secret > secret; chmod 600 secret; chown -R 60001 $d/doc; harm $d/doc/one x
         for trick in 'ln -s ../../../../../../../secret' 'mkfifo' 'mkdir'; do
             rm -rf $d/doc/one; $trick $d/doc/one; timeout 20 ibifs repair D $item --from S > said || true
             ls -ld $d/doc/one | cut -c1; rm -rf $d/doc/one; cp -a $s/doc/one $d/doc/one; ibifs scrub --accept D $item > /dev/null
         done; cat secret; stat -c %U secret",
        "l\np\nd\nsecret\nroot",
    );
    // A file of root of the same size and time, with a name elsewhere, or brought there: the content gets no rights by it.
    prints(
        &env,
        "cp /usr/bin/true su; truncate -s 4 su; touch -r $d/doc/one su; chmod 4755 su
         ln -f su $d/doc/one; mends D $item --from S; cmp su $d/doc/one; ls -A D/damaged/$item/doc
         rm $d/doc/one; cp -a su $d/doc/one; mends D $item --from S; stat -c '%U %a' $d/doc/one; cat $d/doc/one",
        "not-replaced: doc/one: is left as it is: it has another name (a hard link) outside the item\n1 item: 0 files mended, 1 left damaged\n\
         mended: doc/one: has the recorded content again\n1 item: 1 file mended, 0 left damaged\nroot 755\none",
    );
    // A directory that is exchanged again and again leads nowhere else.
    prints(
        &env,
        r#"mkdir aim; echo aim > aim/two; touch -r $s/doc/deep/two aim/two; chown -R 60001 $d/doc; chmod 755 . D
        cat > swap.py <<'P'
import os, sys
os.chdir(sys.argv[1]); os.setuid(60001)
while True:
    os.rename('deep', 'away'); os.rename('link', 'deep'); os.rename('deep', 'link'); os.rename('away', 'deep')
P
        cp -a D/fixity record
        for n in $(seq 8); do
            harm $d/doc/deep/two x; ln -s $PWD/aim $d/doc/link; chown -h 60001 $d/doc/link; python3 swap.py $d/doc & other=$!
            ibifs repair D $item --from S > /dev/null || true; kill $other; wait $other || true
            cd $d/doc; test ! -L deep || mv -T deep link; test ! -d away || mv -T away deep; rm -f link; cd - > /dev/null
            rm -r D/fixity; cp -a record D/fixity; ibifs repair D $item --from S > /dev/null || true; cat $d/doc/deep/two
        done 2> /dev/null | uniq -c | sed 's/^ *//'; cat aim/*; ls aim"#,
        "8 two\naim\ntwo",
    );
}

/// A file that the disk cannot read is marked, and mended from a copy by repair and audit; the file itself is kept. One reading
/// that fails is none, and too many files that cannot be read are not marked. Both ledgers have the proof.
#[test]
fn a_file_that_the_disk_cannot_read() {
    let env = environment();
    let sick = "sick() { n=$1; shift; strace -f -qq -o log -P $PWD/$d/doc/one -e trace=read,pread64 \
                    -e inject=read,pread64:error=EIO:when=1..$n \"$@\" || true; }
                looks() { ibifs show --store D $item --json | jq -c '[.damaged[] | .path, .lost, .unreadable]'; }";
    let shows = |script: &str, expected: &str| prints(&env, &format!("{sick}\n{script}"), expected);
    shows(
        "sick 1 ibifs scrub D; looks; sick 2 ibifs scrub D | cut -d: -f1; looks; ibifs show --store D $item | grep -o ', unreadable'
         { ibifs fsck D || true; } | cut -d: -f1 | head -n 1; ibifs scrub D; looks",
        "2 items, 2 files, 8 bytes\n[]\nunreadable\n2 items, 1 file, 4 bytes, 1 unreadable\n[\"doc/one\",false,true]\n, unreadable\n\
         damaged-files\n2 items, 2 files, 8 bytes\n[]",
    );
    shows(
        "rm S/fixity/col/$item/copies D/fixity/col/$item/copies; stat -c '%i %U %a %y' $d/doc/one > before
         sick 3 ibifs repair D --all --from S | cut -d: -f1; looks; cat $d/doc/one; stat -c '%i %U %a %y' D/damaged/$item/doc/one | diff before -
         cat S/fixity/col/$item/copies D/fixity/col/$item/copies | grep -c 'outcome good'; ibifs scrub D",
        "mended\n2 items\n[]\none\n\
         2\n2 items, 2 files, 8 bytes",
    );
    shows(
        "sick 5 ibifs audit S --with D $item | sed 's/: .*//'; cat $d/doc/one; ls D/damaged/$item/doc",
        "mended\n1 item compared, 4 files, 28 bytes\none\none\none.1",
    );
    shows(
        "mkdir -p D/fixity/damaged/col/a/b/c/2020; o=D/fixity/damaged/col/a/b/c/2020/01.01.01.01
         for n in $(seq 100); do echo \"$(printf 0%.0s $(seq 64)) ! 2026-01-01T00:00:00Z  doc/$n\"; done > $o
         sick 2 ibifs scrub D $item | grep -o 'not marked'; looks; sick 2 ibifs repair D $item --from S | sed 's/: col.*one//'
         sed -i 1d $o; sick 2 ibifs scrub D $item > /dev/null; looks",
        "not marked\n[]\nnot-replaced: is left as it is: cannot be read: Input/output error (os error 5); it is not marked as damaged, as too many files cannot be read\n\
         1 item: 0 files mended, 1 left damaged\n[\"doc/one\",false,true]",
    );
}

/// An item whose directory is lost comes back as it was, from a copy, from a backup and in a mount; not one that was removed, and
/// not with other content than was recorded.
#[test]
fn a_lost_item_is_brought_back() {
    let env = environment();
    let look = "look() { (cd $1/col/$item; find . ! -name .ibi -printf '%P %y %m %U %G %T@ %l\\n' | sort; cat .ibi; getfattr -R -d . | sort); }";
    let shows = |script: &str, expected: &str| prints(&env, &format!("{look}\n{script}"), expected);
    shows(
        "ibifs backup D B > /dev/null; rm {S,D}/fixity/col/$item/copies; for store in S D; do look $store > was.$store; done",
        "",
    );
    for (to, from) in [("D", "S"), ("D", "B"), ("S", "D")] {
        for named in ["--all", "$item"] {
            let script = format!(
                "rm -r {to}/col/$item; mends {to} {named} --from {from} | cut -d: -f1,3; look {to} | diff was.{to} -; ibifs scrub {to}
                 ls -A {to}/fixity/damaged; ibifs fsck {to} | tail -n 1; grep -c 'outcome good' {to}/fixity/col/$item/copies"
            );
            let count = if named == "--all" { 2 } else { 1 };
            let items = if count == 1 { "1 item" } else { "2 items" };
            shows(
                &script,
                &format!(
                    "brought-back: the item was lost, and is here again\n{items}\n2 items, 2 files, 8 bytes\n2 items, 0 findings\n{}",
                    if from == "B" { 2 } else { 1 }
                ),
            );
        }
    }
    // In a mounted store, and one that the index does not have any more.
    shows(
        "mkdir M; ibifs mount D M; rm -r $d; mends M --all --from S | cut -d: -f1; grep -o 'unmount the store' said; ibifs umount M
         mends D $item --from S | cut -d: -f1; look D | diff was.D -; rm -r $d; ibifs scrub D > /dev/null || true; ibifs reindex D > /dev/null; mends D --all --from S > /dev/null; grep -o \"known here; copy it with 'ibifs copy'\" said
         mends D --all --from B | cut -d: -f1; look D | diff was.D -",
        "lost-item\n2 items\nunmount the store\nbrought-back\n1 item\nknown here; copy it with 'ibifs copy'\nbrought-back\n2 items",
    );
    // The item of the service is made again from the facts.
    shows(
        "service=$(ibifs status D --json | jq -r '.[0].archiveservice.rep'); rm -r D/col/$service
         { ibifs repair D --all --from B --json || true; } | jq -c 'select(.code) | [.code, .ibip != null]'; mends D --all --from B > /dev/null
         { ibifs restore $service --store D --from B 2>&1 || true; } >> said; grep -o \"'ibifs fsck --repair' makes again\" said; { ibifs fsck D --repair || true; } > said; ibifs fsck D | tail -n 1",
        "[\"lost-item\",true]\n'ibifs fsck --repair' makes again\n'ibifs fsck --repair' makes again\n2 items, 0 findings",
    );
    shows("cp $s/.ibi description; chmod -R a+rX $d; chmod 755 D", "");
    let served = Served::start(&env, "D");
    let url = &served.url;
    // Without a record of its digests no other Archive is believed, but a backup is.
    shows(
        &format!(
            "rm -r $s; mends S $item --from {url} | cut -d: -f1; cat $s/doc/one $s/doc/deep/two; cmp $s/.ibi description; ls -A $s S/handover/incoming
             ibifs show --store S $item | grep ^state; rm -r $s; mkdir -p $s/doc; printf 'put back\\n' > $s/.ibifs-copy-uncompared; cp -p $d/doc/one $s/doc; cp description $s/.ibi
             mends S $item --from {url} | cut -d: -f1; cat $s/doc/deep/two; ibifs scrub S; mv S/fixity away; rm -r $s; mends S $item --from {url} --from D | cut -d: -f1
             grep -o 'no digests of it are recorded here' said; ls -A S/handover/incoming; rm -r S/fixity; mv away S/fixity; mends S $item --from D | cut -d: -f1"
        ),
        &format!(
            "brought-back\n1 item\none\ntwo\n{}:\n.ibi\ndoc\n\nS/handover/incoming:\nstate            Original\nbrought-back\n1 item\ntwo\n\
             2 items, 2 files, 8 bytes\nlost-item\n1 item\nno digests of it are recorded here\nno digests of it are recorded here\nbrought-back\n1 item",
            sh(&env, "echo $s").trim()
        ),
    );
    drop(served);
    shows(
        "rm -r $d; echo new > $s/doc/one; mends D --all --from S --from B | cut -d: -f1; look D | diff was.D -
         rm -r $d; mends D $item --from S | cut -d: -f1; no ls $d; { ibifs repair D $item --from S || true; } | grep -o 'lost-item'
         ibifs repair D $item --from B > /dev/null; ibifs remove --force --store D $item > /dev/null; mends D $item --from B; mends D --all --from B; no ls $d",
        "brought-back\n2 items\nlost-item\n1 item\nlost-item\n1 item: 0 files mended, 0 left damaged\n1 item: 0 files mended, 0 left damaged",
    );
}

/// A place that has lost an item itself is passed over, and the other items are mended.
#[test]
fn the_next_place_is_asked() {
    let env = environment();
    prints(
        &env,
        "ibifs mint S | head -n 1 > other; o=$(< other); echo three > S/col/$o/doc/three; ibifs copy --store S $o D > said; ibifs scrub D > said
         ibifs backup D B > said; rm -r {S,D}/col/$o; harm $d/doc/one x
         mends D --all --from S --from B | cut -d: -f1; cat D/col/$o/doc/three $d/doc/one; rm -r D/col/$o
         mends D $o --from S | cut -d: -f1; grep -o \"'S' does not have it\" said",
        "mended\nbrought-back\n3 items\nthree\none\nlost-item\n1 item\n'S' does not have it",
    );
}

/// A file that cannot be what is wanted is not read, however long it is.
#[test]
fn a_file_of_another_size_is_not_read() {
    let env = environment();
    let repairs = |what: &str| {
        prints(
            &env,
            &format!(
                "truncate -s 4T $s/doc/one; {what}
                 timeout 20 ibifs repair D --all --from S > said || echo $?; cut -d: -f1 said; grep -o \"'S' has other content there\\|is not there as it was recorded here\" said"
            ),
            match what {
                "rm -r $d" => "1\nlost-item\n2 items\nis not there as it was recorded here",
                _ => "1\nno-copy\n2 items\n'S' has other content there",
            },
        );
    };
    repairs("harm $d/doc/one x");
    repairs("rm -r $d");
}

/// On a full disk nothing is lost, and the same command mends the file when there is room.
#[test]
fn a_full_disk() {
    let env = environment();
    let disk = Disk::new(env.root(), "disk", Format::Ext4, 200);
    prints(
        &env,
        "{ echo; head -c 3000000 /dev/urandom; } > $s/doc/one; touch -d '1 hour ago' $s/doc/one; cp -a D disk/D; d=disk/D/col/$item
         ibifs copy --store S $item disk/D > /dev/null; ibifs scrub disk/D > /dev/null; harm $d/doc/one x; cp $d/doc/one damaged
         cat /dev/zero > disk/filler 2> /dev/null || true; no ibifs repair disk/D --all --from S > /dev/null 2> said; cmp damaged $d/doc/one
         rm disk/filler; mends disk/D --all --from S | cut -d: -f1; cmp $s/doc/one $d/doc/one; cmp damaged disk/D/damaged/$item/doc/one",
        "mended\n2 items",
    );
    drop(disk);
}
