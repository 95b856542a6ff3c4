//! `ibifs scrub`: digests that any tool can check, damage distinguished from edits, and passes that go on
//! where they stopped.

use std::time::{Duration, Instant};

use crate::support::{Needs, TestEnv};

/// The names that these scripts use: an item `$item` in the mount A, its directory `$there` in the store and `$kept`,
/// the path of its manifest.
const TOOLS: &str = r#"
item=$(realpath A/.mint/.x); there=A.store/col/${item#*/A/}; kept=A.store/fixity/col/${item#*/A/}
# Writes the bytes $2 over the beginning of the file $1 and sets its time back: damage.
harm() { touch -r "$1" time; printf %s "$2" | dd of="$1" conv=notrunc status=none; touch -r time "$1"; }
# The words that scrub prints before the colon, without the last line.
words() { ibifs scrub "$@" | sed '$d; s/:.*//' | sort | tr '\n' ' '; }
"#;

/// A mounted Archive with one item of four files that were written an hour ago, and scrubbed once.
fn environment() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        "mkdir -p A/.mint/x/doc; {TOOLS}
         mkdir $item/doc/deep
         for name in one two deep/three 'with blank'; do echo $name > $item/doc/\"$name\"; done
         touch -d '1 hour ago' $item/doc/* $item/doc/deep/*
         ibifs scrub A > printed"
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

#[test]
fn the_first_pass_records_and_sha256sum_reads_it() {
    let env = environment();
    prints(
        &env,
        "cat printed",
        "2 items, 4 files, 30 bytes, 1 item recorded for the first time",
    );
    prints(
        &env,
        "manifest=$PWD/$kept/manifest-sha256.txt
         for at in $there $item; do (cd $at; sha256sum --strict -c $manifest); done | sort | uniq -c |
             sed 's/^ *//'",
        "2 doc/deep/three: OK\n2 doc/one: OK\n2 doc/two: OK\n2 doc/with blank: OK",
    );
    // Names of other people's files are not for everybody.
    prints(&env, "stat -c %a A.store/fixity", "700");
    prints(&env, "ibifs scrub A.store", "2 items, 4 files, 30 bytes");
}

#[test]
fn edits_are_reported_once_and_recorded() {
    let env = environment();
    sh(
        &env,
        "sleep 1.1; echo edited > $item/doc/one; rm $item/doc/two; echo more > $item/doc/four
         ibifs scrub --dry-run A > dry; ibifs scrub A > first; ibifs scrub A > second",
    );
    env.prints(
        "cmp dry first; sed 's/:.*//' first",
        "new\nchanged\nmissing\n2 items, 4 files, 34 bytes, 1 changed, 1 missing, 1 new",
    );
    env.prints("cat second", "2 items, 4 files, 34 bytes");
    prints(
        &env,
        "(cd $there; sha256sum --quiet -c $PWD/../../../../../../$kept/manifest-sha256.txt)",
        "",
    );
}

#[test]
fn damage_is_reported_until_it_is_accepted() {
    let env = environment();
    sh(
        &env,
        "cp $kept/manifest-sha256.txt before; harm $there/doc/one X; harm $there/doc/deep/three X",
    );
    for _ in 0..2 {
        env.exits("ibifs scrub A > printed", 1);
        env.prints(
            "sed 's/: .*doc/ doc/; s/: .*//' printed",
            "damaged doc/deep/three\ndamaged doc/one\n2 items, 4 files, 30 bytes, 2 damaged",
        );
        prints(&env, "cmp before $kept/manifest-sha256.txt", "");
    }
    env.exits("ibifs scrub A --accept", 2);
    prints(&env, "words A --accept $item", "damaged damaged");
    prints(
        &env,
        "words A; no cmp -s before $kept/manifest-sha256.txt",
        "",
    );
    // A copy of the store knows damage as well: of the times it has what matters.
    sh(&env, "cp -a A.store copy; harm copy/${there#*/}/doc/two X");
    env.exits("ibifs scrub copy > printed", 1);
    env.prints(
        "sed 's/: .*doc/ doc/; s/: .*//; q' printed",
        "damaged doc/two",
    );
}

#[test]
fn a_file_without_a_removal_is_lost() {
    let env = environment();
    // As if the item had been scrubbed since the directory was changed.
    sh(
        &env,
        "rm $there/doc/one; touch -d '1 minute' $kept/written.txt; sleep 2.1",
    );
    for _ in 0..2 {
        env.exits("ibifs scrub A > printed", 1);
        env.prints(
            "sed 's/: .*doc/ doc/; s/: .*//' printed",
            "lost doc/one\n2 items, 3 files, 26 bytes, 1 lost",
        );
    }
    prints(&env, "words A $item --accept", "lost");
    prints(&env, "words A", "");
}

#[test]
fn a_removed_item_is_recorded_and_a_lost_one_reported() {
    let env = environment();
    sh(
        &env,
        "cp -a $there saved; name=${item#*/A/}; echo $name > name; rm -r $item",
    );
    env.prints("ibifs scrub A", "1 item, 0 files, 0 bytes");
    // It comes back, not as it was.
    env.sh("printf X | dd of=saved/doc/one conv=notrunc status=none
         touch -r saved/doc/two saved/doc/one; cp -a saved A/$(< name)");
    env.exits("ibifs scrub A > printed", 1);
    env.prints(
        "sed 's/: .*doc/ doc/; s/: .*//; q' printed",
        "damaged doc/one",
    );
    env.sh("mv A.store/col/$(< name) gone");
    env.exits("ibifs scrub A > printed", 1);
    env.prints("sed 's/:.*//; q' printed", "lost");
    env.sh("ibifs scrub A --accept $(< name); ibifs scrub A");
}

#[test]
fn a_damaged_manifest_is_named() {
    let env = environment();
    sh(
        &env,
        "cp -r $kept good
         sed -i '2s/^/no digest /' $kept/manifest-sha256.txt; cp $kept/manifest-sha256.txt bad",
    );
    for _ in 0..2 {
        env.exits("ibifs scrub A > printed", 1);
        env.prints(
            "sed 's/:.*: / /; s/has been.*//' printed | head -n 1 | grep -o 'line 2 .*'",
            "line 2 is not a line of a manifest",
        );
        prints(
            &env,
            "cmp bad $kept/manifest-sha256.txt; sed 's/:.*//; q' printed",
            "broken-manifest",
        );
    }
    prints(&env, "words A --accept $item", "broken-manifest new");
    prints(
        &env,
        "cmp good/manifest-sha256.txt $kept/manifest-sha256.txt; words A",
        "",
    );
    // A line that is good and not what was written.
    sh(
        &env,
        "sed -i '1s/^......../01234567/' $kept/manifest-sha256.txt",
    );
    env.exits("ibifs scrub A > printed", 1);
    env.prints("grep -c 'altered, not the file' printed", "1");
    // Bytes of any kind in both texts, or nothing at all.
    for file in ["manifest-sha256.txt", "written.txt"] {
        sh(
            &env,
            &format!(
                "head -c 5000 /dev/urandom > $kept/{file}; ibifs scrub A > printed || true
            rm $kept/{file}; ibifs scrub A > printed || true; cp good/* $kept/"
            ),
        );
    }
    prints(&env, "words A", "");
}

/// Links, FIFOs and devices are no files; names of every kind are, and paths of any length.
#[test]
fn only_files_count_whatever_they_are_called() {
    let env = TestEnv::with(Needs::LongPaths).with_a();
    env.sh(&format!(
        "mkdir -p A/.mint/x/doc; {TOOLS}
         ln -s /etc/passwd $item/doc/link; mkfifo $item/doc/fifo; mknod $there/doc/null c 1 3
         mkdir outside; echo x > outside/file; ln -s $PWD/outside $there/doc/directory
         python3 - $there/doc <<'END'
import os, sys
os.chdir(sys.argv[1])
for name in [b'100%', b'%0A', b'new\\nline', b'return\\r', b'\\xff', b'back\\\\slash', b' blank', b'e\\x1b[1m']:
    open(name, 'wb').write(name)
for level in range(40):
    os.mkdir('d' * 200); os.chdir('d' * 200)
open('deep', 'w').write('deep')
END"
    ));
    let counted = "2 items, 9 files, 48 bytes";
    env.prints(
        "ibifs scrub A",
        &format!("{counted}, 1 item recorded for the first time"),
    );
    env.prints("ibifs scrub A", counted);
    prints(
        &env,
        "grep -c . $kept/manifest-sha256.txt; grep -ao 'doc/[rn1%].*' $kept/manifest-sha256.txt",
        "9\ndoc/%250A\ndoc/100%25\ndoc/new%0Aline\ndoc/return%0D",
    );
    // A directory that becomes a link is not followed.
    sh(
        &env,
        "sleep 1.1; mv $there/doc doc; ln -s $PWD/doc $there/doc",
    );
    prints(
        &env,
        "ibifs scrub A --json | sed '$d' | grep -o '\"code\":\"[a-z]*\"' | sort | uniq -c | sed 's/^ *//'",
        "9 \"code\":\"missing\"",
    );
}

/// A file that cannot be read is reported and keeps its digest.
#[test]
fn what_cannot_be_read_is_reported() {
    let env = environment();
    let script = format!(
        "{TOOLS} strace -f -o log -P $there/doc/one -e inject=read:error=EIO ibifs scrub A.store > printed"
    );
    env.exits(&script, 1);
    env.prints(
        "sed 's/: .*doc/ doc/' printed",
        "unreadable doc/one: cannot be read: Input/output error (os error 5)\n\
         2 items, 3 files, 26 bytes, 1 unreadable",
    );
    let script = format!(
        "{TOOLS} strace -f -o log -P $there/doc/deep -e inject=getdents64:error=EIO ibifs scrub A.store > printed"
    );
    env.exits(&script, 1);
    env.prints(
        "sed 's/: .*doc/ doc/; s/:.*//; q' printed",
        "unreadable doc/deep",
    );
    env.prints("ibifs scrub A", "2 items, 4 files, 30 bytes");
}

/// A user who writes a file while it is read, and sets its time back each time, has not damaged it.
#[test]
fn what_is_being_written_is_never_damaged() {
    let env = environment();
    sh(
        &env,
        "head -c 300000 /dev/zero > $item/doc/busy; touch -d '1 hour ago' $item/doc/busy
         ibifs scrub A
         python3 - $item/doc/busy <<'END' &
import os, sys, time
name = sys.argv[1]; printed = os.stat(name)
for count in range(10000):
    with open(name, 'r+b') as file:
        file.write(b'%d' % count)
    os.utime(name, ns=(printed.st_atime_ns, printed.st_mtime_ns))
    time.sleep(.01)
END
         writer=$!; until grep -qa 1 $item/doc/busy; do sleep .02; done
         # Each reading takes long enough that a busy machine lets the writer write meanwhile.
         ibifs scrub --rate 300K A $item > printed; kill $writer",
    );
    env.prints(
        "sed 's/:.*//' printed",
        "unsteady\n1 item, 4 files, 30 bytes, 1 unsteady",
    );
}

/// A pass that is killed goes on with the item it was at, `--restart` begins again, and so does the
/// pass after a finished one; meanwhile another is refused, and the pace is kept.
#[test]
fn a_pass_goes_on_where_it_was_killed() {
    let env = TestEnv::new();
    env.sh(
        "ibifs init A.store --host archive-a.example.org
         for count in $(seq 20); do
             item=$(ibifs mint A.store | head -n 1); head -c 100000 /dev/zero > A.store/col/$item/doc/file
         done",
    );
    let started = Instant::now();
    env.exits(
        "ibifs scrub --rate 1M A.store &
         until grep -q '^last ' A.store/fixity/progress 2> no; do sleep .05; done
         kill -9 $!; wait $! || exit $?",
        137,
    );
    env.sh("find A.store/fixity -name 'manifest*' | wc -l > there");
    env.sh(
        "sed -n 's/^last //p' A.store/fixity/progress > last; test -s last
         ibifs scrub --rate 1M A.store > printed 2> complained & waits test -s complained; kill -STOP $!
         status=0; ibifs scrub A.store 2> refused || status=$?; test $status = 5
         grep -q 'another scrub of this store is running' refused; ibifs scrub --dry-run A.store > /dev/null; kill -CONT $!; wait
         cut -d, -f1 printed > items",
    );
    // 2,000,000 bytes at 1,048,576 a second, the first tenth on credit, one item perhaps twice.
    assert!(started.elapsed() > Duration::from_millis(1500));
    env.prints(
        "cat complained",
        &env.sh("echo \"ibifs: continuing after $(< last)\""),
    );
    env.prints(
        "all=$(ls -d A.store/col/*/*/*/* | cut -d/ -f2- | grep -n . )
         done=$(grep -x \"[0-9]*:$(< last)\" <<< \"$all\" | cut -d: -f1)
         test $(wc -l <<< \"$all\") = 21
         lost=$(($(< there) + 1 - done)); ((lost == 0 || lost == 1)); echo $((21 - done)) items
         find A.store/fixity -name 'manifest*' | wc -l",
        &env.sh("cat items; echo 20"),
    );
    env.prints("ibifs scrub A.store", "21 items, 20 files, 2000000 bytes");
    env.exits(
        "timeout -s KILL .5 ibifs scrub --rate 1M A.store || exit $?",
        137,
    );
    env.prints(
        "ibifs scrub --restart A.store",
        "21 items, 20 files, 2000000 bytes",
    );
    // The remains of the position after a power cut do no harm.
    for broken in ["last", "last col/nonsense", "\\xff\\n", "last \\n", "x\\n"] {
        env.sh(&format!(
            "printf '{broken}' > A.store/fixity/progress; ibifs scrub A.store"
        ));
    }
}

/// An item that gets its rep later brings its manifest with it.
#[test]
fn a_manifest_moves_with_its_item() {
    let env = TestEnv::new().with_a();
    env.sh(
        "mkdir -p A/8JMKD3MGP8W/34PGRBS; echo x > A/8JMKD3MGP8W/34PGRBS/file
         touch -d '1 hour ago' A/8JMKD3MGP8W/34PGRBS/file; ibifs scrub A
         ls A.store/fixity/ibip/8JMKD3MGP8W/34PGRBS
         echo 'ibi {rep sid.inpe.br/mtc-m18@80/2009/02.16.17.46 ibip 8JMKD3MGP8W/34PGRBS}' > A/8JMKD3MGP8W/34PGRBS/.ibi
         test -d A.store/col/sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
    );
    env.prints("ibifs scrub A", "2 items, 1 file, 2 bytes");
    env.sh(
        "test -s A.store/fixity/col/sid.inpe.br/mtc-m18@80/2009/02.16.17.46/manifest-sha256.txt",
    );
}

/// Beside a mount nothing of the store changes but `fixity/`, and findings are JSON when asked for.
#[test]
fn it_touches_nothing_but_its_own() {
    let env = environment();
    sh(
        &env,
        "look() { find A.store -path A.store/fixity -prune -o -type f ! -name .ibi -printf '%p %T@ %C@ %A@\\n'
                  find A.store -path A.store/fixity -prune -o -type d -printf '%p %T@ %C@\\n'; }
         look > before; ibifs scrub A; look | cmp - before
         echo more > $item/doc/more; harm $there/doc/one X",
    );
    env.exits("ibifs scrub --json A > printed", 1);
    env.prints(
        "python3 -c '
import json
for line in open(\"printed\"):
    printed = json.loads(line)
    print(*(printed[key] for key in [\"code\", \"path\", \"accepted\"] if key in printed), printed.get(\"found\", bool(printed.get(\"ibip\"))))'",
        "new doc/more False True\ndamaged doc/one False True\n{'damaged': 1, 'new': 1}",
    );
    env.exits("ibifs scrub nowhere", 3);
    env.exits("ibifs scrub A --rate 0", 2);
    env.exits("ibifs scrub A no-item", 2);
}
