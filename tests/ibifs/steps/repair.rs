//! A repair is stopped at each durable step, by a kill or an error: the item has the damaged file or the whole one, the damaged
//! one is not lost, and the same command again mends it.

use super::command::{at_steps, command, stop_at};
use super::supervisor::What;
use crate::support::TestEnv;

const REPAIR: [&str; 5] = ["repair", "D", "--all", "--from", "S"];

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

/// Repairs with a step stopped. False where it ended without having come to that.
#[track_caller]
fn stops_at(env: &TestEnv, at: usize, what: What) -> bool {
    env.sh("rm -rf D; cp -a before/D .");
    let store = env.root().join("D");
    let ended = stop_at(env, &REPAIR, &store, (at, what));
    let step = ended.step;
    let there = env.sh("cat D/$(< file); cat D/damaged/$(< item)/doc/* 2> /dev/null || true");
    let is_one = there.starts_with("broken") || there == "whole\nbroken";
    assert!(is_one, "{step}: {there}");
    if !ended.reached {
        return false;
    }
    let again = command(env, &REPAIR).output().expect("it runs");
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

#[test]
fn killed_while_a_file_is_mended() {
    let env = stores();
    at_steps(2, 5, |at| stops_at(&env, at, What::Kill));
}

#[test]
fn failing_while_a_file_is_mended() {
    let env = stores();
    at_steps(2, 5, |at| stops_at(&env, at, What::Fail(libc::ENOSPC)));
}
