//! `ibifs export`: its arguments and its output.

use std::path::Path;

use serde_json::json;

use super::access::{self, Named, StoreAccess};
use super::say;
use crate::archive::package::{ExportOutcome, Exporter, Format};
use crate::archive::{ArchiveError, SystemClock};
use crate::command::cli;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use ibi::message::Message;
use ibi::{message, plural};

pub(super) fn run(options: &cli::Export) -> Result<Exit, Failure> {
    let named: Result<Vec<Named>, Failure> = options
        .items
        .iter()
        .map(|text| access::find(text, options.store.as_deref()))
        .collect();
    let named = named?;
    let destination = &options.destination;
    named
        .iter()
        .try_for_each(|named| refuse_inside(&named.access, destination))?;
    let format = if options.ocfl {
        Format::Ocfl
    } else {
        Format::Bagit
    };
    let shown = format!("'{}'", destination.display());
    let progress = ProgressLine::of(&message!("files"), || None);
    let mut count = |files, bytes| progress.at_bytes(files, bytes);
    let mut exporter = Exporter::new(format, destination, &SystemClock, &mut count)
        .map_err(|error| Failure::from(error).before(&shown))?;
    let mut tally = ExportCounts::default();
    let mut exit = Exit::Done;
    for named in &named {
        let result = one(&mut exporter, named);
        tally.count(&result);
        if let Err(failure) = &result
            && exit != Exit::Failed
        {
            // A failure takes precedence over a refusal.
            exit = failure.exit;
        }
        progress.aside(|| say(&line(named, &result, options.output.json)))?;
    }
    exporter.end()?;
    drop(progress);
    say(&tally.text(options.output.json))?;
    Ok(exit)
}

/// Rejects a destination in a store or a mount, where a package would be taken for an item.
fn refuse_inside(access: &StoreAccess, destination: &Path) -> Result<(), Failure> {
    let absolute = std::path::absolute(destination).unwrap_or_else(|_| destination.to_owned());
    let resolved = absolute.ancestors().find_map(|above| {
        let resolved = std::fs::canonicalize(above).ok()?;
        Some(resolved.join(absolute.strip_prefix(above).ok()?))
    });
    let is_inside = resolved.is_some_and(|path| path.starts_with(&access.store));
    if is_inside || access::is_in_mount(destination) {
        Err(Failure::new(
            Exit::Refused,
            message!(
                "'{destination}' is in a store or in a mounted one; name another directory",
                destination = destination.display()
            ),
        ))
    } else {
        Ok(())
    }
}

fn one(exporter: &mut Exporter<'_>, named: &Named) -> Result<ExportOutcome, Failure> {
    let archive = named.access.read()?;
    let item = archive.held(&named.names)?.ok_or_else(|| {
        let name = named.names.preferred();
        Failure::from(ArchiveError::Unknown { name })
    })?;
    Ok(exporter.export(&archive, &item)?)
}

/// The result in words for a person.
fn result_word(result: &Result<ExportOutcome, Failure>) -> Message {
    match result {
        Ok(ExportOutcome::New(_)) => message!("new"),
        Ok(ExportOutcome::Version(_, version)) => message!("version {version}", version),
        Ok(ExportOutcome::Unchanged(_)) => message!("unchanged"),
        Err(_) => message!("not exported"),
    }
}

fn line(named: &Named, result: &Result<ExportOutcome, Failure>, is_json: bool) -> String {
    let item = named.names.preferred();
    let (word, path, version, sentence) = match result {
        Ok(ExportOutcome::New(path)) => ("new", Some(path), None, None),
        Ok(ExportOutcome::Version(path, version)) => ("version", Some(path), Some(version), None),
        Ok(ExportOutcome::Unchanged(path)) => ("unchanged", Some(path), None, None),
        Err(failure) => ("not-exported", None, None, Some(&failure.message)),
    };
    if is_json {
        let mut object = json::names(&named.names);
        object.insert("outcome".into(), json!(word));
        object.insert("path".into(), json!(path));
        object.insert("version".into(), json!(version));
        object.insert("sentence".into(), json!(sentence));
        return json::line(&object.into());
    }
    let rest = match sentence {
        Some(sentence) => localized(sentence),
        None => path.cloned().unwrap_or_default(),
    };
    format!(
        "{}: {item}: {}\n",
        localized(&result_word(result)),
        crate::command::terminal::OneLine(rest)
    )
}

#[derive(Default)]
struct ExportCounts {
    items: usize,
    written: usize,
    unchanged: usize,
}

impl ExportCounts {
    fn count(&mut self, result: &Result<ExportOutcome, Failure>) {
        self.items += 1;
        match result {
            Ok(ExportOutcome::New(_) | ExportOutcome::Version(..)) => self.written += 1,
            Ok(ExportOutcome::Unchanged(_)) => self.unchanged += 1,
            Err(_) => {}
        }
    }

    fn text(&self, is_json: bool) -> String {
        let ExportCounts {
            items,
            written,
            unchanged,
        } = self;
        if is_json {
            json::line(&json!({ "items": items, "written": written, "unchanged": unchanged }))
        } else {
            let line = message!(
                "{items}: {written}, {unchanged}",
                items = plural!("{count} item", "{count} items", count = *items),
                written = plural!("{count} written", "{count} written", count = *written),
                unchanged = plural!("{count} unchanged", "{count} unchanged", count = *unchanged)
            );
            format!("{}\n", localized(&line))
        }
    }
}
