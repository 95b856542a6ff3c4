//! The log of the store, and the events in the index.

use super::super::history::events_in;
use super::finding::{CheckCode, CheckFinding, CheckReport};
use crate::archive::ArchiveError;
use crate::archive::log_files::{LOG_DIRECTORY, LeftLines, LogFileError, LogLine, LogReader};
use crate::archive::store::{EventRow, Store};
use crate::archive::tree::Tree;
use crate::formats::tlog::merkle::Hash;
use crate::formats::tlog::tile::WIDTH;
use ibi::message;

/// Computes the log again, and compares it with the events of the index, if that can be read.
pub(super) fn check_log(
    tree: &Tree,
    index: Option<&Store>,
    report: &mut CheckReport,
) -> Result<(), ArchiveError> {
    check_left(tree, report);
    // Before the log is opened, which may grow meanwhile.
    let known = index.map_or(Ok(0), Store::logged_events)?.cast_unsigned();
    let mut found = Vec::new();
    let size = match LogReader::open(tree.root()) {
        Ok(Some(log)) => {
            found = faults(&log);
            // A damaged log says nothing about the index.
            if let (Some(index), true) = (index, found.is_empty()) {
                found.extend(differing(&log, index, known)?);
            }
            log.checkpoint().size
        }
        Ok(None) => 0,
        Err(error) => {
            report.add(damaged(error));
            return Ok(());
        }
    };
    report.findings.append(&mut found);
    if size < known {
        let set_back = CheckFinding::new(CheckCode::LogSetBack, LOG_DIRECTORY);
        report.add(set_back.with_detail(message!("it has {size} of {known}", size, known)));
    }
    Ok(())
}

/// Reports what is where events wait for the log, and is none.
fn check_left(tree: &Tree, report: &mut CheckReport) {
    let strays = || -> Result<Vec<String>, LogFileError> {
        let Some(left) = LeftLines::find(tree.root())? else {
            return Ok(Vec::new());
        };
        let (_, refused) = events_in(&left)?;
        let refused = refused.iter().map(|name| LeftLines::path_of(name));
        Ok(refused.chain(left.others()).collect())
    };
    match strays() {
        Ok(mut strays) => {
            strays.sort();
            for path in strays {
                report.add(CheckFinding::new(CheckCode::StrayEvent, path));
            }
        }
        Err(error) => report.add(damaged(error)),
    }
}

fn damaged(error: LogFileError) -> CheckFinding {
    CheckFinding::new(CheckCode::LogDamaged, LOG_DIRECTORY).with_detail(error.fault())
}

/// The faults of the log itself.
fn faults(log: &LogReader) -> Vec<CheckFinding> {
    let key = log.check_keys().err();
    let (faults, unread) = match log.check() {
        Ok(faults) => (faults, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    let faults = faults
        .into_iter()
        .map(|fault| CheckFinding::new(CheckCode::LogDamaged, fault.path()).with_detail(fault));
    key.into_iter()
        .chain(unread)
        .map(damaged)
        .chain(faults)
        .collect()
}

/// The first event of a sound log that is another one in the index, or that the index lacks.
fn differing(
    log: &LogReader,
    index: &Store,
    known: u64,
) -> Result<Option<CheckFinding>, ArchiveError> {
    let width = WIDTH as u64;
    let known = known.min(log.checkpoint().size);
    for bundle in 0..known.div_ceil(width) {
        let begin = bundle * width;
        let numbers = begin..known.min(begin + width);
        let entries = log.entries(bundle)?;
        let mut events = index
            .events_after(begin.cast_signed(), WIDTH)?
            .into_iter()
            .peekable();
        for (number, entry) in numbers.zip(entries) {
            let event = events.next_if(|it| it.logged == Some(number.cast_signed()));
            if event.is_none_or(|event| entry_of(event) != entry) {
                let differs = CheckFinding::new(CheckCode::LogDiffers, LOG_DIRECTORY);
                return Ok(Some(
                    differs.with_detail(message!("entry {number}", number)),
                ));
            }
        }
    }
    Ok(None)
}

fn entry_of(event: EventRow) -> Hash {
    let EventRow { salt, line, .. } = event;
    LogLine { salt, text: line }.entry()
}
