//! The limits on registrations by the protocol of 2009. Registration is open to all, so every count is
//! limited.

/// The most hosts, besides the actor's own, that the URLs of one document may name.
pub(super) const MOST_HOSTS: usize = 2;

/// The days for which an actor without documents excludes other registrations of its host and port.
pub(super) const DAYS_TO_TAKE_EFFECT: i64 = 30;

/// The most registrations of each kind. An actor that has taken effect is not removed to make room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Actors.
    pub(super) actors: u64,
    /// Documents and copies of one actor.
    pub(super) of_one_actor: u64,
    /// Documents and copies of all actors.
    pub(super) in_all: u64,
    /// Actors that were registered from one client address.
    pub(super) actors_of_client: u64,
    /// Actors of one domain.
    pub(super) actors_of_domain: u64,
    /// Documents and copies of all actors that were registered from one client address, or that belong to one
    /// domain.
    pub(super) of_one_origin: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            actors: 10_000,
            of_one_actor: 10_000,
            in_all: 100_000,
            actors_of_client: 20,
            actors_of_domain: 200,
            of_one_origin: 20_000,
        }
    }
}
