//! Minting: `mkdir .mint/NAME` and `ibifs mint` hand out names that no other user has, and what they
//! have handed out is there after a crash.

use std::path::Path;
use std::process::Command;

use ibifs::outside::archive::{Archive, Setup, SystemClock};

use crate::support::TestEnv;

/// `mkdir MNT/.mint/NAME` makes a repository with both forms of a new identifier, the original
/// here, and `.mint/.NAME` shows its name.
#[test]
fn mkdir_under_mint_makes_a_repository() {
    let env = TestEnv::new().with_a();
    env.sh("mkdir -p A/.mint/report/doc");
    env.prints(
        "readlink A/.mint/.report",
        &format!("../{}", env.sh("rep A/.mint/report")),
    );
    env.prints("state A/.mint/report", "Original");
    env.prints("ls A/$(rep A/.mint/report)", "doc");
    env.prints("ls A/$(ibip A/.mint/report)", "doc");
    let rep = env.sh("rep A/.mint/report");
    assert!(rep.starts_with("example.org/archive-a/20"), "{rep}");
}

/// 1,000 labels minted by 8 processes at once at granularity 1/1000 are 1,000 different labels.
#[test]
fn labels_minted_at_once_are_all_different() {
    let env = TestEnv::new().with_a();
    env.sh("for p in 1 2 3 4 5 6 7 8; do
             (for i in $(seq 125); do mkdir A/.mint/label-$p-$i; done) &
         done
         wait
         for p in 1 2 3 4 5 6 7 8; do
             for i in $(seq 125); do readlink A/.mint/.label-$p-$i; done
         done > reps");
    env.prints("wc -l < reps; sort -u reps | wc -l", "1000\n1000");
    env.sh("ibifs umount A");
    env.prints("ibifs ls A.store --state Original | wc -l", "1001");
    env.prints("ibifs ls A.store | cut -d' ' -f3 | sort -u | wc -l", "1001");
}

/// A second next edition of one item is refused before a date is spent on it, and the sentence
/// says which one there is.
#[test]
fn an_item_has_one_next_edition() {
    let env = TestEnv::new().with_a();
    env.sh("mint A first > first; ibifs mint A --edition-of A/$(cat first) | head -n 1 > second");
    env.complains(
        "ibifs mint A --edition-of A/$(cat first)",
        "has its ibi.nextedition already, {rep example.org/archive-a/20",
    );
    env.sh("ibifs umount A");
    env.complains(
        "ibifs mint A.store --edition-of $(cat first)",
        &env.sh("cat second"),
    );
    env.prints("ibifs ls A.store | wc -l", "3");
}

/// Commands that mint in a store that is not mounted take turns: none is refused, no label is double.
#[test]
fn commands_that_mint_at_once_take_turns() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org > /dev/null
        for p in 1 2 3 4 5 6 7 8; do
            (for i in $(seq 25); do ibifs mint A.store | head -n 1; done > reps-$p) &
        done
        wait");
    env.prints("cat reps-* | wc -l; sort -u reps-* | wc -l", "200\n200");
    env.prints("ibifs fsck A.store", "201 items, 0 findings");
}

/// A command that waits for a lock seldom tests it: a test is a lock as well, which network filesystems hold for
/// milliseconds, and keeps the lock from the one whose turn it is.
#[test]
fn a_command_that_waits_seldom_tests_the_lock() {
    let env = TestEnv::new();
    env.sh("ibifs init A.store --host archive-a.example.org > /dev/null
        flock A.store flock A.store/lock sleep 2 & sleep 0.2
        strace -f -o trace -e trace=flock ibifs mint A.store > minted; wait");
    let tests: usize = env
        .sh("grep -c 'LOCK_SH|LOCK_NB) *= -1 EAGAIN' trace")
        .parse()
        .expect("a number");
    assert!(tests < 20, "{tests} tests");
}

/// Kills the daemon without warning, takes the dead mount away and mounts the store again.
const CRASH: &str = "crash() {
        kill -9 $(daemon A.store)
        ibifs umount A
    }";

/// The daemon is killed in the middle of a storm of mints, three times over: no name is handed out
/// twice, every name that was printed is there whole, and nothing is left to repair.
#[test]
fn a_killed_daemon_hands_out_no_name_twice_and_loses_none() {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        "{CRASH}
        for round in 1 2 3; do
            for p in 1 2 3 4 5 6 7 8; do
                (i=0; while mkdir A/.mint/$round-$p-$i 2> /dev/null; do
                    readlink A/.mint/.$round-$p-$i >> printed-$round-$p || true
                    i=$((i + 1))
                done) &
            done
            waits eval '[ $(cat printed-$round-* | wc -l) -gt 20 ]'; crash; wait; ibifs mount A.store A
        done
        sed 's,^../,,' printed-* > printed; sort -u printed > once"
    ));
    let printed: usize = env.sh("wc -l < printed").parse().expect("a number");
    assert!(printed > 30, "{printed} minted");
    env.prints("wc -l < once", &printed.to_string());
    env.sh("while read -r rep; do
            test -d A/$rep -a \"$(state A/$rep)\" = Original
            grep -q \"^ibi {rep $rep \" A/$rep/.ibi
        done < once
        ibifs umount A
        ibifs ls A.store | cut -d' ' -f2 | sort | comm -13 - once | no grep .");
    assert!(
        env.sh("ibifs fsck A.store").ends_with(", 0 findings"),
        "nothing to mend"
    );
}

/// A power cut may take directories of items just minted, and what stands in their sidecars: the
/// next mount makes them again, for the same owner. One that had been removed stays removed.
#[test]
fn what_a_power_cut_takes_of_a_mint_is_made_again() {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        "{CRASH}
        for i in 1 2 3 4; do mkdir -m 750 A/.mint/$i; chown -R 123:456 A/.mint/$i; rep A/.mint/$i > $i; done
        chmod 750 A/$(cat 1); rm -r A/$(cat 4); cp -r A.store/$(dirname col/$(cat 1)) before
        crash
        col=A.store/col
        rm -r $col/$(cat 1); : > $col/$(cat 2)/.ibi; rm $col/$(cat 3)/.ibi
        ibifs mount A.store A"
    ));
    env.sh("diff -r before A.store/$(dirname col/$(cat 1)); no ls A/$(cat 4)");
    env.prints(
        "stat -c '%a %U' A/$(cat 1) A/$(cat 1)/.ibi",
        "750 root\n644 root",
    );
    env.prints("stat -c %u:%g A/$(cat 2)/.ibi", "123:456");
    env.sh("ibifs umount A");
    env.prints("ibifs fsck A.store", "4 items, 0 findings");
    // After a regular end nothing is made again: a directory that is taken away then is reported.
    env.sh("rm -r A.store/col/$(cat 2)");
    env.complains("ibifs fsck A.store | tee /dev/stderr; false", "not-in-tree");
}

/// Dates are reserved ahead of what is shown: they are given back at a regular end, and count as
/// handed out after any other. Then the next mint waits for them to pass, a second at most.
#[test]
fn dates_reserved_ahead_are_not_handed_out_after_a_crash() {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        "{CRASH}; mint A one > one; crash
        in_database A.store/relations.sqlite3 'SELECT reserved FROM ledger' | grep . > reserved
        ibifs mount A.store A"
    ));
    let seconds = |script: &str| -> f64 {
        env.sh(&format!("date -u +%s.%N -d \"$({script})\""))
            .parse()
            .expect("a number")
    };
    let reserved = seconds("cat reserved");
    let minted = seconds(
        "mint A two | awk -F'[/.]' '{ printf \"%s-%s-%s %s:%s:%s.%s0\", $4, $5, $6, $7, $8, $9, $10 }'",
    );
    assert!(
        minted > reserved,
        "{minted} was minted, {reserved} was reserved"
    );
    assert!(minted < reserved + 60.0);
    env.sh("ibifs umount A");
    env.prints(
        "in_database A.store/relations.sqlite3 'SELECT reserved FROM ledger'",
        "",
    );
    env.prints(
        "sed -n 's/^last //p' A.store/ledger | cmp - <(in_database A.store/relations.sqlite3 'SELECT last FROM ledger')",
        "",
    );
}

/// The syncs that strace has seen.
fn syncs(messages: &Path) -> usize {
    let messages = std::fs::read_to_string(messages).expect("what strace says");
    let calls = ["fsync(", "fdatasync(", "syncfs(", "sync_file_range("];
    let is_sync = |line: &&str| calls.iter().any(|call| line.contains(call));
    messages.lines().filter(is_sync).count()
}

/// One sync makes a mint durable; the dates of a second and the directories are synced for many at a time.
#[test]
fn a_mint_costs_one_sync() {
    let env = TestEnv::new().with_index_file().with_a();
    let seconds = env.sh(
        "strace -f -qq -e trace=fsync,fdatasync,syncfs,sync_file_range -o messages \\
            -p $(daemon A.store) & traced $(daemon A.store)
        begun=$SECONDS
        for p in 1 2 3 4 5 6 7 8; do
            (for i in $(seq 25); do mkdir A/.mint/$p-$i; done) &
            minting+=($!)
        done
        wait ${minting[@]}; echo $((SECONDS - begun))
        kill %1; wait %1 || true",
    );
    let seconds: usize = seconds.parse().expect("a number");
    let counted = syncs(&env.root().join("messages"));
    assert!(
        (200..230 + 2 * seconds).contains(&counted),
        "{counted} syncs of 200 mints in {seconds} s"
    );
}

/// Items that one command mints share their syncs.
#[test]
fn items_minted_together_share_their_syncs() {
    let env = TestEnv::new().with_index_file().with_a();
    let seconds = env.sh(
        "strace -f -qq -e trace=fsync,fdatasync,syncfs,sync_file_range -o messages \\
            -p $(daemon A.store) & traced $(daemon A.store)
        begun=$SECONDS; test $(ibifs mint A --count 200 | wc -l) = 400; echo $((SECONDS - begun))
        kill %1; wait %1 || true",
    );
    let seconds: usize = seconds.parse().expect("a number");
    let counted = syncs(&env.root().join("messages"));
    assert!(
        (5..40 + 2 * seconds).contains(&counted),
        "{counted} syncs of 200 mints in {seconds} s"
    );
}

/// Threads that mint at once share their syncs, and each gets a name of its own.
#[test]
fn threads_that_mint_at_once_share_their_syncs() {
    let env = TestEnv::new();
    let messages = env.root().join("messages");
    // In a process of its own: other tests run in this one and sync, too.
    let output = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-e",
            "trace=fsync,fdatasync,syncfs,sync_file_range",
            "-o",
        ])
        .arg(&messages)
        .arg(std::env::current_exe().expect("this test"))
        .args(["--ignored", "--exact", "mint::mint_by_threads"])
        .current_dir(env.root())
        .output()
        .expect("strace runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let counted = syncs(&messages);
    assert!(counted < 1600, "{counted} syncs of 2000 mints");
    env.prints("ibifs fsck store", "2001 items, 0 findings");
    env.prints("ibifs ls store | cut -d' ' -f2 | sort -u | wc -l", "2001");
}

/// Eight threads mint 250 items each in the store `store` of the current directory, and print how fast.
#[test]
#[ignore = "a part of another test, and a measurement"]
fn mint_by_threads() {
    let setup = Setup {
        host: Some("archive-a.example.org".to_owned()),
        ..Setup::default()
    };
    let archive = Archive::init(
        Path::new("store"),
        &setup,
        Box::new(SystemClock),
        &mut |_| (),
    );
    let (archive, _) = archive.expect("a new store");
    let started = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..250 {
                    archive
                        .depositor(&ibifs::outside::archive::Process)
                        .mint(None, None)
                        .expect("a mint");
                }
            });
        }
    });
    let rate = 2000.0 / started.elapsed().as_secs_f64();
    println!("{rate:.0} mints a second by eight threads");
    archive.close();
}
