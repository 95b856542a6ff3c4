//! The mode of the directories in which items lie, as it is shown and as it is on the disk.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::Access;

use super::Namespace;
use crate::archive::is_draft;
use crate::formats::tree_name::is_year;
use crate::fuse::inode::{Node, NodeKind};
use crate::fuse::inside::{self, ErrnoResult};
use crate::os::caller::Caller;

/// The access control list that holds the same bits as the mode.
pub(super) const ACL: &str = "system.posix_acl_access";

/// The tag of the entry for all other users in such a list.
const OTHERS: u8 = 0x20;

/// The mode on the disk for a mode that was shown or asked for.
pub(super) fn as_on_disk(mode: u32) -> u32 {
    match mode & 0o1222 {
        0o1222 => mode & !0o1022,
        _ => mode,
    }
}

impl Namespace {
    /// The mode to set where one is asked for; None if it is the one shown already. A tool that copies a
    /// level sets the mode that it has seen, which must not open the level on the disk.
    pub(super) fn mode_to_keep(&self, node: &Node, mode: u32) -> Option<u32> {
        match &node.kind {
            NodeKind::Level(path) if is_year(path) => {
                let shown = self.attributes(node).map(|attr| attr.permissions);
                let is_shown = shown.is_ok_and(|shown| u32::from(shown) == mode & 0o7777);
                (!is_shown).then(|| as_on_disk(mode))
            }
            _ if self.stays_draft(node) => Some(mode & !0o007),
            _ => Some(mode),
        }
    }

    /// Whether a program that deposits must not open a new item, where new items are drafts: `cp -a DIR .mint/` gives it
    /// the mode of `DIR` at its end. By its own names its owner may.
    fn stays_draft(&self, node: &Node) -> bool {
        matches!(node.kind, NodeKind::Item(_))
            && node.view.is_deposit()
            && self.archive.facts().drafts
            && self
                .attributes(node)
                .is_ok_and(|attr| is_draft(attr.permissions.into()))
    }

    /// The same for an access control list that says no more than a mode.
    pub(super) fn list_to_keep(&self, node: &Node, name: &OsStr, list: &[u8]) -> Vec<u8> {
        let mut list = list.to_vec();
        if name == ACL && self.stays_draft(node) {
            // After a version, entries of a tag, permissions and a number.
            for entry in list.get_mut(4..).unwrap_or_default().chunks_exact_mut(8) {
                if let [OTHERS, 0, permissions, ..] = entry {
                    *permissions = 0;
                }
            }
        }
        // A version, then a tag, permissions and a number each: owner, group, others.
        let is_mode = name == ACL && list.len() == 4 + 3 * 8;
        if is_mode
            && matches!(&node.kind, NodeKind::Level(path) if is_year(path))
            && [6, 14, 22]
                .iter()
                .all(|at| list.get(*at).is_some_and(|bits| bits & 2 != 0))
        {
            for at in [14, 22] {
                if let Some(bits) = list.get_mut(at) {
                    *bits &= !2;
                }
            }
        }
        list
    }

    /// EACCES if a caller may not make a name in a directory in which items lie, which is shown as open to
    /// all users.
    pub(super) fn check_making(&self, caller: &Caller, parent: &Node) -> ErrnoResult<()> {
        let access = Access::WRITE_OK | Access::EXEC_OK;
        match &parent.kind {
            NodeKind::Prefix(_) => inside::check_access(self.collection.as_fd(), access, caller),
            NodeKind::Level(_) => inside::check_access(parent.file()?.as_fd(), access, caller),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::tree::shown_to_declare;

    #[test]
    fn years_are_shown_as_open_with_the_sticky_bit() {
        for (on_disk, shown) in [
            (0o755, 0o1777),
            (0o775, 0o1777),
            (0o700, 0o1722),
            (0o777, 0o777),
            (0o2755, 0o3777),
        ] {
            assert_eq!(shown_to_declare(on_disk), shown, "{on_disk:o}");
        }
        for (asked, on_disk) in [
            (0o1777, 0o755),
            (0o1722, 0o700),
            (0o755, 0o755),
            (0o777, 0o777),
            (0o1755, 0o1755),
        ] {
            assert_eq!(as_on_disk(asked), on_disk, "{asked:o}");
        }
    }
}
