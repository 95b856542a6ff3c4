//! `ibifs fsck` and `ibifs reindex`.

use std::path::Path;

use super::access::StoreAccess;
use super::{counting, print, say, start, transfer, usage};
use crate::archive::backup;
use crate::archive::{Archive, ArchiveError, CheckFinding, CheckReport, SystemClock};
use crate::command::cli::{Fsck, Reindex};
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use ibi::{message, plural};

pub(super) fn reindex(options: &Reindex) -> Result<Exit, Failure> {
    let store = &StoreAccess::of_mount_point(&options.store)?.unwrap_or(options.store.clone());
    let mut archive = start::open_for_reindex(store)?;
    let progress = counting(store);
    if let Some(place) = &options.to {
        archive = archive.move_index(place)?;
    }
    let (archive, report) = match archive.keeper().reindex(&mut |items| progress.at(items)) {
        // Damage deep in the database shows only when it is read as a whole.
        Err(ArchiveError::Store(error)) if error.is_damage() => {
            drop(archive);
            let archive = start::reopen(store, &error)?;
            let report = archive.keeper().reindex(&mut |items| progress.at(items))?;
            (archive, report)
        }
        other => (archive, other?),
    };
    drop(progress);
    if options.to.is_some() {
        archive.keeper().remove_index_file()?;
    }
    archive.close();
    if options.output.json {
        say(&print::report_json(store, &report))?;
        return Ok(Exit::Done);
    }
    for finding in &report.findings {
        eprint!(
            "ibifs: {}",
            print::finding_line(finding, print::Repairs::Made)
        );
    }
    let indexed = plural!(
        "{count} item indexed",
        "{count} items indexed",
        count = report.items
    );
    say(&format!("{}\n", localized(&indexed)))?;
    Ok(Exit::Done)
}

pub(super) fn fsck(options: &Fsck) -> Result<Exit, Failure> {
    let Some(generations) = backup::generations_at(&options.store, options.all)? else {
        if options.all {
            let path = options.store.display();
            return Err(usage(message!(
                "'{path}' has no generations of a backup",
                path
            )));
        }
        let store = StoreAccess::of_mount_point(&options.store)?.unwrap_or(options.store.clone());
        let report = checked(&store, options)?;
        say(&if options.output.json {
            print::report_json(&store, &report)
        } else {
            print::report_text(&report, repairs(options))
        })?;
        return Ok(exit_of(&report));
    };
    // Each is told before the next one is read.
    let mut exit = Exit::Done;
    for store in &generations {
        let report = checked(store, options)?;
        say(&if options.output.json {
            print::report_line(store, &report)
        } else {
            format!(
                "{}:\n{}",
                OneLine(store.display()),
                print::report_text(&report, repairs(options))
            )
        })?;
        if exit_of(&report) != Exit::Done {
            exit = Exit::Failed;
        }
    }
    Ok(exit)
}

fn repairs(options: &Fsck) -> print::Repairs {
    if options.dry_run {
        print::Repairs::Planned
    } else {
        print::Repairs::Made
    }
}

fn exit_of(report: &CheckReport) -> Exit {
    let left = report.findings.iter().any(CheckFinding::is_left);
    if left { Exit::Failed } else { Exit::Done }
}

/// Checks one store, and repairs it if that is wanted.
fn checked(store: &Path, options: &Fsck) -> Result<CheckReport, Failure> {
    Archive::refuse_unfinished(store)?;
    if options.clock_is_right {
        let archive = Archive::open(store, Box::new(SystemClock))?;
        if let Some(last) = archive.keeper().go_on_from_present()? {
            let goes_on = message!(
                "minting continues from now; dates until {until} that items have are skipped",
                until = last.to_rfc3339()
            );
            eprintln!("ibifs: {}", localized(&goes_on));
        }
        archive.close();
    }
    let progress = counting(store);
    let mut count = |items| progress.at(items);
    let mut report = if options.repair {
        Archive::repair(store, Box::new(SystemClock), &mut count)?
    } else {
        Archive::check(store, &SystemClock, &mut count)?
    };
    drop(progress);
    if let Some(other) = &options.with {
        let found = transfer::claimed_by_both(store, other, &options.network)?;
        report.findings.extend(found);
    }
    Ok(report)
}
