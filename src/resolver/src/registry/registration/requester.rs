//! The sender of a request of the protocol of 2009, and the lookup of host addresses for it.

use std::net::IpAddr;

/// The reason why a host name was not looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// The lookup took too long.
    TimedOut,
    /// Too many lookups are running, in all or for this client.
    Busy,
}

/// Looks up the addresses of a host. A host that has none gives an empty list.
pub type HostLookup<'a> = &'a dyn Fn(&str) -> Result<Vec<IpAddr>, LookupError>;

/// The sender of a request, as known from the connection.
#[allow(missing_debug_implementations, reason = "it borrows a closure")]
#[derive(Clone, Copy)]
pub struct Requester<'a> {
    /// The client's address.
    pub address: IpAddr,
    /// The address or network that counts as one client.
    pub client: IpAddr,
    /// Looks up the addresses of hosts for this client.
    pub lookup: HostLookup<'a>,
}
