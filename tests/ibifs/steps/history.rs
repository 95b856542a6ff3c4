//! The process that takes events to the log is stopped at each durable step, or the step fails: log and index agree
//! afterwards, and each event is in both once.

use super::errors::WAYS;
use super::fixture::Fixture;
use super::stride;
use super::supervisor::What;

/// No command has so many steps.
const MANY: usize = 1000;

/// Each item that was minted since the beginning is told once, and the lines of the log are those of the index.
const TOLD: &str = r#"
    ibifs history S --json > events; cut -d ' ' -f 3- S/log/events/*.txt | cmp - events
    diff <(jq -r 'select(.event == "minted").item' events | sort) <(ibifs ls S | awk '$1 == "Original" { print $2 }' | grep -vxFf old | sort)
    ibifs fsck S > found || { cat found >&2; false; }"#;

/// Stops a mint at one step after the other, or lets the step fail. The next one goes on with the log.
#[track_caller]
fn at_each_step(prepare: &str, ways: &[What]) {
    // What is older than the history is not told.
    let older = "ibifs ls S | awk '{ print $2 }' > old; echo 'history yes' >> S/archive.ibi";
    let fixture = Fixture::new(&format!("{older}; {prepare}"));
    let environment = fixture.environment();
    let arguments = ["mint", "S"];
    let mut in_log = 0;
    for at in (1..MANY).step_by(stride(2)) {
        fixture.put_back();
        let way = ways[at / stride(2) % ways.len()];
        let (supervised, output) = fixture.supervised(&arguments, at, way);
        let (reached, step) = (supervised.reached(), supervised.step());
        supervised.wait();
        fixture.ibifs(&arguments);
        let printed = environment.run(TOLD);
        assert!(
            printed.status.success(),
            "{way:?} at {step}: {}{}\n{output:?}",
            String::from_utf8_lossy(&printed.stdout),
            String::from_utf8_lossy(&printed.stderr)
        );
        in_log += usize::from(step.contains(" log"));
        if !reached {
            println!("{} steps, {in_log} of those tried in the log", at - 1);
            assert!(in_log > 5, "the log has steps");
            return;
        }
    }
    panic!("it has no end");
}

#[test]
fn a_new_log_is_killed() {
    at_each_step("", &[What::Kill]);
}

#[test]
fn a_log_is_killed() {
    at_each_step("ibifs mint S --count 255 > minted", &[What::Kill]);
}

#[test]
fn a_step_of_the_log_fails() {
    at_each_step("ibifs mint S --count 255 > minted", &WAYS);
}
