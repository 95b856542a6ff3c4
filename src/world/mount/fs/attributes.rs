//! The attributes of a node, and how long the kernel keeps them.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo};

use super::{BLOCK, WorldInner};
use crate::formats::inventory::EntryKind;
use crate::formats::tree_name::LevelPath;
use crate::world::error::ForeignError;
use crate::world::mount::meaning::target_of;
use crate::world::mount::nodes::{ForeignNodeKind, Inside};

/// The time that the kernel keeps names and attributes. A change before that makes them stale.
const KEPT: Duration = Duration::from_secs(60);
/// The same for a link or a text that a modifier leads to, and for the levels of an Archive, which are kept here.
const KEPT_BRIEFLY: Duration = Duration::from_secs(1);

impl WorldInner {
    pub(super) fn attributes(&self, id: u64, kind: &ForeignNodeKind) -> FileAttr {
        let of = |kind, perm, size: u64, links| FileAttr {
            ino: INodeNo(id),
            size,
            blocks: size.div_ceil(512),
            atime: self.since,
            mtime: self.since,
            ctime: self.since,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: links,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: BLOCK,
            flags: 0,
        };
        match kind {
            ForeignNodeKind::Level(path) => {
                match (self.namespace.level_stat(kind), &self.namespace.levels) {
                    (Some(stat), _) => {
                        let modified = time(stat.modified);
                        FileAttr {
                            atime: modified,
                            mtime: modified,
                            ctime: modified,
                            ..of(FileType::Directory, stat.mode, 0, 2)
                        }
                    }
                    (None, Some(_)) => of(FileType::Directory, 0o555, 0, 2),
                    // The kernel lets a user read the root's attribute only if the user may read the root.
                    (None, None) if *path == LevelPath::Root => {
                        of(FileType::Directory, 0o555, 0, 2)
                    }
                    // Nothing lists their entries.
                    (None, None) => of(FileType::Directory, 0o111, 0, 2),
                }
            }
            ForeignNodeKind::Unseen(..) => of(FileType::Directory, 0o555, 0, 2),
            ForeignNodeKind::Link(target) => of(FileType::Symlink, 0o777, target.len() as u64, 1),
            ForeignNodeKind::Text(text) => of(FileType::RegularFile, 0o444, text.length, 1),
            ForeignNodeKind::Inside(inside) => {
                let entry = &inside.entry;
                let (kind, size) = match &entry.kind {
                    EntryKind::Directory => (FileType::Directory, 0),
                    EntryKind::File(file) => (FileType::RegularFile, file.size),
                    EntryKind::Text(text) => (FileType::RegularFile, text.len() as u64),
                    EntryKind::Link(_) => {
                        let length = target_of(inside).map_or(0, |target| target.len());
                        (FileType::Symlink, length as u64)
                    }
                    EntryKind::Fifo => (FileType::NamedPipe, 0),
                    EntryKind::Socket => (FileType::Socket, 0),
                };
                let modified = time(entry.stat.modified);
                FileAttr {
                    atime: modified,
                    mtime: modified,
                    ctime: modified,
                    ..of(kind, entry.stat.mode, size, inside.links)
                }
            }
        }
    }

    pub(super) fn lifetime(&self, kind: &ForeignNodeKind) -> Duration {
        match kind {
            ForeignNodeKind::Link(_) | ForeignNodeKind::Text(_) => KEPT_BRIEFLY,
            // It is looked up at each use.
            ForeignNodeKind::Unseen(..) => Duration::ZERO,
            ForeignNodeKind::Level(_) if self.namespace.levels.is_some() => KEPT_BRIEFLY,
            _ => KEPT,
        }
    }

    /// Returns what a node is now: a directory may have other entries and times than when it was looked up.
    pub(super) fn current(kind: &ForeignNodeKind) -> Result<ForeignNodeKind, ForeignError> {
        let ForeignNodeKind::Inside(found) = kind else {
            return Ok(kind.clone());
        };
        if found.entry.kind != EntryKind::Directory {
            return Ok(kind.clone());
        }
        let item = found.slot.value().ok_or(ForeignError::Changed)?;
        let position = item.inventory.position(&found.entry.path);
        let position = position.ok_or(ForeignError::Changed)?;
        let entry = Arc::clone(item.inventory.entry(position));
        if entry.kind != EntryKind::Directory {
            return Err(ForeignError::Changed);
        }
        let (_, links) = item.inventory.first_name(position);
        Ok(ForeignNodeKind::Inside(Inside {
            entry,
            item,
            links,
            ..found.clone()
        }))
    }
}

fn time((seconds, nanoseconds): (i64, u32)) -> SystemTime {
    let part = Duration::from_nanos(nanoseconds.into());
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    at.and_then(|at| at.checked_add(part)).unwrap_or(UNIX_EPOCH)
}

pub(super) fn type_of(kind: &ForeignNodeKind) -> FileType {
    match kind {
        ForeignNodeKind::Link(_) => FileType::Symlink,
        ForeignNodeKind::Text(_) => FileType::RegularFile,
        ForeignNodeKind::Inside(inside) => match inside.entry.kind {
            EntryKind::Directory => FileType::Directory,
            EntryKind::File(_) | EntryKind::Text(_) => FileType::RegularFile,
            EntryKind::Link(_) => FileType::Symlink,
            EntryKind::Fifo => FileType::NamedPipe,
            EntryKind::Socket => FileType::Socket,
        },
        _ => FileType::Directory,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_and_beyond_the_clock_are_shown() {
        for (seconds, nanoseconds, expected) in [
            (0, 0, Some(Duration::ZERO)),
            (1, 5, Some(Duration::new(1, 5))),
            (i64::MAX, 0, None),
        ] {
            let at = time((seconds, nanoseconds));
            let since = at.duration_since(UNIX_EPOCH).ok();
            assert_eq!(since, expected.or(since), "{seconds}");
        }
        let before = UNIX_EPOCH
            .duration_since(time((-2, 500_000_000)))
            .expect("before 1970");
        assert_eq!(before, Duration::from_millis(1500));
    }
}
