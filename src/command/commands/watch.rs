//! `ibifs watch`: what happens to the items of a store, as a line of JSON for each event.
//!
//! The index is opened again each time that its files have changed: so the daemon may end and start meanwhile, and the index may
//! be rebuilt. A user who may not enter the store asks the daemon of the mount time and again.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::access::StoreAccess;
use super::{cannot_print, daemon, usage};
use crate::archive::store::{EventRow, FILE, Record};
use crate::archive::{
    ArchiveError, Happened, Position, RelationEvent, Subject, catch_up, event_in, present,
};
use crate::command::cli::{LogPoint, Watch};
use crate::command::exit::{Exit, Failure};
use crate::command::json;
use crate::formats::history::Told;
use crate::formats::question::Line;
use crate::fuse::mount::Mounted;
use ibi::{Timestamp, message};

/// The interval at which the files of the index are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The interval at which the index is read even if its files seem unchanged: their times are coarse.
const READ_EVERY: Duration = Duration::from_secs(5);
/// The interval at which a daemon is asked.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// The word for the present position.
const NOW: &str = "now";
/// The word of a daemon for the position after all that it has told.
const AT: &str = "at";

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
    let access = StoreAccess::named(options.store.as_deref())?;
    // The first time a failure ends the command, later ones pass.
    let mut archive = match access.asked() {
        Some(_) => None,
        None => Some(access.read()?),
    };
    if let Some(since) = &options.since {
        return follow_log(&access, since, options.once);
    }
    let begins_now = options.from.as_deref() == Some(NOW);
    let mut seen = (Files::of(&access.store), Instant::now());
    let mut is_reported = false;
    loop {
        let is_now = begins_now && position.is_none();
        let asked = access.asked();
        let printed = match (&asked, archive.take().map_or_else(|| access.read(), Ok)) {
            (Some(mounted), _) => ask(mounted, is_now, &mut position),
            (None, Ok(archive)) if is_now => {
                present(&archive).map_err(Stop::from).and_then(|now| {
                    position = Some(now);
                    put(Happened::at("ready", Some(now)))
                })
            }
            (None, Ok(archive)) => catch_up(&archive, None, &mut position, &mut put),
            (None, Err(failure)) => Err(Stop::Failed(failure)),
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
        if asked.is_some() {
            std::thread::sleep(ASK_EVERY);
            continue;
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

/// Prints the events of the log from a number or a date on.
fn follow_log(access: &StoreAccess, since: &LogPoint, once: bool) -> Result<Exit, Failure> {
    let (mut next, date) = match since {
        LogPoint::Number(number) => (*number, None),
        LogPoint::Since(date) => (0, Some(date)),
    };
    // The clock may have been set back: what comes after an event since the date is printed.
    let mut has_begun = date.is_none();
    let mut is_reported = false;
    loop {
        let mut put = |event: &EventRow| {
            let told = Told::parse(&event.line);
            has_begun |= told.is_some_and(|it| date.is_some_and(|date| it.time >= *date));
            match event.logged {
                Some(number) if has_begun => put_event(number, &event.line),
                _ => Ok(()),
            }
        };
        let seen = Files::of(&access.store);
        let asked = access.asked();
        let longest = asked.as_ref().map_or(READ_EVERY, |_| ASK_EVERY);
        let read = match asked {
            Some(mounted) => ask_log(&mounted, next, &mut put),
            None => access
                .read()
                .map_err(Stop::Failed)
                .and_then(|archive| archive.each_logged(next, &mut put)),
        };
        match read {
            Ok(after) => {
                (next, is_reported) = (after, false);
                if once {
                    return Ok(Exit::Done);
                }
            }
            Err(Stop::Closed) => return Ok(Exit::Done),
            Err(Stop::Failed(failure)) if once => return Err(failure),
            Err(Stop::Failed(failure)) if !is_reported => {
                log::warn!("the index cannot be read, and is tried again: {failure}");
                is_reported = true;
            }
            Err(Stop::Failed(_)) => {}
        }
        let began = Instant::now();
        while Files::of(&access.store) == seen && began.elapsed() < longest {
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

/// Asks the daemon of a mount for the events of the log from a number on. Returns the number after them.
fn ask_log(
    mounted: &Mounted,
    from: u64,
    put: &mut dyn FnMut(&EventRow) -> Result<(), Stop>,
) -> Result<u64, Stop> {
    let (mut next, mut stopped) = (from, Ok(()));
    let question = Line::new("history").with("from", from);
    let asked = daemon::each_line(mounted, &question, |line| {
        if let (Ok(()), Some(event)) = (&stopped, event_in(line)) {
            stopped = put(&event);
        } else if line.word() == "next" {
            next = line
                .get("number")
                .and_then(|it| it.parse().ok())
                .unwrap_or(next);
        }
    });
    stopped.and(asked.map_err(Stop::Failed)).map(|()| next)
}

/// Prints an event of the log at once.
fn put_event(number: i64, line: &str) -> Result<(), Stop> {
    let mut object = Map::from_iter([("number".to_owned(), json!(number))]);
    if let Ok(Value::Object(event)) = serde_json::from_str(line) {
        object.extend(event);
    }
    put_line(&json::line(&Value::Object(object)))
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

/// Prints what the daemon of a mount says that has happened since a position.
fn ask(mounted: &Mounted, is_now: bool, position: &mut Option<Position>) -> Result<(), Stop> {
    let from = position.map(|position| position.to_string());
    let from = from.or(is_now.then(|| NOW.to_owned()));
    let mut stopped = Ok(());
    let asked = daemon::each_line(
        mounted,
        &Line::new("events").with_all("from", from),
        |line| {
            let Some(event) = Happened::in_line(line).filter(|_| stopped.is_ok()) else {
                return;
            };
            let next = event.position.or(*position);
            if event.what != AT {
                stopped = put(event);
            }
            if stopped.is_ok() {
                *position = next;
            }
        },
    );
    stopped.and(asked.map_err(Stop::Failed))
}

/// A relation with its two ends.
fn related(change: &RelationEvent) -> Map<String, Value> {
    let mut object = json::names(&change.source);
    object.insert("relation".into(), json!(json::relation(&change.kind)));
    let target = Value::Object(json::names(&change.target));
    object.insert("target".into(), target);
    object.insert("declared".into(), json!(change.is_declared));
    object
}

/// An item with its relations.
fn described(record: &Record) -> Map<String, Value> {
    let removed_at = record.removed_at.as_ref().map(Timestamp::to_rfc3339);
    let mut object = json::item_with(&record.names, record.state, removed_at);
    let relations = record.relations.iter();
    let relations = relations.map(|(kind, target)| (json::relation(kind), json::names(target)));
    let relations: Map<String, Value> = relations
        .map(|(kind, target)| (kind, Value::Object(target)))
        .collect();
    object.insert("relations".into(), Value::Object(relations));
    object
}

/// Prints an event at once.
fn put(event: Happened) -> Result<(), Stop> {
    let mut object = Map::new();
    object.insert("event".into(), json!(event.what));
    if let Some(position) = event.position {
        object.insert("position".into(), json!(position.to_string()));
    }
    match &event.of {
        Some(Subject::Item(_, record)) => object.extend(described(record)),
        Some(Subject::Relation(change)) => object.extend(related(change)),
        None => {}
    }
    put_line(&json::line(&Value::Object(object)))
}

fn put_line(line: &str) -> Result<(), Stop> {
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(line.as_bytes())
        .and_then(|()| output.flush());
    written.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Stop::Closed,
        _ => Stop::Failed(cannot_print(&error)),
    })
}
