//! A copy of several items is stopped at each durable step, by a kill or an error: an item whose sidecar is
//! in the destination has all its content there, and the same command again completes all of them.

use super::command::{MANY, at_steps, command, stop_at};
use super::supervisor::{Supervised, What};
use crate::support::TestEnv;

const COPY: [&str; 6] = ["copy", "--store", "S", "--state", "original", "D"];

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

/// Copies with a step stopped. False where it ended without having come to that.
#[track_caller]
fn stops_at(env: &TestEnv, at: usize, what: What) -> bool {
    env.sh("rm -rf D; cp -a before/D .");
    let ended = stop_at(env, &COPY, env.root(), (at, what));
    let step = ended.step;
    let half = env.sh("for item in $(< items); do
             if cmp -s S/col/$item/.ibi D/col/$item/.ibi; then diff -r S/col/$item D/col/$item; fi
         done 2>&1");
    assert_eq!(half, "", "{step}");
    if !ended.reached {
        return false;
    }
    let again = command(env, &COPY).output().expect("it runs");
    assert!(again.status.success(), "{step}: {again:?}");
    let whole = env.sh(
        "for item in $(< items); do diff -r S/col/$item D/col/$item; done 2>&1
         ls -A D/staging; ibifs fsck D | tail -n 1",
    );
    assert_eq!(whole, "5 items, 0 findings", "{step}");
    true
}

#[test]
fn killed_while_several_items_are_copied() {
    let env = stores();
    at_steps(5, 2, |at| stops_at(&env, at, What::Kill));
}

#[test]
fn failing_while_several_items_are_copied() {
    let env = stores();
    at_steps(5, 2, |at| stops_at(&env, at, What::Fail(libc::ENOSPC)));
}

/// Items are synced together, not one by one.
#[test]
fn syncs_do_not_grow_with_the_items() {
    let env = stores();
    let mut copy = command(&env, &COPY);
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
