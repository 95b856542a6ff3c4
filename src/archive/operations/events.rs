//! What happens to the items of a store, in the order of the changes of its index.
//!
//! The index numbers its changes, so that a position can be said at which to go on.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;

use super::{Archive, ArchiveError, ReadAs, line_of, record_in};
use crate::archive::store::{ChangeNumber, Item, ItemId, Record, RelationChange, Store};
use crate::formats::item::{Names, State};
use crate::formats::question::Line;
use ibi::relation::RelationKind;

/// The most items that are read at a time.
const MOST_AT_ONCE: usize = 1_000;

/// The change up to which the events are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
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

/// An event, as it is told.
#[derive(Clone, Debug)]
pub struct Happened {
    /// The word for it.
    pub what: String,
    /// The position after it.
    pub position: Option<Position>,
    /// The item or the relation that it concerns.
    pub of: Option<Subject>,
}

/// The item or the relation that an event concerns.
#[derive(Clone, Debug)]
pub enum Subject {
    /// An item, as it is now.
    Item(ItemId, Box<Record>),
    /// A relation.
    Relation(Box<RelationEvent>),
}

/// A relation that was declared or removed.
#[derive(Clone, Debug)]
pub struct RelationEvent {
    /// The item that declares it.
    pub source: Names,
    /// The relation of the other item to this one.
    pub kind: RelationKind,
    /// The other item.
    pub target: Names,
    /// Whether it is declared now.
    pub is_declared: bool,
}

impl From<RelationChange> for Box<RelationEvent> {
    fn from(change: RelationChange) -> Box<RelationEvent> {
        Box::new(RelationEvent {
            source: change.source,
            kind: change.kind,
            target: change.target,
            is_declared: change.is_declared,
        })
    }
}

impl Happened {
    /// An event that concerns no item.
    #[must_use]
    pub fn at(what: &str, position: Option<Position>) -> Happened {
        Happened {
            what: what.to_owned(),
            position,
            of: None,
        }
    }

    /// The line of an event.
    #[must_use]
    pub fn to_line(&self) -> Line {
        let line = match &self.of {
            Some(Subject::Item(id, record)) => line_of("event", *id, record),
            Some(Subject::Relation(change)) => Line::new("event")
                .with_names("source", &change.source)
                .with("kind", change.kind.pair_name())
                .with_names("target", &change.target)
                .with_all("declared", change.is_declared.then_some("yes")),
            None => Line::new("event"),
        };
        line.with("what", &self.what)
            .with_all("position", self.position)
    }

    /// The event of a line; None for another one.
    #[must_use]
    pub fn in_line(line: &Line) -> Option<Happened> {
        let item = record_in(line).map(|(id, record)| Subject::Item(id, Box::new(record)));
        let relation = || {
            Some(Subject::Relation(Box::new(RelationEvent {
                source: line.names("source")?,
                kind: RelationKind::from_pair_name(line.get("kind")?)?.ok()?,
                target: line.names("target")?,
                is_declared: line.get("declared").is_some(),
            })))
        };
        let position = line.get("position").map(str::parse).transpose().ok()?;
        Some(Happened {
            of: item.or_else(relation),
            ..Happened::at(line.get("what")?, position)
        })
    }
}

/// The position after all that has happened.
///
/// # Errors
/// The index cannot be read.
pub fn present(archive: &Archive) -> Result<Position, ArchiveError> {
    let store = archive.store();
    // An item that is added between the two counts as added again.
    let item = store.last_number()?;
    Ok(Position {
        change: store.last_change()?,
        item: item.map_or(0, |ItemId(item)| item),
    })
}

/// Tells what has happened since a position; all items, where it is that of no change or of another index. A reader is told of
/// items that it may see alone.
///
/// # Errors
/// Those of `tell`, after which the position is that of the last change of which all was told; the index cannot be read.
pub fn catch_up<E: From<ArchiveError>>(
    archive: &Archive,
    reader: Option<&ReadAs<'_>>,
    position: &mut Option<Position>,
    tell: &mut dyn FnMut(Happened) -> Result<(), E>,
) -> Result<(), E> {
    let now = present(archive)?;
    let known = position.filter(|known| {
        known.change.epoch == now.change.epoch && known.change.number <= now.change.number
    });
    let mut known = match known {
        Some(known) => known,
        None => {
            tell(Happened::at("start", None))?;
            each_present(archive, reader, tell)?;
            tell(Happened::at("ready", Some(now)))?;
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
            // A change is known when all that belongs to it is told.
            match events.number()? {
                Some(next) if next == event.number() => {}
                next => {
                    known.change.number = event.number();
                    if next.is_none() && events.is_last {
                        known.item = newest;
                    }
                }
            }
            let (word, of) = match event {
                Event::Item(_, item) => {
                    let word = match item.state {
                        State::Deleted => "removed",
                        _ if item.id.0 > before => "added",
                        _ => "changed",
                    };
                    (word, shown(archive, reader, &item)?)
                }
                Event::Relation(change) => {
                    let is_shown = match reader {
                        Some(reader) => {
                            reader.is_shown(&change.source)? && reader.is_shown(&change.target)?
                        }
                        None => true,
                    };
                    let change = is_shown.then(|| Subject::Relation(change.into()));
                    ("relation", change)
                }
            };
            if of.is_some() {
                tell(Happened {
                    of,
                    ..Happened::at(word, Some(known))
                })?;
            }
            *position = Some(known);
        }
        known.change.number = events.until;
        *position = Some(known);
    }
}

fn each_present<E: From<ArchiveError>>(
    archive: &Archive,
    reader: Option<&ReadAs<'_>>,
    tell: &mut dyn FnMut(Happened) -> Result<(), E>,
) -> Result<(), E> {
    let mut after = ItemId(0);
    loop {
        let items = archive.store().items_after(after, MOST_AT_ONCE);
        let items = items.map_err(ArchiveError::from)?;
        let Some(last) = items.last() else {
            return Ok(());
        };
        after = last.id;
        for item in &items {
            let of = shown(archive, reader, item)?;
            if of.is_some() {
                tell(Happened {
                    of,
                    ..Happened::at("present", None)
                })?;
            }
        }
    }
}

/// An item with its relations; None if the reader may not see it.
fn shown(
    archive: &Archive,
    reader: Option<&ReadAs<'_>>,
    item: &Item,
) -> Result<Option<Subject>, ArchiveError> {
    let record = match reader {
        Some(reader) if reader.is_public(item)? => reader.record_shown(item)?,
        Some(_) => return Ok(None),
        None => archive.record_with(item, |_| Ok(true))?,
    };
    Ok(Some(Subject::Item(item.id, Box::new(record))))
}

/// Something that has happened.
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time, and most are items"
)]
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
    fn new(store: &Store, (from, until): (i64, i64)) -> Result<Events<'_>, ArchiveError> {
        let items = store.changed_after(from, MOST_AT_ONCE);
        let mut items = items?;
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

    fn fill(&mut self) -> Result<(), ArchiveError> {
        if self.relations.is_empty() && self.has_more_relations {
            let range = (self.from, self.until);
            let found = self.store;
            let found = found.relations_changed(range, self.read.as_ref(), MOST_AT_ONCE);
            self.relations = found?.into();
            self.has_more_relations = self.relations.len() == MOST_AT_ONCE;
            self.read = self.relations.back().cloned();
        }
        Ok(())
    }

    /// The number of the next one.
    fn number(&mut self) -> Result<Option<i64>, ArchiveError> {
        self.fill()?;
        let item = self.items.front().map(|(number, _)| *number);
        let relation = self.relations.front().map(|change| change.number);
        Ok(item.into_iter().chain(relation).min())
    }

    fn next(&mut self) -> Result<Option<Event>, ArchiveError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::operations::testing;
    use ibi::Ibi;

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
                let mut events = Events::new(&store, (from, until)).expect("events");
                while let Some(event) = events.next().expect("an event") {
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
