//! `ibifs watch`: what happens to the items of a store, as a line of JSON for each event.
//!
//! The index numbers its changes, so that a position can be said at which to go on. The index is opened again each time
//! that its files have changed: so the daemon may end and start meanwhile, and the index may be rebuilt.

use std::fmt;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::access::StoreAccess;
use super::{cannot_print, usage};
use crate::archive::store::{ChangeNumber, FILE, Item, ItemId, Store};
use crate::archive::{Archive, ArchiveError};
use crate::command::cli::Watch;
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::formats::item::State;
use ibi::message;

/// How often the files of the index are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How often the index is read even if its files seem unchanged: their times are coarse.
const READ_EVERY: Duration = Duration::from_secs(5);
/// The most items that are read at a time.
const MOST_AT_ONCE: usize = 1_000;
/// What stands for the present position.
const NOW: &str = "now";

/// Up to which change the events are known.
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

/// Why nothing more is printed.
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
    // What is added between the two counts as added again.
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
    loop {
        let number = known.change.number;
        let changed = archive.store().changed_after(number, MOST_AT_ONCE);
        let changed = changed.map_err(ArchiveError::from)?;
        let Some(most) = changed.iter().map(|(_, item)| item.id.0).max() else {
            return Ok(());
        };
        let is_last = changed.len() < MOST_AT_ONCE;
        let before = known.item;
        for (at, (number, item)) in changed.iter().enumerate() {
            known.change.number = *number;
            if is_last && at + 1 == changed.len() {
                known.item = before.max(most);
            }
            let event = match item.state {
                State::Deleted => "removed",
                _ if item.id.0 > before => "added",
                _ => "changed",
            };
            put(event, Some(known), described(archive.store(), item)?)?;
            *position = Some(known);
        }
    }
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
