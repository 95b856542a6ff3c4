//! Listing open directories, with or without attributes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::{FileType, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use parking_lot::Mutex;

use super::attributes::type_of;
use super::{GENERATION, WorldInner, errno};
use crate::formats::tree_name::LevelPath;
use crate::world::error::ForeignError;
use crate::world::mount::listed::node_of;
use crate::world::mount::namespace::{ForeignEntries, ForeignEntry};
use crate::world::mount::nodes::ForeignNodeKind;
use crate::world::remote::levels::RemoteListing;
use crate::world::remote::requests::READ_TIMEOUT;

/// An open directory: its entries do not change while it is read.
#[derive(Debug)]
pub(super) struct ForeignDirectory {
    id: u64,
    entries: OpenEntries,
}

#[derive(Debug)]
enum OpenEntries {
    All(Vec<ForeignEntry>),
    /// Those of a level, as far as they have been fetched.
    Level(Mutex<Arc<RemoteListing>>),
}

impl ForeignDirectory {
    pub(super) fn new(id: u64, entries: ForeignEntries) -> ForeignDirectory {
        let entries = match entries {
            ForeignEntries::All(entries) => OpenEntries::All(entries),
            ForeignEntries::Level(listing) => OpenEntries::Level(Mutex::new(listing)),
        };
        ForeignDirectory { id, entries }
    }

    /// The listing of a level that has more names than have been fetched.
    fn begun(&self) -> Option<Arc<RemoteListing>> {
        match &self.entries {
            OpenEntries::All(_) => None,
            OpenEntries::Level(listing) => {
                let listing = Arc::clone(&listing.lock());
                (!listing.is_complete()).then_some(listing)
            }
        }
    }

    /// Calls `add` with the entries from an offset on, each with the offset of the next one, until it returns true.
    /// Returns how many there were.
    fn each(
        &self,
        offset: u64,
        mut add: impl FnMut(u64, &[u8], Option<ForeignNodeKind>) -> bool,
    ) -> usize {
        let first = usize::try_from(offset).unwrap_or(usize::MAX);
        let listing = match &self.entries {
            OpenEntries::All(_) => None,
            OpenEntries::Level(listing) => Some(Arc::clone(&listing.lock())),
        };
        let mut count = 0;
        for at in first.. {
            let next = u64::try_from(at).unwrap_or(u64::MAX).saturating_add(1);
            let is_full = match (at, &self.entries, &listing) {
                (0, ..) => add(next, b".", None),
                (1, ..) => add(next, b"..", None),
                (_, OpenEntries::All(entries), _) => match entries.get(at - 2) {
                    Some(listed) => add(next, &listed.name, Some(listed.kind.clone())),
                    None => break,
                },
                (_, _, Some(listing)) => match listing.get(at - 2) {
                    Some(name) => match node_of(listing, name) {
                        Some(kind) => add(next, name.name.as_bytes(), Some(kind)),
                        None => continue,
                    },
                    None => break,
                },
                _ => break,
            };
            count += 1;
            if is_full {
                break;
            }
        }
        count
    }
}

/// The reply to one of both kinds of request.
pub(super) enum ListingReply {
    Names(ReplyDirectory),
    Attributes(ReplyDirectoryPlus),
}

impl ListingReply {
    fn ok(self) {
        match self {
            ListingReply::Names(reply) => reply.ok(),
            ListingReply::Attributes(reply) => reply.ok(),
        }
    }

    pub(super) fn error(self, error: fuser::Errno) {
        match self {
            ListingReply::Names(reply) => reply.error(error),
            ListingReply::Attributes(reply) => reply.error(error),
        }
    }
}

impl WorldInner {
    /// Lists a directory from an offset on. None if that was possible without a request.
    pub(super) fn list_now(
        &self,
        directory: &ForeignDirectory,
        offset: u64,
        mut reply: ListingReply,
    ) -> Option<ListingReply> {
        if self.fill(directory, offset, &mut reply) == 0 && directory.begun().is_some() {
            return Some(reply);
        }
        reply.ok();
        None
    }

    /// Lists a level from an offset on that has not been fetched so far.
    pub(super) async fn list_more(
        &self,
        directory: &ForeignDirectory,
        offset: u64,
        mut reply: ListingReply,
    ) {
        let until = Instant::now() + READ_TIMEOUT;
        while let Some(begun) = directory.begun() {
            let longer = if Instant::now() < until {
                self.namespace.longer(&begun).await
            } else {
                Err(ForeignError::Unreachable("the level has no end".to_owned()))
            };
            match longer {
                Ok(longer) => {
                    if let OpenEntries::Level(listing) = &directory.entries {
                        *listing.lock() = longer;
                    }
                }
                Err(trouble) => {
                    log::info!("a listing: {trouble}");
                    return reply.error(errno(&trouble));
                }
            }
            if self.fill(directory, offset, &mut reply) > 0 {
                break;
            }
        }
        reply.ok();
    }

    /// Adds the entries that are known to a reply, and returns how many there were.
    fn fill(&self, directory: &ForeignDirectory, offset: u64, reply: &mut ListingReply) -> usize {
        let nodes = &self.namespace.nodes;
        directory.each(offset, |next, name, kind| {
            let name = OsStr::from_bytes(name);
            match reply {
                ListingReply::Names(reply) => {
                    let (number, kind) = match &kind {
                        Some(kind) => (nodes.number_of(kind), type_of(kind)),
                        None => (directory.id, FileType::Directory),
                    };
                    reply.add(INodeNo(number), next, kind, name)
                }
                ListingReply::Attributes(reply) => match kind {
                    Some(kind) => {
                        let node = nodes.remember(kind);
                        let attr = self.attributes(node.id, &node.kind);
                        let kept = self.lifetime(&node.kind);
                        let number = INodeNo(node.id);
                        let is_full = reply.add(number, next, name, &kept, &attr, GENERATION);
                        if is_full {
                            nodes.forget(node.id, 1);
                        }
                        is_full
                    }
                    // The kernel counts no lookup of these.
                    None => {
                        let attr =
                            self.attributes(directory.id, &ForeignNodeKind::Level(LevelPath::Root));
                        let number = INodeNo(directory.id);
                        reply.add(number, next, name, &Duration::ZERO, &attr, GENERATION)
                    }
                },
            }
        })
    }
}
