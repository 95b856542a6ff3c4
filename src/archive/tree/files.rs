//! The files below a directory of the store one by one, for a program that reads them all.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

use super::Action;
use super::place::failed;
use super::{Tree, TreeError};
use crate::os::deep::{DeepEntry, open_far, walk};

impl Tree {
    /// Opens something below the store by a path of any length, never through a symbolic link.
    pub fn open_far(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let (directory, below) = self.kept_above_bytes(path);
        open_far(directory, below, flags)
    }

    /// The state of what is at a path of any length, be it a symbolic link.
    pub fn stat_far(&self, path: &[u8]) -> Result<Stat, Errno> {
        let found = self.open_far(path, OFlags::PATH | OFlags::NOFOLLOW)?;
        rustix::fs::fstat(found)
    }

    /// Opens a file for reading it once, without waiting for a FIFO or changing the access time.
    pub fn open_to_read(&self, path: &[u8]) -> Result<File, Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        match self.open_far(path, flags | OFlags::NOATIME) {
            // Only the owner of a file may open it with O_NOATIME.
            Err(Errno::PERM) => self.open_far(path, flags),
            other => other,
        }
        .map(File::from)
    }

    /// Calls `visit` with every entry below a directory that is not a directory, by its relative path, and
    /// with the directories that cannot be read. ENOENT where the directory does not exist.
    pub fn each_deep_entry(
        &self,
        path: &str,
        visit: impl FnMut(DeepEntry),
    ) -> Result<(), TreeError> {
        let (directory, below) = self.kept_above_bytes(path.as_bytes());
        walk(directory, below, visit).map_err(failed(Action::List, path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::deep::HELD;
    use crate::os::testing::TemporaryDirectory;

    /// A tree deeper than the directories held open, with a second directory at every level to return to.
    #[test]
    fn a_deep_tree_is_met_whole() {
        const DEPTH: usize = 3 * HELD;
        let root = TemporaryDirectory::new();
        let tree = Tree::create(root.path()).expect("a store");
        tree.make_own_directories().expect("directories");
        let mut expected = Vec::new();
        let mut way = String::new();
        for level in 0..DEPTH {
            for other in ["b", "d"] {
                let aside = format!("{way}{other}{level}");
                std::fs::create_dir_all(root.join("col").join(&aside)).expect("a directory");
                std::fs::write(root.join("col").join(&aside).join("f"), "").expect("a file");
                expected.push(format!("{aside}/f").into_bytes());
            }
            way.push_str("c/");
        }
        let mut found = Vec::new();
        let walked = tree.each_deep_entry("col", |entry| match entry {
            DeepEntry::Entry(path) => found.push(path),
            DeepEntry::Unreadable(path, errno) => panic!("{path:?}: {errno}"),
        });
        assert!(walked.is_ok());
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
    }
}
