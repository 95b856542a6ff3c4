//! A restore that is tried is stopped at each durable step, by a kill or an error: the backup is as it was, a drill that did not
//! come to its end is not noted as good, and the same command again leaves nothing of both.

use std::process::Command;

use super::command::{at_steps, command, stop};
use super::errors::WAYS;
use super::stride;
use super::supervisor::What;
use crate::support::TestEnv;

/// A store `S` with a history, its backup `B`, and `T` for what is restored.
fn stores() -> TestEnv {
    let env = TestEnv::new();
    env.sh("mkdir T before
         ibifs init S --host archive-a.example.org > /dev/null; echo 'history yes' >> S/archive.ibi
         for i in 1 2; do
             item=$(ibifs mint S | head -n 1); seq 2000 > S/col/$item/doc/file; touch -d '1 hour ago' S/col/$item/doc/file
             ln S/col/$item/doc/file S/col/$item/doc/link
         done
         ibifs scrub S > /dev/null; ibifs backup S B --keep 9d > /dev/null
         find B -type f | sort | xargs sha256sum > sums; cp -a S before");
    env
}

fn drill(env: &TestEnv) -> Command {
    let mut drill = command(env, &["backup", "--drill", "B", "--store", "S"]);
    drill.env("TMPDIR", env.root().join("T"));
    drill
}

/// Tries a restore with a step stopped, and again. False where it ended without having come to that.
#[track_caller]
fn stops_at(env: &TestEnv, at: usize, what: What) -> bool {
    env.sh("rm -rf S; cp -a before/S .");
    let ended = stop(&mut drill(env), env.root(), (at, what));
    let step = ended.step;
    let noted =
        env.sh("sha256sum -c --quiet sums >&2; grep -o 'outcome [a-z]*' S/backups.ibi || true");
    let is_good = ended.output.status.success();
    // What is written in the store after that is about a drill that was made.
    let is_made = is_good || !step.contains(" T/");
    assert!(is_made || noted != "outcome good", "{step}: {noted}");
    if !ended.reached {
        return false;
    }
    let again = drill(env).output().expect("it runs");
    assert!(again.status.success(), "{step}: {again:?}");
    // One that was stopped after it had told the history is told twice.
    let left = env.sh(
        "ls -A T; find B -type f | sort | xargs sha256sum | cmp - sums; grep -o 'outcome [a-z]*' S/backups.ibi
         ibifs history S --type drilled | wc -l; ibifs fsck --repair S > repaired || true; ibifs fsck S | tail -n 1",
    );
    let log = String::from_utf8_lossy(&ended.output.stderr);
    let is_logged = log.contains("history has no event 'drilled'");
    let told = if is_good && !is_logged { "2" } else { "1" };
    let is_told = |told| left == format!("outcome good\n{told}\n3 items, 0 findings");
    assert!(
        is_told(told) || is_told("2"),
        "{step}: {left} {:?}",
        ended.output
    );
    true
}

#[test]
fn killed_while_a_restore_is_tried() {
    let env = stores();
    at_steps(15, 5, |at| stops_at(&env, at, What::Kill));
}

#[test]
fn failing_while_a_restore_is_tried() {
    let env = stores();
    at_steps(15, 5, |at| {
        stops_at(&env, at, WAYS[at / stride(15) % WAYS.len()])
    });
}
