//! The times for which the kernel may cache names and attributes.

use std::time::Duration;

use rustix::fs::FileType;

use crate::fuse::attr::Attr;
use crate::fuse::inode::{CloseNotice, Mapping, Node, NodeKind};
use crate::fuse::namespace::{Entry, NameLifetime};

/// The lifetime of what only we change; what becomes stale before its end is invalidated (`invalidator`).
pub(super) const CACHED: Duration = Duration::from_secs(60);

/// The same in a mount of a store that other hosts may change.
const CACHED_OF_SHARED: Duration = Duration::from_secs(1);

/// The lifetime of what does not change without the kernel's knowledge, if no other host changes it.
fn cached(node: &Node) -> Duration {
    if node.is_shared {
        CACHED_OF_SHARED
    } else {
        CACHED
    }
}

/// The lifetime of the attributes of a file that a mapping may still write although all its descriptors are closed.
/// POSIX lets the change of the times wait for msync(2), so that a moment is early enough; and a program that
/// has written a file asks for its attributes several times at once.
const MAPPING_MAY_REMAIN: Duration = Duration::from_millis(100);

/// The lifetime of the attributes of a file that is open so that a mapping may write it, if each close is seen: then
/// they are made stale. Until then a change of the times by a mapping may be seen as much later as on a disk whose
/// clock has this granularity, the usual tick of the kernel; the size is right at any time, since no mapping changes
/// it. A database asks for the size of its files several times in each statement (row `pgbench-select`).
const MAPPED: Duration = Duration::from_millis(4);

/// The lifetime of a name.
pub(super) fn of_name(entry: &Entry) -> Duration {
    match entry.lifetime {
        NameLifetime::UntilInvalidated => cached(&entry.node),
        NameLifetime::Uncached => Duration::ZERO,
    }
}

/// The lifetime of a node's attributes. The kernel must not cache what changes without its knowledge: a write
/// clears set-id bits, one through a mapping changes times and blocks, and the size of a generated text is
/// known only when it has been generated.
pub(super) fn of_attributes(node: &Node, attr: &Attr) -> Duration {
    let has_set_id = attr.kind == FileType::RegularFile && attr.permissions & 0o6000 != 0;
    let is_generated = matches!(node.kind, NodeKind::Generated(_));
    match node.learnt.mapping() {
        _ if has_set_id || is_generated => Duration::ZERO,
        Mapping::None => cached(node),
        Mapping::MayRemain => MAPPING_MAY_REMAIN,
        Mapping::Open(CloseNotice::Sent) => MAPPED,
        Mapping::Open(CloseNotice::None) => Duration::ZERO,
    }
}

/// The lifetime of the attributes that are returned with a name. They carry the node's number; if `stat`
/// reports another one, the kernel must ask for them, once, and gets that number in the answer.
pub(super) fn of_attributes_with_name(entry: &Entry) -> Duration {
    if entry.node.id.0 == entry.node.st_ino {
        of_attributes(&entry.node, &entry.attr)
    } else {
        Duration::ZERO
    }
}

/// The lifetime of the name and the attributes of a file that is made and opened, for which our library has one. No
/// mapping can have changed the file yet; the caller makes the attributes stale after the reply if one may.
pub(super) fn of_created(entry: &Entry) -> Duration {
    let has_set_id = entry.attr.permissions & 0o6000 != 0;
    if matches!(entry.node.learnt.mapping(), Mapping::Open(_)) && !has_set_id {
        of_name(entry)
    } else {
        of_both(entry)
    }
}

/// The lifetime where the protocol has one for both.
pub(super) fn of_both(entry: &Entry) -> Duration {
    of_name(entry).min(of_attributes_with_name(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::store::ItemId;
    use crate::fuse::inode::{Generated, MappableOpen, NodeTable, View};

    fn entry(kind: NodeKind, file_type: FileType, permissions: u16) -> Entry {
        let node = NodeTable::default().remember_virtual(View::Rep, kind);
        let root = Attr::of(std::fs::File::open("/").expect("the root")).expect("attributes");
        Entry {
            node,
            attr: Attr::virtual_like(&root, file_type, permissions, 0),
            lifetime: NameLifetime::UntilInvalidated,
        }
    }

    #[test]
    fn what_changes_without_the_kernel_is_not_cached() {
        let generated = NodeKind::Generated(Generated::FileList(ItemId(1)));
        let text = || NodeKind::Text(b"text".to_vec());
        for (entry, lifetime) in [
            (entry(text(), FileType::RegularFile, 0o444), CACHED),
            (entry(text(), FileType::RegularFile, 0o4755), Duration::ZERO),
            (entry(text(), FileType::RegularFile, 0o2755), Duration::ZERO),
            (entry(NodeKind::Mint, FileType::Directory, 0o2755), CACHED),
            (
                entry(generated, FileType::RegularFile, 0o444),
                Duration::ZERO,
            ),
        ] {
            assert_eq!(
                of_attributes(&entry.node, &entry.attr),
                lifetime,
                "{entry:?}"
            );
            assert_eq!(of_both(&entry), lifetime);
        }
    }

    #[test]
    fn what_a_mapping_may_change_is_cached_for_a_moment_after_the_last_close() {
        let file = || {
            let text = NodeKind::Text(b"text".to_vec());
            entry(text, FileType::RegularFile, 0o444)
        };
        let (made, uncached) = (
            file(),
            Entry {
                lifetime: NameLifetime::Uncached,
                ..file()
            },
        );
        for (entry, created) in [(made, CACHED), (uncached, Duration::ZERO)] {
            let open = [CloseNotice::None, CloseNotice::Sent, CloseNotice::Sent]
                .map(|notice| MappableOpen::new(&entry.node, notice));
            assert_eq!(of_attributes(&entry.node, &entry.attr), Duration::ZERO);
            assert_eq!(of_created(&entry), created);
            let [unseen, first, last] = open;
            drop(unseen);
            assert_eq!(of_attributes(&entry.node, &entry.attr), MAPPED);
            drop(first);
            assert_eq!(of_attributes(&entry.node, &entry.attr), MAPPED);
            drop(last);
            let lifetime = of_attributes(&entry.node, &entry.attr);
            assert_eq!(lifetime, MAPPING_MAY_REMAIN);
        }
    }

    #[test]
    fn a_name_that_may_change_its_meaning_is_not_cached() {
        let mut link = entry(NodeKind::Link(b"../a".to_vec()), FileType::Symlink, 0o777);
        assert_eq!(of_name(&link), CACHED);
        link.lifetime = NameLifetime::Uncached;
        assert_eq!(of_name(&link), Duration::ZERO);
        assert_eq!(of_both(&link), Duration::ZERO);
    }
}
