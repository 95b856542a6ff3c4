//! The daemon or command is killed before each of its durable steps.
//!
//! Several writes in a row to one file count as one step; with `IBIFS_TEST_STEPS=1` each counts.

use std::time::Duration;

use super::fixture::Fixture;
use super::operations::{self, Operation};
use super::stride;
use super::supervisor::What;
use crate::support::time_of;

/// The time for which a daemon may continue a change after its caller has continued.
const AFTERWARDS: Duration = Duration::from_millis(20);

/// No change has so many steps.
const MANY: usize = 1000;

/// The times in which stores were mounted again are those that are promised. Other tests have the processors and the disk
/// as well: it is the time in the middle, and what a mount takes at the same time is added.
#[track_caller]
fn in_time(fixture: &Fixture, mut took: Vec<Duration>) -> String {
    let usual = time_of(|| drop(fixture.ibifs(&["mount", "S", "M"])));
    fixture.unmount();
    took.sort_unstable();
    let middle = took.get(took.len().saturating_sub(1) / 2).copied();
    let most = Duration::from_secs(2) + 2 * usual;
    assert!(
        middle.is_none_or(|middle| middle < most),
        "mounted again after {took:?}, not {most:?}"
    );
    format!("mounted again after {:?} at most", took.last())
}

/// Kills the daemon before every step of a change. Then the dead mount is taken away and the store
/// mounted again in time, everything that was known is, the change has been made if its caller was
/// not reported as made, it can be made again, and there is nothing to repair.
#[track_caller]
fn at_each_step_of(operation: &Operation) {
    let name = operation.name;
    let fixture = Fixture::new("");
    let mut took = Vec::new();
    for at in (1..MANY).step_by(stride(3)) {
        fixture.put_back();
        let daemon = fixture.mount();
        daemon.arm(at, What::Kill);
        // A process that waits for a killed daemon is released by the unmount.
        let printed = std::thread::scope(|scope| {
            let caller = scope.spawn(|| (operation.make)(&fixture));
            while !caller.is_finished() && !daemon.reached() {
                std::thread::sleep(Duration::from_millis(1));
            }
            // A file is released after the process that closed it continues.
            std::thread::sleep(AFTERWARDS);
            daemon.disarm();
            if daemon.reached() {
                took.push(fixture.mount_again());
            }
            caller.join().expect("no panic")
        });
        if !daemon.reached() {
            printed.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!((operation.is_made)(&fixture), "{name} is made");
            fixture.unmount();
            daemon.wait();
            let (steps, again) = (at - 1, in_time(&fixture, took));
            println!("{name}: killed at {steps} steps; {again}");
            assert!(steps > 2, "{name} has steps");
            return;
        }
        let step = format!("{name}, killed at {}", daemon.step());
        daemon.wait();
        fixture.is_whole(&step);
        let (_, report) = fixture.look();
        let mut findings = report.findings.iter();
        // A relation to an item that was removed stays, and is said.
        let unexpected = findings.find(|it| it.code.word() != "removed-target");
        assert_eq!(unexpected, None, "{step}");
        assert!(
            printed.is_err() || operation.label_ends || (operation.is_made)(&fixture),
            "{step}: acknowledged and not made"
        );
        if !(operation.is_made)(&fixture) {
            let is_as_before = operation.is_as_before.is_none_or(|is| is(&fixture));
            assert!(is_as_before, "{step}: neither made nor as before");
            (operation.make)(&fixture).unwrap_or_else(|error| panic!("{step}: {error}"));
            assert!((operation.is_made)(&fixture), "{step}: made again");
        }
        fixture.is_whole(&step);
        fixture.unmount();
        assert_eq!(fixture.repair(), Vec::<String>::new(), "{step}");
    }
    panic!("{name} has no end");
}

/// Kills a command before every step, the store being not mounted. Then it can be run again, and
/// whatever is found is repaired once and for all.
#[track_caller]
fn at_each_step_of_command(prepare: &str, arguments: &[&str], again: impl Fn(&Fixture, &str)) {
    let name = format!("ibifs {}", arguments.join(" "));
    let fixture = Fixture::new(prepare);
    for at in (1..MANY).step_by(stride(3)) {
        fixture.put_back();
        let (supervised, output) = fixture.supervised(arguments, at, What::Kill);
        let reached = supervised.reached();
        let step = format!("{name}, killed at {}", supervised.step());
        if !reached {
            assert!(output.status.success(), "{name}: {output:?}");
            println!("{name}: killed at {} steps", at - 1);
            assert!(at > 3, "{name} has steps");
            return;
        }
        // A daemon may have been killed; the process that started it ends by itself.
        fixture.detach();
        supervised.wait();
        again(&fixture, &step);
    }
    panic!("{name} has no end");
}

fn run_again(arguments: &'static [&'static str]) -> impl Fn(&Fixture, &str) {
    move |fixture, step| {
        let known = fixture.ibifs(&["ls", "S"]);
        let printed = fixture.ibifs(arguments);
        if arguments[0] == "mint" {
            let rep = printed.lines().next().unwrap_or_default().to_owned();
            assert!(!known.contains(&rep), "{rep} is handed out twice, {step}");
        }
        fixture.is_whole(step);
        assert_eq!(fixture.repair(), Vec::<String>::new(), "{step}");
    }
}

#[test]
fn mint() {
    at_each_step_of(&operations::MINT);
}

#[test]
fn mint_several_items() {
    at_each_step_of(&operations::MINT_SEVERAL);
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
fn remove_an_item() {
    at_each_step_of(&operations::REMOVE);
}

#[test]
fn take_a_mint_back() {
    at_each_step_of(&operations::UNMINT);
}

#[test]
fn copy_in_by_rep() {
    at_each_step_of(&operations::COPY_BY_REP);
}

#[test]
fn copy_in_by_ibip() {
    at_each_step_of(&operations::COPY_BY_IBIP);
}

#[test]
fn work_in_the_root() {
    at_each_step_of(&operations::WORK);
}

#[test]
fn mint_by_command() {
    at_each_step_of_command("", &["mint", "S"], run_again(&["mint", "S"]));
}

#[test]
fn mint_several_items_by_command() {
    let arguments = &["mint", "S", "--count", "3"];
    at_each_step_of_command("", arguments, run_again(arguments));
}

#[test]
fn mint_metadata_by_command() {
    at_each_step_of_command(
        "",
        &["mint", "S", "--metadata-of", "{2}"],
        run_again(&["mint", "S"]),
    );
}

#[test]
fn reindex() {
    at_each_step_of_command("", &["reindex", "S"], run_again(&["reindex", "S"]));
}

/// A store whose daemon was killed is mounted; the daemon is killed while it repairs.
#[test]
fn start() {
    let crashed = "ibifs mount S M; mkdir M/.mint/new
         gone=$(rep M/.mint/new); kill -9 $(daemon S); ibifs umount M; rm -r S/col/$gone
         level=col/$(dirname $(< three))
         in_database S/relations.sqlite3 \"INSERT OR IGNORE INTO touched VALUES ('$level')\"
         echo 'language pt' >> S/col/$(< three)/.ibi";
    at_each_step_of_command(crashed, &["mount", "S", "M"], |fixture, step| {
        fixture.mount_again();
        fixture.is_whole(step);
        assert_eq!(fixture.ibifs(&["ls", "S"]).lines().count(), 6, "{step}");
        fixture.unmount();
        assert_eq!(fixture.repair(), Vec::<String>::new(), "{step}");
    });
}

/// The check is killed while it repairs; the next one repairs the rest.
#[test]
fn repair() {
    let damaged = "echo broken > S/col/$(< three)/.ibi; rm -r S/col/$(< two)
         printf 'language pt\\n' >> S/col/$(< one)/.ibi";
    at_each_step_of_command(damaged, &["fsck", "--repair", "S"], |fixture, step| {
        fixture.repair();
        fixture.is_whole(step);
    });
}

/// Killed at any step, `ibifs init` leaves a store, or what the next one makes a store of.
#[test]
fn init() {
    let arguments = ["init", "S", "--host", "archive-a.example.org"];
    at_each_step_of_command("rm -r S; mkdir -m 700 S", &arguments, |fixture, step| {
        if !fixture.store().join("archive.ibi").exists() {
            fixture.ibifs(&arguments);
        }
        let listed = fixture.ibifs(&["ls", "S"]);
        println!("{step}: {listed}");
        assert_eq!(listed.lines().count(), 1, "{step}: {listed}");
        assert_eq!(fixture.repair(), Vec::<String>::new(), "{step}");
    });
}

/// Lock and ledger are given a word at each start and end, so that copies are known: wherever the process
/// is killed meanwhile, the next one knows the store for what it is.
#[test]
fn no_crash_is_taken_for_a_copy() {
    let fixture = Fixture::new("");
    let copied = "this store was copied or restored";
    let complaint = |output: std::process::Output| {
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for arguments in [&["mint", "S"][..], &["mount", "S", "M"]] {
        for at in (1..MANY).step_by(stride(3)) {
            fixture.put_back();
            assert!(complaint(fixture.run(&["mint", "S"])).contains(copied));
            let (supervised, _) = fixture.supervised(arguments, at, What::Kill);
            let reached = supervised.reached();
            let step = format!("ibifs {arguments:?}, killed at {}", supervised.step());
            fixture.detach();
            supervised.wait();
            let printed = complaint(fixture.run(&["mint", "S"]));
            assert!(!printed.contains(copied), "{step}: {printed}");
            if !reached {
                assert!(at > 10, "{arguments:?} has steps");
                break;
            }
        }
    }
}
