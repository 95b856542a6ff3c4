//! Reads the log as it is in one checkpoint, beside a writer.

use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use super::error::LogFileError;
use super::files::{CHECKPOINT, LogFiles, PUBLIC, PUBLIC_KEY, WITNESSED, Writing, leaves, shown};
use super::keys::{OldKey, old_keys, public_key};
use super::line::LogLine;
use super::months;
use crate::formats::tlog::checkpoint::Checkpoint;
use crate::formats::tlog::merkle::{self, Hash, leaf};
use crate::formats::tlog::note::{Note, VerifierKey};
use crate::formats::tlog::proof::Proof;
use crate::formats::tlog::tile::{Tile, WIDTH};

/// The directory of checkpoints that were stamped, each with its stamp in a file beside it.
const STAMPS: &str = "stamps";
const STAMP: &str = ".tsr";

/// The log of a store as it was when it was opened.
#[derive(Debug)]
pub struct LogReader {
    pub(super) files: LogFiles,
    key: VerifierKey,
    note: Note,
    checkpoint: Checkpoint,
}

impl LogReader {
    /// Opens the log. None if there is none, or one that is just being made.
    ///
    /// # Errors
    /// The checkpoint is missing or not signed by the key, or one of them cannot be read.
    pub fn open(store: BorrowedFd<'_>) -> Result<Option<LogReader>, LogFileError> {
        let Some(files) = LogFiles::open(store)? else {
            return Ok(None);
        };
        if months::is_none_yet(&files)? {
            return Ok(None);
        }
        let read_key = || {
            let path = shown(PUBLIC_KEY);
            public_key(&files)?.ok_or(LogFileError::Missing { path })
        };
        let mut key = read_key()?;
        let checkpoint = match files.checkpoint(CHECKPOINT, &[&key]) {
            // The log has got another key meanwhile.
            Err(LogFileError::Refused { .. }) => {
                key = read_key()?;
                files.checkpoint(CHECKPOINT, &[&key])?
            }
            read => read?,
        };
        Ok(checkpoint.map(|(note, checkpoint)| LogReader {
            files,
            key,
            note,
            checkpoint,
        }))
    }

    /// The key that checks the checkpoint.
    pub fn key(&self) -> &VerifierKey {
        &self.key
    }

    /// The signed checkpoint.
    pub fn note(&self) -> &Note {
        &self.note
    }

    /// The checkpoint.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The keys that the log had before, the oldest first.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn old_keys(&self) -> Result<Vec<OldKey>, LogFileError> {
        old_keys(&self.files)
    }

    /// The key of the log with which a checkpoint says to be signed: an old one only if the log was as the checkpoint says
    /// while it had that key. It may be another one's by now.
    ///
    /// # Errors
    /// The log never was so, or cannot be read.
    pub fn key_of(&self, note: &Note) -> Result<VerifierKey, LogFileError> {
        let mut old = self.old_keys()?.into_iter();
        let old = old.find(|old| note.has_one_of(&old.key) && !note.has_one_of(&self.key));
        let Some(old) = old else {
            return Ok(self.key.clone());
        };
        let found = Checkpoint::open(note, &old.key);
        let found = found.is_ok_and(|it| it.size <= old.last.size && self.was(&it));
        let size = old.last.size;
        found
            .then_some(old.key)
            .ok_or(LogFileError::OldKey { size })
    }

    /// Whether the log was as a checkpoint says.
    pub(super) fn was(&self, checkpoint: &Checkpoint) -> bool {
        match checkpoint.size {
            0 => checkpoint.root == merkle::empty(),
            size if size > self.checkpoint.size => false,
            size => self.part(0, size).is_ok_and(|root| root == checkpoint.root),
        }
    }

    /// The last checkpoint that witnesses have cosigned, with their signatures. None if there is none.
    ///
    /// # Errors
    /// It is not signed by a key of the log, or cannot be read.
    pub fn witnessed(&self) -> Result<Option<(Note, Checkpoint)>, LogFileError> {
        let old = self.old_keys()?;
        let keys: Vec<_> = [&self.key]
            .into_iter()
            .chain(old.iter().map(|it| &it.key))
            .collect();
        self.files.checkpoint(WITNESSED, &keys)
    }

    /// Keeps a checkpoint that witnesses have cosigned.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_witnessed(&self, note: &Note) -> Result<(), LogFileError> {
        let mut writing = Writing::to(&self.files);
        writing.file(WITNESSED, note.to_string().as_bytes(), PUBLIC)?;
        writing.sync().map(drop)
    }

    /// Whether there is a time stamp of the log with as many entries as it has.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn is_stamped(&self) -> Result<bool, LogFileError> {
        Ok(self.files.file(&self.stamp_path(STAMP))?.is_some())
    }

    /// Keeps a time stamp, and the signed checkpoint that it is of.
    ///
    /// # Errors
    /// One of them cannot be written.
    pub fn keep_stamp(&self, note: &Note, stamp: &[u8]) -> Result<(), LogFileError> {
        let mut writing = Writing::to(&self.files);
        writing.file(&self.stamp_path(""), note.to_string().as_bytes(), PUBLIC)?;
        writing.file(&self.stamp_path(STAMP), stamp, PUBLIC)?;
        writing.sync().map(drop)
    }

    fn stamp_path(&self, end: &str) -> String {
        format!("{STAMPS}/{}{end}", self.checkpoint.size)
    }

    /// Proves that an entry is in the log, by the checkpoint that witnesses have cosigned if it is there already. The salt and
    /// the text of its line are in `extra`.
    ///
    /// # Errors
    /// There is no such entry, or its line or a tile is missing or damaged.
    pub fn prove(&self, number: u64) -> Result<Proof, LogFileError> {
        let line = self.line(number)?;
        let witnessed = self.witnessed()?.filter(|(_, it)| number < it.size);
        let own = || (self.note.clone(), self.checkpoint.clone());
        let (note, Checkpoint { size, root, .. }) = witnessed.unwrap_or_else(own);
        let hashes = merkle::inclusion(number, size, &mut |begin, end| self.part(begin, end))?;
        let entry = leaf(&line.entry());
        merkle::check_inclusion((number, &entry), &hashes, (size, &root))
            .map_err(|_| LogFileError::Unproved { number })?;
        Ok(Proof {
            extra: Some([&line.salt, line.text.as_bytes()].concat()),
            index: number,
            hashes,
            checkpoint: note,
        })
    }

    /// Returns the hashes that prove that the log has grown from one of an older size.
    ///
    /// # Errors
    /// The log is smaller, or a tile is missing or damaged.
    pub fn consistency(&self, older: u64) -> Result<Vec<Hash>, LogFileError> {
        match older {
            0 => Ok(Vec::new()),
            older if older > self.checkpoint.size => Err(LogFileError::Shorter { older }),
            older => merkle::consistency(older, self.checkpoint.size, &mut |begin, end| {
                self.part(begin, end)
            }),
        }
    }

    /// Reads the line of an entry.
    ///
    /// # Errors
    /// There is no such entry, or its line is missing or damaged.
    pub fn line(&self, number: u64) -> Result<LogLine, LogFileError> {
        let mut found = None;
        self.lines(number, &mut |_, line| {
            found = Some(line);
            ControlFlow::Break(())
        })?;
        found.ok_or(LogFileError::NoEntry { number })
    }

    /// Calls `each` with the number and the line of each entry from one on, until it breaks.
    ///
    /// # Errors
    /// A line is missing, or is not the one of its entry; a tile is missing or damaged.
    pub fn lines(
        &self,
        first: u64,
        each: &mut dyn FnMut(u64, LogLine) -> ControlFlow<()>,
    ) -> Result<(), LogFileError> {
        let (mut hashes, mut failed) = (Vec::new(), None);
        months::each_line(
            &self.files,
            first..self.checkpoint.size,
            &mut |number, line| {
                let at = (number % WIDTH as u64) as usize;
                if at == 0 || hashes.is_empty() {
                    match self.tile(0, number / WIDTH as u64) {
                        Ok((_, read)) => hashes = read,
                        Err(error) => failed = Some(error),
                    }
                }
                if failed.is_none() && hashes.get(at) != Some(&leaf(&line.entry())) {
                    failed = Some(LogFileError::Line { number });
                }
                match failed {
                    Some(_) => ControlFlow::Break(()),
                    None => each(number, line),
                }
            },
        )?;
        failed.map_or(Ok(()), Err)
    }

    /// Computes the hash of the entries from a number up to another one, the first of which is a multiple of the power of
    /// two that spans both.
    fn part(&self, begin: u64, end: u64) -> Result<Hash, LogFileError> {
        let count = end - begin;
        if !count.is_power_of_two() {
            let middle = begin + (1 << count.ilog2());
            let (left, right) = (self.part(begin, middle)?, self.part(middle, end)?);
            return Ok(merkle::node(&left, &right));
        }
        // The highest level whose hashes are not of more entries.
        let level = count.ilog2() / WIDTH.ilog2();
        let unit = level * WIDTH.ilog2();
        let (first, hashes) = (begin >> unit, (count >> unit) as usize);
        let number = first / WIDTH as u64;
        let at = (first % WIDTH as u64) as usize;
        let (path, all) = self.tile(level, number)?;
        let part = all.get(at..at + hashes).and_then(merkle::root);
        part.ok_or(LogFileError::Damaged { path })
    }

    /// Reads the hashes of a tile. Returns its path, too.
    fn tile(&self, level: u32, number: u64) -> Result<(String, Vec<Hash>), LogFileError> {
        let in_level = self.checkpoint.size >> (level * WIDTH.ilog2());
        let tile = Tile {
            level: u8::try_from(level).ok(),
            number,
            width: WIDTH.min((in_level - number * WIDTH as u64) as usize),
        };
        let all = self.files.hashes(tile).or_else(|error| {
            let entries = months::derived(&self.files, tile, error);
            entries.map(|entries| leaves(&entries))
        })?;
        Ok((shown(&tile.to_string()), all))
    }
}
