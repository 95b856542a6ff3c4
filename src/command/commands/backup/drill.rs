//! `ibifs backup --drill`: a restore that is tried.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::access::StoreAccess;
use super::super::{put_out, say};
use crate::archive::backup;
use crate::archive::copies::note_drill;
use crate::archive::drill::{DrillFinding, DrillTally, drill};
use crate::archive::finding::with_detail;
use crate::archive::tree::Tree;
use crate::archive::{Archive, ArchiveError, Clock, SystemClock};
use crate::command::cli;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::formats::copies::Proof;
use crate::formats::fixity::shown;
use crate::formats::history::EventKind;
use ibi::message::Message;
use ibi::{message, plural};

pub(super) fn run(text: &Path, options: &cli::Backup) -> Result<Exit, Failure> {
    let path = backup::find(text)?;
    let (sample, is_json) = (options.sample, options.output.json);
    let store = match &options.store {
        Some(store) => Some(told_store(store, &path)?),
        None => None,
    };
    let mut report = |finding: &DrillFinding| {
        let sentence = with_detail(finding.code, finding.detail.as_ref());
        let word = finding.code.word();
        let path = shown(&finding.path);
        put_out(&if is_json {
            json::line(&json!({"code": word, "path": path, "sentence": sentence}))
        } else {
            format!("{word}: {path}: {}\n", localized(&sentence))
        })
    };
    let scratch = std::env::temp_dir();
    let tally = drill(&path, &scratch, sample, &SystemClock, &mut report)?;
    let (mut counts, mut is_counted) = (counts(&path, &tally), None);
    if let Some(store) = store {
        let kind = match tally.found {
            0 => EventKind::Drilled,
            _ => EventKind::DrillFailed,
        };
        let uncounted = uncounted(&path, sample, &tally);
        is_counted = Some(uncounted.is_none());
        match uncounted {
            Some(why) => counts = message!("{counts}; it does not count: {why}", counts, why),
            None => note(&store, &path, tally.found == 0)?,
        }
        store.tell(kind, None, &counts.to_string());
    }
    say(&if is_json {
        tally_json(&path, &tally, is_counted)
    } else {
        format!("{}\n", localized(&counts))
    })?;
    Ok(match tally.found {
        0 => Exit::Done,
        _ => Exit::Failed,
    })
}

/// The store of which a backup is.
fn told_store(store: &Path, backup: &Path) -> Result<StoreAccess, Failure> {
    let access = StoreAccess::at(store)?;
    let archive = Archive::open_read_only(backup)?;
    let service = &archive.facts().service;
    if access.read()?.facts().service.matches(service) {
        Ok(access)
    } else {
        Err(Failure::new(
            Exit::Refused,
            message!(
                "the backup is of the Archive {service}, which is another one",
                service
            ),
        ))
    }
}

/// The directory by which the store knows a backup.
pub(in crate::command::commands) fn noted_directory(path: &Path) -> String {
    directory_of(&resolved(path)).to_string_lossy().into_owned()
}

/// The directory of a backup, also of one of its generations.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if Archive::is_generation(path) => above,
        _ => path,
    }
}

fn resolved(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Why a drill says nothing of the backup as a whole, as it is now.
fn uncounted(path: &Path, sample: Option<usize>, tally: &DrillTally) -> Option<Message> {
    let path = resolved(path);
    let newest = backup::find(directory_of(&path));
    if newest.map_or(true, |newest| newest != path) {
        Some(message!("it is not the newest generation"))
    } else if tally.found > 0 {
        None
    } else if sample.is_some() {
        Some(message!("a sample does not prove the rest"))
    } else {
        match tally.files.saturating_sub(tally.recorded) {
            0 => None,
            count => Some(plural!(
                "{count} file has no recorded digest; run 'ibifs scrub' and back up again",
                "{count} files have no recorded digest; run 'ibifs scrub' and back up again",
                count
            )),
        }
    }
}

/// Notes the proof beside the other backups of the store.
fn note(store: &StoreAccess, path: &Path, is_good: bool) -> Result<(), Failure> {
    let directory = noted_directory(path);
    let proof = Proof {
        at: SystemClock.now(),
        is_good,
    };
    let tree = Tree::open_as_it_is(&store.store).map_err(ArchiveError::from)?;
    note_drill(&tree, &directory, proof).map_err(ArchiveError::from)?;
    Ok(())
}

fn counts(path: &Path, tally: &DrillTally) -> Message {
    message!(
        "{path}: {restored}; compared {compared}, {files}, {recorded}; {found}; {seconds} s",
        path = path.display(),
        restored = plural!(
            "{count} item restored",
            "{count} items restored",
            count = tally.items
        ),
        compared = plural!("{count} item", "{count} items", count = tally.compared),
        files = plural!("{count} file", "{count} files", count = tally.files),
        recorded = plural!(
            "{count} with a recorded digest",
            "{count} with a recorded digest",
            count = tally.recorded
        ),
        found = plural!("{count} finding", "{count} findings", count = tally.found),
        seconds = format!("{:.1}", tally.took.as_secs_f64())
    )
}

fn tally_json(path: &Path, tally: &DrillTally, is_counted: Option<bool>) -> String {
    let value = json!({
        "backup": path.display().to_string(),
        "items": tally.items,
        "bytes": tally.bytes,
        "compared": tally.compared,
        "files": tally.files,
        "recorded": tally.recorded,
        "found": tally.found,
        "seconds": tally.took.as_secs_f64(),
        "counts": is_counted,
    });
    json::line(&value)
}
