//! `ibifs export`: its arguments and its output.

use std::path::Path;

use serde_json::json;

use super::access::{self, Named, StoreAccess};
use super::transfer::{held_items, split};
use super::{daemon, say, usage};
use crate::archive::copies::note_export;
use crate::archive::package::{ExportOutcome, Exporter, Format};
use crate::archive::scrub::ScrubError;
use crate::archive::tree::{Place, Tree};
use crate::archive::{Archive, ArchiveError, Clock, SystemClock, premis_event_in};
use crate::command::cli;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::progress::ProgressLine;
use crate::formats::history::EventKind;
use crate::formats::question::Line;
use ibi::message::Message;
use ibi::{Timestamp, message, plural};

pub(super) fn run(options: &cli::Export) -> Result<Exit, Failure> {
    let (items, destination) = split(&options.paths)?;
    let destination = Path::new(destination);
    let named = chosen(options, items)?;
    // Items that are chosen by a condition are all of one store.
    let mut checked: Option<&Path> = None;
    for named in &named {
        if checked != Some(&named.access.store) {
            refuse_inside(&named.access, destination)?;
            checked = Some(&named.access.store);
        }
    }
    let format = match (options.ocfl, options.zip) {
        (true, _) => Format::Ocfl,
        (false, true) => Format::ZippedBag,
        (false, false) => Format::Bagit,
    };
    let shown = format!("'{}'", destination.display());
    let progress = ProgressLine::of(&message!("files"), || None);
    let mut count = |files, bytes| progress.at_bytes(files, bytes);
    let mut exporter = Exporter::new(format, destination, &SystemClock, &mut count)
        .map_err(|error| Failure::from(error).before(&shown))?;
    let mut tally = ExportCounts::default();
    let mut is_noting = true;
    let mut exit = Exit::Done;
    for named in &named {
        let result = one(&mut exporter, named);
        if let Ok(ExportOutcome::New(name) | ExportOutcome::Version(name, _)) = &result {
            named
                .access
                .tell(EventKind::Exported, Some(&named.names), name);
        }
        if let Ok(outcome) = &result
            && is_noting
        {
            // One that cannot be written is not waited for again.
            is_noting = note(named, &destination.join(outcome.path()));
        }
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

/// The items that are named, or those that meet all conditions.
fn chosen(options: &cli::Export, items: &[String]) -> Result<Vec<Named>, Failure> {
    let is_condition = options.all || options.prefix.is_some() || options.year.is_some();
    match (items, is_condition) {
        ([], false) => return Err(usage(message!("name the items and the destination"))),
        ([], true) => {}
        (_, true) => {
            return Err(usage(message!(
                "items are named, or chosen by --all, --prefix and --year, but not both"
            )));
        }
        (items, false) => {
            // The index that was read to find one is not kept open for all of them.
            let find = |text: &String| {
                let found = access::find(text, options.store.as_deref())?;
                Ok(Named::new(found.access, found.names))
            };
            return items.iter().map(find).collect();
        }
    }
    let access = StoreAccess::for_identifier(options.store.as_deref(), "--all")?;
    let prefix = options.prefix.as_deref();
    let year = options.year.map(u32::from);
    let named = |names| Named::new(access.clone(), names);
    let chosen = held_items(&access, prefix, year, None)?;
    Ok(chosen.into_iter().map(named).collect())
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

/// Notes in the store, if this user may write there, that a package of an item is at a path. Returns whether that could be done.
fn note(named: &Named, path: &Path) -> bool {
    let store = &named.access.store;
    if named.access.asked().is_some() || Archive::is_generation(store) {
        return true;
    }
    let now = Timestamp::from_unix(SystemClock.now().seconds(), 0);
    let noted = Tree::open_as_it_is(store)
        .map_err(ScrubError::from)
        .and_then(|tree| {
            let place = Place::of(&named.names);
            note_export(&tree, &place, &path.to_string_lossy(), now)
        });
    if let Err(error) = &noted {
        log::info!("the store does not note a package: {error}");
    }
    noted.is_ok()
}

fn one(exporter: &mut Exporter<'_>, named: &Named) -> Result<ExportOutcome, Failure> {
    let mut archive = named.access.read_about(&[&named.names.preferred()])?;
    if let Some(mounted) = named.access.asked() {
        let question = Line::new("history").with_names("item", &named.names);
        let mut told = Vec::new();
        daemon::each_line(&mounted, &question, |line| {
            told.extend(premis_event_in(line));
        })?;
        archive = archive.told(told);
    }
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
