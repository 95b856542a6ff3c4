//! The files below the directory of the log, read with bounds and without following links, and made under temporary names.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::Mode;
use rustix::io::Errno;

use super::error::{LogFileError, errno_of, failed};
use crate::archive::tree::Action;
use crate::formats::tlog::LogError;
use crate::formats::tlog::checkpoint::Checkpoint;
use crate::formats::tlog::merkle::{Hash, leaf};
use crate::formats::tlog::note::{Note, VerifierKey};
use crate::formats::tlog::tile::{Edge, Tile, WIDTH, bundled, entries_in};
use crate::os::directory::{Directory, NOT_REGULAR};
use crate::os::opening;
use crate::os::writing::{self, Durability};

/// The directory of the log in a store.
pub const LOG_DIRECTORY: &str = "log";

/// The signed checkpoint.
pub const CHECKPOINT: &str = "checkpoint";

/// The key that checks it.
pub(super) const PUBLIC_KEY: &str = "key.pub";

/// The last checkpoint that witnesses have cosigned.
pub(super) const WITNESSED: &str = "witnessed";

/// The longest text of a key or a checkpoint, in bytes.
const LONGEST_TEXT: usize = 64 << 10;

/// The bytes of an entry in a bundle, with its length.
const BUNDLED: usize = size_of::<Hash>() + 2;

/// The modes of what all may read.
pub(super) const PUBLIC: u32 = 0o644;
const PUBLIC_DIRECTORY: u32 = 0o755;

/// The modes of what may name private items.
pub(super) const PRIVATE: u32 = 0o600;
pub(super) const PRIVATE_DIRECTORY: u32 = 0o700;

/// The open directory of the log.
#[derive(Debug)]
pub(super) struct LogFiles(Directory);

/// The path in the store of one in the log.
pub(super) fn shown(path: &str) -> String {
    format!("{LOG_DIRECTORY}/{path}")
}

/// The bundle of entries in which a log of this size ends. None if it is whole.
pub(super) fn last_bundle(size: u64) -> Option<Tile> {
    let (number, width) = (size / WIDTH as u64, (size % WIDTH as u64) as usize);
    (width > 0).then_some(Tile {
        level: None,
        number,
        width,
    })
}

/// Whether a tile or bundle is the last one, whose entries are those of the last lines: it is not synced, and where a power
/// cut has damaged it is written again from them.
pub(super) fn is_derived(tile: Tile) -> bool {
    tile.width < WIDTH && tile.level.unwrap_or_default() == 0
}

/// The hashes of the tile with these entries.
pub(super) fn leaves(entries: &[Hash]) -> Vec<Hash> {
    entries.iter().map(|entry| leaf(entry)).collect()
}

impl LogFiles {
    /// Opens the directory. None if there is none.
    pub(super) fn open(store: BorrowedFd<'_>) -> Result<Option<LogFiles>, LogFileError> {
        let opened = Directory::reopened(store).and_then(|store| store.directory(LOG_DIRECTORY));
        found(opened.map(LogFiles)).map_err(failed(Action::Open, LOG_DIRECTORY))
    }

    /// Opens the directory, and makes it where there is none.
    pub(super) fn open_or_make(store: BorrowedFd<'_>) -> Result<LogFiles, LogFileError> {
        let make = || {
            let store = Directory::reopened(store)?;
            let log = make_directory(&store, LOG_DIRECTORY, PUBLIC_DIRECTORY)?;
            store.sync().map(|()| LogFiles(log))
        };
        make().map_err(failed(Action::Make, LOG_DIRECTORY))
    }

    /// The directory itself.
    pub(super) fn own(&self) -> Result<Directory, Errno> {
        self.0.again()
    }

    /// Opens a directory. None if there is none.
    pub(super) fn directory(&self, path: &str) -> Result<Option<Directory>, LogFileError> {
        let mut names = path.split('/').filter(|name| !name.is_empty());
        let log = self.0.again();
        let opened = log.and_then(|log| names.try_fold(log, |above, name| above.directory(name)));
        found(opened).map_err(failed(Action::Open, &shown(path)))
    }

    /// Opens a file for reading. None if there is none.
    pub(super) fn file(&self, path: &str) -> Result<Option<File>, LogFileError> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.directory(above)? {
            Some(directory) => found(directory.file(name)).map_err(not_opened(path)),
            None => Ok(None),
        }
    }

    /// Reads a file. None if there is none.
    fn read(&self, path: &str, longest: usize) -> Result<Option<Vec<u8>>, LogFileError> {
        let Some(file) = self.file(path)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        let read = file.take(longest as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| failed(Action::Read, &shown(path))(errno_of(&error)))?;
        let damaged = LogFileError::Damaged { path: shown(path) };
        (bytes.len() <= longest)
            .then_some(Some(bytes))
            .ok_or(damaged)
    }

    /// Reads a key or the checkpoint. None if there is none.
    pub(super) fn text(&self, path: &str) -> Result<Option<String>, LogFileError> {
        let bytes = self.read(path, LONGEST_TEXT)?;
        let text = bytes.map(String::from_utf8).transpose();
        text.map_err(|_| LogFileError::Damaged { path: shown(path) })
    }

    /// Checks that a text is not too long to be read again.
    pub(super) fn check_length(path: &str, text: &str) -> Result<(), LogFileError> {
        let path = shown(path);
        let is_short = text.len() <= LONGEST_TEXT;
        is_short.then_some(()).ok_or(LogFileError::Full { path })
    }

    /// Puts a file in the place of another one, and waits until that is on disk.
    pub(super) fn rename(&self, from: &str, to: &str) -> Result<(), LogFileError> {
        match self.0.rename_over(from, &self.0, to) {
            Err(Errno::NOENT) => Err(LogFileError::Missing { path: shown(from) }),
            Err(errno) => Err(failed(Action::Rename, &shown(from))(errno)),
            Ok(()) => self.sync(""),
        }
    }

    /// Reads a checkpoint, and checks that the log has signed it with one of its keys. None if there is none.
    pub(super) fn checkpoint(
        &self,
        file: &str,
        keys: &[&VerifierKey],
    ) -> Result<Option<(Note, Checkpoint)>, LogFileError> {
        let Some(text) = self.text(file)? else {
            return Ok(None);
        };
        let path = shown(file);
        let opened = Note::parse(&text).and_then(|note| {
            let key = keys.iter().find(|key| note.has_one_of(key));
            let key = key.or(keys.first()).ok_or(LogError::NoLog)?;
            Checkpoint::open(&note, key).map(|checkpoint| (note, checkpoint))
        });
        let opened = opened.map_err(|error| LogFileError::Refused { path, error })?;
        Ok(Some(opened))
    }

    /// Reads the hashes of a tile.
    pub(super) fn hashes(&self, tile: Tile) -> Result<Vec<Hash>, LogFileError> {
        let bytes = self.tile(tile, size_of::<Hash>())?;
        Ok(bytes.as_chunks().0.to_vec())
    }

    /// Reads the entries of a bundle.
    pub(super) fn entries(&self, tile: Tile) -> Result<Vec<Hash>, LogFileError> {
        let bytes = self.tile(tile, BUNDLED)?;
        let entries = entries_in(&bytes).unwrap_or_default().into_iter();
        let entries: Option<Vec<Hash>> = entries.map(|it| it.try_into().ok()).collect();
        let path = shown(&tile.to_string());
        let entries = entries.filter(|it| it.len() == tile.width);
        entries.ok_or(LogFileError::Damaged { path })
    }

    /// Reads a tile of parts of one size. The writer may have replaced one that is not whole by a wider one, which begins
    /// like it. It removes the narrower one last, so that one of them is found on the way up. A power cut may leave zeros.
    fn tile(&self, tile: Tile, part: usize) -> Result<Vec<u8>, LogFileError> {
        for width in tile.width..=WIDTH {
            let path = Tile { width, ..tile }.to_string();
            if let Some(mut bytes) = self.read(&path, WIDTH * part)? {
                if bytes.len() != width * part || bytes.ends_with(&[0; size_of::<Hash>()]) {
                    let path = shown(&path);
                    return Err(LogFileError::Damaged { path });
                }
                bytes.truncate(tile.width * part);
                return Ok(bytes);
            }
        }
        let path = shown(&tile.to_string());
        Err(LogFileError::Missing { path })
    }

    /// Whether a power cut may have left so what is there of a tile or bundle: nothing, or one that is cut.
    pub(super) fn is_cut(&self, tile: Tile) -> bool {
        let part = tile.level.map_or(BUNDLED, |_| size_of::<Hash>());
        is_derived(tile)
            && self
                .tile(tile, part)
                .is_err_and(|error| error.is_of_files())
    }

    /// Reads the right edge of a log, and the entries of its last bundle if that is not whole.
    pub(super) fn edge(&self, of: &Checkpoint) -> Result<(Edge, Vec<Hash>), LogFileError> {
        let edge = Edge::read(of.size, |tile| self.hashes(tile))?;
        if edge.root() != of.root {
            let path = shown("tile");
            return Err(LogFileError::Damaged { path });
        }
        let Some(tile) = last_bundle(of.size) else {
            return Ok((edge, Vec::new()));
        };
        let entries = self.entries(tile)?;
        let last = edge.partial().find(|(tile, _)| tile.level == Some(0));
        let has_entries = last.is_some_and(|(_, last)| leaves(&entries) == last);
        let path = shown(&tile.to_string());
        if has_entries {
            Ok((edge, entries))
        } else {
            Err(LogFileError::Damaged { path })
        }
    }

    /// Waits until the names in a directory are on disk.
    pub(super) fn sync(&self, path: &str) -> Result<(), LogFileError> {
        let directory = self.directory(path)?;
        let synced = directory.map_or(Ok(()), |it| it.sync());
        synced.map_err(failed(Action::Sync, &shown(path)))
    }

    /// Removes what is left of tiles for which wider ones were written. It does no harm where that is not possible.
    pub(super) fn remove_replaced(&self, before: &[Tile], written: &[Tile]) {
        for tile in written {
            if tile.width == WIDTH {
                self.remove_partial(*tile);
            }
            let is_narrower = |it: &&Tile| {
                (it.level, it.number) == (tile.level, tile.number) && it.width < tile.width
            };
            for tile in before.iter().filter(is_narrower) {
                let path = tile.to_string();
                let (above, name) = path.rsplit_once('/').unwrap_or(("", &path));
                if let Ok(Some(directory)) = self.directory(above) {
                    let _ = directory.remove_file(name);
                }
            }
        }
    }

    /// Removes the directory with the narrower files of a whole tile.
    fn remove_partial(&self, whole: Tile) {
        let path = format!("{whole}.p");
        let (above, name) = path.rsplit_once('/').unwrap_or(("", &path));
        if let (Ok(Some(above)), Ok(Some(partial))) = (self.directory(above), self.directory(&path))
        {
            let _ = partial.clear().and_then(|()| above.remove_directory(name));
        }
    }
}

/// Files that are being written: each is on disk when it has its name, and the names are when all are synced.
pub(super) struct Writing<'a> {
    files: &'a LogFiles,
    /// Paths whose names this process knows to be on disk.
    pub(super) known: BTreeSet<String>,
    /// Those in which a name may be new.
    directories: BTreeSet<String>,
    /// Files that are complete and may not be on disk.
    unsynced: Vec<(String, OwnedFd)>,
    pub(super) tiles: Vec<Tile>,
}

impl<'a> Writing<'a> {
    pub(super) fn to(files: &'a LogFiles) -> Writing<'a> {
        Writing {
            files,
            known: BTreeSet::new(),
            directories: BTreeSet::new(),
            unsynced: Vec::new(),
            tiles: Vec::new(),
        }
    }

    /// Opens a directory, and makes what is missing of its path.
    pub(super) fn directory(&mut self, path: &str, mode: u32) -> Result<Directory, LogFileError> {
        let opened = self.files.0.again();
        let mut opened = opened.map_err(failed(Action::Open, LOG_DIRECTORY))?;
        let mut at = String::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let above = at.clone();
            at = if at.is_empty() {
                name.to_owned()
            } else {
                format!("{at}/{name}")
            };
            let made = make_directory(&opened, name, mode);
            opened = made.map_err(failed(Action::Make, &shown(&at)))?;
            // One that is there may be of a process that was killed before it was on disk.
            if self.known.insert(at.clone()) {
                self.directories.insert(above);
            }
        }
        Ok(opened)
    }

    /// Notes a file that is complete, in a directory.
    pub(super) fn written(&mut self, above: &str, path: String, file: OwnedFd) {
        if self.known.insert(path.clone()) {
            self.directories.insert(above.to_owned());
        }
        self.unsynced.push((path, file));
    }

    /// Writes a file in place of what is there, which is on disk before its name is.
    pub(super) fn file(&mut self, path: &str, bytes: &[u8], mode: u32) -> Result<(), LogFileError> {
        self.put(path, bytes, mode, Durability::Synced).map(drop)
    }

    fn put(
        &mut self,
        path: &str,
        bytes: &[u8],
        mode: u32,
        durability: Durability,
    ) -> Result<OwnedFd, LogFileError> {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let directory = self.directory(above, PUBLIC_DIRECTORY)?;
        let temporary = format!("{name}.new");
        // Left behind by a crash: only one process writes here.
        let _ = directory.remove_file(&temporary);
        let written = writing::create(&directory, &temporary, bytes, mode, None).and_then(|file| {
            let (from, to) = ((&directory, temporary.as_str()), (&directory, name));
            writing::rename_into_place(&file, from, to, durability)?;
            Ok(file)
        });
        self.directories.insert(above.to_owned());
        written.map_err(failed(Action::Write, &shown(path)))
    }

    /// Writes the hashes of a tile, or the entries of a bundle.
    pub(super) fn tile(&mut self, tile: Tile, hashes: &[Hash]) -> Result<(), LogFileError> {
        let bytes = match tile.level {
            Some(_) => hashes.concat(),
            None => hashes
                .iter()
                .filter_map(|it| bundled(it))
                .flatten()
                .collect(),
        };
        self.tiles.push(tile);
        let path = tile.to_string();
        // No checkpoint counts what it has, so that its name may come first.
        let file = self.put(&path, &bytes, PUBLIC, Durability::Unsynced)?;
        self.unsynced.push((path, file));
        Ok(())
    }

    /// Waits until all is on disk. Returns the tiles that were written, and the paths that are known to be there.
    pub(super) fn sync(self) -> Result<(Vec<Tile>, BTreeSet<String>), LogFileError> {
        // One after the other when all are written: the first one takes the names and places of the others along.
        for (path, file) in &self.unsynced {
            rustix::fs::fsync(file).map_err(failed(Action::Sync, &shown(path)))?;
        }
        let mut directories = self.directories.iter();
        directories.try_for_each(|path| self.files.sync(path))?;
        Ok((self.tiles, self.known))
    }
}

/// Opens a directory, and makes it where there is none. Its mode does not depend on the umask.
pub(super) fn make_directory(above: &Directory, name: &str, mode: u32) -> Result<Directory, Errno> {
    match above.directory(name) {
        Err(Errno::NOENT) => {}
        opened => return opened,
    }
    let made = match above.make_directory(name, mode) {
        // A server may have made it for another user.
        Err(Errno::STALE) => return above.directory(name),
        made => made?,
    };
    opening::set_mode(made.as_fd(), Mode::from_raw_mode(mode))?;
    Ok(made)
}

/// None for what does not exist.
fn found<T>(opened: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match opened {
        Err(Errno::NOENT) => Ok(None),
        opened => opened.map(Some),
    }
}

/// The error of a file that cannot be opened.
pub(super) fn not_opened(path: &str) -> impl Fn(Errno) -> LogFileError + use<> {
    let path = shown(path);
    move |errno| match errno {
        NOT_REGULAR => LogFileError::NotRegular { path: path.clone() },
        errno => failed(Action::Open, &path)(errno),
    }
}
