//! Makes an item from a package: in an empty directory, by descriptors and never through a symbolic link,
//! because the content of a package is not trusted.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;

use super::files::{open_file, read_through};
use super::opened::{Package, is_of_others};
use super::reading::is_portable;
use super::work::make_directories;
use super::{PackageError, Problem};
use crate::archive::tree::Action;
use crate::archive::tree::{SIDECAR, mark_strangers, open_far, times};
use crate::formats::mtree::{MtreeEntry, MtreeKind};
use crate::os::deep::split;
use crate::os::directory::{Directory, Entry};

/// The metadata that the files get.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnpackOptions {
    /// Restores the owners and groups of the files, and their set-user-ID and set-group-ID bits.
    pub same_owner: bool,
    /// Another user than the caller may have written the package: its sidecar is marked, see [`mark_strangers`].
    pub of_others: bool,
}

/// Fills an empty directory with the content of a package. The sidecar comes last, because it makes the item
/// complete. `count` receives the bytes copied, and 0 at the start of each file.
///
/// # Errors
/// A failed system call; what has been made then stays.
pub fn fill(
    package: &Package,
    item: &OwnedFd,
    options: UnpackOptions,
    count: &mut dyn FnMut(u64),
) -> Result<(), PackageError> {
    let mut filler = Filler {
        package,
        item,
        options,
        linked: BTreeMap::new(),
        count,
    };
    let is_sidecar = |entry: &&MtreeEntry| entry.path == SIDECAR.as_bytes();
    let entries = &package.entries;
    for entry in entries.iter().filter(|entry| !is_sidecar(entry)) {
        filler.make(entry)?;
    }
    for entry in entries.iter().filter(is_sidecar) {
        filler.make(entry)?;
    }
    // The deepest first, and the item's own last: each name made in a directory changes its time.
    for entry in entries.iter().rev() {
        if entry.kind == MtreeKind::Directory {
            filler.set_directory_metadata(entry)?;
        }
    }
    Ok(())
}

struct Filler<'a> {
    package: &'a Package,
    item: &'a OwnedFd,
    options: UnpackOptions,
    /// The first name of each file that has several.
    linked: BTreeMap<u64, Vec<u8>>,
    count: &'a mut dyn FnMut(u64),
}

impl Filler<'_> {
    fn make(&mut self, entry: &MtreeEntry) -> Result<(), PackageError> {
        let failed = |errno| PackageError::io(Action::Make, &entry.path)(errno);
        if entry.path.is_empty() {
            return Ok(());
        }
        let (parent, name) = split(&entry.path);
        // Packages of other programs do not list directories.
        make_directories(self.item, parent).map_err(failed)?;
        let parent = open_far(self.item, parent, OFlags::PATH | OFlags::DIRECTORY);
        let parent = Directory::from(parent.map_err(failed)?);
        match &entry.kind {
            MtreeKind::Directory => {
                // Closed to other users until it is complete.
                match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(Errno::EXIST) => Ok(()),
                    Err(errno) => Err(failed(errno)),
                }
            }
            MtreeKind::Link(target) => {
                rustix::fs::symlinkat(&target[..], &parent, name).map_err(failed)?;
                let made = parent.entry(name);
                made.and_then(|made| self.set_special_metadata(entry, &made))
                    .map_err(failed)
            }
            MtreeKind::Fifo => {
                let made = parent.make_node(name, FileType::Fifo, self.mode(entry), 0);
                made.and_then(|made| self.set_special_metadata(entry, &made))
                    .map_err(failed)
            }
            MtreeKind::File { contents, .. } => self.file(entry, contents, &parent, name),
        }
    }

    fn file(
        &mut self,
        entry: &MtreeEntry,
        contents: &[u8],
        parent: &Directory,
        name: &[u8],
    ) -> Result<(), PackageError> {
        let failed = |errno| PackageError::io(Action::Make, &entry.path)(errno);
        let is_sidecar = entry.path == SIDECAR.as_bytes();
        // A sidecar with a second name would speak for no user as long as it has that.
        let inode = entry.inode.filter(|_| !is_sidecar);
        if let Some(first) = inode.and_then(|inode| self.linked.get(&inode)) {
            let (above, first) = split(first);
            let above = open_far(self.item, above, OFlags::PATH | OFlags::DIRECTORY);
            let above = above.map_err(failed)?;
            return rustix::fs::linkat(&above, first, parent, name, AtFlags::empty())
                .map_err(failed);
        }
        let content = self.package.contents.get(contents);
        let content = content.ok_or_else(|| PackageError::file(contents, Problem::Differs))?;
        let mut from = open_file(&self.package.root, &content.path)
            .map_err(PackageError::io(Action::Open, &content.path))?;
        let is_strangers = is_sidecar && (self.options.of_others || is_of_others(&from));
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o600));
        let mut to = std::fs::File::from(file.map_err(failed)?);
        (self.count)(0);
        let count = &mut self.count;
        read_through(&mut from, &content.path, |bytes| {
            to.write_all(bytes)
                .map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
            count(bytes.len() as u64);
            Ok(())
        })?;
        let to = OwnedFd::from(to);
        self.set_metadata(entry, &to).map_err(failed)?;
        if is_strangers {
            mark_strangers(to.as_fd()).map_err(failed)?;
        }
        if let Some(inode) = inode {
            self.linked.insert(inode, entry.path.clone());
        }
        Ok(())
    }

    fn set_directory_metadata(&self, entry: &MtreeEntry) -> Result<(), PackageError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let set = open_far(self.item, &entry.path, flags)
            .and_then(|directory| self.set_metadata(entry, &directory));
        set.map_err(PackageError::io(Action::Make, &entry.path))
    }

    /// The permission bits; set-user-ID and set-group-ID only together with the owner.
    fn mode(&self, entry: &MtreeEntry) -> u32 {
        if self.options.same_owner {
            entry.stat.mode.into()
        } else {
            entry.stat.without_set_ids().mode.into()
        }
    }

    fn owner(&self, entry: &MtreeEntry) -> Option<(Option<Uid>, Option<Gid>)> {
        let owner = (
            Some(Uid::from_raw(entry.uid)),
            Some(Gid::from_raw(entry.gid)),
        );
        self.options.same_owner.then_some(owner)
    }

    fn set_metadata(&self, entry: &MtreeEntry, file: &OwnedFd) -> Result<(), Errno> {
        if let Some((uid, gid)) = self.owner(entry) {
            rustix::fs::fchown(file, uid, gid)?;
        }
        rustix::fs::fchmod(file, Mode::from_raw_mode(self.mode(entry)))?;
        for (name, value) in &entry.attributes {
            if is_portable(name) {
                rustix::fs::fsetxattr(file, &name[..], value, XattrFlags::empty())?;
            }
        }
        rustix::fs::futimens(file, &times(entry.stat))
    }

    fn set_special_metadata(&self, entry: &MtreeEntry, made: &Entry) -> Result<(), Errno> {
        if let Some((uid, gid)) = self.owner(entry) {
            made.set_owner(uid, gid)?;
        }
        made.set_times(&times(entry.stat))
    }
}
