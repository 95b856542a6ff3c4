//! The lacks of the filesystem of a store, and what follows from them. It is tried, because no filesystem says so.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, StatxFlags, Timespec, Timestamps, XattrFlags,
};
use rustix::io::Errno;

use super::action::Action;
use super::place::{TreeError, failed};
use super::root::Tree;
use crate::archive::finding::findings;
use crate::os::access_lists;
use crate::os::deep::clear;
use crate::os::serving;

findings! {
    /// Something that the filesystem of a store cannot do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Lack {
        NoReplace "rename-noreplace" Notice
            "the filesystem of the store has no RENAME_NOREPLACE: new items are placed by what POSIX gives; only an empty directory that another program makes at that moment could be replaced"
        DirectorySync "directory-sync" Warning
            "the filesystem of the store cannot sync directories: a power cut may lose names that were made just before it"
        Attributes "xattrs" Warning
            "the filesystem of the store has no extended attributes: those of files that are copied in are lost"
        AccessLists "acls" Notice
            "the filesystem of the store has no access control lists: permissions are those of mode and owner"
        CheckedLists "acls-checked" Warning
            "the filesystem of the store keeps access control lists and does not check them: a mount still does for files and directories that exist, but who may make something in a directory, relate items, and read over HTTP is decided by mode and owner"
        HardLinks "hard-links" Warning
            "the filesystem of the store has no hard links: a file with several names becomes several files"
        Exclusive "exclusive" Error
            "the filesystem of the store does not make new files exclusively: two programs may take the same name; use another filesystem"
        StableNumbers "inode-numbers" Warning
            "the filesystem of the store changes the inode numbers of files that are renamed: programs may take a file for another one"
        FineTimes "fine-times" Warning
            "the filesystem of the store keeps times of whole seconds: programs that compare times take a file that changes twice in a second and keeps its length for unchanged"
        BirthTimes "birth-times" Notice
            "the filesystem of the store has no birth times of files"
    }
}

/// The name of the directory in which it is tried.
const TRIED: &str = "abilities";

impl Tree {
    /// Returns what the filesystem cannot do. Only the one writer of a store may ask.
    ///
    /// # Errors
    /// `staging/` cannot be written.
    pub fn lacks(&self) -> Result<Vec<Lack>, TreeError> {
        let failed = |errno| failed(Action::Make, "staging")(errno);
        let staging = self.open_directory("staging")?;
        let made = self.with_new_name(TRIED, |name| {
            rustix::fs::mkdirat(&staging, name, Mode::RWXU)?;
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(&staging, name, flags, Mode::empty())
        });
        let (name, directory) = made.map_err(failed)?;
        let found = tried(&directory);
        // A file that cannot be removed stays invisible, and the next mount removes it.
        let _ = clear(&directory);
        let _ = rustix::fs::unlinkat(&staging, &name, AtFlags::REMOVEDIR);
        found.map_err(failed)
    }
}

fn tried(directory: &OwnedFd) -> Result<Vec<Lack>, Errno> {
    let mut lacks = Vec::new();
    let mut check = |lack, can: bool| {
        if !can {
            lacks.push(lack);
        }
    };
    rustix::fs::mkdirat(directory, "one", Mode::RWXU)?;
    let no_replace = RenameFlags::NOREPLACE;
    // To a name that does not exist: the kernel itself refuses one that does.
    let renamed = rustix::fs::renameat_with(directory, "one", directory, "two", no_replace);
    check(Lack::NoReplace, renamed.is_ok());
    let synced = rustix::fs::fsync(directory);
    check(Lack::DirectorySync, synced.is_ok());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat(directory, "file", flags, mode)?;
    let again = rustix::fs::openat(directory, "file", flags, mode);
    check(Lack::Exclusive, again.err() == Some(Errno::EXIST));
    let set = rustix::fs::fsetxattr(&file, "user.ibifs", b"x", XattrFlags::empty());
    check(Lack::Attributes, set.is_ok());
    let list = rustix::fs::fgetxattr(&file, access_lists::ATTRIBUTE, &mut [0; 64]);
    check(Lack::AccessLists, list != Err(Errno::OPNOTSUPP));
    rustix::fs::mkdirat(directory, "lists", Mode::RWXU)?;
    let as_directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lists = rustix::fs::openat(directory, "lists", as_directory, Mode::empty())?;
    check(
        Lack::CheckedLists,
        access_lists::are_checked(lists.as_fd()) != Some(false),
    );
    let linked = rustix::fs::linkat(directory, "file", directory, "link", AtFlags::empty());
    check(Lack::HardLinks, linked.is_ok());
    let number = |name: &str| {
        let found = rustix::fs::statat(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW);
        found.map(|found| found.st_ino)
    };
    let before = number("file")?;
    rustix::fs::renameat(directory, "file", directory, "moved")?;
    check(Lack::StableNumbers, number("moved")? == before);
    check(Lack::FineTimes, keeps_nanoseconds(&file)?);
    let born = rustix::fs::statx(&file, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME);
    let is_known = |found: rustix::fs::Statx| found.stx_mask & StatxFlags::BTIME.bits() != 0;
    check(Lack::BirthTimes, born.is_ok_and(is_known));
    Ok(lacks)
}

/// Whether a time that is set is kept to less than a second.
fn keeps_nanoseconds(file: &OwnedFd) -> Result<bool, Errno> {
    let time = Timespec {
        tv_sec: 7,
        tv_nsec: 123_456_789,
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::futimens(file, &times)?;
    // The filesystem may not keep what the kernel has been told.
    Ok(serving::attributes(file)?.stx_mtime.tv_nsec != 0)
}
