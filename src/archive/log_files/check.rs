//! Computes the whole log again from its lines, and compares it with the files.

use std::convert::Infallible;
use std::os::fd::BorrowedFd;

use super::error::LogFileError;
use super::files::{CHECKPOINT, PUBLIC_KEY, shown};
use super::keys::{OLD_KEYS, signing_key};
use super::line::LogLine;
use super::months::{self, EVENTS, Lines};
use super::reader::LogReader;
use crate::formats::tlog::merkle::{Hash, leaf};
use crate::formats::tlog::note::VerifierKey;
use crate::formats::tlog::tile::{Edge, Tile, WIDTH};
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The most faults that are returned.
const MOST_FAULTS: usize = 100;

/// A fault in the files of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFault {
    /// The line of an entry is not the one that was logged.
    Forged {
        /// The number of the entry.
        number: u64,
    },
    /// There is no line of an entry, and perhaps none of those after it.
    Hole {
        /// The number of the entry.
        number: u64,
    },
    /// A tile or a bundle is missing, or is not that of the entries.
    Tile {
        /// Its path in the store.
        path: String,
    },
    /// The entries are not those of the checkpoint.
    Root,
    /// The log was never as the last checkpoint that witnesses have cosigned.
    Witnessed,
}

impl Localize for LogFault {
    fn message(&self) -> Message {
        match self {
            LogFault::Forged { number } => message!(
                "the line of entry {number} in 'log/events' is not the one that was logged",
                number
            ),
            LogFault::Hole { number } => {
                message!("there is no line of entry {number} in 'log/events'", number)
            }
            LogFault::Tile { path } => message!(
                "'{path}' is missing, damaged, or not that of the entries",
                path
            ),
            LogFault::Root => message!("the entries are not those of the checkpoint"),
            LogFault::Witnessed => message!(
                "the log was never as 'log/witnessed' says, which witnesses have cosigned: it was set back, or is another one"
            ),
        }
    }
}

display_message!(LogFault);

/// Whether there is a log to which entries can be added, or none. The lines are not read.
pub(crate) fn is_usable(store: BorrowedFd<'_>) -> bool {
    let log = LogReader::open(store);
    log.is_ok_and(|log| log.is_none_or(|log| log.files.edge(log.checkpoint()).is_ok()))
}

impl LogFault {
    /// The path in the store of what has the fault.
    pub fn path(&self) -> String {
        match self {
            LogFault::Forged { .. } | LogFault::Hole { .. } => shown(EVENTS),
            LogFault::Tile { path } => path.clone(),
            LogFault::Root | LogFault::Witnessed => shown(CHECKPOINT),
        }
    }
}

impl LogReader {
    /// Checks that the key in the store is the one that checks the checkpoint, and that the log went from each key to the next.
    ///
    /// # Errors
    /// A key is missing, damaged, or another one; the log was not as the last checkpoint of an old key says.
    pub fn check_keys(&self) -> Result<(), LogFileError> {
        let mut old = self.old_keys()?;
        let key = signing_key(&self.files, self.key().name())?;
        // That of a crash while the log got another key.
        let is_old = |key: &VerifierKey| old.iter().any(|old| old.key == *key);
        if key.verifier() != self.key() && !is_old(self.key()) {
            let path = shown(PUBLIC_KEY);
            return Err(LogFileError::Damaged { path });
        }
        old.retain(|old| old.key != *self.key());
        let next = old.iter().skip(1).map(|it| &it.key).chain([self.key()]);
        for (old, next) in old.iter().zip(next) {
            if old.note.check(next).is_err() || !self.was(&old.last) {
                let path = shown(OLD_KEYS);
                return Err(LogFileError::Damaged { path });
            }
        }
        Ok(())
    }

    /// Reads the entries of a bundle, which begins at this multiple of its width. Fewer if the log ends there.
    ///
    /// # Errors
    /// The bundle is missing or damaged.
    pub fn entries(&self, number: u64) -> Result<Vec<Hash>, LogFileError> {
        let begin = number * WIDTH as u64;
        let width = self.checkpoint().size.saturating_sub(begin);
        let width = WIDTH.min(width as usize);
        let tile = Tile {
            level: None,
            number,
            width,
        };
        let read = self.files.entries(tile);
        read.or_else(|error| months::derived(&self.files, tile, error))
    }

    /// Computes all again: the entries of the lines, the tiles and bundles, and the root in the checkpoint. Returns the first
    /// faults.
    ///
    /// # Errors
    /// A file of lines, or the checkpoint that witnesses have cosigned, cannot be read.
    pub fn check(&self) -> Result<Vec<LogFault>, LogFileError> {
        let mut check = Check {
            log: self,
            lines: Lines::from(&self.files, 0)?,
            next: None,
            is_in_hole: false,
            faults: Faults::default(),
        };
        let size = self.checkpoint().size;
        let mut edge = Edge::default();
        while edge.size() < size && check.faults.0.len() < MOST_FAULTS {
            check.add_bundle(&mut edge, size)?;
        }
        let mut faults = check.faults;
        if edge.size() == size {
            for (tile, hashes) in edge.partial() {
                faults.compare(self, tile, hashes);
            }
            if edge.root() != self.checkpoint().root {
                faults.add(LogFault::Root);
            }
        }
        let witnessed = self.witnessed()?;
        if faults.0.is_empty() && witnessed.is_some_and(|(_, it)| !self.was(&it)) {
            faults.add(LogFault::Witnessed);
        }
        Ok(faults.0)
    }
}

/// The faults that were found.
#[derive(Default)]
struct Faults(Vec<LogFault>);

impl Faults {
    fn add(&mut self, fault: LogFault) {
        if self.0.len() < MOST_FAULTS && !self.0.contains(&fault) {
            self.0.push(fault);
        }
    }

    /// Adds a tile that is not as it should be, unless it is written again when the log is opened.
    fn add_tile(&mut self, log: &LogReader, tile: Tile) {
        if !log.files.is_cut(tile) {
            let path = shown(&tile.to_string());
            self.add(LogFault::Tile { path });
        }
    }

    /// Compares the hashes of a tile with its file.
    fn compare(&mut self, log: &LogReader, tile: Tile, hashes: &[Hash]) {
        if log.files.hashes(tile).ok().as_deref() != Some(hashes) {
            self.add_tile(log, tile);
        }
    }
}

/// A check on its way through the lines.
struct Check<'a> {
    log: &'a LogReader,
    lines: Lines<'a>,
    /// A line that belongs to an entry further on.
    next: Option<(u64, LogLine)>,
    is_in_hole: bool,
    faults: Faults,
}

impl Check<'_> {
    /// Checks the entries of the next bundle, and adds them to the edge.
    fn add_bundle(&mut self, edge: &mut Edge, size: u64) -> Result<(), LogFileError> {
        let number = edge.size() / WIDTH as u64;
        let width = WIDTH.min((size - edge.size()) as usize);
        let tile = |level| Tile {
            level,
            number,
            width,
        };
        let bundle = self.log.files.entries(tile(None));
        if bundle.is_err() {
            self.faults.add_tile(self.log, tile(None));
        }
        let bundle = bundle.unwrap_or_default();
        for at in 0..width {
            let number = edge.size();
            let bundled = bundle.get(at).copied();
            let line = self.entry_of(number, bundled)?;
            let entry = match (line, bundled) {
                (Some(line), Some(bundled)) if line != bundled => {
                    // The tile is the witness of one of them.
                    let leaves = self.log.files.hashes(tile(Some(0))).unwrap_or_default();
                    if leaves.get(at) == Some(&leaf(&line)) {
                        self.faults.add_tile(self.log, tile(None));
                        line
                    } else {
                        self.faults.add(LogFault::Forged { number });
                        bundled
                    }
                }
                (line, bundled) => line.or(bundled).unwrap_or_default(),
            };
            let (log, faults) = (self.log, &mut self.faults);
            let Ok(()) = edge.add(&entry, |tile, hashes| {
                faults.compare(log, tile, hashes);
                Ok::<(), Infallible>(())
            });
        }
        Ok(())
    }

    /// Computes the entry of the line of a number. None if there is no such line.
    fn entry_of(
        &mut self,
        number: u64,
        bundled: Option<Hash>,
    ) -> Result<Option<Hash>, LogFileError> {
        let forged = LogFault::Forged { number };
        loop {
            if self.next.is_none() {
                let Some(line) = self.lines.next()? else {
                    break;
                };
                self.next = LogLine::parse(&line);
            }
            let Some((found, line)) = self.next.take() else {
                self.faults.add(forged.clone());
                continue;
            };
            let entry = line.entry();
            // The number may be what was changed.
            if found == number || Some(entry) == bundled {
                if found != number {
                    self.faults.add(forged);
                }
                self.is_in_hole = false;
                return Ok(Some(entry));
            }
            if found > number {
                self.next = Some((found, line));
                break;
            }
            self.faults.add(LogFault::Forged { number: found });
        }
        // Something stands where the line should be, or there is a hole, which is reported once.
        let is_hole = !self.faults.0.contains(&forged);
        if is_hole && !self.is_in_hole {
            self.faults.add(LogFault::Hole { number });
        }
        self.is_in_hole = is_hole;
        Ok(None)
    }
}
