//! The Archives that a resolver asks: those registered with it or with its peers, those of lists, and which of
//! them probably answers for a prefix.

use parking_lot::{Mutex, RwLock};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::memory::{MOST_PREFIXES, Memory, prefix};
use super::sources::{PeerArchives, Sources};
use crate::archive_service::{ArchiveService, service_key};
use crate::registry::{ArchiveId, IdentifierMaker, RegisteredArchive};
use ibi::Ibi;
use ibifs_formats::federation::FederatedArchive;
use ibifs_formats::item::Names;
use ibifs_http::client::Reach;

/// The most Archives that are asked before all others.
const MOST_LIKELY: usize = 4;
/// The most Archives that say that they have a prefix, of which any is asked before all others.
const MOST_CLAIMANTS: usize = 3;

/// An Archive that probably answers.
#[derive(Clone, Debug)]
pub(super) struct LikelyArchive {
    pub(super) archive: Arc<ArchiveService>,
    /// Whether it has answered for the prefix, or the prefix is that of its own service. The announcement
    /// of a prefix proves nothing.
    pub(super) is_proven: bool,
}

/// Archives that are asked, and how they are found.
#[derive(Debug, Default)]
struct Asked {
    all: Arc<Vec<Arc<ArchiveService>>>,
    by_service: HashMap<String, usize>,
    /// Archives with a prefix in the identifier of their service, by the prefix.
    own: HashMap<String, Vec<usize>>,
    /// Archives that announce a prefix.
    announced: HashMap<String, Vec<usize>>,
}

/// The Archives of a resolver.
#[derive(Debug, Default)]
pub(super) struct Archives {
    /// The Archives that are registered here or with a peer.
    included: RwLock<Arc<Asked>>,
    /// The Archives of lists.
    federated: RwLock<Arc<Asked>>,
    /// The sources from which both are made.
    sources: Mutex<Sources>,
    /// The number of Archives that are known to exist and cannot be asked.
    absent: AtomicUsize,
    /// The makers of identifiers that are Archives registered with peers.
    of_peers: RwLock<HashSet<IdentifierMaker>>,
    /// The services of the Archives that are registered here or with a peer, by whose identifiers these have.
    makers: RwLock<HashMap<IdentifierMaker, Vec<String>>>,
    /// The included Archives that have answered.
    memory: Memory,
    /// The Archives of lists that have answered.
    of_lists: Memory,
    /// The Archives that hold originals of a maker, as far as recorded in the database by this process.
    originals: Mutex<HashSet<(ArchiveId, IdentifierMaker)>>,
}

impl Archives {
    /// Replaces the Archives that are registered here. The state of those that remain is kept.
    pub(super) fn replace(&self, registered: &[RegisteredArchive]) {
        let mut sources = self.sources.lock();
        sources.registered = registered.to_vec();
        self.settle(&sources);
    }

    /// Adds an empty list, after all others in precedence.
    pub(super) fn add_list(&self, reach: Reach) {
        self.sources.lock().lists.push((reach, Vec::new()));
    }

    /// Puts a list in force in the place of its last version. Returns whether it differs.
    pub(super) fn federate(&self, list: usize, archives: Vec<FederatedArchive>) -> bool {
        let mut sources = self.sources.lock();
        match sources.lists.get_mut(list) {
            Some((_, list)) if *list != archives => *list = archives,
            _ => return false,
        }
        self.settle(&sources);
        true
    }

    /// Adds a peer whose list is not known yet, after all others in precedence.
    pub(super) fn add_peer(&self, reach: Reach) {
        self.sources.lock().peers.push((reach, None));
    }

    /// Puts the list of a peer in force. Returns whether it differs.
    pub(super) fn exchange(&self, peer: usize, archives: PeerArchives) -> bool {
        let mut sources = self.sources.lock();
        match sources.peers.get_mut(peer) {
            Some((_, known)) if known.as_ref() != Some(&archives) => *known = Some(archives),
            _ => return false,
        }
        self.settle(&sources);
        true
    }

    /// Finds the Archives that are asked. The state of those that remain is kept.
    fn settle(&self, sources: &Sources) {
        let places = sources.places();
        let (included, federated) = (self.included(), self.lists());
        *self.included.write() = Arc::new(Asked::new(&places.included, &included));
        *self.federated.write() = Arc::new(Asked::new(&places.federated, &federated));
        let absent = places.absent.len() + places.unknown;
        self.absent.store(absent, Ordering::Relaxed);
        let of_peers = places.included.iter().filter(|place| place.id.is_none());
        let makers = of_peers.flat_map(|place| IdentifierMaker::of_names(place.service));
        *self.of_peers.write() = makers.collect();
        let registered = sources.registered.iter().map(|archive| &archive.service);
        let included = places.included.iter().map(|place| place.service);
        let all = included.chain(places.absent.iter().copied());
        *self.makers.write() = makers_of(registered, all);
    }

    fn included(&self) -> Arc<Asked> {
        Arc::clone(&self.included.read())
    }

    fn lists(&self) -> Arc<Asked> {
        Arc::clone(&self.federated.read())
    }

    /// The Archives of lists that are asked.
    pub(super) fn federated(&self) -> Arc<Vec<Arc<ArchiveService>>> {
        Arc::clone(&self.federated.read().all)
    }

    /// The Archives that are included here or with a peer.
    pub(super) fn all(&self) -> Arc<Vec<Arc<ArchiveService>>> {
        Arc::clone(&self.included.read().all)
    }

    /// The number of Archives that are known to exist and cannot be asked.
    pub(super) fn absent(&self) -> usize {
        self.absent.load(Ordering::Relaxed)
    }

    /// Asks an Archive again that was left alone, since it has announced that it is up.
    pub(super) fn revive(&self, service: &Names) {
        let included = self.included();
        if let Some(archive) = included.of_service(&service_key(service)) {
            archive.revive();
        }
    }

    /// Notes that an Archive holds an original of a maker. Returns whether that is new since the last start
    /// or overflow.
    pub(super) fn note_original(&self, maker: &IdentifierMaker, archive: ArchiveId) -> bool {
        let mut known = self.originals.lock();
        if known.len() >= MOST_PREFIXES {
            known.clear();
        }
        known.insert((archive, maker.clone()))
    }

    /// Lets it be noted again, since it could not be written.
    pub(super) fn forget_original(&self, maker: &IdentifierMaker, archive: ArchiveId) {
        self.originals.lock().remove(&(archive, maker.clone()));
    }

    /// Whether the prefix of an identifier belongs to an Archive that is registered with a peer.
    pub(super) fn is_of_a_peer(&self, ibi: &Ibi) -> bool {
        self.of_peers.read().contains(&IdentifierMaker::of(ibi))
    }

    /// The services that have identifiers of this maker, of Archives that are registered, included or not.
    pub(super) fn makers(&self, maker: &IdentifierMaker) -> Vec<String> {
        self.makers.read().get(maker).cloned().unwrap_or_default()
    }

    /// The service of an Archive that is registered here.
    pub(super) fn service_of(&self, archive: ArchiveId) -> Option<String> {
        let sources = self.sources.lock();
        let mut registered = sources.registered.iter();
        let found = registered.find(|known| known.id == archive)?;
        Some(service_key(&found.service))
    }

    /// The services of the Archives that have answered for the prefix of an identifier, or announce it, whether or not
    /// they answer now.
    pub(super) fn concerned(&self, ibi: &str) -> Vec<String> {
        let prefix = prefix(ibi);
        let asked = self.included();
        let announced = asked.announced.get(&prefix).into_iter().flatten();
        let announced = announced.map(|at| asked.all[*at].service.clone());
        let remembered = self.memory.of(&prefix).unwrap_or_default();
        let remembered = remembered.iter().map(ToString::to_string);
        announced.chain(remembered).collect()
    }

    /// The included Archives that probably answer for an identifier, the most probable first: the only one whose
    /// service has the same prefix, those that have answered for the prefix, and those that announce it. Archives that
    /// do not answer are left out.
    pub(super) fn likely(&self, ibi: &str) -> Vec<LikelyArchive> {
        let prefix = prefix(ibi);
        let asked = self.included();
        let none = Vec::new();
        let own = asked.own.get(&prefix).unwrap_or(&none);
        let announced = asked.announced.get(&prefix).unwrap_or(&none);
        let remembered = self.memory.of(&prefix).unwrap_or_default();
        let remembered = remembered.iter();
        let remembered = remembered.filter_map(|service| asked.by_service.get(&**service));
        let proven = own.iter().filter(|_| own.len() == 1).chain(remembered);
        let proven = proven.chain(own).map(|at| (*at, true));
        let mut likely: Vec<LikelyArchive> = Vec::new();
        for (at, is_proven) in proven.chain(announced.iter().map(|at| (*at, false))) {
            let archive = &asked.all[at];
            let is_there = |known: &LikelyArchive| Arc::ptr_eq(&known.archive, archive);
            if likely.len() < MOST_LIKELY && archive.is_answering() && !likely.iter().any(is_there)
            {
                let archive = Arc::clone(archive);
                likely.push(LikelyArchive { archive, is_proven });
            }
        }
        likely
    }

    /// The Archive of a list that answered last for an identifier with the same prefix.
    pub(super) fn likely_of_lists(&self, ibi: &str) -> Option<Arc<ArchiveService>> {
        let (asked, remembered) = (self.lists(), self.of_lists.of(&prefix(ibi))?);
        let mut found = remembered.iter().filter_map(|it| asked.of_service(it));
        found.find(|archive| archive.is_answering()).cloned()
    }

    /// Remembers the Archive that answered.
    pub(super) fn remember(&self, ibi: &str, archive: &Arc<ArchiveService>, is_original: bool) {
        let included = self.included();
        let is_included = included.of_service(&archive.service);
        let memory = match is_included {
            Some(known) if Arc::ptr_eq(known, archive) => &self.memory,
            _ => &self.of_lists,
        };
        memory.note(&prefix(ibi), &archive.service, is_original);
    }

    /// Returns what is remembered of included Archives, to be written.
    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }
}

impl Asked {
    fn new(places: &[super::sources::Place<'_>], known: &Asked) -> Asked {
        let known: HashMap<&str, &Arc<ArchiveService>> = {
            let known = known.all.iter();
            known
                .map(|archive| (archive.url.as_str(), archive))
                .collect()
        };
        let mut asked = Asked::default();
        let mut all = Vec::with_capacity(places.len());
        for (at, place) in places.iter().enumerate() {
            let new = ArchiveService::new(place.id, place.reach, place.url, place.service);
            let known = known.get(new.url.as_str());
            let same = known.filter(|known| known.id == new.id && known.reach == new.reach);
            asked.by_service.insert(new.service.clone(), at);
            all.push(same.map_or_else(|| Arc::new(new), |known| Arc::clone(known)));
            for prefix in prefixes(place.service) {
                asked.own.entry(prefix).or_default().push(at);
            }
            for announced in place.announced {
                let claimants = asked.announced.entry(announced.clone()).or_default();
                if claimants.len() < MOST_CLAIMANTS {
                    claimants.push(at);
                }
            }
        }
        // A prefix of many services, such as that of who mints them, says nothing of an Archive.
        asked.own.retain(|_, own| own.len() <= MOST_CLAIMANTS);
        asked.all = Arc::new(all);
        asked
    }

    fn of_service(&self, service: &str) -> Option<&Arc<ArchiveService>> {
        self.all.get(*self.by_service.get(service)?)
    }
}

/// The services with the identifiers of each maker: those that are registered here or, where none is, all.
fn makers_of<'a>(
    registered: impl Iterator<Item = &'a Names>,
    all: impl Iterator<Item = &'a Names>,
) -> HashMap<IdentifierMaker, Vec<String>> {
    let grouped = |services: &mut dyn Iterator<Item = &'a Names>| {
        let mut makers: HashMap<IdentifierMaker, Vec<String>> = HashMap::new();
        for service in services {
            for maker in IdentifierMaker::of_names(service) {
                makers.entry(maker).or_default().push(service_key(service));
            }
        }
        makers
    };
    let mut makers = grouped(&mut { all });
    makers.extend(grouped(&mut { registered }));
    // As above: so many have their identifiers from another Archive.
    makers.retain(|_, services| services.len() <= MOST_CLAIMANTS);
    makers
}

/// The prefixes of the names of a service.
fn prefixes(service: &Names) -> impl Iterator<Item = String> {
    let rep = service.rep().map(|rep| prefix(rep.as_str()));
    let ibip = service.ibip().map(|ibip| prefix(ibip.as_str()));
    rep.into_iter().chain(ibip)
}
