//! Staged directories: what unison copies into a level appears under a temporary name first.
//!
//! unison makes the directory `.unison.NAME.HASH.unison.tmp` beside `NAME`, fills it, and renames it to
//! `NAME`. Such a directory is made in the store's `staging/`, where everything in it is an ordinary file. The
//! rename makes the levels and items that it holds, one by one and as `mkdir` would make them, and moves the
//! content of each item into it. It is listed nowhere and ends with the mount, as all staged names.

use std::ffi::{CStr, OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Mode};
use rustix::io::Errno;

use super::invalidation::{Context, Stale};
use super::names::text;
use super::{Entry, NameLifetime, Namespace};
use crate::archive::tree::SIDECAR;
use crate::fuse::inode::{Node, NodeKind, View};
use crate::fuse::inside::{self, ErrnoResult, Removal};
use crate::os::caller::Caller;

/// Whether unison gives such a name to a directory that it fills before it renames it.
pub(super) fn is_staged_directory(name: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(b".unison.");
    rest.is_some_and(|rest| rest.ends_with(b".unison.tmp"))
}

/// The names in a directory, the sidecar last: when it is accepted, the item is complete.
fn names_in(directory: BorrowedFd<'_>) -> ErrnoResult<Vec<OsString>> {
    let opened = inside::open_directory(directory)?;
    let mut names = Vec::new();
    inside::list(opened.as_fd(), 0, |name: &CStr, _, _, _| {
        if ![&b"."[..], b".."].contains(&name.to_bytes()) {
            names.push(OsStr::from_bytes(name.to_bytes()).to_owned());
        }
        true
    })?;
    names.sort_by_key(|name| name == SIDECAR);
    Ok(names)
}

impl Namespace {
    /// A staged directory that is looked up in a level; None for any other name.
    pub(super) fn find_staged_directory(
        &self,
        parent: &Node,
        name: &OsStr,
    ) -> Option<ErrnoResult<Entry>> {
        if !is_staged_directory(name) {
            return None;
        }
        let found = self.staging.open(parent.id, name)?;
        Some(found.and_then(|found| {
            self.real(found, View::Rep, NodeKind::Inside, NameLifetime::Uncached)
        }))
    }

    /// Makes a staged directory in a level of the rep tree, for a user who may make names there.
    pub(super) fn stage_directory(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
        (mode, umask): (u32, u32),
    ) -> ErrnoResult<Entry> {
        if self.staging.find(parent.id, name).is_some() {
            return Err(Errno::EXIST);
        }
        self.check_making(caller, parent)?;
        let mode = Mode::from_raw_mode(mode & !umask & 0o7777);
        self.stage(caller, parent, text(name)?, |directory, kept| {
            rustix::fs::mkdirat(directory, kept, mode)?;
            inside::find(directory, kept)
        })
    }

    /// Removes an empty staged directory.
    pub(super) fn remove_staged_directory(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
    ) -> ErrnoResult<()> {
        let kept = self.staging.find(parent.id, name).ok_or(Errno::NOENT)?;
        self.check_staged(caller, parent, name)?;
        inside::remove(self.staging.directory(), &kept, Removal::Rmdir)?;
        self.staging.take(parent.id, name);
        Ok(())
    }

    /// Renames a staged directory to a level or an item that does not exist yet.
    ///
    /// # Errors
    /// Those of making each level and item. Items that were made before stay, with the levels above them, and
    /// the rest stays staged.
    pub(super) fn place_staged_directory(
        &self,
        by: &Context<'_>,
        (parent, name): (&Node, &OsStr),
        (new_parent, new_name): (&Node, &OsStr),
    ) -> ErrnoResult<()> {
        let kept = self.staging.find(parent.id, name).ok_or(Errno::NOENT)?;
        self.check_staged(by.caller, parent, name)?;
        self.check_making(by.caller, new_parent)?;
        let staged = inside::find(self.staging.directory(), &kept)?;
        // The kernel takes the staged directory for the one that was made.
        by.cache.invalidate_after_reply(vec![
            Stale::Name(new_parent.id, new_name.to_owned()),
            Stale::Name(parent.id, name.to_owned()),
        ]);
        let placed = self.place_directory(by, new_parent, new_name, staged.as_fd());
        self.settle(by, placed)?;
        inside::remove(self.staging.directory(), &kept, Removal::Rmdir)?;
        self.staging.take(parent.id, name);
        Ok(())
    }

    fn place_directory(
        &self,
        by: &Context<'_>,
        parent: &Node,
        name: &OsStr,
        from: BorrowedFd<'_>,
    ) -> ErrnoResult<()> {
        let stat = rustix::fs::fstat(from)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(Errno::PERM);
        }
        let mode = stat.st_mode & 0o7777;
        let made = self.make_level(by.caller, parent, text(name)?, mode, 0)?;
        let filled = self.fill_from(by, &made.node, from);
        // The kernel does not get the entry.
        self.nodes.forget(made.node.id, 1);
        if filled.is_err() && matches!(made.node.kind, NodeKind::Level(_)) {
            // A level that holds an item by now stays.
            let _ = inside::remove(parent.file()?.as_fd(), name, Removal::Rmdir);
        }
        filled
    }

    fn fill_from(&self, by: &Context<'_>, made: &Node, from: BorrowedFd<'_>) -> ErrnoResult<()> {
        let is_item = matches!(made.kind, NodeKind::Item(_));
        let to = made.file()?;
        for name in names_in(from)? {
            if is_item {
                inside::rename(from, &name, to.as_fd(), &name, 0)?;
                self.name_made(by, made, &name)?;
            } else {
                let below = inside::find(from, &name)?;
                self.place_directory(by, made, &name, below.as_fd())?;
                inside::remove(from, &name, Removal::Rmdir)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unisons_directories_alone_are_staged() {
        for (name, is) in [
            (".unison.new.org.23f096536e733b2b.unison.tmp", true),
            (".unison.01.01.01.01.23f0.unison.tmp", true),
            (".unison.tmp", false),
            (".unison.new.org", false),
            (".Trash-0", false),
            ("a.unison.tmp", false),
        ] {
            assert_eq!(is_staged_directory(OsStr::new(name)), is, "{name}");
        }
    }
}
