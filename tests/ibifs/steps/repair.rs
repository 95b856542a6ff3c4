//! A repair is stopped at each durable step, by a kill or an error: the item has the damaged file or the whole one, the damaged
//! one is not lost, and the same command again mends it.

use std::process::{Command, Stdio};

use super::stride;
use super::supervisor::{Supervised, What};
use crate::support::TestEnv;

/// No repair has so many steps.
const MANY: usize = 1000;

/// A store `S`, and a copy `D` of it of which one file is damaged.
fn stores() -> TestEnv {
    let env = TestEnv::new();
    env.sh("mkdir before
         ibifs init S --host archive-a.example.org > /dev/null
         ibifs init D --host archive-b.example.net > /dev/null
         ibifs mint S | head -n 1 > item; file=col/$(< item)/doc/file
         echo whole > S/$file; touch -d '1 hour ago' S/$file; ibifs copy --store S $(< item) D > /dev/null
         ibifs scrub D > /dev/null; echo broken | head -c 6 > D/$file; touch -r S/$file D/$file; echo $file > file
         cp -a D before");
    env
}

fn command(env: &TestEnv) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibifs"));
    command
        .args(["repair", "D", "--all", "--from", "S"])
        .current_dir(env.root())
        .env_remove("IBIFS_STORE")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Repairs with a step stopped. False where it ended without having come to that.
#[track_caller]
fn stops_at(env: &TestEnv, at: usize, what: What) -> bool {
    env.sh("rm -rf D; cp -a before/D .");
    let store = env.root().join("D");
    let mut stopped = command(env);
    let (supervised, child) = Supervised::start(&mut stopped, &store, Some((at, what)));
    let output = child.wait_with_output().expect("it ends");
    let reached = supervised.reached();
    let step = format!("{what:?} at {}", supervised.step());
    supervised.wait();
    let there = env.sh("cat D/$(< file); cat D/damaged/$(< item)/doc/* 2> /dev/null || true");
    let is_one = there.starts_with("broken") || there == "whole\nbroken";
    assert!(is_one, "{step}: {there}");
    if !reached {
        assert!(output.status.success(), "{step}: {output:?}");
        return false;
    }
    let again = command(env).output().expect("it runs");
    assert!(again.status.success(), "{step}: {again:?}");
    let whole = env.sh(
        "cat D/$(< file); cat D/damaged/$(< item)/doc/*; echo; stat -c %h D/$(< file) D/damaged/$(< item)/doc/*
         find D/staging D/handover/incoming D/fixity/damaged -type f; ibifs scrub D; ibifs fsck D | tail -n 1",
    );
    assert_eq!(
        whole, "whole\nbroken\n1\n1\n2 items, 1 file, 6 bytes\n2 items, 0 findings",
        "{step}"
    );
    true
}

#[track_caller]
fn at_steps(what: What) {
    let env = stores();
    let steps = (1..MANY).step_by(stride(2));
    let count = steps.take_while(|at| stops_at(&env, *at, what)).count();
    println!("{what:?}: stopped at {count} steps");
    assert!(count > 5, "it has steps");
}

#[test]
fn killed_while_a_file_is_mended() {
    at_steps(What::Kill);
}

#[test]
fn failing_while_a_file_is_mended() {
    at_steps(What::Fail(libc::ENOSPC));
}
