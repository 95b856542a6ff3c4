//! How much may be registered by the protocol of 2009. Anybody may register, so that every count is bounded.

/// The most hosts, beside the actor's own, that the URLs of one document may name.
pub(super) const MOST_HOSTS: usize = 2;

/// The days for which an actor that has registered no document keeps its place against others.
pub(super) const DAYS_TO_TAKE_EFFECT: i64 = 30;

/// The most that is registered. What took effect does not lapse by itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
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
    /// Documents and copies of all actors that were registered from one client address, or are of one
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
