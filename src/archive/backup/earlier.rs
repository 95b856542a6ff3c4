//! The generation before a new one.

use std::os::fd::OwnedFd;

use rustix::fs::OFlags;

use super::note::{FileTime, Sharing};
use crate::archive::tree::Tree;

/// The time of which each file counts as unchanged since.
pub(super) const ALWAYS: FileTime = (i64::MAX, 0);

/// The earlier generation.
pub(super) struct Earlier<'a> {
    pub(super) tree: &'a Tree,
    pub(super) since: FileTime,
    pub(super) sharing: Sharing,
}

impl<'a> Earlier<'a> {
    pub(super) fn new(tree: &'a Tree, since: FileTime) -> Earlier<'a> {
        Earlier {
            tree,
            since,
            sharing: Sharing::Blocks,
        }
    }

    /// Opens one of its directories.
    pub(super) fn directory(&self, path: &[u8]) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        self.tree.open_far(path, flags).ok()
    }
}
