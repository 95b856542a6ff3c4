//! The Archives that a resolver asks, registered ones and those of lists, and which of the registered ones
//! answered last for a prefix.

use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::formats::base_url::BaseUrl;
use crate::formats::federation::{self, FederatedArchive};
use crate::formats::item::Names;
use crate::web::client::archive_service::{ArchiveService, Reach, service_url};
use crate::web::registry::{ArchiveId, IdentifierMaker, RegisteredArchive};

/// The most prefixes for which the last answer is remembered.
const MOST_REMEMBERED: usize = 100_000;

type Services = Arc<Vec<Arc<ArchiveService>>>;

/// The lists, and the Archives that have precedence over those of lists.
#[derive(Debug, Default)]
struct Sources {
    registered: Vec<RegisteredArchive>,
    lists: Vec<FederatedList>,
}

/// A list that is in force.
#[derive(Debug)]
struct FederatedList {
    reach: Reach,
    archives: Vec<FederatedArchive>,
}

/// The Archives of a resolver.
#[derive(Debug, Default)]
pub(super) struct Archives {
    included: RwLock<Services>,
    /// The Archives of lists that are asked.
    federated: RwLock<Services>,
    /// What [`Self::federated`] is made from.
    sources: Mutex<Sources>,
    /// The included Archives, as the list that is published.
    published: RwLock<Arc<str>>,
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
            let at = &archive.included.as_ref()?.url;
            let url = service_url(at, &archive.service);
            let is_known =
                |known: &&Arc<ArchiveService>| known.id == Some(archive.id) && known.url == url;
            Some(known.iter().find(is_known).map_or_else(
                || {
                    let id = Some(archive.id);
                    Arc::new(ArchiveService::new(id, Reach::Any, at, &archive.service))
                },
                Arc::clone,
            ))
        };
        let included: Vec<Arc<ArchiveService>> = registered.iter().filter_map(included).collect();
        let absent = registered.len() - included.len();
        self.absent.store(absent, Ordering::Relaxed);
        *self.included.write() = Arc::new(included);
        let published = registered.iter().filter_map(|archive| {
            Some(FederatedArchive {
                url: archive.included.as_ref()?.url.clone(),
                service: archive.service.clone(),
            })
        });
        let published: Vec<FederatedArchive> = published.collect();
        *self.published.write() = federation::written(&published).into();
        let mut sources = self.sources.lock();
        sources.registered = registered.to_vec();
        self.settle(&sources);
    }

    /// Adds an empty list, after all others in precedence.
    pub(super) fn add_list(&self, reach: Reach) {
        let archives = Vec::new();
        self.sources
            .lock()
            .lists
            .push(FederatedList { reach, archives });
    }

    /// Puts a list in force in the place of its last version. Returns whether it differs.
    pub(super) fn federate(&self, list: usize, archives: Vec<FederatedArchive>) -> bool {
        let mut sources = self.sources.lock();
        match sources.lists.get_mut(list) {
            Some(list) if list.archives != archives => list.archives = archives,
            _ => return false,
        }
        self.settle(&sources);
        true
    }

    /// Finds the Archives of lists that are asked: those that are not registered, at this address or any
    /// other, and are not on an earlier list. The state of those that remain is kept.
    fn settle(&self, sources: &Sources) {
        let known = self.federated();
        let mut taken: Vec<(&Names, Option<&BaseUrl>)> = Vec::new();
        taken.extend(sources.registered.iter().map(|archive| {
            let included = archive.included.as_ref();
            (&archive.service, included.map(|included| &included.url))
        }));
        let mut asked = Vec::new();
        for list in &sources.lists {
            for archive in &list.archives {
                let (service, place) = (&archive.service, &archive.url);
                let is_taken = taken.iter().any(|(other, at)| {
                    other.matches(service) || at.is_some_and(|at| at.is_same_place(place))
                });
                if is_taken {
                    continue;
                }
                taken.push((service, Some(place)));
                let url = service_url(place, service);
                let is_known =
                    |known: &&Arc<ArchiveService>| known.reach == list.reach && known.url == url;
                asked.push(known.iter().find(is_known).map_or_else(
                    || Arc::new(ArchiveService::new(None, list.reach, place, service)),
                    Arc::clone,
                ));
            }
        }
        *self.federated.write() = Arc::new(asked);
    }

    /// The Archives of lists that are asked.
    pub(super) fn federated(&self) -> Services {
        Arc::clone(&self.federated.read())
    }

    /// The list that the resolver publishes: the included Archives.
    pub(super) fn published(&self) -> Arc<str> {
        Arc::clone(&self.published.read())
    }

    /// The included Archives.
    pub(super) fn all(&self) -> Services {
        Arc::clone(&self.included.read())
    }

    /// The number of Archives that are registered and not included.
    pub(super) fn absent(&self) -> usize {
        self.absent.load(Ordering::Relaxed)
    }

    /// Notes that an Archive holds an original of a maker. Returns whether that is new since the last start
    /// or overflow.
    pub(super) fn note_original(&self, maker: &IdentifierMaker, archive: ArchiveId) -> bool {
        let mut known = self.originals.lock();
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert((archive, maker.clone()))
    }

    /// The Archive that answered last for an identifier with the same prefix.
    pub(super) fn remembered(&self, ibi: &str) -> Option<Arc<ArchiveService>> {
        let id = *self.remembered.lock().get(prefix(ibi))?;
        self.all()
            .iter()
            .find(|known| known.id == Some(id))
            .cloned()
    }

    /// Remembers the Archive that answered, if it is registered: one of a list is not asked before those.
    pub(super) fn remember(&self, ibi: &str, archive: &ArchiveService) {
        let Some(id) = archive.id else {
            return;
        };
        let mut remembered = self.remembered.lock();
        // The map is soon filled again.
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(prefix(ibi).to_owned(), id);
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
