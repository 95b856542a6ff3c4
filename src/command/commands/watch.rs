//! `ibifs watch`: what happens to the items of a store, as a line of JSON for each event.
//!
//! The index numbers its changes, so that a position can be said at which to go on. The index is opened again each time
//! that its files have changed: so the daemon may end and start meanwhile, and the index may be rebuilt.

use std::collections::VecDeque;
use std::fmt;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::access::StoreAccess;
use super::{cannot_print, usage};
use crate::archive::store::{ChangeNumber, FILE, Item, ItemId, RelationChange, Store};
use crate::archive::{Archive, ArchiveError};
use crate::command::cli::Watch;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::formats::item::State;
use ibi::message;

/// The interval at which the files of the index are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The interval at which the index is read even if its files seem unchanged: their times are coarse.
const READ_EVERY: Duration = Duration::from_secs(5);
/// The most items that are read at a time.
const MOST_AT_ONCE: usize = 1_000;
/// The word for the present position.
const NOW: &str = "now";

/// The change up to which the events are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    change: ChangeNumber,
    /// Items with a greater number are new.
    item: i64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let epoch = self.change.epoch.cast_unsigned();
        write!(f, "{epoch:016x}-{}-{}", self.change.number, self.item)
    }
}

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Position, ()> {
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(());
        let epoch = next()?;
        let number = |text: &str| match text.parse::<i64>() {
            Ok(number) if number >= 0 => Ok(number),
            _ => Err(()),
        };
        let change = ChangeNumber {
            epoch: u64::from_str_radix(epoch, 16).map_err(drop)?.cast_signed(),
            number: number(next()?)?,
        };
        let item = number(next()?)?;
        match (epoch.len(), parts.next()) {
            (16, None) => Ok(Position { change, item }),
            _ => Err(()),
        }
    }
}

/// The reason why nothing more is printed.
enum Stop {
    /// The reader has closed the pipe.
    Closed,
    Failed(Failure),
}

impl From<ArchiveError> for Stop {
    fn from(error: ArchiveError) -> Stop {
        Stop::Failed(error.into())
    }
}

pub(super) fn run(options: &Watch) -> Result<Exit, Failure> {
    let mut position = match options.from.as_deref() {
        None | Some(NOW) => None,
        Some(text) => {
            let refused = |()| {
                usage(message!(
                    "'{text}' is no position of 'ibifs watch'; take one that it has printed, or 'now'",
                    text
                ))
            };
            Some(text.parse::<Position>().map_err(refused)?)
        }
    };
    let access = StoreAccess::at(&options.store)?;
    // The first time a failure ends the command, later ones pass.
    let mut archive = Some(access.read()?);
    let begins_now = options.from.as_deref() == Some(NOW);
    let mut seen = (Files::of(&access.store), Instant::now());
    let mut is_reported = false;
    loop {
        let opened = archive.take().map_or_else(|| access.read(), Ok);
        let printed = match opened {
            Ok(archive) => {
                if begins_now && position.is_none() {
                    present(&archive).and_then(|now| {
                        position = Some(now);
                        ready(now)
                    })
                } else {
                    catch_up(&archive, &mut position)
                }
            }
            Err(failure) => Err(Stop::Failed(failure)),
        };
        match printed {
            Ok(()) if options.once => return Ok(Exit::Done),
            Ok(()) => is_reported = false,
            Err(Stop::Closed) => return Ok(Exit::Done),
            Err(Stop::Failed(failure)) if options.once || position.is_none() => {
                return Err(failure);
            }
            Err(Stop::Failed(failure)) => {
                if !is_reported {
                    log::warn!("the index cannot be read, and is tried again: {failure}");
                    is_reported = true;
                }
            }
        }
        loop {
            std::thread::sleep(LOOK_EVERY);
            let files = Files::of(&access.store);
            if files != seen.0 || seen.1.elapsed() >= READ_EVERY {
                seen = (files, Instant::now());
                break;
            }
        }
    }
}

/// The state of the files of an index: inode, length and time of the database and its log.
#[derive(PartialEq, Eq)]
struct Files([Option<(u64, u64, i64, i64)>; 2]);

impl Files {
    fn of(store: &Path) -> Files {
        let state = |name: String| {
            let stat = std::fs::metadata(store.join(name)).ok()?;
            Some((stat.ino(), stat.len(), stat.mtime(), stat.mtime_nsec()))
        };
        Files([state(FILE.to_owned()), state(format!("{FILE}-wal"))])
    }
}

/// The position after all that has happened.
fn present(archive: &Archive) -> Result<Position, Stop> {
    let store = archive.store();
    // An item that is added between the two counts as added again.
    let item = store.last_number().map_err(ArchiveError::from)?;
    Ok(Position {
        change: store.last_change().map_err(ArchiveError::from)?,
        item: item.map_or(0, |ItemId(item)| item),
    })
}

/// Prints what has happened since a position; all items, where it is that of no change or of another index.
fn catch_up(archive: &Archive, position: &mut Option<Position>) -> Result<(), Stop> {
    let now = present(archive)?;
    let known = position.filter(|known| {
        known.change.epoch == now.change.epoch && known.change.number <= now.change.number
    });
    let mut known = match known {
        Some(known) => known,
        None => {
            put("start", None, Map::new())?;
            each_present(archive)?;
            ready(now)?;
            now
        }
    };
    *position = Some(known);
    let store = archive.store();
    let (before, mut newest) = (known.item, known.item);
    loop {
        let from = known.change.number;
        // A change from here on is for the next time, so that items and relations are of the same changes.
        let until = store.last_change().map_err(ArchiveError::from)?;
        if until.epoch != known.change.epoch || until.number <= from {
            return Ok(());
        }
        let mut events = Events::new(store, (from, until.number))?;
        while let Some(event) = events.next()? {
            if let Event::Item(_, item) = &event {
                newest = newest.max(item.id.0);
            }
            // A change is known when all that belongs to it is printed.
            match events.number()? {
                Some(next) if next == event.number() => {}
                next => {
                    known.change.number = event.number();
                    if next.is_none() && events.is_last {
                        known.item = newest;
                    }
                }
            }
            match event {
                Event::Item(_, item) => {
                    let event = match item.state {
                        State::Deleted => "removed",
                        _ if item.id.0 > before => "added",
                        _ => "changed",
                    };
                    put(event, Some(known), described(store, &item)?)?;
                }
                Event::Relation(change) => put("relation", Some(known), related(&change))?,
            }
            *position = Some(known);
        }
        known.change.number = events.until;
    }
}

/// Something that has happened.
enum Event {
    Item(i64, Item),
    Relation(RelationChange),
}

impl Event {
    /// The number of the change.
    fn number(&self) -> i64 {
        match self {
            Event::Item(number, _) => *number,
            Event::Relation(change) => change.number,
        }
    }
}

/// The events from a change on, in their order: an item before its relations.
struct Events<'a> {
    store: &'a Store,
    items: VecDeque<(i64, Item)>,
    relations: VecDeque<RelationChange>,
    /// The change after which the relations continue.
    read: Option<RelationChange>,
    from: i64,
    until: i64,
    /// Whether nothing follows on these.
    is_last: bool,
    has_more_relations: bool,
}

impl Events<'_> {
    /// Those after one change, up to another or an earlier one if they are many.
    fn new(store: &Store, (from, until): (i64, i64)) -> Result<Events<'_>, Stop> {
        let items = store.changed_after(from, MOST_AT_ONCE);
        let mut items = items.map_err(ArchiveError::from)?;
        let is_last = items.len() < MOST_AT_ONCE;
        let last = items.last().map_or(until, |(number, _)| *number);
        items.retain(|(number, _)| *number <= until);
        Ok(Events {
            store,
            items: items.into(),
            relations: VecDeque::new(),
            read: None,
            from,
            until: if is_last { until } else { until.min(last) },
            is_last,
            has_more_relations: true,
        })
    }

    fn fill(&mut self) -> Result<(), Stop> {
        if self.relations.is_empty() && self.has_more_relations {
            let range = (self.from, self.until);
            let found = self.store;
            let found = found.relations_changed(range, self.read.as_ref(), MOST_AT_ONCE);
            self.relations = found.map_err(ArchiveError::from)?.into();
            self.has_more_relations = self.relations.len() == MOST_AT_ONCE;
            self.read = self.relations.back().cloned();
        }
        Ok(())
    }

    /// The number of the next one.
    fn number(&mut self) -> Result<Option<i64>, Stop> {
        self.fill()?;
        let item = self.items.front().map(|(number, _)| *number);
        let relation = self.relations.front().map(|change| change.number);
        Ok(item.into_iter().chain(relation).min())
    }

    fn next(&mut self) -> Result<Option<Event>, Stop> {
        let Some(number) = self.number()? else {
            return Ok(None);
        };
        let is_item = self.items.front().is_some_and(|(of, _)| *of == number);
        Ok(if is_item {
            let item = self.items.pop_front();
            item.map(|(number, item)| Event::Item(number, item))
        } else {
            self.relations.pop_front().map(Event::Relation)
        })
    }
}

/// A relation with its two ends.
fn related(change: &RelationChange) -> Map<String, Value> {
    let mut object = json::names(&change.source);
    object.insert("relation".into(), json!(json::relation(&change.kind)));
    let target = Value::Object(json::names(&change.target));
    object.insert("target".into(), target);
    object.insert("declared".into(), json!(change.is_declared));
    object
}

fn each_present(archive: &Archive) -> Result<(), Stop> {
    let store = archive.store();
    let mut after = ItemId(0);
    loop {
        let items = store.items_after(after, MOST_AT_ONCE);
        let items = items.map_err(ArchiveError::from)?;
        let Some(last) = items.last() else {
            return Ok(());
        };
        after = last.id;
        for item in &items {
            put("present", None, described(store, item)?)?;
        }
    }
}

/// An item with its relations.
fn described(store: &Store, item: &Item) -> Result<Map<String, Value>, Stop> {
    let mut object = json::item(item);
    let relations = store.relations_of(item.id).map_err(ArchiveError::from)?;
    let relations = relations.into_iter();
    let relations = relations.map(|(kind, target)| (json::relation(&kind), json::names(&target)));
    let relations: Map<String, Value> = relations
        .map(|(kind, target)| (kind, Value::Object(target)))
        .collect();
    object.insert("relations".into(), Value::Object(relations));
    Ok(object)
}

fn ready(position: Position) -> Result<(), Stop> {
    put("ready", Some(position), Map::new())
}

/// Prints an event at once.
fn put(event: &str, position: Option<Position>, of: Map<String, Value>) -> Result<(), Stop> {
    let mut object = Map::new();
    object.insert("event".into(), json!(event));
    if let Some(position) = position {
        object.insert("position".into(), json!(position.to_string()));
    }
    object.extend(of);
    let line = json::line(&Value::Object(object));
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(line.as_bytes())
        .and_then(|()| output.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Stop::Closed,
        _ => Stop::Failed(cannot_print(&error)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::operations::testing;
    use crate::archive::store::Record;
    use crate::formats::item::Names;
    use ibi::Ibi;
    use ibi::relation::RelationKind;

    /// The events of more items and relations than are read at a time, from a position on.
    #[test]
    fn events_are_in_the_order_of_changes() {
        let store = Store::temporary().expect("a store");
        let names = |number: usize| {
            let text = format!(
                "a.example.org/b/2026/01.01.{:02}.{:02}",
                number / 60,
                number % 60
            );
            Names::from(Ibi::parse(&text).expect("an identifier"))
        };
        let count = MOST_AT_ONCE + MOST_AT_ONCE / 4;
        let put = |number: usize, relations: &[(RelationKind, Names)]| {
            let mut record = Record::bare(names(number), State::Copy);
            record.relations = relations.to_vec();
            testing::put(&store, &record);
        };
        let related = |number: usize| {
            let next = (RelationKind::NextEdition, names((number + 1) % count));
            [next, (RelationKind::EditionOf, names(number / 2))]
        };
        for number in 0..count {
            put(number, &related(number));
        }
        // The relations of these have changed before the item.
        for number in (0..count).step_by(3) {
            put(number, &related(number));
        }
        let until = store.last_change().expect("a number").number;
        let read = |mut from: i64| {
            let (mut items, mut relations, mut last) = (0, 0, from);
            while from < until {
                let mut events = Events::new(&store, (from, until)).ok().expect("events");
                while let Some(event) = events.next().ok().expect("an event") {
                    assert!(event.number() >= last && event.number() <= events.until);
                    last = event.number();
                    match event {
                        Event::Item(..) => items += 1,
                        Event::Relation(_) => relations += 1,
                    }
                }
                assert!(events.until > from);
                from = events.until;
            }
            (items, relations)
        };
        assert_eq!(read(0), (count, 2 * count));
        // Each item was put first with its own number, from 1 on.
        let half = count / 2;
        let from = i64::try_from(half).expect("a number");
        let again = (0..half).step_by(3).count();
        assert_eq!(read(from), (count - half + again, 2 * (count - half)));
    }

    #[test]
    fn positions_are_read_as_they_are_written() {
        let position = Position {
            change: ChangeNumber {
                epoch: -2,
                number: 7,
            },
            item: 9,
        };
        let text = position.to_string();
        assert_eq!(text, "fffffffffffffffe-7-9");
        assert_eq!(text.parse(), Ok(position));
        for broken in [
            "",
            "now",
            "0",
            "fffffffffffffffe-7",
            "1-2-3",
            "fffffffffffffffe-7-9-1",
            "fffffffffffffffe--7-9",
            "fffffffffffffffg-7-9",
        ] {
            assert_eq!(broken.parse::<Position>(), Err(()), "{broken}");
        }
    }
}
