//! `ibifs backup`: its arguments and its output.

use std::path::Path;

use serde_json::json;

use super::access::{self, StoreAccess};
use super::say;
use crate::archive::SystemClock;
use crate::archive::backup::{self, BackupFinding, BackupTally};
use crate::command::cli;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::fixity::shown;
use crate::formats::history::EventKind;
use ibi::message::Message;
use ibi::{message, plural};

pub(super) fn run(options: &cli::Backup) -> Result<Exit, Failure> {
    let access = StoreAccess::at(&options.place)?;
    let destination = &options.destination;
    let shown_destination = destination.display();
    if access::is_in_mount(destination) {
        return Err(Failure::new(
            Exit::Refused,
            message!(
                "'{destination}' is in a mounted store; name another directory",
                destination = shown_destination
            ),
        ));
    }
    let archive = access.read()?;
    let progress = ProgressLine::of(&message!("directories"), || backup::count(archive.tree()));
    let mut report = |finding: &BackupFinding| {
        let text = if options.output.json {
            finding_json(finding)
        } else {
            finding_line(finding)
        };
        progress.aside(|| super::put_out(&text))
    };
    let tally = backup::make(
        &archive,
        destination,
        &SystemClock,
        &mut report,
        &mut |items| progress.at(items),
    )
    .map_err(|error| Failure::from(error).before(&format!("'{shown_destination}'")))?;
    drop(progress);
    access.tell(EventKind::BackedUp, None, &told(&tally, destination));
    say(&if options.output.json {
        tally_json(&tally)
    } else {
        format!("{}\n", localized(&counts(&tally)))
    })?;
    Ok(match tally.found {
        0 => Exit::Done,
        _ => Exit::Failed,
    })
}

/// What the history is told of a backup: where it is, and its counts.
fn told(tally: &BackupTally, destination: &Path) -> String {
    let place = std::path::absolute(destination).unwrap_or_else(|_| destination.to_owned());
    format!("{}: {}", place.display(), counts(tally))
}

fn finding_line(finding: &BackupFinding) -> String {
    let word = finding.code.word();
    let sentence = localized(&finding.sentence());
    format!("{word}: {}: {sentence}\n", shown(&finding.path))
}

fn finding_json(finding: &BackupFinding) -> String {
    let value = json!({
        "code": finding.code.word(),
        "path": shown(&finding.path),
        "sentence": finding.sentence(),
    });
    json::line(&value)
}

fn counts(tally: &BackupTally) -> Message {
    message!(
        "{items}: {copied}, {bytes}; {unchanged}, {removed}",
        items = plural!("{count} item", "{count} items", count = tally.items),
        copied = plural!(
            "{count} file copied",
            "{count} files copied",
            count = tally.copied
        ),
        bytes = plural!("{count} byte", "{count} bytes", count = tally.bytes),
        unchanged = plural!(
            "{count} unchanged",
            "{count} unchanged",
            count = tally.unchanged
        ),
        removed = plural!("{count} removed", "{count} removed", count = tally.removed)
    )
}

fn tally_json(tally: &BackupTally) -> String {
    let value = json!({
        "items": tally.items,
        "copied": tally.copied,
        "bytes": tally.bytes,
        "unchanged": tally.unchanged,
        "removed": tally.removed,
    });
    json::line(&value)
}
