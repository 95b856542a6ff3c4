//! A copy of several items is stopped at each durable step, by a kill or an error: an item whose sidecar is
//! in the destination has all its content there, and the same command again completes all of them.

use std::process::{Command, Stdio};

use super::stride;
use super::supervisor::{Supervised, What};
use crate::support::TestEnv;

/// No copy has so many steps.
const MANY: usize = 1000;

/// A store `S` with items, and an empty store `D`.
fn stores() -> TestEnv {
    let env = TestEnv::new();
    env.sh("mkdir before
         ibifs init S --host archive-a.example.org > /dev/null
         ibifs init D --host archive-b.example.net > /dev/null
         for i in 1 2 3 4; do
             ibifs mint S | head -n 1 > item
             seq $((i * 1000)) > S/col/$(< item)/doc/file; ln S/col/$(< item)/doc/file S/col/$(< item)/doc/link
             cat item >> items
         done
         cp -a D before");
    env
}

fn command(env: &TestEnv) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibifs"));
    command
        .args(["copy", "--store", "S", "--state", "original", "D"])
        .current_dir(env.root())
        .env_remove("IBIFS_STORE")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Copies with a step stopped. False where it ended without having come to that.
#[track_caller]
fn stops_at(env: &TestEnv, at: usize, what: What) -> bool {
    env.sh("rm -rf D; cp -a before/D .");
    let mut stopped = command(env);
    let (supervised, child) = Supervised::start(&mut stopped, env.root(), Some((at, what)));
    let output = child.wait_with_output().expect("it ends");
    let reached = supervised.reached();
    let step = format!("{what:?} at {}", supervised.step());
    supervised.wait();
    let half = env.sh("for item in $(< items); do
             if cmp -s S/col/$item/.ibi D/col/$item/.ibi; then diff -r S/col/$item D/col/$item; fi
         done 2>&1");
    assert_eq!(half, "", "{step}");
    if !reached {
        assert!(output.status.success(), "{step}: {output:?}");
        return false;
    }
    let again = command(env).output().expect("it runs");
    assert!(again.status.success(), "{step}: {again:?}");
    let whole = env.sh(
        "for item in $(< items); do diff -r S/col/$item D/col/$item; done 2>&1
         ls -A D/staging; ibifs fsck D | tail -n 1",
    );
    assert_eq!(whole, "5 items, 0 findings", "{step}");
    true
}

#[track_caller]
fn at_steps(what: What) {
    let env = stores();
    let steps = (1..MANY).step_by(stride(5));
    let count = steps.take_while(|at| stops_at(&env, *at, what)).count();
    println!("{what:?}: stopped at {count} steps");
    assert!(count > 2, "it has steps");
}

#[test]
fn killed_while_several_items_are_copied() {
    at_steps(What::Kill);
}

#[test]
fn failing_while_several_items_are_copied() {
    at_steps(What::Fail(libc::ENOSPC));
}

/// Items are synced together, not one by one.
#[test]
fn syncs_do_not_grow_with_the_items() {
    let env = stores();
    let mut copy = command(&env);
    let (supervised, child) = Supervised::start(&mut copy, env.root(), Some((MANY, What::Kill)));
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{output:?}");
    let steps = supervised.steps();
    supervised.wait();
    let syncs: Vec<&String> = steps
        .iter()
        .filter(|step| step.starts_with("sync"))
        .collect();
    // The content of all four, their sidecars, and the end of the command.
    assert!((2..=3).contains(&syncs.len()), "{steps:#?}");
}
