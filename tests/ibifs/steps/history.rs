//! The process that takes events to the log is stopped at each durable step, or the step fails: log and index agree
//! afterwards, and each event is in both once.

use super::errors::WAYS;
use super::fixture::Fixture;
use super::stride;
use super::supervisor::What;

/// No command has so many steps.
const MANY: usize = 1000;

/// Each item that was minted since the beginning is told once, one whose directory could not be made as removed again, and the
/// lines of the log are those of the index.
const TOLD: &str = r#"
    ibifs history S --json > events; cut -d ' ' -f 3- S/log/events/*.txt | cmp - events
    jq -rs 'map(select(.event == "removed").item) as $gone | map(select(.event == "minted").item) - $gone | .[]' events > minted_now
    jq -r 'select(.event == "minted").item' events | sort | uniq -d | cmp - /dev/null
    diff <(sort minted_now) <(ibifs ls S | awk '$1 == "Original" { print $2 }' | grep -vxFf old | sort)
    ibifs fsck S > found || { cat found >&2; false; }"#;

/// Stops a mint at one step after the other, or lets the step fail. The next one goes on with the log.
#[track_caller]
fn at_each_step(prepare: &str, ways: &[What]) {
    of_each_step(&["mint", "S"], prepare, ways, "");
}

/// The same of a command, after which a check holds as well.
#[track_caller]
fn of_each_step(arguments: &[&str], prepare: &str, ways: &[What], check: &str) {
    // What is older than the history is not told.
    let older = "ibifs ls S | awk '{ print $2 }' > old; echo 'history yes' >> S/archive.ibi";
    let fixture = Fixture::new(&format!("{older}; {prepare}"));
    let environment = fixture.environment();
    let mut in_log = 0;
    for at in (1..MANY).step_by(stride(1)) {
        fixture.put_back();
        let way = ways[at / stride(1) % ways.len()];
        let (supervised, output) = fixture.supervised(arguments, at, way);
        let (reached, step) = (supervised.reached(), supervised.step());
        supervised.wait();
        fixture.ibifs(&["mint", "S"]);
        let printed = environment.run(&format!("{TOLD}\n{check}"));
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

/// The events that were left before are in the log once, wherever the one who takes them stops.
#[test]
fn a_taking_of_events_is_killed() {
    of_each_step(
        &["mint", "S"],
        "ibifs scrub S > out; ibifs scrub S > out; ibifs scrub S > out",
        &[What::Kill],
        "test $(ibifs history S --type scrubbed | wc -l) = 3; test -z \"$(ls S/log/told)\"",
    );
}

#[test]
fn a_step_of_the_taking_of_events_fails() {
    of_each_step(
        &["mint", "S"],
        "ibifs scrub S > out; ibifs scrub S > out",
        &WAYS,
        "test $(ibifs history S --type scrubbed | wc -l) = 2; test -z \"$(ls S/log/told)\"",
    );
}

/// One who leaves an event leaves a whole one, or none.
#[test]
fn a_leaving_of_an_event_is_killed() {
    of_each_step(
        &["scrub", "S"],
        "",
        &[What::Kill],
        "test $(ibifs history S --type scrubbed | wc -l) -le 1; test -z \"$(ls S/log/told | grep -v new$)\"",
    );
}
