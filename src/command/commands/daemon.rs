//! Questions to the daemon of a mount whose store this user may not enter. The daemon answers with what this user may see;
//! the content of items is read through the mount.

use super::usage;
use crate::archive::store::{Item, ItemId, Record};
use crate::archive::{Archive, Facts, mark_in, record_in};
use crate::command::exit::{Exit, Failure};
use crate::formats::fixity::Marks;
use crate::formats::item::{Names, State};
use crate::formats::question::{LONGEST_QUESTION, Line};
use crate::fuse::mount::{AskError, Mounted, ask};
use ibi::message;

/// An item of a list.
pub(super) struct ListedItem {
    pub(super) item: Item,
    /// Its title, if titles are wanted.
    pub(super) title: Option<Option<String>>,
    /// Whether it is a draft, if that is wanted.
    pub(super) is_draft: bool,
    /// The number of its copies that count, if that is wanted. None of the item of the service.
    pub(super) copies: Option<Option<u32>>,
}

/// The facts that a list has of its items, besides their names and states.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wanted {
    pub(super) drafts: bool,
    pub(super) titles: bool,
    pub(super) copies: bool,
}

fn failed(mounted: &Mounted, error: &AskError) -> Failure {
    let exit = match error {
        AskError::Refused(_) | AskError::Impostor(_) => Exit::Refused,
        AskError::NoSocket | AskError::Unheard(_) => Exit::Failed,
    };
    let place = mounted.mount_point.display();
    Failure::new(exit, message!("'{place}': {error}", place, error))
}

/// Asks a question, and calls `visit` with each line of the answer.
pub(super) fn each_line(
    mounted: &Mounted,
    question: &Line,
    mut visit: impl FnMut(&Line),
) -> Result<(), Failure> {
    let asked = ask(mounted, question).and_then(|(first, rest)| {
        let Some(first) = first else {
            return Ok(());
        };
        visit(&first);
        rest.each(|line| visit(&line))
    });
    asked.map_err(|error| failed(mounted, &error))
}

/// The Archive of a mount, which knows the items of some names and texts and what is connected with them.
pub(super) fn about(mounted: &Mounted, names: &[&str]) -> Result<Archive, Failure> {
    if names.iter().map(|name| name.len()).sum::<usize>() as u64 > LONGEST_QUESTION / 4 {
        return Err(usage(message!("the name is too long")));
    }
    let mut facts = Line::new("facts");
    let mut records: Vec<(ItemId, Record)> = Vec::new();
    each_line(
        mounted,
        &Line::new("about").with_all("name", names),
        |line| {
            if line.word() == "facts" {
                facts = line.clone();
            }
            records.extend(record_in(line));
        },
    )?;
    // In the order of the store, as far as the order of items counts.
    records.sort_by_key(|(id, _)| *id);
    let records: Vec<Record> = records.into_iter().map(|(_, record)| record).collect();
    Ok(Archive::of_mount(&mounted.mount_point, &facts, &records)?)
}

/// The items of a mount in the order of their names, and the item of the service.
pub(super) fn list(
    mounted: &Mounted,
    state: Option<State>,
    prefix: Option<&str>,
    wanted: Wanted,
) -> Result<(Vec<ListedItem>, Names), Failure> {
    let question = Line::new("list").with_all("state", state);
    let question = question.with_all("prefix", prefix);
    let question = question.with_all("titles", wanted.titles.then_some("yes"));
    let question = question.with_all("drafts", wanted.drafts.then_some("yes"));
    let question = question.with_all("copies", wanted.copies.then_some("yes"));
    let (mut items, mut facts) = (Vec::new(), Line::new("facts"));
    each_line(mounted, &question, |line| {
        if line.word() == "facts" {
            facts = line.clone();
        }
        let title = wanted.titles.then(|| line.get("title").map(str::to_owned));
        let copies = wanted
            .copies
            .then(|| line.get("copies").and_then(|it| it.parse().ok()));
        items.extend(record_in(line).map(|(id, record)| ListedItem {
            item: record.item(id),
            title,
            is_draft: line.get("draft").is_some(),
            copies,
        }));
    })?;
    items.sort_by_cached_key(|listed: &ListedItem| listed.item.names.key());
    let text = facts.get("text").unwrap_or_default();
    Ok((items, Facts::parse(text.as_bytes())?.service))
}

/// The damaged and lost files of an item, as far as this user may list them.
pub(super) fn marks(mounted: &Mounted, names: &Names) -> Result<Marks, Failure> {
    let mut marks = Marks::new();
    let question = Line::new("damage").with_names("item", names);
    each_line(mounted, &question, |line| marks.extend(mark_in(line)))?;
    Ok(marks)
}

/// The completions of an identifier among the items of a mount.
pub(super) fn completions(mounted: &Mounted, typed: &str) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    each_line(
        mounted,
        &Line::new("complete").with("name", typed),
        |line| {
            found.extend(line.get("name").map(str::to_owned));
        },
    )?;
    Ok(found)
}
