//! `ibifs show`, `ibifs ls` and `ibifs id`: items and identifiers.

mod mounted;

use std::path::Path;

use super::access::{self, StoreAccess};
use super::{explain, print, say};
use crate::archive::store::Item;
use crate::archive::{Archive, ArchiveError, metadata_problems};
use crate::command::cli::{Id, IdCommand, List, Show};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::formats::item::{Names, State};
use crate::formats::metadata::MetadataProblem;
use ibi::Ibi;
use ibi::message;
use ibi::persistent::{PersistentError, PersistentName, Reader};
use ibi::relation::from_portable;

/// The most problems of a metadata text that are printed.
const MOST_PROBLEMS: usize = 3;

/// A persistent name, also one with a modifier in the portable spelling of a mount.
fn explained(text: &str) -> Result<PersistentName, PersistentError> {
    PersistentName::parse(text).or_else(|error| {
        let portable = from_portable(text).ok_or_else(|| error.clone())?;
        PersistentName::parse(&portable).map_err(|_| error)
    })
}

/// A persistent name; one without a whole identifier is completed by the table of a store.
fn completed(text: &str, store: &Path) -> Result<Result<PersistentName, PersistentError>, Failure> {
    let read = explained(text);
    if !matches!(read, Err(PersistentError::Suffix { .. })) {
        return Ok(read);
    }
    let archive = StoreAccess::at(store)?.read()?;
    Ok(archive.read_name(Reader::new(), text)?)
}

pub(super) fn show(options: &Show) -> Result<Exit, Failure> {
    let named = access::find(&options.item, options.store.as_deref())?;
    let print = |details: &print::ItemDetails<'_>| {
        say(&if options.output.json {
            print::item_json(details)
        } else {
            print::item_text(details)
        })
    };
    let problems = match &named.access.mount_point {
        Some(mount_point) if named.access.is_shut() => {
            mounted::show(mount_point, &named.names, print)?
        }
        _ => show_from_index(&named, print)?,
    };
    // A shell that wrote the text did not report that close(2) refused it.
    for problem in problems.iter().take(MOST_PROBLEMS) {
        let message = message!("metadata: {problem}", problem);
        eprintln!("ibifs: {}", OneLine(localized(&message)));
    }
    Ok(Exit::Done)
}

/// Prints an item, and returns the problems of its metadata text.
fn show_from_index(
    named: &access::Named,
    print: impl FnOnce(&print::ItemDetails<'_>) -> Result<(), Failure>,
) -> Result<Vec<MetadataProblem>, Failure> {
    let archive = named.access.read()?;
    let item = archive.store().find_by_names(&named.names)?;
    let Some(mut item) = item else {
        return Err(ArchiveError::Unknown {
            name: named.names.preferred(),
        }
        .into());
    };
    // The index has text, in which bytes that are not UTF-8 are lost.
    item.target = archive
        .default_file(&item)?
        .map(|bytes| explain::path_text(&bytes));
    let relations = archive.relations(&item)?;
    let claims = archive.claims(&item)?;
    let aliases = archive.store().aliases_of(item.id)?;
    let title = title(&archive, &item);
    print(&print::ItemDetails {
        item: &item,
        title: title.as_deref(),
        link: &archive.facts().persistent_url(&item.names),
        relations: &relations,
        claims: &claims,
        aliases: &aliases,
    })?;
    Ok(metadata_problems(archive.tree(), &item.names))
}

/// The title in an item's description, if this user may read it.
fn title(archive: &Archive, item: &Item) -> Option<String> {
    let title = archive.read_as(&|read| read()).title(item);
    title.unwrap_or_else(|error| {
        log::debug!("the description of {}: {error}", item.names);
        None
    })
}

pub(super) fn list(options: &List) -> Result<Exit, Failure> {
    let state = options.state.map(State::from);
    let archive = StoreAccess::at(&options.place)?.read()?;
    let mut items = Vec::new();
    archive.store().each_item(|item| {
        let names = [
            item.names.rep().map(|rep| rep.canonical()),
            item.names.ibip().map(|ibip| ibip.canonical()),
        ];
        let begins = |prefix: &String| {
            names.iter().flatten().any(|name| {
                name.get(..prefix.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
            })
        };
        if state.is_none_or(|state| state == item.state)
            && options.prefix.as_ref().is_none_or(begins)
        {
            items.push((item.clone(), None));
        }
        Ok(())
    })?;
    if options.titles {
        for (item, wanted) in &mut items {
            *wanted = Some(title(&archive, item));
        }
    }
    say(&if options.output.json {
        print::list_json(&items)
    } else {
        items.iter().map(print::list_line).collect()
    })?;
    Ok(Exit::Done)
}

pub(super) fn id(options: &Id) -> Result<Exit, Failure> {
    let parse = |text: &str| Ibi::parse(text).map_err(|error| Failure::new(Exit::Failed, error));
    match &options.command {
        IdCommand::Check { ibi, output } => {
            let ibi = parse(ibi)?;
            if output.json {
                say(&json::pretty(&json::names(&Names::from(ibi)).into()))?;
            }
        }
        IdCommand::Explain { ibi, store, output } => {
            let name = match store {
                Some(store) => completed(ibi, store)?,
                None => explained(ibi),
            };
            let name = name.map_err(|error| Failure::new(Exit::Failed, error))?;
            say(&if output.json {
                explain::as_json(&name)
            } else {
                explain::as_text(&name)
            })?;
        }
    }
    Ok(Exit::Done)
}
