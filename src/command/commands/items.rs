//! `ibifs show`, `ibifs ls` and `ibifs id`: items and identifiers.

pub(super) mod mounted;

use std::path::Path;

use rustix::io::Errno;

use super::access::{self, StoreAccess};
use super::daemon::{self, ListedItem, Wanted};
use super::{explain, print, say};
use crate::archive::scrub::marks_of;
use crate::archive::store::Item;
use crate::archive::tree::Place;
use crate::archive::{Archive, ArchiveError, metadata_problems};
use crate::command::cli::{Id, IdCommand, List, Show};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::formats::item::{Names, State};
use crate::formats::metadata::{DublinCore, Element, MetadataProblem};
use ibi::Ibi;
use ibi::message;
use ibi::message::{Localize, Message};
use ibi::persistent::{PersistentError, PersistentName, Reader};
use ibi::relation::{Language, from_portable};

/// The most problems of a metadata text that are printed.
const MOST_PROBLEMS: usize = 3;

/// A persistent name, also one with a modifier in the portable spelling of a mount.
fn explained(text: &str) -> Result<PersistentName, PersistentError> {
    PersistentName::parse(text).or_else(|error| {
        let portable = from_portable(text).ok_or_else(|| error.clone())?;
        PersistentName::parse(&portable).map_err(|_| error)
    })
}

/// A persistent name; one without a whole identifier is completed by the table of a store, or of the mount in which this
/// process is.
fn completed(
    text: &str,
    store: Option<&Path>,
) -> Result<Result<PersistentName, PersistentError>, Failure> {
    let read = explained(text);
    let is_completed = store.is_some() || access::of_working_directory().is_some();
    if !is_completed || !matches!(read, Err(PersistentError::Suffix { .. })) {
        return Ok(read);
    }
    let archive = StoreAccess::named(store)?.read_about(&[text])?;
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
    let problems = show_from_index(&named, print)?;
    // A shell that wrote the text did not report that close(2) refused it.
    let (languages, problems) = problems;
    let problems = problems.iter().take(MOST_PROBLEMS).map(Localize::message);
    for problem in problems.chain(languages) {
        let message = message!("metadata: {problem}", problem);
        eprintln!("ibifs: {}", OneLine(localized(&message)));
    }
    Ok(Exit::Done)
}

/// Names the languages of an item and of its description, if both are known and differ.
fn difference_of_languages(item: &Item, description: &DublinCore) -> Option<Message> {
    let language = item.language?;
    let described: Vec<&str> = description.values(Element::Language).collect();
    let read = described.iter().map(|text| Language::parse(text).ok());
    // The name of a language is no code, and not compared.
    let read: Vec<Language> = read.collect::<Option<_>>()?;
    let is_same = |it: &Language| it.matches(&language) || language.matches(it);
    if read.is_empty() || read.iter().any(is_same) {
        return None;
    }
    Some(message!(
        "its language is {described}, and the language of the item is {language}",
        described = described.join(", "),
        language = language.to_string()
    ))
}

/// Prints an item, and returns what differs from its description, and the problems of its metadata text.
fn show_from_index(
    named: &access::Named,
    print: impl FnOnce(&print::ItemDetails<'_>) -> Result<(), Failure>,
) -> Result<(Option<Message>, Vec<MetadataProblem>), Failure> {
    let archive = named.archive()?;
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
    let claims = unless_lost(archive.claims(&item))?;
    let aliases = archive.store().aliases_of(item.id)?;
    let own = own_description(archive, &item);
    let damaged = match named.access.asked() {
        // The daemon may be of a version that does not say.
        Some(mounted) => daemon::marks(&mounted, &item.names).unwrap_or_default(),
        None => marks_of(archive.tree(), Place::of(&item.names).as_str()).unwrap_or_default(),
    };
    print(&print::ItemDetails {
        item: &item,
        draft: unless_lost(archive.is_draft(&item))?,
        title: own.first(Element::Title),
        link: &archive.facts().persistent_url(&item.names),
        relations: &relations,
        removed: &archive.removed_relations(&item)?,
        claims: &claims,
        aliases: &aliases,
        damaged: &damaged,
    })?;
    let languages = difference_of_languages(&item, &own);
    Ok((languages, metadata_problems(archive.tree(), &item.names)))
}

/// What is found by the directory of an item; nothing where that is lost, which its marks say.
fn unless_lost<T: Default>(found: Result<T, ArchiveError>) -> Result<T, ArchiveError> {
    match found {
        Err(ArchiveError::Tree(error)) if error.errno() == Errno::NOENT => Ok(T::default()),
        found => found,
    }
}

/// The title in an item's description, if this user may read it.
pub(super) fn title(archive: &Archive, item: &Item) -> Option<String> {
    let own = own_description(archive, item);
    own.first(Element::Title).map(str::to_owned)
}

/// Reads an item's own description, if this user may.
fn own_description(archive: &Archive, item: &Item) -> DublinCore {
    let own = archive.read_as(&|read| read()).own_description(item);
    own.unwrap_or_else(|error| {
        log::debug!("the description of {}: {error}", item.names);
        DublinCore::default()
    })
}

pub(super) fn list(options: &List) -> Result<Exit, Failure> {
    let state = options.state.map(State::from);
    let access = StoreAccess::named(options.place.as_deref())?;
    let wanted = Wanted {
        drafts: true,
        titles: options.titles,
        copies: options.copies,
    };
    let (items, _) = items(&access, state, options.prefix.as_deref(), wanted)?;
    say(&if options.output.json {
        print::list_json(&items)
    } else {
        items.iter().map(print::list_line).collect()
    })?;
    Ok(Exit::Done)
}

/// The items of a store in the order of their names, as far as this user may see them, and the item of its service.
pub(super) fn items(
    access: &StoreAccess,
    state: Option<State>,
    prefix: Option<&str>,
    wanted: Wanted,
) -> Result<(Vec<ListedItem>, Names), Failure> {
    if let Some(mounted) = access.asked() {
        return daemon::list(&mounted, state, prefix, wanted);
    }
    let archive = access.read()?;
    let mut items: Vec<ListedItem> = Vec::new();
    archive.store().each_item(|item| {
        if state.is_none_or(|state| state == item.state)
            && prefix.is_none_or(|prefix| item.names.begin_with(prefix))
        {
            items.push(ListedItem {
                item: item.clone(),
                title: None,
                is_draft: false,
                copies: None,
            });
        }
        Ok(())
    })?;
    let backups = if wanted.copies {
        archive.backups()?
    } else {
        Vec::new()
    };
    for listed in &mut items {
        // The directory of one may be missing.
        listed.is_draft = wanted.drafts && archive.is_draft(&listed.item).unwrap_or(false);
        if wanted.titles {
            listed.title = Some(title(&archive, &listed.item));
        }
        if wanted.copies {
            listed.copies = Some(archive.copies_counted(&listed.item, &backups));
        }
    }
    Ok((items, archive.facts().service.clone()))
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
            let name = completed(ibi, store.as_deref())?;
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
