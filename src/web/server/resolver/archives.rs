//! The Archives that are asked: which there are, which of them have gone silent, and which answered last
//! for a prefix.

use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::web::client::archive_service::{ArchiveService, service_url};
use crate::web::registry::{ArchiveId, Maker, Registered};

/// For so many prefixes is known which Archive answered last.
const MOST_REMEMBERED: usize = 100_000;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Archives {
    included: RwLock<Arc<Vec<Arc<ArchiveService>>>>,
    /// How many are registered and not included: they give no answer.
    absent: AtomicUsize,
    /// By prefix, who answered last.
    remembered: Mutex<HashMap<String, ArchiveId>>,
    /// Who holds originals of which maker, as far as it is in the database.
    originals: Mutex<HashSet<(ArchiveId, Maker)>>,
}

impl Archives {
    /// Takes over who is included now; what is known of those who were stays.
    pub(super) fn replace(&self, registered: &[Registered]) {
        let known = self.all();
        let included = |archive: &Registered| {
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

    /// Who is included.
    pub(super) fn all(&self) -> Arc<Vec<Arc<ArchiveService>>> {
        Arc::clone(&self.included.read())
    }

    /// How many are registered and not included.
    pub(super) fn absent(&self) -> usize {
        self.absent.load(Ordering::Relaxed)
    }

    /// Notes that an Archive holds the original of an identifier; tells whether it may be the first with
    /// the prefix.
    pub(super) fn note_original(&self, maker: &Maker, archive: &ArchiveService) -> bool {
        let mut known = self.originals.lock();
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert((archive.id, maker.clone()))
    }

    /// Who answered last for an identifier with this one's prefix.
    pub(super) fn remembered(&self, ibi: &str) -> Option<Arc<ArchiveService>> {
        let id = *self.remembered.lock().get(prefix(ibi))?;
        self.all().iter().find(|known| known.id == id).cloned()
    }

    /// Remembers who answered.
    pub(super) fn remember(&self, ibi: &str, archive: &ArchiveService) {
        let mut remembered = self.remembered.lock();
        // It is soon learnt again.
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(prefix(ibi).to_owned(), archive.id);
    }
}

/// What the identifiers of one maker have in common: the first two parts of a rep, the first of an IBIp.
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
