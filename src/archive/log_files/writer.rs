//! Appends lines to the log.
//!
//! Lines, and tiles and bundles that have become whole, are on disk before the checkpoint that counts them. The last tile and
//! bundle may not be: they are made again from the lines. At an error and after a crash the log is what its checkpoint says:
//! lines beyond it are cut off, and tiles beyond it are written again.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

use super::error::LogFileError;
use super::files::{CHECKPOINT, LogFiles, PUBLIC, Writing, is_derived, last_bundle, leaves, shown};
use super::keys::{self, NEXT_KEY, key_of, next_key, write};
use super::line::LogLine;
use super::months;
use crate::formats::tlog::checkpoint::Checkpoint;
use crate::formats::tlog::merkle::Hash;
use crate::formats::tlog::note::{Note, SignerKey, VerifierKey};
use crate::formats::tlog::tile::{Edge, Tile, WIDTH};

/// The most paths that are remembered to be on disk.
const MOST_KNOWN: usize = 1_000;

/// The log of a store, open for writing. One process has it.
#[derive(Debug)]
pub struct LogWriter {
    files: LogFiles,
    key: SignerKey,
    edge: Edge,
    /// The entries of the last bundle, where it is not whole.
    bundle: Vec<Hash>,
    /// Paths whose names are on disk.
    known: BTreeSet<String>,
    /// Whether the files may be other than the edge, after an error.
    pub(super) is_unsure: bool,
}

impl LogWriter {
    /// Opens the log, or makes it with this name where there is none, and cuts off what a crash left beyond its checkpoint.
    ///
    /// # Errors
    /// A file of the log is missing or damaged, or the log has another key.
    pub fn open(store: BorrowedFd<'_>, origin: &str) -> Result<LogWriter, LogFileError> {
        let files = LogFiles::open_or_make(store)?;
        let is_new = months::is_none_yet(&files)?;
        let mut log = LogWriter {
            key: key_of(&files, origin, is_new)?,
            files,
            edge: Edge::default(),
            bundle: Vec::new(),
            known: BTreeSet::new(),
            is_unsure: false,
        };
        if is_new {
            log.sign(&Edge::default())?;
        }
        log.recover()?;
        Ok(log)
    }

    /// The number of entries in the checkpoint.
    pub fn size(&self) -> u64 {
        self.edge.size()
    }

    /// Reads the last lines, fewer if there are not as many.
    ///
    /// # Errors
    /// A line is missing or damaged.
    pub fn last(&self, count: u64) -> Result<Vec<LogLine>, LogFileError> {
        let mut lines = Vec::new();
        let numbers = self.size().saturating_sub(count)..self.size();
        months::each_line(&self.files, numbers, &mut |_, line| {
            lines.push(line);
            ControlFlow::Continue(())
        })?;
        Ok(lines)
    }

    /// Appends lines to the file of a month, `YYYY-MM`. When it returns they are on disk, and in the checkpoint. After an
    /// error the same call can be made again.
    ///
    /// # Errors
    /// Nothing is counted, unless all was written and the last directory could not be synced; the next call sees that.
    pub fn append(&mut self, month: &str, lines: &[LogLine]) -> Result<(), LogFileError> {
        let lines = if self.is_unsure {
            self.not_counted(lines)?
        } else {
            lines
        };
        if lines.is_empty() {
            return Ok(());
        }
        self.is_unsure = true;
        let mut writing = Writing::to(&self.files);
        if self.known.len() < MOST_KNOWN {
            writing.known = std::mem::take(&mut self.known);
        }
        months::append(&self.files, &mut writing, month, (self.size(), lines))?;
        let (edge, bundle) = self.grow(&mut writing, lines)?;
        let (mut written, known) = writing.sync()?;
        written.extend(self.write_last(&edge, &bundle)?);
        self.sign(&edge)?;
        let before = self.partial_tiles();
        (self.edge, self.bundle, self.known, self.is_unsure) = (edge, bundle, known, false);
        self.files.remove_replaced(&before, &written);
        Ok(())
    }

    /// Reads the log again after an error. Returns the lines that the checkpoint does not count.
    fn not_counted<'a>(&mut self, lines: &'a [LogLine]) -> Result<&'a [LogLine], LogFileError> {
        let before = self.size();
        self.recover()?;
        let count = self.size().saturating_sub(before);
        let (counted, rest) = lines.split_at(lines.len().min(count as usize));
        let is_same = self.last(count)? == counted;
        Ok(if is_same { rest } else { lines })
    }

    /// Reads what the checkpoint counts, and cuts off the rest.
    fn recover(&mut self) -> Result<(), LogFileError> {
        self.files.sync("")?;
        let path = shown(CHECKPOINT);
        let checkpoint = self.files.checkpoint(CHECKPOINT, &[self.key.verifier()])?;
        let (_, checkpoint) = checkpoint.ok_or(LogFileError::Missing { path })?;
        let found = self.files.edge(&checkpoint);
        (self.edge, self.bundle) = found.or_else(|error| self.mended(&checkpoint, error))?;
        months::cut(&self.files, checkpoint.size)?;
        self.is_unsure = false;
        Ok(())
    }

    /// Makes the edge again from the lines, where the last tile or bundle is not that of the checkpoint because of `error`, and
    /// writes both again. That error, if the lines are not those of the checkpoint, either.
    fn mended(
        &self,
        of: &Checkpoint,
        error: LogFileError,
    ) -> Result<(Edge, Vec<Hash>), LogFileError> {
        let Some(tile) = last_bundle(of.size) else {
            return Err(error);
        };
        let bundle = months::derived(&self.files, tile, error.clone())?;
        let edge = Edge::read(of.size, |tile| match tile.level {
            Some(0) => Ok(leaves(&bundle)),
            _ => self.files.hashes(tile),
        })?;
        if edge.root() != of.root {
            return Err(error);
        }
        self.write_last(&edge, &bundle)?;
        Ok((edge, bundle))
    }

    /// Writes the last tile and bundle, which need not be on disk, where they are not whole. Returns them.
    fn write_last(&self, edge: &Edge, bundle: &[Hash]) -> Result<Vec<Tile>, LogFileError> {
        let mut writing = Writing::to(&self.files);
        let tiles = edge.partial().filter(|(tile, _)| is_derived(*tile));
        for (tile, hashes) in tiles.chain(last_bundle(edge.size()).map(|it| (it, bundle))) {
            writing.tile(tile, hashes)?;
        }
        Ok(writing.tiles)
    }

    /// Writes the other tiles and bundles with the entries of more lines. Returns the edge and the last bundle.
    fn grow(
        &self,
        writing: &mut Writing<'_>,
        lines: &[LogLine],
    ) -> Result<(Edge, Vec<Hash>), LogFileError> {
        let (mut edge, mut bundle) = (self.edge.clone(), self.bundle.clone());
        for line in lines {
            let entry = line.entry();
            edge.add(&entry, |tile, hashes| writing.tile(tile, hashes))?;
            bundle.push(entry);
            if bundle.len() == WIDTH {
                let number = edge.size() / WIDTH as u64 - 1;
                let (level, width) = (None, WIDTH);
                let tile = Tile {
                    level,
                    number,
                    width,
                };
                writing.tile(tile, &bundle)?;
                bundle.clear();
            }
        }
        let before = self.partial_tiles();
        let is_new = |tile: &Tile| !is_derived(*tile) && !before.contains(tile);
        for (tile, hashes) in edge.partial().filter(|(tile, _)| is_new(tile)) {
            writing.tile(tile, hashes)?;
        }
        Ok((edge, bundle))
    }

    /// The tiles and the bundle that are not whole.
    fn partial_tiles(&self) -> Vec<Tile> {
        let tiles = self.edge.partial().map(|(tile, _)| tile);
        tiles.chain(last_bundle(self.size())).collect()
    }

    /// The public part of the key that the log gets next, which is drawn if it was not yet.
    ///
    /// # Errors
    /// It cannot be written or read.
    pub fn next_key(&self) -> Result<VerifierKey, LogFileError> {
        let next = next_key(&self.files, self.key.verifier().name())?;
        Ok(next.verifier().clone())
    }

    /// Gives the log the key that was drawn for it, unless another process has. The checkpoint is signed with both keys until
    /// the log grows.
    ///
    /// # Errors
    /// A file cannot be written. The log is that of the one or the other key when it is opened again.
    pub fn replace_key(&mut self, drawn: &VerifierKey) -> Result<(), LogFileError> {
        if self.key.verifier() == drawn {
            return Ok(());
        }
        let next = next_key(&self.files, self.key.verifier().name())?;
        if next.verifier() != drawn {
            let path = shown(NEXT_KEY);
            return Err(LogFileError::Missing { path });
        }
        let last = self.checkpoint_of(&self.edge);
        keys::replace(&self.files, &self.key, &next, &last)?;
        self.key = next;
        Ok(())
    }

    fn checkpoint_of(&self, edge: &Edge) -> Checkpoint {
        Checkpoint {
            origin: self.key.verifier().name().to_owned(),
            size: edge.size(),
            root: edge.root(),
        }
    }

    /// Puts a checkpoint of this edge in place.
    fn sign(&self, edge: &Edge) -> Result<(), LogFileError> {
        let text = self.checkpoint_of(edge).to_string();
        let signatures = vec![self.key.signature_of(&text)];
        let note = Note { text, signatures }.to_string();
        write(&self.files, CHECKPOINT, &note, PUBLIC)
    }
}
