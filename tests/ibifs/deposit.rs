//! Depositing with the tools at hand: what is copied, cloned or unpacked into `.mint/NAME` becomes
//! an original; and what tools do beside an item leaves nothing behind.

use crate::support::{Needs, TestEnv};

/// A directory to deposit: `source/doc/` with a few files, and beside it a foreign sidecar.
const SOURCE: &str = "
    mkdir -p source/doc/sub; echo text > source/doc/file; ln source/doc/file source/doc/sub/hard
    ln -s ../file source/doc/sub/link; echo notes > source/notes; touch -d @5 source/doc/file source/doc
    printf 'ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}\n' > foreign
";

/// Checks a deposit under a label: its own identity, and the content of `source`.
const CHECK: &str = r#"
deposited() {
    [ "$(state A/.mint/$1)" = Original ]
    [ "$(readlink A/.mint/.$1)" = "../$(rep A/.mint/$1)" ]
    grep -q "^ibi {rep $(rep A/.mint/$1) ibip $(ibip A/.mint/$1)}" A/.mint/$1/.ibi
    [ "$(head -n 1 A/$(rep A/.mint/$1)/.ibi)" = "$(head -n 1 A/.mint/$1/.ibi)" ]
    no grep -q inpe A/.mint/$1/.ibi
}
same_as_source() { diff -r --no-dereference -x .ibi source A/$(rep A/.mint/$1); }
"#;

fn environment() -> TestEnv {
    environment_on(TestEnv::new())
}

fn environment_on(env: TestEnv) -> TestEnv {
    let env = env.with_a();
    env.sh(SOURCE);
    env
}

/// `cp -a DIR A/.mint/` deposits a directory that holds `doc/` already; a foreign sidecar in it does
/// not change who the new original is.
#[test]
fn cp_deposits() {
    let env = environment_on(TestEnv::with(Needs::HardLinks));
    env.sh(&format!(
        "{CHECK}
         cp -a source A/.mint/; deposited source; same_as_source source
         [ \"$(stat -c '%h %Y' A/$(rep A/.mint/source)/doc/file)\" = '2 5' ]
         cp foreign source/.ibi; cp -a source A/.mint/second; deposited second; same_as_source second
         cp -r source A/.mint/third; deposited third; same_as_source third
         [ \"$(ls A.store/col/example.org/archive-a/* | wc -l)\" = 4 ]
         ibifs umount A; ibifs fsck A.store; ibifs ls A.store --state Original | wc -l | grep -qx 4"
    ));
}

/// `rsync -a DIR A/.mint/` does the same, and a second run into the same label moves nothing.
#[test]
fn rsync_deposits() {
    let env = environment();
    env.sh(&format!(
        "{CHECK}
         rsync -aH source A/.mint/; deposited source; same_as_source source
         cp foreign source/.ibi
         rsync -aH source/ A/.mint/second/; deposited second; same_as_source second
         rsync -aHi --exclude .ibi source/ A/.mint/second/ > again; cat again; [ ! -s again ]"
    ));
}

/// `mkdir -p`, `git clone` and `tar -x -C` deposit as well.
#[test]
fn mkdir_git_and_tar_deposit() {
    let env = environment();
    env.sh(&format!(
        "{CHECK}
         mkdir -p A/.mint/x/doc/y; deposited x; ls A/$(rep A/.mint/x)/doc | grep -qx y
         mkdir -p A/.mint/x/doc/y/z
         export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
         git init -q -b main work; cd work; cp -r ../source/doc .; git add .; git commit -qm one
         git clone -q . ../A/.mint/repo; cd ..; deposited repo
         (cd A/$(rep A/.mint/repo); git status --short; git fsck; diff -r --no-dereference doc ../../../../../source/doc; echo more > more
             git add more; git commit -qm more) > said; [ ! -s said ] || grep -qx '?? .ibi' said
         mkdir A/.mint/label; tar -C source -c . | tar -x -C A/.mint/label; deposited label; same_as_source label
         cp foreign source/.ibi; mkdir A/.mint/again; tar -C source -c . | tar -x -C A/.mint/again
         deposited again; same_as_source again"
    ));
}

/// `.mint/.NAME` leads to the repository, and `rm` of it forgets the label, never the item; `rmdir .mint/NAME` removes an
/// item that holds nothing but its sidecar; labels end with the mount; no name that begins with a dot is minted.
#[test]
fn labels_come_and_go_and_items_stay() {
    let env = environment();
    env.sh("mkdir -p A/.mint/x/doc; (rep A/.mint/x; echo) > name; echo kept > A/.mint/x/doc/kept");
    env.prints(
        "cat A/.mint/.x/doc/kept A/$(cat name)/doc/kept; ls -A A/.mint",
        "kept\nkept\nx",
    );
    env.complains("mkdir A/.mint/x", "File exists");
    env.complains("rmdir A/.mint/x", "Directory not empty");
    env.sh("rm A/.mint/.x; no ls A/.mint/x; no readlink A/.mint/.x");
    env.prints("cat A/$(cat name)/doc/kept; ls A/.mint", "kept");
    env.sh("mkdir A/.mint/x; [ $(rep A/.mint/x) != $(cat name) ]; mkdir A/.mint/y; rep A/.mint/y >> name");
    env.sh("gone=$(rep A/.mint/x); rmdir A/.mint/x; no ls A/$gone; mkdir A/.mint/x; [ $(rep A/.mint/x) != $gone ]; rmdir A/.mint/x");
    for name in [".x", ".hidden", "..."] {
        env.complains(&format!("mkdir A/.mint/{name}"), "Invalid argument");
    }
    env.complains("touch A/.mint/file", "Operation not permitted");
    env.sh("ibifs umount A; ibifs mount A.store A");
    env.prints(
        "ls -A A/.mint; for n in $(cat name); do state A/$n; echo; done",
        "Original\nOriginal",
    );
    env.prints(
        "find A -name '.mint' | wc -l; ls -A A | grep -c mint || true",
        "0\n0",
    );
}

/// Programs remove, replace and move files below a label as natively, and as by the item's own names. Each of these
/// programs is a process of its own, which has made nothing there.
#[test]
fn what_is_removed_below_a_label_is_as_natively() {
    let env = TestEnv::with(Needs::LongPaths).with_a();
    env.sh(
        r#"mkdir native; mkdir A/.mint/m A/.mint/r A/.mint/i; for at in native A/.mint/m A/$(rep A/.mint/r) A/$(ibip A/.mint/i); do (
            cd $at
            mkdir -p sub; touch sub/s f; rm -r sub; [ "$(ls)" = f ]; mkdir sub; [ "$(ls | xargs)" = 'f sub' ]; rmdir sub; no stat sub
            mkdir old new; touch old/f new/g; rm -r old; mv new old; [ "$(ls old)" = g ]
            mkdir d; touch d/e; rm -r d; echo x > d; grep -qx x d; rm d; ln -s x d; rm d; mkdir d; rmdir d; mkfifo d; rm d
            touch one; ln one two; rm one; [ $(stat -c %h two) = 1 ]; no rmdir two; mkdir full; touch full/x; no rmdir full; no rm full
            python3 -c 'import os
for i in range(25): os.mkdir("d" * 200); os.chdir("d" * 200)'
            rm -rf $(printf 'd%.0s' $(seq 200)); find . ! -name .ibi | sort
        ) > printed-${at##*/}; diff printed-native printed-${at##*/}; done
        for label in m r i; do
            for way in A/.mint/$label A/$(rep A/.mint/$label) A/$(ibip A/.mint/$label); do diff -r -x .ibi native $way; done
        done
        # Whatever is listed is found, and copied.
        rsync -a A/.mint/m/ out/; diff -r -x .ibi native out; grep -q '^ibi ' out/.ibi
        ibifs umount A; ibifs fsck A.store"#,
    );
}

/// `rsync --delete` into a label, by a later process, removes what is no longer in the source; the sidecar comes back.
#[test]
fn rsync_deletes_below_a_label() {
    let env = environment();
    env.sh(&format!(
        "{CHECK}
         rsync -aH source/ A/.mint/m/; cp A/.mint/m/.ibi before; rm source/doc/sub/link source/notes; mkdir source/new
         rsync -aH --delete source/ A/.mint/m/ > printed; for way in A/.mint/m A/$(rep A/.mint/m) A/$(ibip A/.mint/m); do diff -r --no-dereference -x .ibi source $way; cmp before $way/.ibi; done
         deposited m; rsync -aHi --delete --exclude .ibi source/ A/.mint/m/ > again; [ ! -s again ]
         rsync -a --delete-before --remove-source-files A/.mint/m/ out/; [ -z \"$(find A/$(rep A/.mint/m) -type f ! -name .ibi)\" ]
         ibifs umount A; ibifs fsck A.store"
    ));
}

/// `mv` takes an item out by its label, which leaves a tombstone; what it moves in comes from where it lay.
#[test]
fn mv_moves_in_and_out() {
    let env = environment();
    env.sh(&format!(
        "{CHECK}
         cp -a source kept; cp foreign source/.ibi; mv source A/.mint/; no ls source; cp -a kept source; deposited source; same_as_source source
         item=$(rep A/.mint/source); mv A/.mint/source out; no ls A/$item; no ls A/.mint/source
         diff -r --no-dereference -x .ibi kept out; grep -q \"^ibi {{rep $item \" out/.ibi; ibifs ls A --state Deleted | grep -q $item
         mkdir A/.mint/a A/.mint/b; no mv -T A/.mint/a A/.mint/c; touch A/.mint/a/f; mv A/.mint/a/f A/.mint/b/; [ -e A/$(rep A/.mint/b)/f ]; no stat A/.mint/a/f
         ibifs umount A; ibifs fsck A.store"
    ));
}

/// A `git clone` that fails removes the directory that it has made, and with it the item; the next one may have the label.
#[test]
fn a_clone_that_fails_takes_its_item_back() {
    let env = TestEnv::new().with_a();
    env.sh(
        "chmod 755 .; chmod 1777 A; mkdir home; printf '[safe]\n\tdirectory = *\n' > home/.gitconfig
         git init -q -b main repo; cd repo; echo text > file; git add file; git -c user.name=a -c user.email=a@b.c commit -qm one; cd ..
         cp -a repo broken; find broken/.git/objects -type f -exec rm {} +; chmod -R a+rX repo broken
         for who in 'env' 'setpriv --reuid 60001 --regid 60001 --clear-groups'; do
             export HOME=$PWD/home; no $who git clone -q --no-local broken A/.mint/code; no $who ls A/.mint/code
             $who git clone -q repo A/.mint/code; $who cat A/.mint/code/file | grep -qx text; $who rm A/.mint/.code
         done
         ibifs ls A --state Deleted | wc -l | grep -qx 2; ibifs umount A; ibifs fsck A.store",
    );
}

/// tar unpacks an item over one, with each way to replace what is there. A sidecar of another item is left out, but where
/// it is written over the one that is there, tar reports that it is refused.
#[test]
fn tar_replaces_below_a_label() {
    let env = environment();
    env.sh(&format!(
        "{CHECK}
         cp foreign source/.ibi; tar -C source -cf old.tar .; echo newer > source/doc/file; rm source/doc/sub/link; mkdir source/doc/sub/link; tar -C source -cf new.tar .
         for how in --overwrite '--unlink-first --recursive-unlink' --keep-newer-files -p; do
             mkdir A/.mint/t; tar -x -C A/.mint/t -f old.tar; rm A/.mint/t/doc/sub/link; status=0; tar -x $how -C A/.mint/t -f new.tar 2> said || status=$?
             case $how in --overwrite) grep -qx 'tar: ./.ibi: Cannot close: Invalid argument' said;; *) [ $status = 0 ];; esac
             deposited t; case $how in --keep*) ;; *) diff -r --no-dereference -x '.ibi*' source A/$(rep A/.mint/t);; esac; rm -r A/.mint/t
         done
         ibifs umount A; ibifs fsck A.store"
    ));
}

/// A sidecar that is hidden from the maker of a new item is not listed either; others list and find it.
#[test]
fn listing_and_lookup_agree_about_the_sidecar() {
    let env = environment();
    env.prints(
        "python3 -c '
import os, shutil, subprocess
def both(path):
    listed = os.listdir(path)
    assert (\".ibi\" in listed) == os.path.lexists(path + \"/.ibi\"), listed
    return sorted(listed)
def others():
    return sorted(subprocess.run([\"ls\", \"-A\", \"A/.mint/one\"], capture_output=True, text=True).stdout.split())
os.mkdir(\"A/.mint/one\")
# What it has open it goes on depositing.
file = open(\"A/.mint/one/file\", \"w\")
item = \"A/.mint/\" + os.readlink(\"A/.mint/.one\")
print(both(\"A/.mint/one\"), both(item), others(), both(\"A/.mint/one\"))
file.close()
shutil.rmtree(\"A/.mint/one\")
print(os.path.exists(item))
'",
        "['file'] ['.ibi', 'file'] ['.ibi', 'file'] ['file']\nFalse",
    );
}

/// With a granularity of a minute mkdir waits for the next minute and can be interrupted. It takes its date
/// with it: the next one would have to wait longer than a minute, and is refused at once.
#[test]
fn a_wait_that_is_too_long_is_refused_at_once() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org --granularity 60; mkdir A; ibifs mount A.store A");
    // Near the end of a minute one of these may still be served, or another one may wait.
    env.prints(
        "for i in 1 2 3 4 5; do
             # At once: before it is interrupted.
             status=0; timeout -s INT 1 mkdir A/.mint/$i 2> said || status=$?
             case $status in
                 0) continue;;
                 124) echo waits;;
                 *) grep -q 'Resource temporarily unavailable' said; echo refused; break;;
             esac
         done | uniq",
        "waits\nrefused",
    );
}

/// A mkdir that waits delays no other lookup, read or write, elsewhere in the tree.
#[test]
fn a_waiting_mint_delays_no_other_request() {
    let env = TestEnv::new();
    // The first mint has the present minute, the next one waits.
    env.sh(
        "at '2026-01-01 12:00:00'; faked ibifs init A.store --host archive-a.example.org --granularity 60
         mkdir A; ibifs mount A.store A; mkdir -p A/.mint/first/doc",
    );
    // It waits until all turns are over, unless the minute ends before that: then the next one waits for a whole minute.
    env.prints(
        "item=A/$(rep A/.mint/first)
         for try in 1 2; do
             mkdir A/.mint/waits-$try & waiting=$!
             for i in $try-{1..12}; do
                 ls A $item > /dev/null; echo $i > $item/doc/f$i; cat $item/doc/f$i > /dev/null
                 cat A/.mint/first/doc/f$i > /dev/null; ls \"$(dirname $item)\" > /dev/null; cp -r $item/doc copy-$i
             done
             if jobs -r | contains mkdir; then echo waits; ends $waiting; wait $waiting || true; break; fi
             wait $waiting
         done",
        "waits",
    );
}

/// Mints that must wait take turns: each gets a second of its own, within a second of the last.
#[test]
fn waiting_mints_take_turns() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org --granularity 1; mkdir A; ibifs mount A.store A");
    env.sh(
        "started=$(date +%s); for i in 1 2 3 4; do mkdir A/.mint/$i & done; wait
         [ $(( $(date +%s) - started )) -le 6 ]",
    );
    env.prints(
        "for i in 1 2 3 4; do rep A/.mint/$i; echo; done | sort -u | wc -l",
        "4",
    );
}

/// A waiting mkdir that is interrupted or ended returns at once and has made nothing.
#[test]
fn a_waiting_mint_can_be_interrupted() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org --granularity 1; mkdir A; ibifs mount A.store A");
    for signal in ["INT", "TERM", "KILL"] {
        let took = env.sh(&format!(
            "exec 2> complaints-{signal}
             python3 - <<'END'
import os, signal, subprocess, time
# Whoever runs the tests in the background has them ignore SIGINT.
heed = lambda: signal.signal(signal.SIG{signal}, signal.SIG_DFL) if '{signal}' != 'KILL' else None
os.mkdir('A/.mint/first-{signal}')
# On a busy machine the second may be over before the signal.
for turn in range(10):
    # It waits, so that it ends as a second begins.
    os.mkdir(f'A/.mint/before-{{turn}}-{signal}'); label = f'A/.mint/waiting-{{turn}}-{signal}'
    process = subprocess.Popen(['mkdir', label], preexec_fn=heed)
    time.sleep(0.25); is_waiting = process.poll() is None
    started = time.monotonic(); process.send_signal(signal.SIG{signal}); process.wait()
    took = round((time.monotonic() - started) * 1000)
    if is_waiting and process.returncode != 0 and took < 300: break
    if os.path.exists(label): os.rmdir(label)
print(took, is_waiting and process.returncode != 0 and not os.path.exists(label))
END"
        ));
        let (took, is_ended) = took.split_once(' ').expect("two words");
        assert!(
            took.parse::<u32>().is_ok_and(|took| took < 300),
            "{signal}: {took} ms"
        );
        assert_eq!(is_ended, "True", "{signal}");
    }
    env.sh("sleep 1.1; ls A/.mint > labels; no grep waiting labels; mkdir A/.mint/after");
}

/// A test environment with an item and its directory `$ITEM` in the rep tree, `$OPAQUE` in the IBIp tree.
fn item() -> (TestEnv, String) {
    let env = TestEnv::new().with_a();
    env.sh("mkdir -p A/.mint/it/doc A/.mint/next/doc");
    let names = format!(
        "ITEM=A/{} OPAQUE=A/{} NEXT=A/{}
         clean() {{ [ -z \"$(ls A.store/staging)\" ]; [ $(ls -A $(dirname $ITEM) | grep -vc '^[0-9.]*$') = 0 ]; }}\n",
        env.sh("rep A/.mint/it"),
        env.sh("ibip A/.mint/it"),
        env.sh("rep A/.mint/next"),
    );
    (env, names)
}

/// cp, rsync, mv, sed -i and vim write an item's metadata text by `<ibi>:`, in both trees; nothing
/// they stage is listed or left.
#[test]
fn tools_write_metadata_beside_the_item() {
    for base in ["$ITEM", "$OPAQUE"] {
        let (env, names) = item();
        let tool = |script: &str, expected: &str| {
            env.prints(
                &format!("{names} M=\"{base}:\"\n{script}\ncat \"$ITEM:\"; cmp \"$ITEM:\" \"$OPAQUE:\"; clean"),
                expected,
            );
        };
        tool("printf 'title: One\\n' > \"$M\"", "title: One");
        tool("printf 'title: Two\\n' > t; cp t \"$M\"", "title: Two");
        tool(
            "printf 'title: Three, longer\\n' > t; rsync -a t \"$M\"; rsync -aic t \"$M\"",
            "title: Three, longer",
        );
        tool("sed -i 's/Three/Four/' \"$M\"", "title: Four, longer");
        tool(
            "vim -es -u NONE -i NONE -c '%s/Four/Five/' -c wq \"$M\" < /dev/null",
            "title: Five, longer",
        );
        tool(
            "vim -es -u NONE -i NONE -c 'set backup backupcopy=no' -c '%s/Five/Six/' -c wq \"$M\" < /dev/null; rm -f \"$M~\"",
            "title: Six, longer",
        );
        tool(
            "echo 'title: Seven' >> \"$M\"; truncate -s 11 \"$M\"",
            "title: Six,",
        );
        env.sh(&format!(
            "{names} rm \"{base}:\"; no cat \"$ITEM:\" \"$OPAQUE:\" 2>/dev/null; clean"
        ));
    }
}

/// `ln -sfn` declares and changes a relation, `rsync -a` copies one; nothing staged is left.
#[test]
fn links_declare_beside_the_item() {
    let (env, names) = item();
    env.sh(&format!(
        "{names}
         is() {{ [ \"$(realpath \"$ITEM!\")\" = \"$(realpath $1)\" ]; [ \"$(realpath \"$OPAQUE!\" | sed 's|.*/A/||')\" = $(ibip $1) ]; clean; }}
         mkdir A/.mint/other; OTHER=A/$(rep A/.mint/other)
         ln -sfn ../../../${{NEXT#A/}} \"$ITEM!\"; is $NEXT
         ln -sfn ../../../${{OTHER#A/}} \"$ITEM!\"; is $OTHER
         ln -sfn ../$(basename $NEXT) \"$ITEM!\" 2>/dev/null || ln -sfn $(basename $NEXT) \"$ITEM!\"; is $NEXT
         ln -sfn $PWD/$OTHER \"$OPAQUE!\"; is $OTHER
         rm \"$ITEM!\"; [ \"$(realpath \"$ITEM!\")\" = \"$(realpath $ITEM)\" ]; clean
         mkdir links; ln -s ../../../${{NEXT#A/}} \"links/$(basename $ITEM)!\"
         touch -h -d 2001-02-03 links/*; rsync -a links/ $(dirname $ITEM)/; is $NEXT
         rsync -ai links/ $(dirname $ITEM)/
         rm \"$OPAQUE!\"; clean"
    ));
    env.complains(
        &format!("{names} ln -sfn /nowhere/at/all \"$ITEM!\""),
        "Invalid argument",
    );
}

/// A name that is neither of an item nor of a staged file is refused next to items. A file that was staged and never
/// used is not listed, and gone after the unmount.
#[test]
fn nothing_else_is_kept_beside_items() {
    let (env, names) = item();
    for directory in ["$(dirname $ITEM)", "$(dirname $OPAQUE)"] {
        for command in [
            "touch $D/notes.txt",
            "cp A.store/archive.ibi $D/report",
            "ln -s x $D/link",
            "mkfifo $D/.pipe",
        ] {
            env.complains(
                &format!("{names} D={directory}; {command}"),
                "Operation not permitted",
            );
        }
        env.complains(
            &format!("{names} D={directory}; mkdir $D/not@valid"),
            "Invalid argument",
        );
        env.sh(&format!(
            "{names} D={directory}; echo staged > $D/.name.AbCd12; ln -s x $D/CuAbCd12; cat $D/.name.AbCd12
             ls -A $D > listed; no grep -e name -e Cu listed; ls A.store/staging | grep -q staged"
        ));
        env.sh(&format!(
            "{names} ibifs umount A; clean; ibifs mount A.store A; no cat {directory}/.name.AbCd12"
        ));
    }
    env.sh("ibifs umount A; ibifs fsck A.store");
}

/// A sidecar that is removed comes back; `rsync --delete` from a plain tree does no harm; what the
/// item held otherwise is gone as asked.
#[test]
fn a_sidecar_that_is_removed_comes_back() {
    let (env, names) = item();
    env.sh(&format!(
        "{names}
         cp $ITEM/.ibi before
         rm $ITEM/.ibi; cmp before $ITEM/.ibi; cmp before $OPAQUE/.ibi
         rm $OPAQUE/.ibi; cmp before $ITEM/.ibi; mv $ITEM/.ibi $ITEM/aside; cmp before $ITEM/.ibi
         mkdir -p plain/doc; echo plain > plain/doc/file; echo old > $ITEM/doc/old
         for way in $ITEM $OPAQUE; do
             rsync -a --delete plain/ $way/; cmp before $ITEM/.ibi; cmp before $OPAQUE/.ibi
             [ ! -e $ITEM/doc/old ]; [ ! -e $ITEM/aside ]; [ \"$(cat $ITEM/doc/file)\" = plain ]; [ \"$(state $ITEM)\" = Original ]
         done
         ibifs umount A; ibifs fsck A.store"
    ));
}

/// `rm -r` removes an item by either name, `rmdir` one that holds its sidecar only; the tombstone
/// stays, the other item too, and copying the item in again brings it back.
#[test]
pub fn items_are_removed_and_come_back() {
    for name in ["$ITEM", "$OPAQUE"] {
        let (env, names) = item();
        env.sh(&format!(
            "{names}
             mkdir -p $ITEM/doc/a/b; echo x > $ITEM/doc/a/b/x; cat $OPAQUE/doc/a/b/x; cp -a $ITEM saved
             no rmdir {name}
             rm -r {name}
             no ls $ITEM; no ls $OPAQUE; [ -d $NEXT ]; no ls A/.mint/it
             ls $(dirname $ITEM) > listed; no grep -x $(basename $ITEM) listed
             [ -e A.store/deleted/col/${{ITEM#A/}} ]
             cp -a saved $ITEM; [ \"$(state $OPAQUE)\" = Original ]; diff -r saved $OPAQUE; [ ! -e A.store/deleted/col/${{ITEM#A/}} ]
             no rmdir {name}/doc
             rm -r {name}/doc; ls -A {name} | grep -qx .ibi; rmdir {name}; no ls $ITEM; no ls $OPAQUE
             ibifs umount A; ibifs fsck A.store"
        ));
    }
}

/// One process may remove what it minted and copy it in again: what was hidden from it while it
/// filled the new item does not stand in its way when there is nothing to hide any more.
#[test]
fn one_process_mints_removes_and_copies_back() {
    let env = environment();
    env.sh("cat > both.py <<'END'
import os, shutil
os.mkdir('A/.mint/one')
item = 'A/' + os.readlink('A/.mint/.one')[3:]
sidecar = open(item + '/.ibi').read()
shutil.rmtree(item)
os.mkdir(item)
os.mkdir(item + '/doc')
open(item + '/.ibi', 'w').write(sidecar)
print(os.getxattr(item, 'user.ibi.state').decode())
END
         test $(python3 both.py) = Original");
}

/// One process may mint and go on in what it has minted, and copy a tree that brings its own `doc/`; a
/// translation it has made is a directory to it while it fills it, and is then a link that shows which item
/// it is.
#[test]
fn one_process_mints_and_goes_on() {
    let env = TestEnv::new().with_a();
    env.sh("mkdir -p tree/doc/sub && echo text > tree/doc/sub/file && echo x > tree/.ibi");
    env.prints(
        "python3 -c '
import os, shutil, time
os.makedirs(\"A/.mint/one/doc\")
open(\"A/.mint/one/doc/file\", \"w\").write(\"mine\")
os.makedirs(\"A/.mint/one/doc/deep/er\")
print(sorted(os.listdir(\"A/.mint/one/doc\")), os.path.isdir(\"A/.mint/one/doc\"))
try:
    os.mkdir(\"A/.mint/one/doc\")
except FileExistsError:
    print(\"once\")
try:
    shutil.copytree(\"tree\", \"A/.mint/two\")
except shutil.Error as error:
    print(len(error.args[0]), error.args[0][0][2].split(\":\")[0])
print(open(\"A/.mint/two/doc/sub/file\").read().strip())
item = \"A/.mint/\" + os.readlink(\"A/.mint/.one\")
os.makedirs(item + \"+(pt)/doc\")
open(item + \"+(pt)/doc/file\", \"w\").write(\"meu\")
while not os.path.islink(item + \"+(pt)\"):
    time.sleep(0.1)
print(os.readlink(item + \"+(pt)\").startswith(\"../../../example.org/\"))
'",
        "['deep', 'file'] True\nonce\n1 [Errno 22] Invalid argument\ntext\nTrue",
    );
    env.prints("state A/.mint/two", "Original");
    env.prints(
        "cat \"A/.mint/$(readlink A/.mint/.one)+(pt)/doc/file\"",
        "meu",
    );
}

/// A process that removes a sidecar, or an item, may write the sidecar again, whether or not there was
/// one that could come back.
#[test]
fn a_sidecar_is_written_again_by_who_has_removed_it() {
    let env = TestEnv::with(Needs::OpenAfterRemoval).with_a();
    env.sh(
        "python3 - <<'END'
import os, shutil
item = 'A/example.net/archive-b/2009/02.16.17.46'
good = 'ibi {rep example.net/archive-b/2009/02.16.17.46}\\n'
def write(text):
    with open(item + '/.ibi', 'w') as file:
        file.write(text)
    assert open(item + '/.ibi').read() == text
def refused(text):
    file = os.open(item + '/.ibi', os.O_WRONLY | os.O_CREAT)
    os.write(file, text)
    try:
        os.close(file)
    except OSError as error:
        assert error.errno == 22
    else:
        assert False
os.makedirs(item)
refused(b'this is no sidecar'); assert os.listdir(item) == ['.ibi.broken-1']; write(good)
shutil.rmtree(item); os.mkdir(item); assert os.listdir(item) == []; write(good)
os.unlink(item + '/.ibi'); write(good); shutil.rmtree(item)
os.mkdir('A/.mint/it'); item = 'A/' + os.getxattr('A/.mint/it', 'user.ibi.rep').decode()
shutil.rmtree(item); os.mkdir(item); os.mkdir(item + '/doc'); os.rmdir(item + '/doc'); os.mkdir(item + '/doc')
os.makedirs('A/.mint/it/doc'); os.rmdir('A/.mint/it/doc'); os.mkdir('A/.mint/it/doc')
END",
    );
}
