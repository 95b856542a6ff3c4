//! Staged names: files that tools create next to the name that they will replace (rsync, ln, vim, sed).
//!
//! They are small files and links without a meaning of their own, in the store's `staging/`. They are not
//! listed, are removed at the unmount, and exist only to be renamed to a modifier. Only names that such tools
//! create are accepted; any other name would be a user's file, and lost at the unmount.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Gid, Uid};
use rustix::io::Errno;

use super::{Entry, NameLifetime, Namespace};
use crate::archive::{Archive, ArchiveError};
use crate::fuse::inode::{Node, NodeId, NodeKind, View};
use crate::fuse::inside::{self, ErrnoResult, Removal};
use crate::os::caller::Caller;

/// The most staged names of a user.
const MOST_OF_A_USER: usize = 1000;

/// The staged names of a mount.
#[derive(Debug)]
pub(super) struct Staging {
    directory: OwnedFd,
    /// The process that has staged them.
    stager: String,
    names: Mutex<HashMap<(NodeId, OsString), OsString>>,
    next: AtomicU64,
}

impl Staging {
    /// Starts with an empty directory: what a killed mount has left is removed.
    pub(super) fn new(archive: &Archive) -> Result<Staging, ArchiveError> {
        let tree = archive.tree();
        let staging = Staging {
            directory: tree.open_directory("staging")?,
            stager: tree.stager(),
            names: Mutex::default(),
            next: AtomicU64::new(0),
        };
        archive.keeper().clear_staging()?;
        Ok(staging)
    }

    /// The directory that holds the staged files.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The file name in the staging directory for a staged name.
    pub(super) fn find(&self, parent: NodeId, name: &OsStr) -> Option<OsString> {
        self.names.lock().get(&(parent, name.to_owned())).cloned()
    }

    /// Opens a staged file.
    pub(super) fn open(&self, parent: NodeId, name: &OsStr) -> Option<ErrnoResult<OwnedFd>> {
        let kept = self.find(parent, name)?;
        Some(inside::find(self.directory(), &kept))
    }

    /// An unused file name in the staging directory for a user. EDQUOT if the user has too many.
    pub(super) fn fresh_name(&self, uid: u32) -> ErrnoResult<OsString> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let of_user = format!("staged-{uid}-");
        let count = self
            .names
            .lock()
            .values()
            .filter(|kept| kept.as_encoded_bytes().starts_with(of_user.as_bytes()))
            .count();
        if count < MOST_OF_A_USER {
            Ok(OsString::from(format!("{of_user}{}-{number}", self.stager)))
        } else {
            Err(Errno::DQUOT)
        }
    }

    /// Records a staged name, and removes the file that had it before.
    pub(super) fn note(&self, parent: NodeId, name: &OsStr, kept: OsString) {
        let before = self.names.lock().insert((parent, name.to_owned()), kept);
        if let Some(before) = before {
            let _ = inside::remove(self.directory(), &before, Removal::Unlink);
        }
    }

    /// Removes a staged name and returns its file name in the staging directory.
    pub(super) fn take(&self, parent: NodeId, name: &OsStr) -> Option<OsString> {
        self.names.lock().remove(&(parent, name.to_owned()))
    }

    /// Removes what is staged.
    fn clear(&self) {
        for (_, kept) in self.names.lock().drain() {
            let _ = inside::remove(self.directory(), &kept, Removal::Unlink);
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Namespace {
    /// Removes what is staged when the mount ends: a thread that ends only with the process may have the namespace still.
    pub(in crate::fuse) fn end_staging(&self) {
        self.staging.clear();
    }

    /// Creates a staged file that the caller owns. Users cannot write to the staging directory themselves.
    pub(super) fn stage(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &str,
        make: impl FnOnce(BorrowedFd<'_>, &OsStr) -> ErrnoResult<OwnedFd>,
    ) -> ErrnoResult<Entry> {
        if !may_be_staged(name) {
            return Err(Errno::PERM);
        }
        self.check_staged(caller, parent, OsStr::new(name))?;
        let kept = self.staging.fresh_name(caller.uid)?;
        let staged = self.staging.directory();
        let made = make(staged, &kept).and_then(|made| {
            if caller.is_other() {
                let (uid, gid) = (Uid::from_raw(caller.uid), Gid::from_raw(caller.gid));
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                rustix::fs::chownat(staged, &kept, Some(uid), Some(gid), flags)?;
            }
            Ok(made)
        });
        let made = match made {
            Ok(made) => made,
            Err(errno) => {
                let _ = inside::remove(staged, &kept, Removal::Unlink);
                return Err(errno);
            }
        };
        self.staging.note(parent.id, OsStr::new(name), kept);
        self.real(made, View::Rep, NodeKind::Inside, NameLifetime::Uncached)
    }

    /// EPERM if another user owns the staged name.
    pub(super) fn check_staged(
        &self,
        caller: &Caller,
        parent: &Node,
        name: &OsStr,
    ) -> ErrnoResult<()> {
        let Some(staged) = self.staging.open(parent.id, name) else {
            return Ok(());
        };
        let owner = rustix::fs::fstat(staged?)?.st_uid;
        if owner == caller.uid || caller.owns_all() {
            Ok(())
        } else {
            Err(Errno::PERM)
        }
    }
}

/// Whether tools create such a name next to the one that they will replace.
pub(super) fn may_be_staged(name: &str) -> bool {
    let is_made_up =
        |rest: &str| rest.len() == 6 && rest.bytes().all(|b| b.is_ascii_alphanumeric());
    // rsync, vim's swap files, editors' hidden temporaries; backups; sed -i; ln -f; vim's probe.
    name.starts_with('.')
        || name.ends_with('~')
        || name.strip_prefix("sed").is_some_and(is_made_up)
        || name.strip_prefix("Cu").is_some_and(is_made_up)
        || (name.starts_with('#') && name.ends_with('#'))
        || name.parse::<u32>().is_ok_and(|number| {
            // vim tries 4913 and, if that is taken, steps of 123 from it.
            (4913..10_000).contains(&number) && (number - 4913).is_multiple_of(123)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::operations::testing::TestArchive;

    #[test]
    fn staged_files_are_removed_with_their_names() {
        let archive = TestArchive::new();
        let staging = Staging::new(&archive).expect("a directory");
        let note = |name: &str| {
            let kept = staging.fresh_name(1).expect("allowed");
            let path = archive.path().join("staging").join(&kept);
            std::fs::write(&path, "x").expect("written");
            staging.note(NodeId(1), OsStr::new(name), kept.clone());
            (kept, path)
        };
        let (_, replaced) = note("a");
        let (kept, again) = note("a");
        assert!(!replaced.exists() && again.exists());
        assert_eq!(staging.find(NodeId(1), OsStr::new("a")), Some(kept.clone()));
        assert_eq!(staging.find(NodeId(2), OsStr::new("a")), None);
        assert_eq!(staging.take(NodeId(1), OsStr::new("a")), Some(kept));
        let (_, left) = note("b");
        drop(staging);
        assert!(!left.exists(), "at the unmount");
    }

    #[test]
    fn a_user_has_so_many_staged_names() {
        let archive = TestArchive::new();
        let staging = Staging::new(&archive).expect("a directory");
        for number in 0..MOST_OF_A_USER {
            let kept = staging.fresh_name(1).expect("allowed");
            staging.note(NodeId(1), OsStr::new(&number.to_string()), kept);
        }
        assert_eq!(staging.fresh_name(1), Err(Errno::DQUOT));
        assert!(staging.fresh_name(11).is_ok(), "another user");
        staging.take(NodeId(1), OsStr::new("0"));
        assert!(staging.fresh_name(1).is_ok());
    }

    #[test]
    fn only_names_that_tools_make_are_staged() {
        for name in [
            ".02.16.17.46:.Ab12Cd",
            "CuAb12Cd",
            "sedAb12Cd",
            "4913",
            "5036",
            "34PGRBS:~",
            ".34PGRBS:.swp",
            "#34PGRBS:#",
        ] {
            assert!(may_be_staged(name), "{name}");
        }
        for name in [
            "notes.txt",
            "report",
            "sedate",
            "#notes",
            "notes#",
            "Cuba",
            "5037",
            "34PGRBS",
            "02.16.17.46",
        ] {
            assert!(!may_be_staged(name), "{name}");
        }
    }
}
