//! The sources from which a resolver knows of Archives, and which has precedence where several name the same one.

use std::collections::HashSet;

use crate::registry::{ArchiveId, RegisteredArchive};
use ibi::{Ibip, Rep};
use ibifs_formats::base_url::BaseUrl;
use ibifs_formats::federation::FederatedArchive;
use ibifs_formats::item::Names;
use ibifs_http::client::Reach;

/// The Archives that a peer has registered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PeerArchives {
    /// The Archives that are included with it.
    pub(super) included: Vec<FederatedArchive>,
    /// The services of those that are registered with it, and not included.
    pub(super) absent: Vec<Names>,
}

/// The registered Archives, the lists of peers, and other lists. Those named first have precedence.
#[derive(Debug, Default)]
pub(super) struct Sources {
    pub(super) registered: Vec<RegisteredArchive>,
    /// None for a peer whose list has never been read.
    pub(super) peers: Vec<(Reach, Option<PeerArchives>)>,
    pub(super) lists: Vec<(Reach, Vec<FederatedArchive>)>,
}

/// The place at which an Archive is asked.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) id: Option<ArchiveId>,
    pub(super) reach: Reach,
    pub(super) url: &'a BaseUrl,
    pub(super) service: &'a Names,
    /// The prefixes that it announces.
    pub(super) announced: &'a [String],
}

/// The Archives that are asked.
#[derive(Debug, Default)]
pub(super) struct Places<'a> {
    /// The Archives that are included here or with a peer.
    pub(super) included: Vec<Place<'a>>,
    /// The Archives of lists, which are asked after these.
    pub(super) federated: Vec<Place<'a>>,
    /// The services of Archives that are registered here or with a peer and cannot be asked.
    pub(super) absent: Vec<&'a Names>,
    /// The number of peers of which nothing is known.
    pub(super) unknown: usize,
}

/// Services and addresses that are in use.
#[derive(Debug, Default)]
struct Taken<'a> {
    reps: HashSet<&'a Rep>,
    ibips: HashSet<&'a Ibip>,
    places: HashSet<String>,
}

impl<'a> Taken<'a> {
    fn has(&self, service: &Names) -> bool {
        service.rep().is_some_and(|rep| self.reps.contains(rep))
            || service.ibip().is_some_and(|ibip| self.ibips.contains(ibip))
    }

    fn take(&mut self, service: &'a Names) {
        self.reps.extend(service.rep());
        self.ibips.extend(service.ibip());
    }

    /// Takes the service and the address of an Archive. Returns whether both were free.
    fn take_both(&mut self, service: &'a Names, url: &BaseUrl) -> bool {
        let is_free = !self.has(service) && !self.places.contains(&url.place());
        if is_free {
            self.take(service);
            self.places.insert(url.place());
        }
        is_free
    }
}

impl Sources {
    /// The Archives that are asked. Each is asked once, at the address that its first source names. One that is
    /// registered here and is not included here is asked where a peer includes it; no other list names its address.
    pub(super) fn places(&self) -> Places<'_> {
        let mut places = Places::default();
        let mut taken = Taken::default();
        for archive in &self.registered {
            let Some(included) = &archive.included else {
                continue;
            };
            taken.take(&archive.service);
            taken.places.insert(included.url.place());
            places.included.push(Place {
                id: Some(archive.id),
                reach: Reach::Any,
                url: &included.url,
                service: &archive.service,
                announced: &archive.prefixes,
            });
        }
        for (reach, peer) in &self.peers {
            for archive in peer.iter().flat_map(|peer| &peer.included) {
                if taken.take_both(&archive.service, &archive.url) {
                    places.included.push(Place::of(archive, *reach));
                }
            }
        }
        let registered = self.registered.iter().map(|archive| &archive.service);
        let of_peers = self.peers.iter().filter_map(|(_, peer)| peer.as_ref());
        for service in registered.chain(of_peers.flat_map(|peer| &peer.absent)) {
            if !taken.has(service) {
                taken.take(service);
                places.absent.push(service);
            }
        }
        let unknown = self.peers.iter().filter(|(_, peer)| peer.is_none());
        places.unknown = unknown.count();
        for (reach, list) in &self.lists {
            for archive in list {
                if taken.take_both(&archive.service, &archive.url) {
                    places.federated.push(Place::of(archive, *reach));
                }
            }
        }
        places
    }
}

impl<'a> Place<'a> {
    fn of(archive: &'a FederatedArchive, reach: Reach) -> Place<'a> {
        Place {
            id: None,
            reach,
            url: &archive.url,
            service: &archive.service,
            announced: &[],
        }
    }
}
