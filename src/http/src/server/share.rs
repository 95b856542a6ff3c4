//! Limits for each client, by address. Clients that share an address or a network share a limit.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;

/// The interval at which it is looked whether a client has a free place.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

const LOCAL_V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const LOCAL_V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// Returns what counts as one client: an IPv4 address, or the first 64 bits of an IPv6 address, since a
/// client usually has all addresses with that prefix.
#[must_use]
pub fn client_of(address: IpAddr) -> IpAddr {
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
    /// The proxies at these addresses.
    #[must_use]
    pub fn new(addresses: &[IpAddr]) -> Proxies {
        Proxies(addresses.iter().map(IpAddr::to_canonical).collect())
    }

    /// Whether the connections of an address may be those of many clients: it is a proxy, or this machine.
    pub fn has(&self, address: IpAddr) -> bool {
        self.trusts(address) || [LOCAL_V4, LOCAL_V6].contains(&address.to_canonical())
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// The address of the client: the peer or, if that is a proxy, the last address that it forwards for and that is
    /// not a proxy. The client can forge the addresses before it.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        for address in forwarded(headers).into_iter().rev() {
            match address {
                Some(address) if self.trusts(client) => client = address,
                _ => break,
            }
        }
        client
    }

    /// The addresses on the way of a request, as far as proxies name them: the client's first, the peer last. What
    /// another peer says is passed over.
    pub fn way(&self, peer: IpAddr, headers: &HeaderMap) -> Vec<IpAddr> {
        let mut way = Vec::new();
        if self.trusts(peer) {
            way.extend(forwarded(headers).into_iter().flatten());
        }
        way.push(peer.to_canonical());
        way
    }
}

/// The elements of `Forwarded` (RFC 7239) or, without one, of `X-Forwarded-For`. None for one without an address.
fn forwarded(headers: &HeaderMap) -> Vec<Option<IpAddr>> {
    let elements = |name: &str| -> Vec<String> {
        let lines = headers.get_all(name).iter();
        let lines = lines.filter_map(|line| line.to_str().ok());
        let elements = lines.flat_map(|line| line.split(','));
        elements.map(|text| text.trim().to_owned()).collect()
    };
    let standard = elements("forwarded");
    if standard.is_empty() {
        let texts = elements("x-forwarded-for");
        texts.iter().map(|text| address_in(text)).collect()
    } else {
        standard.iter().map(|element| for_whom(element)).collect()
    }
}

/// The address after `for=` in an element of `Forwarded`.
fn for_whom(element: &str) -> Option<IpAddr> {
    element.split(';').find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        let is_for = name.trim().eq_ignore_ascii_case("for");
        is_for.then(|| address_in(value.trim().trim_matches('"')))?
    })
}

/// An address, possibly with a port, as in `192.0.2.1:80` or `[2001:db8::1]:80`.
fn address_in(text: &str) -> Option<IpAddr> {
    let address = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?.0.parse().ok(),
        None => text.parse().ok().or_else(|| {
            let (address, _) = text.split_once(':')?;
            address.parse().ok()
        }),
    };
    address.map(|address: IpAddr| address.to_canonical())
}

/// The number of places that each client has taken.
#[derive(Clone, Debug)]
pub struct Shares {
    most: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Shares {
    /// A limit of what keeps processors busy: as many places as there are processors, but 2 to 4.
    pub fn of_processors() -> Shares {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Shares::new(processors.clamp(2, 4))
    }

    /// A limit of so many places for each client.
    pub fn new(most: usize) -> Shares {
        Shares {
            most,
            taken: Arc::default(),
        }
    }

    /// Takes a place. None if the client has reached the limit.
    pub fn take(&self, client: IpAddr) -> Option<Share> {
        self.take_several(client, 1)
    }

    /// Takes so many places, or none.
    pub fn take_several(&self, client: IpAddr, places: usize) -> Option<Share> {
        let mut taken = self.taken.lock();
        let count = taken.get(&client).copied().unwrap_or_default() + places;
        if count > self.most {
            return None;
        }
        taken.insert(client, count);
        Some(Share {
            client,
            places,
            taken: Arc::clone(&self.taken),
        })
    }

    /// Takes a place as soon as the client has a free one.
    pub async fn wait(&self, client: IpAddr) -> Share {
        loop {
            match self.take(client) {
                Some(share) => return share,
                None => tokio::time::sleep(LOOK_AGAIN).await,
            }
        }
    }
}

/// Places that a client has taken. They are freed on drop.
#[derive(Debug)]
pub struct Share {
    client: IpAddr,
    places: usize,
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        if let Some(count) = taken.get_mut(&self.client) {
            *count -= self.places;
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
        assert!(shares.take_several(one, 2).is_none() && shares.take(one).is_some());
        assert!(shares.take_several(other, 2).is_some());
        assert_eq!(shares.taken.lock().len(), 1);
    }

    #[test]
    fn what_a_client_writes_itself_does_not_count() {
        let proxies = Proxies::new(&[address("192.0.2.80"), address("::1")]);
        let client = |peer: &str, name: &'static str, forwarded: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, forwarded.parse().expect("a value"));
            proxies.client(address(peer), &headers).to_string()
        };
        let old = "x-forwarded-for";
        assert_eq!(client("198.51.100.1", old, "203.0.113.1"), "198.51.100.1");
        assert_eq!(client("127.0.0.1", old, "203.0.113.1"), "127.0.0.1");
        assert_eq!(client("::1", old, "10.0.0.1, 203.0.113.1"), "203.0.113.1");
        assert_eq!(client("::1", old, "203.0.113.1, 192.0.2.80"), "203.0.113.1");
        assert_eq!(client("::1", old, "rubbish"), "::1");
        assert_eq!(client("::1", old, "203.0.113.1, rubbish"), "::1");
        let new = "forwarded";
        assert_eq!(
            client("198.51.100.1", new, "for=203.0.113.1"),
            "198.51.100.1"
        );
        assert_eq!(
            client(
                "::1",
                new,
                "for=10.0.0.1, proto=https;For=203.0.113.1:80;by=a"
            ),
            "203.0.113.1"
        );
        assert_eq!(
            client("::1", new, "for=\"[2001:db8::1]:80\""),
            "2001:db8::1"
        );
        assert_eq!(client("::1", new, "for=203.0.113.1, for=_hidden"), "::1");
        assert_eq!(client("::1", new, "proto=https"), "::1");
    }

    #[test]
    fn this_machine_has_no_share() {
        let proxies = Proxies::new(&[address("192.0.2.80")]);
        for (text, is_one) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("::ffff:192.0.2.80", true),
            ("192.0.2.81", false),
        ] {
            assert_eq!(proxies.has(address(text)), is_one, "{text}");
        }
    }
}
