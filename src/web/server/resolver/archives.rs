//! The Archives that a resolver asks, and which of them answered last for a prefix.

use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::web::client::archive_service::{ArchiveService, service_url};
use crate::web::registry::{ArchiveId, IdentifierMaker, RegisteredArchive};

/// The most prefixes for which the last answer is remembered.
const MOST_REMEMBERED: usize = 100_000;

/// The Archives of a resolver.
#[derive(Debug, Default)]
pub(super) struct Archives {
    included: RwLock<Arc<Vec<Arc<ArchiveService>>>>,
    /// The number of Archives that are registered and not included. They cannot answer.
    absent: AtomicUsize,
    /// The Archive that answered last, by prefix.
    remembered: Mutex<HashMap<String, ArchiveId>>,
    /// The Archives that hold originals of a maker, as far as recorded in the database by this process.
    originals: Mutex<HashSet<(ArchiveId, IdentifierMaker)>>,
}

impl Archives {
    /// Replaces the included Archives. The state of those that remain is kept.
    pub(super) fn replace(&self, registered: &[RegisteredArchive]) {
        let known = self.all();
        let included = |archive: &RegisteredArchive| {
            let address = &archive.included.as_ref()?.address;
            let url = service_url(address, &archive.service);
            let is_known =
                |known: &&Arc<ArchiveService>| known.id == archive.id && known.url == url;
            Some(known.iter().find(is_known).map_or_else(
                || Arc::new(ArchiveService::new(archive.id, address, &archive.service)),
                Arc::clone,
            ))
        };
        let included: Vec<Arc<ArchiveService>> = registered.iter().filter_map(included).collect();
        let absent = registered.len() - included.len();
        self.absent.store(absent, Ordering::Relaxed);
        *self.included.write() = Arc::new(included);
    }

    /// The included Archives.
    pub(super) fn all(&self) -> Arc<Vec<Arc<ArchiveService>>> {
        Arc::clone(&self.included.read())
    }

    /// The number of Archives that are registered and not included.
    pub(super) fn absent(&self) -> usize {
        self.absent.load(Ordering::Relaxed)
    }

    /// Notes that an Archive holds an original of a maker. Returns whether that is new since the last start
    /// or overflow.
    pub(super) fn note_original(&self, maker: &IdentifierMaker, archive: &ArchiveService) -> bool {
        let mut known = self.originals.lock();
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert((archive.id, maker.clone()))
    }

    /// The Archive that answered last for an identifier with the same prefix.
    pub(super) fn remembered(&self, ibi: &str) -> Option<Arc<ArchiveService>> {
        let id = *self.remembered.lock().get(prefix(ibi))?;
        self.all().iter().find(|known| known.id == id).cloned()
    }

    /// Remembers the Archive that answered.
    pub(super) fn remember(&self, ibi: &str, archive: &ArchiveService) {
        let mut remembered = self.remembered.lock();
        // The map is soon filled again.
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(prefix(ibi).to_owned(), archive.id);
    }
}

/// The common part of one maker's identifiers: the first two components of a rep, the first of an IBIp.
fn prefix(ibi: &str) -> &str {
    let slashes: Vec<usize> = ibi.match_indices('/').map(|(at, _)| at).collect();
    let end = match slashes.as_slice() {
        [_, second, _] => *second,
        [first, ..] => *first,
        [] => ibi.len(),
    };
    ibi.get(..end).unwrap_or(ibi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        assert_eq!(
            prefix("sid.inpe.br/mtc-m18@80/2009/02.16.17.46"),
            "sid.inpe.br/mtc-m18@80"
        );
        assert_eq!(prefix("8JMKD3MGP8W/34PGRBS"), "8JMKD3MGP8W");
        assert_eq!(prefix("x"), "x");
    }
}
