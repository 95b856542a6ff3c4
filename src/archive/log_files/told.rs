//! Lines that wait for the process that writes the log, each in a file of its own: a process that has not opened the index
//! for changes leaves them in `told`, which only the owner of the log enters.
//!
//! The name of a file is the salt of its line, by which the one who takes it knows a line that was taken before a crash. It
//! gets its name when it is on disk.

use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;

use super::error::{LogFileError, errno_of, failed};
use super::files::{LogFiles, PRIVATE, PRIVATE_DIRECTORY, make_directory, shown};
use super::line::{LONGEST_LINE, LogLine};
use crate::archive::tree::Action;
use crate::formats::hex::Hex;
use crate::os::directory::{Directory, NOT_REGULAR};
use crate::os::mounts::is_trusted;
use crate::os::random;
use crate::os::writing::{self, Durability};

/// The directory.
const TOLD: &str = "told";

/// The end of the name of a file that is not on disk yet.
const UNFINISHED: &str = ".new";

/// The age at which such a file was left by a crash.
const LEFT_BEHIND: Duration = Duration::from_secs(3600);

/// The beginning of the name of a file that is none of a line.
const REFUSED: &str = "refused-";

/// The number in the file of a line that has none yet.
const NO_NUMBER: u64 = 0;

/// Leaves a line for the process that writes the log. It is on disk when this returns.
///
/// # Errors
/// It cannot be written, or the user may not enter the directory.
pub fn leave(store: BorrowedFd<'_>, text: &str) -> Result<(), LogFileError> {
    let salt = random::draw().map_err(failed(Action::Read, random::SOURCE))?;
    let number = NO_NUMBER;
    let text = text.to_owned();
    let line = LogLine { salt, text }.numbered(number);
    let line = line.ok_or(LogFileError::Unwritable { number })?;
    let told = directory(store)?;
    let name = name_of(&salt);
    let write = || {
        let owner = owner_of(told.as_fd())?;
        let unfinished = format!("{name}{UNFINISHED}");
        let file = writing::create(&told, &unfinished, line.as_bytes(), PRIVATE, Some(owner))?;
        let (from, to) = ((&told, unfinished.as_str()), (&told, name.as_str()));
        writing::rename_into_place(&file, from, to, Durability::Synced)?;
        told.sync()
    };
    write().map_err(failed(Action::Write, &LeftLines::path_of(&name)))
}

/// Opens the directory of what is left. What is missing is made, for the owner of the directory above.
fn directory(store: BorrowedFd<'_>) -> Result<Directory, LogFileError> {
    let is_new = LogFiles::open(store)?.is_none();
    let log = LogFiles::open_or_make(store)?;
    let open = || {
        let log = log.own()?;
        if is_new {
            writing::give(&log, owner_of(store)?)?;
        }
        match log.directory(TOLD) {
            Err(Errno::NOENT) => {}
            opened => return opened,
        }
        let told = make_directory(&log, TOLD, PRIVATE_DIRECTORY)?;
        writing::give(&told, owner_of(log.as_fd())?)?;
        log.sync().map(|()| told)
    };
    open().map_err(failed(Action::Make, &shown(TOLD)))
}

fn owner_of(directory: BorrowedFd<'_>) -> Result<(u32, u32), Errno> {
    let found = rustix::fs::fstat(directory)?;
    Ok((found.st_uid, found.st_gid))
}

/// The lines that were left.
#[derive(Debug)]
pub struct LeftLines {
    told: Directory,
    names: Vec<String>,
}

impl LeftLines {
    /// Finds what was left. None if nothing was.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn find(store: BorrowedFd<'_>) -> Result<Option<LeftLines>, LogFileError> {
        let told = LogFiles::open(store)?.map(|log| log.directory(TOLD));
        let Some(told) = told.transpose()?.flatten() else {
            return Ok(None);
        };
        let entries = told.entries();
        let entries = entries.map_err(failed(Action::List, &shown(TOLD)))?;
        let names = entries.into_iter().map(|(name, _)| name);
        let names: Vec<_> = names.filter_map(|it| String::from_utf8(it).ok()).collect();
        Ok((!names.is_empty()).then_some(LeftLines { told, names }))
    }

    /// Whether there is a line, as far as names tell.
    pub fn is_any(&self) -> bool {
        self.names.iter().any(|name| is_name(name))
    }

    /// The path in the store of a file.
    pub fn path_of(name: &str) -> String {
        shown(&format!("{TOLD}/{name}"))
    }

    /// The paths of files that are not taken to the log: refused ones, and those without the name of a line.
    pub fn others(&self) -> impl Iterator<Item = String> {
        let others = self.names.iter();
        let others =
            others.filter(|it| !is_name(it) && !it.strip_suffix(UNFINISHED).is_some_and(is_name));
        others.map(|name| LeftLines::path_of(name))
    }

    /// Calls `each` with each line. None of a file that is none of a line, or not of the owner of the directory.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn each(&self, each: &mut dyn FnMut(&str, Option<LogLine>)) -> Result<(), LogFileError> {
        for name in self.names.iter().filter(|it| is_name(it)) {
            match self.read(name) {
                // Another process has taken it.
                Err(Errno::NOENT) => {}
                read => each(
                    name,
                    read.map_err(failed(Action::Read, &LeftLines::path_of(name)))?,
                ),
            }
        }
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<LogLine>, Errno> {
        let file = match self.told.file(name) {
            Err(NOT_REGULAR | Errno::ACCESS | Errno::PERM | Errno::IO) => return Ok(None),
            file => file?,
        };
        let found = file.metadata().map_err(|error| errno_of(&error))?;
        let (owner, _) = owner_of(self.told.as_fd())?;
        let is_own = found.uid() == owner || is_trusted(found.uid());
        if !is_own || found.nlink() > 1 || found.len() > LONGEST_LINE as u64 {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let read = file.take(LONGEST_LINE as u64).read_to_end(&mut bytes);
        read.map_err(|error| errno_of(&error))?;
        let is_left =
            |(number, line): &(u64, LogLine)| *number == NO_NUMBER && name_of(&line.salt) == name;
        let line = LogLine::parse(&bytes).filter(is_left);
        Ok(line.map(|(_, line)| line))
    }

    /// Removes lines that were taken, by their salts, and what crashes have left behind. That is on disk when this returns.
    ///
    /// # Errors
    /// A file cannot be removed: its line would be taken again after it is logged.
    pub fn remove<'a>(
        &self,
        taken: impl Iterator<Item = &'a [u8; 16]>,
    ) -> Result<(), LogFileError> {
        let is_old = |name: &&String| {
            let file = self.told.file(name).ok();
            let modified = file.and_then(|it| it.metadata().ok()?.modified().ok());
            let age = modified.and_then(|it| SystemTime::now().duration_since(it).ok());
            name.ends_with(UNFINISHED) && age.is_some_and(|age| age > LEFT_BEHIND)
        };
        let left = self.names.iter().filter(is_old).cloned();
        for name in taken.map(name_of).chain(left) {
            match self.told.remove_file(&name) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => {
                    return Err(failed(Action::Remove, &LeftLines::path_of(&name))(errno));
                }
            }
        }
        self.sync()
    }

    /// Sets a file aside that is none of a line. Returns its new path.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn set_aside(&self, name: &str) -> Result<String, LogFileError> {
        let new = format!("{REFUSED}{name}");
        let renamed = self.told.rename_over(name, &self.told, &new);
        renamed.map_err(failed(Action::Rename, &LeftLines::path_of(name)))?;
        self.sync()?;
        Ok(LeftLines::path_of(&new))
    }

    fn sync(&self) -> Result<(), LogFileError> {
        self.told.sync().map_err(failed(Action::Sync, &shown(TOLD)))
    }
}

/// The name of the file of a line, by its salt.
fn name_of(salt: &[u8; 16]) -> String {
    Hex(salt).to_string()
}

/// Whether a name is one of a line.
fn is_name(name: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    name.len() == 32 && name.bytes().all(is_digit)
}
