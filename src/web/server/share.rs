//! Limits for each client, by address. Clients that share an address or a network share a limit.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::http::HeaderMap;

/// What counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address, since a client
/// usually has all addresses with that prefix.
#[must_use]
pub(super) fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        v4 => v4,
    }
}

/// Web servers that forward requests, so that their address is not that of the client.
#[derive(Clone, Debug)]
pub struct Proxies(Vec<IpAddr>);

impl Proxies {
    /// The proxies at these addresses, and always those at 127.0.0.1 and `::1`.
    #[must_use]
    pub fn new(addresses: &[IpAddr]) -> Proxies {
        let own = ["127.0.0.1", "::1"]
            .iter()
            .filter_map(|text| text.parse().ok());
        let addresses = addresses.iter().map(IpAddr::to_canonical);
        Proxies(own.chain(addresses).collect())
    }

    /// Whether an address belongs to a proxy.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// The address of the client: the peer or, if that is a proxy, the last address in `X-Forwarded-For` that
    /// is not a proxy. The client can forge the addresses before it.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let lines = headers.get_all("x-forwarded-for").iter();
        let texts: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
        for text in texts.iter().flat_map(|text| text.split(',')).rev() {
            if !self.has(client) {
                break;
            }
            match text.trim().parse::<IpAddr>() {
                Ok(address) => client = address.to_canonical(),
                Err(_) => break,
            }
        }
        client
    }
}

/// The number of places that each client has taken.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    most: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Shares {
    /// A limit of so many places for each client.
    pub(super) fn new(most: usize) -> Shares {
        Shares {
            most,
            taken: Arc::default(),
        }
    }

    /// Takes a place. None if the client has reached the limit.
    pub(super) fn take(&self, client: IpAddr) -> Option<Share> {
        let mut taken = self.taken.lock();
        let count = taken.entry(client).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Share {
            client,
            taken: Arc::clone(&self.taken),
        })
    }
}

/// A place that a client has taken. It is freed on drop.
#[derive(Debug)]
pub(super) struct Share {
    client: IpAddr,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(count) = taken.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn a_client_is_an_address_or_a_network() {
        assert_eq!(client_of(address("::ffff:192.0.2.1")), address("192.0.2.1"));
        let network = address("2001:db8:1:2::");
        assert_eq!(client_of(address("2001:db8:1:2:3:4:5:6")), network);
        assert_ne!(client_of(address("2001:db8:1:3::")), network);
    }

    #[test]
    fn each_client_has_its_share() {
        let shares = Shares::new(2);
        let (one, other) = (address("192.0.2.1"), address("192.0.2.2"));
        let first = shares.take(one).expect("a place");
        let _second = shares.take(one).expect("a place");
        assert!(shares.take(one).is_none() && shares.take(other).is_some());
        drop(first);
        assert!(shares.take(one).is_some());
        assert_eq!(shares.taken.lock().len(), 1);
    }

    #[test]
    fn what_a_client_writes_itself_does_not_count() {
        let proxies = Proxies::new(&[address("192.0.2.80")]);
        let client = |peer: &str, forwarded: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().expect("a value"));
            proxies.client(address(peer), &headers).to_string()
        };
        assert_eq!(client("198.51.100.1", "203.0.113.1"), "198.51.100.1");
        assert_eq!(client("127.0.0.1", "10.0.0.1, 203.0.113.1"), "203.0.113.1");
        assert_eq!(
            client("127.0.0.1", "203.0.113.1, 192.0.2.80"),
            "203.0.113.1"
        );
        assert_eq!(client("127.0.0.1", "rubbish"), "127.0.0.1");
    }
}
