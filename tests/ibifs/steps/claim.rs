//! A claim is stopped at each durable step, by a kill or an error: never do two Archives hold the
//! original, and of those that claim then, the same Archive or another one, one of them gets it.

use super::command::{at_steps, stop_at};
use super::supervisor::What;
use crate::support::TestEnv;

/// Three stores: the original of `one` was removed from `S`, and `D` and `E` hold copies.
fn fixture() -> TestEnv {
    // Copied with cp, stores in a server would have one index.
    let env = TestEnv::new().with_index_file();
    env.sh("mkdir M N before
         ibifs init S --host archive-a.example.org > /dev/null
         ibifs init D --host archive-b.example.net > /dev/null
         ibifs init E --host archive-c.example.com > /dev/null
         ibifs mint S | head -n 1 > one; echo one > S/col/$(< one)/doc/file
         for s in D E; do ibifs copy --store S $(< one) $s > /dev/null; done
         ibifs mount S M; cp -a M/$(< one) old; rm -r M/$(< one); ibifs umount M
         cp -a S D E before");
    env
}

/// Stops the claim of `D` at a step; false where it ended before.
#[track_caller]
fn stops_at(env: &TestEnv, is_mounted: bool, at: usize, what: What) -> bool {
    env.sh("rm -rf S D E; cp -a before/S before/D before/E .");
    let (store, from) = if is_mounted { ("N", "M") } else { ("D", "S") };
    if is_mounted {
        env.sh("ibifs mount S M; ibifs mount D N");
    }
    let rep = env.sh("cat one");
    let claim = ["claim", "--store", store, &rep, "--from", from];
    let ended = stop_at(env, &claim, env.root(), (at, what));
    // An item that is put back where it was removed counts as an original at most until a user claims it, so here
    // another one is quicker at every other step.
    let others = match at % 2 {
        0 => "claim E S; claim D S",
        _ => "claim D S; claim E S",
    };
    let printed = env.sh(&format!(
        "claim() {{
             case $1 in D) to={store};; *) to=$1;; esac
             ibifs claim --store $to $(< one) --from {from} > printed.$1 2>&1 || [ $? = 4 ] || cat printed.$1
         }}
         {others}
         {}
         for s in D E; do ibifs show --store $s $(< one) | sed -n 's/^state *//p'; done | sort
         ibifs mount S M; cp -a old M/$(< one); ibifs umount M
         ibifs show --store S $(< one) | sed -n 's/^state *//p'
         ibifs mount D N; ibifs umount N
         for s in S D E; do ibifs fsck $s | tail -n 1; done",
        if is_mounted { "ibifs umount M; ibifs umount N" } else { "" }
    ));
    let clean = "2 items, 0 findings";
    let expected = format!("Copy\nOriginal\nCopy\n{clean}\n{clean}\n{clean}");
    assert_eq!(printed, expected, "{}", ended.step);
    ended.reached
}

#[track_caller]
fn stops(is_mounted: bool, what: What) {
    let env = fixture();
    at_steps(3, 2, |at| stops_at(&env, is_mounted, at, what));
}

#[test]
fn killed_between_stores() {
    stops(false, What::Kill);
}

#[test]
fn failing_between_stores() {
    stops(false, What::Fail(libc::EIO));
}

#[test]
fn killed_between_mounts() {
    stops(true, What::Kill);
}
