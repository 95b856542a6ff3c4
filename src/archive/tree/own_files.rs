//! The files of the store that belong to no item: its lock, its database, its state of a scrub.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::action::Action;
use super::place::{TreeError, failed};
use super::root::Tree;
use crate::os::opening;
use crate::os::writing::{self, Durability};

/// The directory of the damaged files that are kept when others take their place.
pub const DAMAGED: &str = "damaged";

impl Tree {
    /// Opens one of the store's own files for writing, and creates it where it is missing. ELOOP for anything
    /// but a regular file; EMLINK for a file with a second name, which may belong to any user.
    pub fn open_own(&self, name: &str) -> Result<std::fs::File, TreeError> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        loop {
            let opened = match self.open_beneath(name, OFlags::PATH | OFlags::NOFOLLOW) {
                Ok(found) => only_name(&found).and_then(|()| {
                    // Found first with O_PATH: opening a FIFO or a device may already have an effect.
                    opening::settled(opening::again(&found, flags)?, flags)
                }),
                Err(Errno::NOENT) => {
                    let flags = flags | OFlags::CREATE | OFlags::EXCL;
                    let mode = Mode::from_raw_mode(0o644);
                    match rustix::fs::openat(&self.root, name, flags, mode) {
                        Err(Errno::EXIST) => continue,
                        made => made,
                    }
                }
                Err(errno) => Err(errno),
            };
            return opened
                .map(std::fs::File::from)
                .map_err(failed(Action::Open, name));
        }
    }

    /// Removes a file in the store's directory, if it exists; the removal is on disk when this returns.
    pub(in crate::archive) fn remove_own(&self, name: &str) -> Result<(), TreeError> {
        self.remove_small(".", name, |errno| self.error(Action::Remove, name, errno))
    }

    /// Opens one of the store's own files for reading; None where it does not exist.
    pub fn read_own(&self, name: &str) -> Result<Option<std::fs::File>, TreeError> {
        let found = match self.open_beneath(name, OFlags::PATH | OFlags::NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            found => found.map_err(failed(Action::Open, name))?,
        };
        let stat = rustix::fs::fstat(&found).map_err(failed(Action::Open, name))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(failed(Action::Open, name)(Errno::LOOP));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        opening::again(&found, flags)
            .map(|file| Some(file.into()))
            .map_err(failed(Action::Open, name))
    }

    /// The permission bits of an entry of the store's own directory, by its name; `.` is that directory
    /// itself.
    pub fn mode_of(&self, name: &str) -> Option<u32> {
        let stat = rustix::fs::statat(&self.root, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        // The mode of a symbolic link means nothing.
        (FileType::from_raw_mode(stat.st_mode) != FileType::Symlink)
            .then_some(stat.st_mode & 0o7777)
    }

    /// Removes the write permission of other users from an entry of the store's own directory.
    pub(in crate::archive) fn tighten(&self, name: &str) -> Result<(), TreeError> {
        let file = self
            .open_beneath(name, OFlags::RDONLY)
            .map_err(failed(Action::Open, name))?;
        let stat = rustix::fs::fstat(&file).map_err(failed(Action::Read, name))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            only_name(&file).map_err(failed(Action::ChangeMode, name))?;
        }
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7775);
        rustix::fs::fchmod(&file, mode).map_err(failed(Action::ChangeMode, name))
    }

    /// Reads one of the store's own files, of any size; None where it does not exist.
    pub fn read_whole(&self, path: &str) -> Result<Option<Vec<u8>>, TreeError> {
        let read = |mut file: File| {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut bytes)
                .map(|_| bytes)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        };
        match self.open_to_read(path.as_bytes()).and_then(read) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(failed(Action::Read, path)(errno)),
        }
    }

    /// Replaces a file as a whole, in a directory that only the caller writes to. If it is synced, it is on
    /// disk when this returns. The unfinished file lies beside it and not in `staging/`, which a starting mount
    /// empties.
    pub(in crate::archive) fn write_beside(
        &self,
        directory: &str,
        name: &str,
        bytes: &[u8],
        durability: Durability,
    ) -> Result<(), TreeError> {
        let shown = format!("{directory}/{name}");
        let failed = |errno| failed(Action::Write, &shown)(errno);
        let opened = self.open_directory(directory)?;
        let temporary = format!("{name}.new");
        // Left behind by a crash: only the caller writes here.
        let _ = rustix::fs::unlinkat(&opened, &temporary, AtFlags::empty());
        let file = writing::create(&opened, &temporary, bytes, 0o644, None).map_err(failed)?;
        writing::rename_into_place(&file, (&opened, &temporary), (&opened, name), durability)
            .map_err(failed)?;
        match durability {
            Durability::Synced => self.sync_directory(directory),
            Durability::Unsynced => Ok(()),
        }
    }
}

/// Checks that a file is regular and has one name.
fn only_name(file: &OwnedFd) -> Result<(), Errno> {
    let stat = rustix::fs::fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink <= 1 => Ok(()),
        FileType::RegularFile => Err(Errno::MLINK),
        _ => Err(Errno::LOOP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::testing::TemporaryDirectory;

    #[test]
    fn what_a_crash_left_half_written_is_replaced() {
        let root = TemporaryDirectory::new();
        let tree = Tree::create(root.path()).expect("a store");
        tree.make_own_directories().expect("directories");
        std::fs::write(root.join("col/text.new"), "hal").expect("written");
        for (durability, content) in [
            (Durability::Unsynced, "first"),
            (Durability::Synced, "second"),
        ] {
            let written = tree.write_beside("col", "text", content.as_bytes(), durability);
            assert_eq!(written, Ok(()));
            let path = root.join("col/text");
            assert_eq!(std::fs::read_to_string(path).expect("read"), content);
            assert!(!root.join("col/text.new").exists());
        }
    }
}
