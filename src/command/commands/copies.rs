//! `ibifs copies`: where the copies of items are, and when each was last compared.

use std::path::Path;

use serde_json::{Value, json};

use super::access::{self, StoreAccess};
use super::{daemon, say};
use crate::archive::{Archive, ArchiveError, Clock, Facts, ItemCopies, SystemClock};
use crate::command::cli::Copies;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::command::language::localized;
use crate::command::terminal::OneLine;
use crate::formats::copies::{CopyPolicy, KnownCopy};
use crate::formats::item::Names;
use crate::formats::question::Line;
use ibi::message::Message;
use ibi::{Timestamp, message, plural};

/// The days below which ages are in hours.
const DAY: i64 = 86_400;

pub(super) fn run(options: &Copies) -> Result<Exit, Failure> {
    let access = StoreAccess::at(&options.place)?;
    access.learn();
    let now = SystemClock.now();
    let mut print = |known: &ItemCopies, policy: &CopyPolicy| {
        if options.short && known.count.is_enough {
            return Ok(());
        }
        say(&match (options.output.json, options.short) {
            (true, _) => json::line(&value(known)),
            (false, true) => short(known, policy),
            (false, false) => text(known, &now),
        })
    };
    if options.items.is_empty() {
        each(&access, &mut print)?;
    }
    for item in &options.items {
        let named = named(item, &options.place, &access.store)?;
        let known = copies_of(&named.access, &named.names)?;
        print(&known, &named.archive()?.facts().policy_of(&known.names))?;
    }
    Ok(Exit::Done)
}

/// The item that a user named, which must be in this store.
fn named(text: &str, place: &Path, store: &Path) -> Result<access::Named, Failure> {
    let named = access::find(text, Some(place))?;
    if named.access.store == store {
        return Ok(named);
    }
    Err(Failure::new(
        Exit::NotFound,
        message!(
            "'{text}' is in another store, '{store}'",
            text,
            store = named.access.store.display()
        ),
    ))
}

/// Calls `visit` with the copies of each item of a store.
fn each(
    access: &StoreAccess,
    visit: &mut dyn FnMut(&ItemCopies, &CopyPolicy) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if access.asked().is_some() {
        let (told, facts) = told(access, None)?;
        let policy = |names| facts.as_ref().map(|facts| facts.policy_of(names));
        let mut told = told.iter();
        return told.try_for_each(|known| visit(known, &policy(&known.names).unwrap_or_default()));
    }
    let archive: Archive = access.read()?;
    archive.each_copies(|known| visit(&known, &archive.facts().policy_of(&known.names)))
}

/// The known copies of an item.
pub(super) fn copies_of(access: &StoreAccess, names: &Names) -> Result<ItemCopies, Failure> {
    let unknown = || ArchiveError::Unknown {
        name: names.preferred(),
    };
    if access.asked().is_some() {
        let (told, _) = told(access, Some(names))?;
        return Ok(told.into_iter().next().ok_or_else(unknown)?);
    }
    let archive = access.read()?;
    let item = archive.store().find_by_names(names);
    let item = item.map_err(ArchiveError::from)?.ok_or_else(unknown)?;
    Ok(archive.copies_of(&item, &archive.backups()?))
}

/// The copies that the daemon of a mount tells, and the facts of the Archive.
fn told(
    access: &StoreAccess,
    names: Option<&Names>,
) -> Result<(Vec<ItemCopies>, Option<Facts>), Failure> {
    let Some(mounted) = access.asked() else {
        return Ok((Vec::new(), None));
    };
    let question = Line::new("copies");
    let question = match names {
        Some(names) => question.with_names("item", names),
        None => question,
    };
    let (mut lines, mut facts) = (Vec::new(), None);
    daemon::each_line(&mounted, &question, |line| match line.word() {
        "facts" => facts = line.get("text").map(|text| Facts::parse(text.as_bytes())),
        _ => lines.push(line.clone()),
    })?;
    let (facts, now) = (facts.transpose()?, SystemClock.now());
    let told = lines.iter().filter_map(|line| {
        let facts = facts.as_ref()?;
        ItemCopies::of_line(line, facts, &now)
    });
    Ok((told.collect(), facts))
}

fn place(copy: &KnownCopy) -> String {
    match copy.place.as_slice() {
        [] => "-".to_owned(),
        words => words.join(" "),
    }
}

fn text(known: &ItemCopies, now: &Timestamp) -> String {
    let mut text = format!("{}\n", known.names.preferred());
    for copy in &known.copies {
        let proof = match &copy.proof {
            None => message!("never compared"),
            Some(proof) => {
                let (word, at) = (proof.word(), proof.at.to_rfc3339());
                message!("{word} {at}, {age}", word, at, age = age(now, &proof.at))
            }
        };
        let said = match &copy.made {
            Some(made) => message!("{proof}; made {at}", proof, at = made.to_rfc3339()),
            None => proof,
        };
        let said = match &copy.gone {
            None => said,
            Some(gone) => {
                let (word, at) = (gone.word(), gone.at.to_rfc3339());
                match &*gone.reason {
                    "" => message!("{said}; {word} there {at}", said, word, at),
                    reason => message!(
                        "{said}; {word} there {at}: {reason}",
                        said,
                        word,
                        at,
                        reason
                    ),
                }
            }
        };
        let line = format!(
            "  {:8} {}  {}  {}",
            copy.kind.word(),
            copy.holder,
            place(copy),
            localized(&said)
        );
        text.push_str(&format!("{}\n", OneLine(line)));
    }
    text.push_str(&format!("  {}\n", localized(&counted(known))));
    text
}

fn age(now: &Timestamp, at: &Timestamp) -> Message {
    let seconds = now.seconds().saturating_sub(at.seconds()).max(0);
    if seconds < 2 * DAY {
        plural!(
            "{count} hour ago",
            "{count} hours ago",
            count = seconds / 3_600
        )
    } else {
        plural!("{count} day ago", "{count} days ago", count = seconds / DAY)
    }
}

fn counted(known: &ItemCopies) -> Message {
    let copies = plural!(
        "{count} copy counts",
        "{count} copies count",
        count = known.count.copies
    );
    message!(
        "{copies}, in {places}",
        copies,
        places = plural!(
            "{count} place",
            "{count} places",
            count = known.count.places
        )
    )
}

/// A line for a list of what is missing.
fn short(known: &ItemCopies, policy: &CopyPolicy) -> String {
    let wanted = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
    let line = message!(
        "{item}: {copies} of {wanted} copies, {places} of {wanted_places} places",
        item = known.names.preferred(),
        copies = known.count.copies,
        wanted = wanted(policy.copies.max(policy.minimum)),
        places = known.count.places,
        wanted_places = wanted(policy.places)
    );
    format!("{}\n", OneLine(localized(&line)))
}

fn value(known: &ItemCopies) -> Value {
    let copies = known.copies.iter().map(|copy| {
        json!({
            "kind": copy.kind.word(),
            "holder": copy.holder,
            "place": copy.place,
            "made": copy.made.as_ref().map(Timestamp::to_rfc3339),
            "proved": copy.proof.as_ref().map(|proof| proof.at.to_rfc3339()),
            "outcome": copy.proof.as_ref().map(|proof| proof.word()),
            "gone": json::gone(copy.gone.as_ref()),
        })
    });
    let mut object = json::names(&known.names);
    object.insert("copies".into(), copies.collect());
    object.insert("counted".into(), json!(known.count.copies));
    object.insert("places".into(), json!(known.count.places));
    object.insert("enough".into(), json!(known.count.is_enough));
    object.into()
}
