//! Each durable step of a change fails, once or from then on.
//!
//! Several writes in a row to one file count as one step, and each step fails in one of four ways,
//! which take turns; with `IBIFS_TEST_STEPS=1` each write counts and fails in all ways.

use std::time::Duration;

use super::fixture::Fixture;
use super::operations::{self, Operation};
use super::stride;
use super::supervisor::What;
use crate::support::switch;

/// No change has so many steps.
const MANY: usize = 1000;

/// The time for which a daemon may continue a change after its caller has continued.
const AFTERWARDS: Duration = Duration::from_millis(20);

/// The ways in which a step fails.
pub(super) const WAYS: [What; 4] = [
    What::Fail(libc::EIO),
    What::FailOn(libc::ENOSPC),
    What::Fail(libc::ENOSPC),
    What::FailOn(libc::EIO),
];

/// The errno of a way to fail.
fn errno(way: What) -> i32 {
    match way {
        What::Fail(errno) | What::FailOn(errno) => errno,
        What::Count | What::Kill => 0,
    }
}

/// Whether a change does not depend on a step: the mark for a crash in the middle of it, and what
/// has no further use.
fn is_needless(step: &str) -> bool {
    step.contains(" staging/changed-") || step.starts_with("unlinkat staging/")
}

/// Lets every step of a change fail. Its caller learns the true errno and nothing is half made;
/// everything else is as it was, the mount takes other changes, and the same one as soon as the error
/// has gone. Nothing is left to repair.
#[track_caller]
fn at_each_step_of(operation: &Operation) {
    let fixture = Fixture::new("");
    let (mut at, mut failed) = (1, 0);
    while at < MANY {
        let all = switch("IBIFS_TEST_STEPS").is_some();
        let ways = if all {
            WAYS.to_vec()
        } else {
            vec![WAYS[at % WAYS.len()]]
        };
        for way in ways {
            if !fails_at(operation, &fixture, at, way) {
                println!("{}: {} steps, {failed} errors", operation.name, at - 1);
                assert!(failed > 1, "{} has steps", operation.name);
                return;
            }
            failed += 1;
        }
        at += stride(3);
    }
    panic!("{} has no end", operation.name);
}

/// Whether there was a step to fail.
#[track_caller]
fn fails_at(operation: &Operation, fixture: &Fixture, at: usize, way: What) -> bool {
    fixture.put_back();
    let daemon = fixture.mount();
    let (before, _) = fixture.look();
    daemon.arm(at, way);
    let printed = (operation.make)(fixture);
    std::thread::sleep(AFTERWARDS);
    daemon.disarm();
    if !daemon.reached() {
        printed.unwrap_or_else(|error| panic!("{}: {error}", operation.name));
        fixture.unmount();
        daemon.wait();
        return false;
    }
    let step = format!("{}, {way:?} at {}", operation.name, daemon.step());
    match &printed {
        Err(error) => {
            assert_eq!(error.raw_os_error(), Some(errno(way)), "{step}: {error}");
            let (after, _) = fixture.look();
            if operation.is_whole && matches!(way, What::Fail(_)) {
                assert_eq!(after, before, "{step}");
            }
        }
        Ok(()) => {
            let mut refused = daemon.steps().split_off(at - 1);
            let made = match way {
                What::Fail(_) => refused.split_off(1),
                _ => Vec::new(),
            };
            let is_full = operation.goes_on_if_full && way == What::Fail(libc::ENOSPC);
            let needed = refused
                .iter()
                .find(|step| !is_full && !is_needless(step) && !made.contains(step));
            assert_eq!(needed, None, "{step}: nobody was printed");
            assert!(
                operation.label_ends || (operation.is_made)(fixture),
                "{step}: not made"
            );
        }
    }
    // Others go on.
    let other = std::fs::read_to_string(fixture.item(2).join("doc/file"));
    assert_eq!(other.ok().as_deref(), Some("two\n"), "{step}");
    std::fs::create_dir(fixture.mounted(".mint/other"))
        .unwrap_or_else(|error| panic!("{step}: {error}"));
    let (_, report) = fixture.look();
    let mut found = report.findings.iter();
    let unexpected = found.find(|finding| {
        let may_leave = operation.may_leave.unwrap_or_default();
        !may_leave.split(' ').any(|code| code == finding.code.word())
    });
    assert_eq!(unexpected, None, "{step}");
    // A change may have been made all the same if nothing could be written to take it back.
    if !(operation.is_made)(fixture) {
        (operation.make)(fixture).unwrap_or_else(|error| panic!("{step}, then again: {error}"));
    }
    assert!((operation.is_made)(fixture), "{step}: made again");
    fixture.is_whole(&step);
    fixture.unmount();
    daemon.wait();
    assert_eq!(fixture.repair(), Vec::<String>::new(), "{step}");
    true
}

#[test]
fn mint() {
    at_each_step_of(&operations::MINT);
}

#[test]
fn mint_a_translation() {
    at_each_step_of(&operations::MINT_TRANSLATION);
}

#[test]
fn set_a_relation() {
    at_each_step_of(&operations::RELATE);
}

#[test]
fn replace_a_relation() {
    at_each_step_of(&operations::RELATE_ANEW);
}

#[test]
fn remove_a_relation() {
    at_each_step_of(&operations::UNRELATE);
}

#[test]
fn rename_onto_a_sidecar() {
    at_each_step_of(&operations::RENAME_SIDECAR);
}

#[test]
fn write_over_a_sidecar() {
    at_each_step_of(&operations::WRITE_SIDECAR);
}

#[test]
fn write_over_a_shared_sidecar() {
    at_each_step_of(&operations::WRITE_SHARED_SIDECAR);
}

#[test]
fn remove_an_item() {
    at_each_step_of(&operations::REMOVE);
}

#[test]
fn copy_in_by_rep() {
    at_each_step_of(&operations::COPY_BY_REP);
}

#[test]
fn copy_in_by_ibip() {
    at_each_step_of(&operations::COPY_BY_IBIP);
}
