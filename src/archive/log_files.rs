//! The files of the transparency log of a store, in its directory `log`.
//!
//! The log is one of C2SP, so that programs of others check it: `checkpoint`, `key.pub`, `old-keys`, tiles and bundles of entries in
//! `tile`. An entry is a hash of a line and of its salt, so that the tiles can be public; the lines are in files of a month in
//! `events`, which only the owner reads, as only the owner reads `key`.
//!
//! What is in the checkpoint is on disk. What a crash left beyond it is cut off when the log is opened for writing, and comes
//! again from the caller. Knows no index and no events, only their lines.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`error`]: the reasons for which the log cannot be read or written.
//! - [`mod@line`]: a line and its entry.
//! - [`files`]: the files below the directory, read with bounds and without following links.
//! - [`months`]: the files of lines.
//! - [`keys`]: the key that signs, and those before it.
//! - [`told`]: lines that wait for the writer, each in a file.
//! - [`writer`]: appends lines.
//! - [`reader`]: reads lines and makes proofs, beside a writer.
//! - [`check`]: computes all again.

mod check;
mod error;
mod files;
mod keys;
mod line;
mod months;
mod reader;
mod told;
mod writer;

pub(crate) use check::is_usable;
pub(crate) use error::LogFileError;
pub(crate) use files::{CHECKPOINT, LOG_DIRECTORY};
pub(crate) use line::LogLine;
pub(crate) use reader::LogReader;
pub(crate) use told::{LeftLines, leave};
pub(crate) use writer::LogWriter;

#[cfg(test)]
mod tests;
