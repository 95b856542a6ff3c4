//! The answers to the questions of commands: what the index says of items, as far as the user who asks may see them.
//!
//! Items are looked for with the rights of that user, as in a search in the mount. Their content is not sent: the command reads it
//! through the mount.

use std::io::Error;
use std::sync::Arc;
use std::time::Duration;

use super::conversation::{Asked, Conversation};
use super::level_works;
use crate::archive::store::{EventRow, Item, ItemId, Record, StoreError};
use crate::archive::{
    ArchiveError, Happened, SystemClock, Taken, catch_up, line_of, line_of_event, line_of_mark,
    present,
};
use crate::formats::item::{State, period};
use crate::formats::metadata::Element;
use crate::formats::question::Line;
use crate::formats::search::{SearchField, SearchQuery};
use ibi::message;
use ibi::message::Localize;

/// The number of items that are read at a time.
const PAGE: usize = 500;
/// The time for which a search index is brought up to date before the command is told that it takes longer.
const SEARCHING: Duration = Duration::from_secs(10);
/// The most items that a search finds.
const MOST_FOUND: usize = 10_000;
/// The most identifiers of a form with which one is completed.
pub const MOST_COMPLETED: usize = 1_000;
/// The part of a description that is sent with an item that was found.
pub const SHOWN: [(&str, Element); 4] = [
    ("title", Element::Title),
    ("creator", Element::Creator),
    ("date", Element::Date),
    ("type", Element::Type),
];

/// The reason why there is no answer, or none any more.
enum Stop {
    /// The command is gone.
    Gone(Error),
    Failed(ArchiveError),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Gone(error)
    }
}

impl From<ArchiveError> for Stop {
    fn from(error: ArchiveError) -> Stop {
        Stop::Failed(error)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Stop {
        Stop::Failed(error.into())
    }
}

/// Answers a question.
pub(super) fn answer(
    asked: &Asked,
    question: &Line,
    to: &mut Conversation<'_>,
) -> std::io::Result<()> {
    if !to.peer.is_told_apart() {
        return to.fail(&message!("permission denied"));
    }
    let answered = match question.word() {
        "work" => {
            let level = question.get("level").unwrap_or_default();
            return level_works::answer(asked, level, to);
        }
        "about" => about(asked, question, to),
        "list" => list(asked, question, to),
        "complete" => complete(asked, question, to),
        "find" => find(asked, question, to),
        "events" => events(asked, question, to),
        "copies" => copies(asked, question, to),
        "damage" => damage(asked, question, to),
        "history" => history(asked, question, to),
        "prove" => prove(asked, question, to),
        "new-key" => new_key(asked, to),
        "status" => status(asked, to),
        "seal" | "unseal" => seal(asked, question, to),
        _ => {
            return to.fail(&message!(
                "the question is that of another version of ibifs"
            ));
        }
    };
    match answered {
        Ok(()) => to.send_now(&Line::new("done")),
        Err(Stop::Gone(error)) => Err(error),
        Err(Stop::Failed(error)) => to.fail(&error.message()),
    }
}

/// The items that some texts name, and all that are connected with them.
fn about(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    to.send(&archive.facts_line()?)?;
    let mut wanted = Vec::new();
    for text in question.all("name") {
        let Ok(name) = archive.read_written(text)? else {
            continue;
        };
        // What is no identifier has no item.
        if let Ok(Some(item)) = archive.find_named(&name.identifier.to_string()) {
            wanted.push(item.names);
        }
    }
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    archive.read_as(&act).records_near(wanted, |id, record| {
        to.send(&line_of("item", id, &record)).map_err(Stop::Gone)
    })
}

/// All items, with their titles if these are wanted.
fn list(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    to.send(&archive.facts_line()?)?;
    let state = question
        .get("state")
        .and_then(|state| state.parse::<State>().ok());
    let prefix = question.get("prefix");
    let backups = match question.get("copies") {
        Some(_) => Some(archive.backups()?),
        None => None,
    };
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    let reader = archive.read_as(&act);
    let mut after = ItemId(0);
    loop {
        let items = archive.store().items_after(after, PAGE)?;
        let Some(last) = items.last() else {
            return Ok(());
        };
        after = last.id;
        if to.is_ending() {
            return Ok(());
        }
        for item in &items {
            let is_meant = state.is_none_or(|state| state == item.state)
                && prefix.is_none_or(|prefix| item.names.begin_with(prefix));
            if !is_meant || !reader.is_public(item)? {
                continue;
            }
            let is_draft =
                question.get("drafts").is_some() && archive.is_draft(item).unwrap_or(false);
            let line = line_of("item", item.id, &bare(item));
            let line = line.with_all("draft", is_draft.then_some("yes"));
            let counted = backups.as_ref();
            let counted = counted.and_then(|all| archive.copies_counted(item, all));
            let line = line.with_all("copies", counted);
            to.send(&match question.get("titles") {
                Some(_) => line.with_all("title", reader.title(item).ok().flatten()),
                None => line,
            })?;
        }
    }
}

/// The completions of an identifier: levels, and items that the user may see.
fn complete(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    let typed = question.get("name").unwrap_or_default();
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    let reader = archive.read_as(&act);
    for name in archive.store().completions(typed, MOST_COMPLETED)? {
        let is_level = name.ends_with('/');
        let item = if is_level {
            None
        } else {
            archive.find_named(&name)?
        };
        if item.map_or(Ok(true), |item| reader.is_public(&item))? {
            to.send(&Line::new("name").with("name", name))?;
        }
    }
    Ok(())
}

/// An item without its relations.
fn bare(item: &Item) -> Record {
    Record {
        service: item.service.clone(),
        removed_at: item.removed_at.clone(),
        life: item.life.clone(),
        ..Record::bare(item.names.clone(), item.state)
    }
}

/// The items that meet a query, the best first, each with a part of its description.
fn find(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    let limit = question.get("limit").and_then(|limit| limit.parse().ok());
    let fields = SearchField::ALL.iter().flat_map(|field| {
        let values = question.all(field.name());
        values.map(|value| (*field, value))
    });
    let words = question.get("words").unwrap_or_default();
    let Ok(query) = SearchQuery::of_words(words, fields) else {
        return Ok(());
    };
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    let limit = limit.unwrap_or(MOST_FOUND).min(MOST_FOUND);
    let page = loop {
        let found = asked
            .changes
            .search(peer.caller(), &act, &query, limit, SEARCHING)?;
        match found {
            Some(page) => break page,
            None if to.is_ending() => return Ok(()),
            None => to.send_now(&Line::new("wait"))?,
        }
    };
    let reader = archive.read_as(&act);
    for item in page.items {
        let core = reader.described(&item, None)?;
        let mut line = Line::new("found").with_names("item", &item.names);
        let last = reader.last_edition_shown(&item.names).ok();
        if let Some(last) = last.filter(|last| !last.matches(&item.names)) {
            line = line.with_names("last", &last);
        }
        for (name, element) in SHOWN {
            line = line.with_all(name, core.values(element));
        }
        to.send(&line)?;
    }
    if page.has_more {
        to.send(&Line::new("more"))?;
    }
    Ok(())
}

/// What has happened since a position, and the position after it; only the present one, if that is asked for.
fn events(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    let mut position = match question.get("from") {
        Some("now") => {
            let now = Happened::at("ready", Some(present(archive)?));
            return Ok(to.send(&now.to_line())?);
        }
        from => from.and_then(|from| from.parse().ok()),
    };
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    let reader = archive.read_as(&act);
    let mut tell = |event: Happened| to.send(&event.to_line()).map_err(Stop::Gone);
    catch_up(archive, Some(&reader), &mut position, &mut tell)?;
    tell(Happened::at("at", position))
}

/// Sends the known copies of an item, or of all items that the user may see.
fn copies(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    to.send(&archive.facts_line()?)?;
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    let reader = archive.read_as(&act);
    if let Some(names) = question.names("item") {
        let item = archive.store().find_by_names(&names)?;
        if let Some(item) = item
            && reader.is_public(&item)?
        {
            to.send(&archive.copies_of(&item, &archive.backups()?).to_line())?;
        }
        return Ok(());
    }
    archive.each_copies(|copies| {
        if reader.is_shown(&copies.names)? {
            to.send(&copies.to_line())?;
        }
        Ok(())
    })
}

/// Sends the marks of the damaged and lost files of an item.
fn damage(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    let names = question.names("item");
    let item = names.map(|names| archive.store().find_by_names(&names));
    let Some(item) = item.transpose()?.flatten() else {
        return Ok(());
    };
    for mark in archive.read_as(&act).marks_shown(&item)? {
        to.send(&line_of_mark(mark))?;
    }
    Ok(())
}

/// Sends the events of an item, or of all items and the store.
fn history(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    let reader = archive.read_as(&act);
    let mut tell = |event: &EventRow| {
        if let Some(told) = reader.as_told(peer.caller(), event)? {
            to.send(&line_of_event(event, &told))?;
        }
        Ok::<(), Stop>(())
    };
    let from = question.get("from").map(str::parse);
    if let Some(from) = from {
        let next = archive.each_logged(from.unwrap_or_default(), tell)?;
        return Ok(to.send(&Line::new("next").with("number", next))?);
    }
    archive.each_event(question.names("item").as_ref(), &mut tell)
}

/// A proof of the last event of an item.
fn prove(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    let reader = archive.read_as(&act);
    let Some(names) = question.names("item") else {
        return Ok(());
    };
    // A proof has the whole line.
    let is_whole = |event: &EventRow| {
        let told = reader.as_told(peer.caller(), event)?;
        Ok(told.is_some_and(|told| told == event.line))
    };
    match archive.prove_last(&names, is_whole)? {
        Some(proof) => Ok(to.send(&Line::new("proof").with("text", proof))?),
        None => Ok(()),
    }
}

/// Gives the log of the store another key, for the owner of the store.
fn new_key(asked: &Asked, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let peer = *to.peer.caller();
    let key = asked.changes.archive().replace_log_key(&peer)?;
    Ok(to.send(&Line::new("key").with("text", key))?)
}

/// Seals an item, now or later, or ends that.
fn seal(asked: &Asked, question: &Line, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    let names = question.names("item");
    let Some(names) = names else {
        return Ok(());
    };
    let peer = *to.peer.caller();
    let sealed = match question.get("reason") {
        Some(reason) => archive.unseal(&names, reason, &peer).map(|()| None),
        None => {
            let after = question.get("after").map(period);
            let Some(after) = after.map_or(Some(None), |after| after.map(Some)) else {
                return Ok(());
            };
            archive.seal(&names, after, &peer).map(Some)
        }
    }?;
    asked.changes.took(&[Taken::Changed(names)]);
    if let Some(seal) = sealed {
        let line = Line::new("sealed").with("at", seal.at.to_rfc3339());
        to.send(&line.with_all("digest", seal.digest))?;
    }
    Ok(())
}

/// The state of the store, without what concerns all of its items.
fn status(asked: &Asked, to: &mut Conversation<'_>) -> Result<(), Stop> {
    let archive = asked.changes.archive();
    let peer = Arc::clone(&to.peer);
    let act = |read: &mut dyn FnMut()| peer.read(read);
    let reader = archive.read_as(&act);
    to.send(&Line::new("daemon").with("pid", std::process::id()))?;
    for line in archive.keeper().status_lines(&reader, &SystemClock)? {
        to.send(&line)?;
    }
    Ok(())
}
