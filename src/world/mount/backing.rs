//! FUSE passthrough: the kernel reads a complete and verified file of the cache itself.
//!
//! A node whose file is open is read in one way by all who have it open: the kernel allows no other. One that was
//! opened when its file was not complete is read through this process until the last one has closed it.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fuser::BackingId;
use parking_lot::Mutex;

use crate::world::cache::InUse;

/// A file that the kernel reads.
#[derive(Debug)]
pub(crate) struct CachedFileBacking {
    pub(crate) id: BackingId,
    whole: InUse,
}

/// The way in which an open file is read.
#[derive(Clone, Debug)]
pub(crate) enum ReadRoute {
    /// By the kernel.
    Kernel(Arc<CachedFileBacking>),
    /// By this process, through the kernel's cache.
    Cached,
    /// Not at all: the kernel reads a file that is no longer what was verified, and would do so for this one, too.
    Refused,
}

#[derive(Debug)]
enum OpenRoute {
    Kernel(Arc<CachedFileBacking>, u64),
    Process(u64),
}

/// The way in which each open file of a mount is read.
#[derive(Debug)]
pub(crate) struct CachedFileBackings {
    ways: Mutex<HashMap<u64, OpenRoute>>,
    is_off: AtomicBool,
}

impl CachedFileBackings {
    /// Nothing is open. The kernel lets root alone register files.
    pub(crate) fn new() -> CachedFileBackings {
        let is_root = rustix::process::geteuid().is_root();
        CachedFileBackings {
            ways: Mutex::default(),
            is_off: AtomicBool::new(!is_root),
        }
    }

    /// The kernel reads no file.
    pub(crate) fn give_up(&self, why: &str) {
        if !self.is_off.swap(true, Ordering::Relaxed) {
            log::info!("files are read through the process: {why}");
        }
    }

    /// Whether the kernel may read files.
    pub(crate) fn is_on(&self) -> bool {
        !self.is_off.load(Ordering::Relaxed)
    }

    /// Decides how a node that is being opened is read.
    pub(crate) fn open(
        &self,
        node: u64,
        whole: impl FnOnce() -> Option<InUse>,
        register: impl FnOnce(BorrowedFd<'_>) -> std::io::Result<BackingId>,
    ) -> ReadRoute {
        // It is verified here, at each open.
        let whole = if self.is_on() { whole() } else { None };
        let mut ways = self.ways.lock();
        match (ways.get_mut(&node), whole) {
            (Some(OpenRoute::Process(count)), _) => {
                *count += 1;
                ReadRoute::Cached
            }
            (Some(OpenRoute::Kernel(backing, count)), whole) => {
                *count += 1;
                match whole {
                    Some(whole) if is_same(&whole, &backing.whole) => {
                        ReadRoute::Kernel(Arc::clone(backing))
                    }
                    _ => {
                        *count -= 1;
                        ReadRoute::Refused
                    }
                }
            }
            (None, Some(whole)) => match register(whole.file.as_fd()) {
                Ok(id) => {
                    let backing = Arc::new(CachedFileBacking { id, whole });
                    ways.insert(node, OpenRoute::Kernel(Arc::clone(&backing), 1));
                    ReadRoute::Kernel(backing)
                }
                Err(error) => {
                    self.give_up(&error.to_string());
                    ways.insert(node, OpenRoute::Process(1));
                    ReadRoute::Cached
                }
            },
            (None, None) => {
                ways.insert(node, OpenRoute::Process(1));
                ReadRoute::Cached
            }
        }
    }

    /// Returns the number of files that the kernel reads.
    pub(crate) fn count(&self) -> usize {
        let ways = self.ways.lock();
        let ways = ways.values();
        ways.filter(|way| matches!(way, OpenRoute::Kernel(..)))
            .count()
    }

    /// One who had a node open has closed it.
    pub(crate) fn close(&self, node: u64) {
        let mut ways = self.ways.lock();
        let Some(OpenRoute::Kernel(_, count) | OpenRoute::Process(count)) = ways.get_mut(&node)
        else {
            return;
        };
        *count -= 1;
        let gone = if *count == 0 {
            ways.remove(&node)
        } else {
            None
        };
        drop(ways);
        drop(gone);
    }
}

fn is_same(one: &InUse, other: &InUse) -> bool {
    let number = |whole: &InUse| whole.file.metadata().map(|about| about.ino()).ok();
    number(one).is_some() && number(one) == number(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_in_one_way_until_all_have_closed_it() {
        let backings = CachedFileBackings {
            ways: Mutex::default(),
            is_off: AtomicBool::new(false),
        };
        let refused = |_: BorrowedFd<'_>| Err(std::io::ErrorKind::PermissionDenied.into());
        let directory = crate::os::testing::TemporaryDirectory::new();
        let cache = crate::world::cache::Cache::open(&directory.join("c"), None).expect("a cache");
        let bytes = b"abc";
        let digest = crate::formats::fixity::Digest(
            sha2::Digest::finalize(sha2::Digest::chain_update(
                <sha2::Sha256 as sha2::Digest>::new(),
                bytes,
            ))
            .into(),
        );
        let reserved = cache.reserve(3).expect("room");
        cache.put_piece(reserved, &digest, bytes);
        let whole = || cache.whole(&[digest], 3);
        assert!(whole().is_some());
        let way = backings.open(1, || None, refused);
        assert!(matches!(way, ReadRoute::Cached));
        assert!(
            matches!(backings.open(1, whole, refused), ReadRoute::Cached),
            "as before"
        );
        assert!(backings.is_on(), "the kernel was not asked");
        backings.close(1);
        backings.close(1);
        backings.close(1);
        assert!(matches!(
            backings.open(1, whole, refused),
            ReadRoute::Cached
        ));
        assert!(!backings.is_on(), "the kernel refuses");
        assert_eq!(backings.count(), 0);
    }
}
