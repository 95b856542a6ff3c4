//! Who sends a request of the protocol of 2009, and how the addresses of hosts are looked up for it.

use std::net::IpAddr;

/// Why a host name was not looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupError {
    /// The lookup took too long.
    TimedOut,
    /// Too many lookups are running, in all or for this client.
    Busy,
}

/// Dependencies up the addresses of a host. A host that has none gives an empty list.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Result<Vec<IpAddr>, LookupError>;

/// Who sends a request, as far as the connection shows it.
#[allow(missing_debug_implementations, reason = "it borrows a closure")]
#[derive(Clone, Copy)]
pub struct Requester<'a> {
    /// The client's address.
    pub address: IpAddr,
    /// The address or network that counts as one client.
    pub client: IpAddr,
    /// Dependencies up the addresses of hosts for this client.
    pub lookup: Lookup<'a>,
}
