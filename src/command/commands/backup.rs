//! `ibifs backup`: its arguments and its output.

mod drill;
mod listing;

pub(super) use drill::noted_directory;

use std::path::Path;

use serde_json::{Value, json};

use super::access::{self, StoreAccess};
use super::{say, usage};
use crate::archive::backup::{self, BackupFinding, BackupTally, GenerationChanges};
use crate::archive::copies::note_place;
use crate::archive::{ArchiveError, SystemClock};
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
    if let Some(path) = &options.list {
        return listing::run(path, options.output.json);
    }
    if let Some(path) = &options.drill {
        return drill::run(path, options);
    }
    match (&options.place, &options.destination) {
        (Some(place), Some(destination)) => make(options, place, destination),
        _ => Err(usage(message!(
            "name a store and the directory of its backup"
        ))),
    }
}

fn make(options: &cli::Backup, place: &Path, destination: &Path) -> Result<Exit, Failure> {
    let access = StoreAccess::at(place)?;
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
    let mut count = |items| progress.at(items);
    let (to, clock) = (destination, &SystemClock);
    let made = match &options.keep {
        None => {
            backup::make(&archive, to, clock, &mut report, &mut count).map(|tally| (tally, None))
        }
        Some(keep) => backup::make_generation(&archive, to, keep, clock, &mut report, &mut count)
            .map(|(tally, changes)| (tally, Some(changes))),
    };
    let (tally, changes) =
        made.map_err(|error| Failure::from(error).before(&format!("'{shown_destination}'")))?;
    drop(progress);
    if let Some(words) = &options.words {
        let place = words.split_whitespace().map(str::to_owned).collect();
        let noted = note_place(archive.tree(), &noted_directory(destination), place);
        noted.map_err(ArchiveError::from)?;
    }
    access.tell(EventKind::BackedUp, None, &told(&tally, destination));
    say(&if options.output.json {
        tally_json(&tally, changes.as_ref())
    } else {
        let changes = changes.as_ref().map(changes_lines);
        let counts = localized(&counts(&tally));
        format!("{counts}\n{}", changes.unwrap_or_default())
    })?;
    Ok(match tally.incomplete {
        0 => Exit::Done,
        _ => Exit::Failed,
    })
}

/// The note of a backup in the history: its place, and its counts.
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

/// The lines about the generations that there are now.
fn changes_lines(changes: &GenerationChanges) -> String {
    let kept = plural!(
        "{count} generation",
        "{count} generations",
        count = changes.kept
    );
    let mut lines = vec![message!(
        "generation {date}; {kept} in all",
        date = changes.made,
        kept
    )];
    for name in &changes.removed {
        lines.push(message!("removed generation {date}", date = name));
    }
    if changes.is_unshared {
        lines.push(message!(
            "the filesystem can share nothing among generations: each one takes the room of all files"
        ));
    }
    let lines = lines.iter().map(|line| format!("{}\n", localized(line)));
    lines.collect()
}

fn tally_json(tally: &BackupTally, changes: Option<&GenerationChanges>) -> String {
    let mut value = json!({
        "items": tally.items,
        "copied": tally.copied,
        "bytes": tally.bytes,
        "unchanged": tally.unchanged,
        "removed": tally.removed,
    });
    if let (Some(changes), Value::Object(value)) = (changes, &mut value) {
        value.insert("generation".to_owned(), json!(changes.made));
        value.insert("generations".to_owned(), json!(changes.kept));
        value.insert("removedGenerations".to_owned(), json!(changes.removed));
        value.insert("shares".to_owned(), json!(!changes.is_unshared));
    }
    json::line(&value)
}
