//! The history of a store: events are recorded with the changes that they tell, and the log of the store gets them a second
//! later.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{OFlags, Stat};

use super::open::facts_of;
use super::{Actor, Archive, ArchiveError, Keeper, ReadAs, is_draft};
use crate::archive::log_files::{self, LeftLines, LogFileError, LogLine, LogReader, LogWriter};
use crate::archive::store::{By, EventRow, ItemId, Logged, Teller};
use crate::archive::tree::{Place, Tree};
use crate::formats::fixity::Digest;
use crate::formats::history::{EventKind, SALT, Told, entry, item_in};
use crate::formats::item::{Names, State};
use crate::formats::premis::PremisEvent;
use crate::formats::question::Line;
use crate::formats::tlog::note::VerifierKey;
use crate::os::caller::act_as_process;
use crate::os::processors;
use ibi::message::Localize;
use ibi::{Ibi, Timestamp, message};

/// The interval at which events are taken to the log.
const INTERVAL: Duration = Duration::from_secs(1);

/// The interval after a failure.
const AFTER_FAILURE: Duration = Duration::from_secs(60);

/// The most events that are taken to the log at a time.
const BATCH: usize = 1_000;

impl From<LogFileError> for ArchiveError {
    fn from(error: LogFileError) -> ArchiveError {
        let why = error.message();
        ArchiveError::Log { why }
    }
}

impl By {
    /// The user of an actor, or the program.
    pub fn of(actor: &dyn Actor) -> By {
        let owner = actor.owner();
        owner.map_or(By::Program, |(uid, _)| By::User(uid))
    }
}

impl Archive {
    /// Takes the events that wait to the log. Does nothing if the Archive keeps no history.
    ///
    /// # Errors
    /// The index or the files of the log cannot be read or written; the log was set back.
    pub fn append_history(&self) -> Result<(), ArchiveError> {
        if !self.store.has_history() || self.lock.is_none() {
            return Ok(());
        }
        while self.append_some()? == BATCH {}
        Ok(())
    }

    /// Gives the log another key, and returns that. The log says so before, in a checkpoint of the old key.
    ///
    /// # Errors
    /// The store keeps no log, or is another user's; the log cannot be written.
    pub fn replace_log_key(&self, by: &dyn Actor) -> Result<VerifierKey, ArchiveError> {
        self.writable()?;
        let root = self.tree.root();
        let found = rustix::fs::fstat(root);
        if !found.is_ok_and(|found| by.owns(found.st_uid)) {
            return Err(ArchiveError::Log {
                why: message!("only the owner of the store gives its log another key"),
            });
        }
        if !self.store.has_history() {
            return Err(ArchiveError::Log {
                why: message!(
                    "this store keeps no history; add 'history yes' to archive.ibi, and mount it again"
                ),
            });
        }
        let next = self.with_log(|log| Ok(log.next_key()?))?;
        let note = next.to_string();
        self.store
            .tell(By::of(by), EventKind::NewKey, None, &note)?;
        self.append_history()?;
        self.with_log(|log| Ok(log.replace_key(&next)?))?;
        Ok(next)
    }

    /// Takes events to the log; returns their number.
    fn append_some(&self) -> Result<usize, ArchiveError> {
        self.store.tell_kept()?;
        let left = LeftLines::find(self.tree.root())?;
        let is_left = left.is_some_and(|left| left.is_any());
        if !is_left && self.store.waiting_events(1)?.is_empty() {
            return Ok(0);
        }
        self.with_log(|log| {
            if is_left {
                self.take_left()?;
            }
            // Read here: another thread or host may have logged some before.
            let waiting = self.store.waiting_events(BATCH)?;
            let lines: Vec<LogLine> = waiting.iter().map(line_of).collect();
            let month = self.clock.now().to_rfc3339();
            log.append(month.get(..7).unwrap_or_default(), &lines)?;
            self.store.note_logged(lines.len())?;
            Ok(lines.len())
        })
    }

    /// Writes to the log. Threads, and hosts that share the store, do so in turns.
    fn with_log<T>(
        &self,
        act: impl FnOnce(&mut LogWriter) -> Result<T, ArchiveError>,
    ) -> Result<T, ArchiveError> {
        let mut kept = self.log.lock();
        let turn = if self.is_shared() {
            *kept = None;
            Some(self.store.take_turn()?)
        } else {
            None
        };
        let mut log = match kept.take() {
            Some(log) => log,
            None => {
                let log = LogWriter::open(self.tree.root(), &self.facts.log_origin())?;
                self.read_log()?;
                log
            }
        };
        let done = act(&mut log)?;
        *kept = Some(log);
        drop(turn);
        Ok(done)
    }

    /// Takes the events that other processes have left to the index. Those that wait there were taken before a crash: no event
    /// is logged while its file is there.
    fn take_left(&self) -> Result<(), ArchiveError> {
        // Read here: another host may have taken some before.
        let Some(left) = LeftLines::find(self.tree.root())? else {
            return Ok(());
        };
        let (events, refused) = events_in(&left)?;
        for batch in events.chunks(BATCH) {
            self.store.put_left(batch)?;
            left.remove(batch.iter().map(|event| &event.salt))?;
        }
        for name in refused {
            let path = left.set_aside(&name)?;
            log::warn!("'{path}' is no event that ibifs has left, and is not taken to the log");
        }
        Ok(())
    }

    /// The events that other processes have left, by their salts.
    fn left_events(&self, names: Option<&Names>) -> HashMap<[u8; SALT], EventRow> {
        let left = LeftLines::find(self.tree.root());
        let left = left.and_then(|left| left.as_ref().map(events_in).transpose());
        let (left, _) = left.map(Option::unwrap_or_default).unwrap_or_else(|error| {
            log::debug!("events that wait are not known: {error}");
            Default::default()
        });
        let is_meant = |event: &Logged| {
            let is_of =
                |names: &Names| item_in(&event.line).is_some_and(|item| names.matches(&item));
            names.is_none_or(is_of)
        };
        let events = left.into_iter().filter(is_meant).zip(1..);
        events
            .map(|(event, number)| {
                (
                    event.salt,
                    EventRow {
                        number,
                        logged: None,
                        salt: event.salt,
                        line: event.line,
                    },
                )
            })
            .collect()
    }

    /// Notes in the index which events are in the log already: those of a crash between the two, those that an older index
    /// lacks, and all of an index that was made again.
    ///
    /// # Errors
    /// The log was set back, is another one than before, or is damaged.
    pub(super) fn read_log(&self) -> Result<(), ArchiveError> {
        let known = self.store.logged_events()?.cast_unsigned();
        let log = LogReader::open(self.tree.root())?;
        let size = log.as_ref().map_or(0, |log| log.checkpoint().size);
        if size < known {
            return Err(ArchiveError::Log {
                why: message!(
                    "STORE/log has {size} events, and the index knows of {known}: the log was set back; put log/ back from a backup",
                    size,
                    known
                ),
            });
        }
        let Some(log) = log else {
            return Ok(());
        };
        let last = known.saturating_sub(1);
        for event in self
            .store
            .events_after(last.cast_signed(), (known - last) as usize)?
        {
            if log.line(last)? != line_of(&event) {
                return Err(ArchiveError::Log {
                    why: message!(
                        "event {last} of STORE/log is not the one that the index knows: it is another log; put log/ back from a backup",
                        last
                    ),
                });
            }
        }
        if size > known {
            self.put_logged(&log, known)?;
        }
        Ok(())
    }

    /// Puts the events of the log from a number on into the index.
    fn put_logged(&self, log: &LogReader, first: u64) -> Result<(), ArchiveError> {
        let mut new = Vec::new();
        let mut put = Ok(());
        log.lines(first, &mut |_, line| {
            new.push(logged(line));
            if new.len() == BATCH {
                put = self.store.put_logged(&new);
                new.clear();
            }
            match put {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        put?;
        Ok(self.store.put_logged(&new)?)
    }

    /// Records an event that changes no row of an item; without the lock of the store it is left for the process that writes
    /// the log. What has happened has happened: after a failure, which is logged, the event is recorded when that is possible.
    pub fn tell(&self, by: By, kind: EventKind, item: Option<&Names>, note: &str) {
        if self.lock.is_none() {
            return leave_event(&self.tree, by, kind, item, note);
        }
        let told = self.store.tell(by, kind, item, note);
        if told.is_err() {
            self.store.keep_told(by, kind, item, note);
        }
        log_untold(kind, told.map_err(ArchiveError::from));
    }

    /// Tells that the store keeps no history any more: its log gets the event when it goes on.
    pub(super) fn tell_end(&self, by: By) {
        leave(&self.tree, by, EventKind::PolicyChanged, None, "no history");
    }

    /// Tells that mode, owner or group of an item's directory were changed, from which to which. That an item which is being
    /// copied in gets those that it had is no event of its own.
    pub fn tell_rights(&self, by: &dyn Actor, item: ItemId, before: Rights, after: Rights) {
        let told = || -> Result<(), ArchiveError> {
            if !self.store.has_history() {
                return Ok(());
            }
            let item = self.known(item)?;
            let is_published = is_draft(before.0) && !is_draft(after.0);
            let is_new = !self.was_known(item.id)?;
            let kind = match (is_published, item.state) {
                (true, State::Original) => EventKind::Published,
                _ if is_new => return Ok(()),
                (true, _) => EventKind::Published,
                (false, _) => EventKind::RightsChanged,
            };
            let text = |(mode, uid, gid): Rights| format!("{:04o} {uid}:{gid}", mode & 0o7777);
            let note = format!("{} -> {}", text(before), text(after));
            self.tell(By::of(by), kind, Some(&item.names), &note);
            Ok(())
        };
        log_untold(EventKind::RightsChanged, told());
    }

    /// The same of the access control list.
    pub fn tell_list(&self, by: &dyn Actor, item: ItemId) {
        let told = || -> Result<(), ArchiveError> {
            if !self.store.has_history() || !self.was_known(item)? {
                return Ok(());
            }
            let (names, note) = (self.known(item)?.names, "access control list");
            self.tell(By::of(by), EventKind::RightsChanged, Some(&names), note);
            Ok(())
        };
        log_untold(EventKind::RightsChanged, told());
    }

    /// Calls `visit` with the events of an item, or of all items and the store, in their order. Those that wait to be taken to
    /// the index come last.
    ///
    /// # Errors
    /// The index cannot be read; the first error of `visit`.
    pub fn each_event<E: From<ArchiveError>>(
        &self,
        names: Option<&Names>,
        mut visit: impl FnMut(&EventRow) -> Result<(), E>,
    ) -> Result<(), E> {
        // Before the index, which gets them meanwhile.
        let mut left = self.left_events(names);
        let mut after = 0;
        loop {
            let events = match names {
                Some(names) => self.store.events_of(names, after, BATCH),
                None => self.store.events_after(after, BATCH),
            };
            let events = events.map_err(ArchiveError::from)?;
            let Some(last) = events.last() else {
                break;
            };
            after = last.number;
            for event in &events {
                left.remove(&event.salt);
                visit(event)?;
            }
        }
        let mut left: Vec<EventRow> = left.into_values().collect();
        left.sort_by_key(|event| event.number);
        left.iter_mut().for_each(|event| event.number += after);
        left.iter().try_for_each(visit)
    }

    /// Calls `visit` with the events of the log from a number on, as far as the index has them. Returns the number after them.
    ///
    /// # Errors
    /// The index cannot be read; the first error of `visit`.
    pub fn each_logged<E: From<ArchiveError>>(
        &self,
        mut from: u64,
        mut visit: impl FnMut(&EventRow) -> Result<(), E>,
    ) -> Result<u64, E> {
        loop {
            let after = i64::try_from(from).unwrap_or(i64::MAX);
            let events = self.store.events_after(after, BATCH);
            let mut events = events.map_err(ArchiveError::from)?;
            events.retain(|event| event.logged.is_some());
            let Some(last) = events.last() else {
                return Ok(from);
            };
            from = last.number.cast_unsigned();
            events.iter().try_for_each(&mut visit)?;
        }
    }

    /// Whether no event since a time tells of a change of an item's files.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn is_untold(&self, names: &Names, since: &Timestamp) -> Result<bool, ArchiveError> {
        let mut is_untold = true;
        self.each_event(Some(&self.complete(names)?), |event| {
            let told = Told::parse(&event.line);
            let is_of_content = |told: &Told| told.kind().is_some_and(EventKind::is_of_content);
            is_untold &= !told.is_some_and(|it| it.time >= *since && is_of_content(&it));
            Ok::<(), ArchiveError>(())
        })?;
        Ok(is_untold)
    }

    /// The text of a proof that the last event of an item that `is_meant` is in the log; None if none of the latest is yet.
    ///
    /// # Errors
    /// The index cannot be read, or the log is damaged.
    pub fn prove_last(
        &self,
        names: &Names,
        is_meant: impl Fn(&EventRow) -> Result<bool, ArchiveError>,
    ) -> Result<Option<String>, ArchiveError> {
        let Some(log) = LogReader::open(self.tree.root())? else {
            return Ok(None);
        };
        for event in self.store.latest_events_of(names, BATCH)?.iter().rev() {
            let number = event.logged.map(i64::cast_unsigned);
            let number = number.filter(|number| *number < log.checkpoint().size);
            if let Some(number) = number
                && is_meant(event)?
            {
                return Ok(Some(log.prove(number)?.to_string()));
            }
        }
        Ok(None)
    }
}

impl ReadAs<'_> {
    /// The line of an event as the reader may know of it: who sees its item, and the items that it names. A note that names files is only
    /// for the owner of the item or of the store. None of one of which the reader may not know.
    ///
    /// # Errors
    /// The index or the tree cannot be read.
    pub fn as_told(
        &self,
        reader: &dyn Actor,
        event: &EventRow,
    ) -> Result<Option<String>, ArchiveError> {
        let Some(told) = Told::parse(&event.line) else {
            return Ok(None);
        };
        for names in told.named() {
            if !self.is_shown(&Names::from(names))? {
                return Ok(None);
            }
        }
        let is_whole = !told.names_files() || self.is_owner(reader, &told.item);
        Ok(Some(if is_whole {
            told.line
        } else {
            told.without_notes()
        }))
    }

    /// Whether an item or the store is the user's.
    fn is_owner(&self, user: &dyn Actor, item: &str) -> bool {
        let of_item = || {
            let place = Place::of(&Names::from(Ibi::parse(item).ok()?));
            let item = self.tree.open_far(place.as_str().as_bytes(), OFlags::PATH);
            rustix::fs::fstat(item.ok()?).ok()
        };
        let store = rustix::fs::fstat(self.tree.root()).ok();
        let owns = |found: Option<Stat>| found.is_some_and(|it| user.owns(it.st_uid));
        owns(store) || owns(of_item())
    }
}

/// Mode, owner and group of a directory.
type Rights = (u32, u32, u32);

pub(super) fn log_untold(kind: EventKind, told: Result<(), ArchiveError>) {
    if let Err(error) = told {
        log::warn!("history has no event '{}': {error}", kind.word());
    }
}

/// Whether this is a store that keeps a history.
pub fn keeps_history(tree: &Tree) -> bool {
    !tree.is_mount() && facts_of(tree).is_ok_and(|facts| facts.history)
}

/// Leaves an event of a store for the process that writes its log: for one that has not opened the store for changes. Does
/// nothing if the store keeps no history.
pub fn leave_event(tree: &Tree, by: By, kind: EventKind, item: Option<&Names>, note: &str) {
    if keeps_history(tree) {
        leave(tree, by, kind, item, note);
    }
}

fn leave(tree: &Tree, by: By, kind: EventKind, item: Option<&Names>, note: &str) {
    let line = Teller::default().line(by, kind, item, note, None);
    let left = log_files::leave(tree.root(), &line);
    log_untold(kind, left.map_err(ArchiveError::from));
}

/// The events that were left, in the order of their times, and the names of files that have none.
pub(super) fn events_in(left: &LeftLines) -> Result<(Vec<Logged>, Vec<String>), LogFileError> {
    let (mut events, mut refused) = (Vec::new(), Vec::new());
    left.each(&mut |name, line| {
        let told = line.as_ref().and_then(|line| Told::parse(&line.text));
        match line.zip(told) {
            Some((line, told)) => events.push((told.time, logged(line))),
            None => refused.push(name.to_owned()),
        }
    })?;
    events.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok((
        events.into_iter().map(|(_, event)| event).collect(),
        refused,
    ))
}

/// A line as the index gets it.
fn logged(line: LogLine) -> Logged {
    Logged {
        salt: line.salt,
        line: line.text,
    }
}

/// Opens the log of a store for reading.
///
/// # Errors
/// The store keeps no log, or it is damaged.
pub fn log_of(store: &Path) -> Result<LogReader, ArchiveError> {
    let tree = Tree::open_as_it_is(store)?;
    LogReader::open(tree.root())?.ok_or_else(|| ArchiveError::Log {
        why: message!("{store} keeps no log", store = store.display()),
    })
}

/// An event as a line, with what its own line says to the reader.
#[must_use]
pub fn line_of_event(event: &EventRow, told: &str) -> Line {
    let line = Line::new("event").with("number", event.number);
    line.with_all("logged", event.logged)
        .with("entry", Digest(entry(&event.salt, &event.line)))
        .with("line", told)
}

/// The event of a line; None of another one.
#[must_use]
pub fn event_in(line: &Line) -> Option<EventRow> {
    Some(EventRow {
        number: line.get("number")?.parse().ok()?,
        logged: line.get("logged").and_then(|number| number.parse().ok()),
        salt: [0; SALT],
        line: line.get("line")?.to_owned(),
    })
}

/// The same for a package.
#[must_use]
pub fn premis_event_in(line: &Line) -> Option<PremisEvent> {
    Some(PremisEvent {
        entry: Digest::parse(line.get("entry")?.as_bytes())?.0,
        told: Told::parse(line.get("line")?)?,
    })
}

impl Keeper<'_> {
    /// Ends the history of a process: all its events are in the log.
    pub(super) fn end_history(&self) {
        if let Err(error) = self.append_history() {
            log::warn!("events are taken to the log at the next start: {error}");
        }
    }
}

/// Runs a thread that takes the events of a mount to the log, until the Archive is closed.
///
/// # Errors
/// There can be no more threads.
pub fn keep_log(archive: &Arc<Archive>) -> std::io::Result<()> {
    let archive = Arc::downgrade(archive);
    processors::spawn_unbound("log", move || {
        act_as_process();
        while let Some(archive) = archive.upgrade() {
            let taken = archive.append_history();
            drop(archive);
            std::thread::sleep(match taken {
                Ok(()) => INTERVAL,
                Err(error) => {
                    log::warn!("events are not taken to the log: {error}");
                    AFTER_FAILURE
                }
            });
        }
    })
}

fn line_of(event: &EventRow) -> LogLine {
    let salt: [u8; SALT] = event.salt;
    LogLine {
        salt,
        text: event.line.clone(),
    }
}

#[cfg(test)]
mod tests;
