//! The files of the log that all may read, for those who check it: the checkpoint, its key and the tiles, which have nothing
//! but hashes. What the log is about is in other files, which are never opened here.

use std::fmt;
use std::io::Read as _;

use rustix::io::Errno;

use super::{Archive, ArchiveError};
use crate::archive::log_files::LOG_DIRECTORY;
use crate::archive::tree::{Action, Tree};
use crate::formats::tlog::merkle::Hash;
use crate::formats::tlog::tile::{Tile, WIDTH};
use crate::os::directory::Directory;

/// The longest text, in bytes.
const LONGEST: usize = 64 << 10;

/// A file of a log that all may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFile {
    /// The signed checkpoint.
    Checkpoint,
    /// The last one that witnesses have cosigned.
    Witnessed,
    /// The key that checks it.
    Key,
    /// The keys that did before.
    OldKeys,
    /// A tile, or a bundle of entries.
    Tile(Tile),
}

impl LogFile {
    /// The file with a path in the log.
    #[must_use]
    pub fn parse(path: &str) -> Option<LogFile> {
        match path {
            "checkpoint" => Some(LogFile::Checkpoint),
            "witnessed" => Some(LogFile::Witnessed),
            "key.pub" => Some(LogFile::Key),
            "old-keys" => Some(LogFile::OldKeys),
            path => Tile::parse(path).map(LogFile::Tile),
        }
    }
}

impl fmt::Display for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogFile::Checkpoint => f.write_str("checkpoint"),
            LogFile::Witnessed => f.write_str("witnessed"),
            LogFile::Key => f.write_str("key.pub"),
            LogFile::OldKeys => f.write_str("old-keys"),
            LogFile::Tile(tile) => tile.fmt(f),
        }
    }
}

/// The open directory of a log.
#[derive(Debug)]
pub struct PublishedLog(Directory);

impl PublishedLog {
    /// Opens the log of a store, whose directory only its owner may enter. None if there is none.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(tree: &Tree) -> Result<Option<PublishedLog>, ArchiveError> {
        let opened = Directory::reopened(tree.root()).and_then(|it| it.directory(LOG_DIRECTORY));
        match opened {
            Ok(log) => Ok(Some(PublishedLog(log))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(tree.error(Action::Open, LOG_DIRECTORY, errno).into()),
        }
    }

    /// Reads a file. None if the log has no such file. A tile that has been replaced by a wider one begins like it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self, file: LogFile) -> Result<Option<Vec<u8>>, Errno> {
        let LogFile::Tile(tile) = file else {
            return self.bytes(&file.to_string(), LONGEST);
        };
        let part = match tile.level {
            Some(_) => size_of::<Hash>(),
            None => size_of::<Hash>() + 2,
        };
        for width in tile.width..=WIDTH {
            let path = Tile { width, ..tile }.to_string();
            if let Some(mut bytes) = self.bytes(&path, WIDTH * part)? {
                bytes.truncate(tile.width * part);
                return Ok((bytes.len() == tile.width * part).then_some(bytes));
            }
        }
        Ok(None)
    }

    fn bytes(&self, path: &str, longest: usize) -> Result<Option<Vec<u8>>, Errno> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut names = above.split('/').filter(|name| !name.is_empty());
        let directory = self
            .0
            .again()
            .and_then(|log| names.try_fold(log, |above, name| above.directory(name)));
        let file = match directory.and_then(|it| it.file(name)) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        let read = file.take(longest as u64).read_to_end(&mut bytes);
        let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        read.map(|_| Some(bytes)).map_err(errno)
    }
}

impl Archive {
    /// The log of the store, see [`PublishedLog::open`].
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn published_log(&self) -> Result<Option<PublishedLog>, ArchiveError> {
        PublishedLog::open(&self.tree)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::TestArchive;
    use super::*;

    #[test]
    fn what_is_secret_has_no_path() {
        for path in [
            "checkpoint",
            "witnessed",
            "key.pub",
            "old-keys",
            "tile/0/000.p/7",
        ] {
            let file = LogFile::parse(path).map(|it| it.to_string());
            assert_eq!(file.as_deref(), Some(path));
        }
        for path in [
            "key",
            "key.next",
            "events/2026-01.txt",
            "tile",
            "../archive.ibi",
            "",
        ] {
            assert_eq!(LogFile::parse(path), None, "{path}");
        }
    }

    #[test]
    fn a_tile_that_was_replaced_is_the_beginning_of_a_wider_one() {
        let archive = TestArchive::new();
        assert!(archive.published_log().expect("read").is_none());
        let path = archive.path().join(LOG_DIRECTORY);
        std::fs::create_dir_all(path.join("tile/0/000.p")).expect("made");
        std::fs::create_dir_all(path.join("tile/entries")).expect("made");
        let bytes: Vec<u8> = (0..=255).collect();
        std::fs::write(path.join("tile/0/000.p/3"), &bytes[..96]).expect("written");
        std::fs::write(path.join("tile/0/001"), bytes.repeat(32)).expect("written");
        std::fs::write(path.join("tile/entries/000"), &bytes[..67]).expect("written");
        let log = archive.published_log().expect("read").expect("a log");
        let read = |path: &str| {
            let file = LogFile::parse(path).expect("a path");
            log.read(file).expect("read")
        };
        assert_eq!(read("tile/0/000.p/3").as_deref(), Some(&bytes[..96]));
        assert_eq!(read("tile/0/000.p/1").as_deref(), Some(&bytes[..32]));
        assert_eq!(read("tile/0/000.p/4"), None);
        assert_eq!(read("tile/0/000"), None);
        assert_eq!(read("tile/0/001.p/8").as_deref(), Some(bytes.as_slice()));
        assert_eq!(read("tile/entries/000.p/1").as_deref(), Some(&bytes[..34]));
        // Cut: it has not all of the second.
        assert_eq!(read("tile/entries/000.p/2"), None);
        assert_eq!(read("checkpoint"), None);
    }
}
