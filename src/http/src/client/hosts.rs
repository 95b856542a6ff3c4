//! The addresses of hosts, of which a client may be limited to those of the public Internet.

use std::future::Future;
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower::Service;

use super::Reach;
use ibifs_formats::address::is_public;

/// Looks up the names of hosts.
#[derive(Clone, Debug)]
pub struct Hosts {
    system: GaiResolver,
    reach: Reach,
}

impl Hosts {
    pub fn new(reach: Reach) -> Hosts {
        Hosts {
            system: GaiResolver::new(),
            reach,
        }
    }
}

impl Hosts {
    /// Refuses a host that has no address within reach. Looks nothing up if all are.
    pub async fn check(mut self, host: &str) -> Result<(), Error> {
        if self.reach == Reach::Any {
            return Ok(());
        }
        if !may_reach(self.reach, host) {
            return Err(not_public());
        }
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        if bare.parse::<IpAddr>().is_ok() {
            return Ok(());
        }
        let name: Name = host.parse().map_err(Error::other)?;
        std::future::poll_fn(|context| self.poll_ready(context)).await?;
        self.call(name).await.map(drop)
    }
}

fn not_public() -> Error {
    let kind = ErrorKind::PermissionDenied;
    Error::new(kind, "no address of the host is public")
}

/// Whether the host of a URL may be asked: an address within reach, or a name.
pub(super) fn may_reach(reach: Reach, host: &str) -> bool {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let address: Result<IpAddr, _> = inner.unwrap_or(host).parse();
    address.map_or(true, |address| is_within(reach, address))
}

fn is_within(reach: Reach, address: IpAddr) -> bool {
    match reach {
        Reach::Any => true,
        Reach::Public => is_public(address),
    }
}

impl Service<Name> for Hosts {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.system.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (reach, found) = (self.reach, self.system.call(name));
        Box::pin(async move {
            let found = found
                .await?
                .filter(|address| is_within(reach, address.ip()));
            let found: Vec<SocketAddr> = found.collect();
            if found.is_empty() {
                return Err(not_public());
            }
            Ok(found.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn found(reach: Reach) -> Result<Vec<SocketAddr>, Error> {
        let name: Name = "localhost".parse().expect("a name");
        let found = Hosts::new(reach).call(name).await;
        found.map(Iterator::collect)
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_not_reached() {
        assert!(!found(Reach::Any).await.expect("addresses").is_empty());
        let error = found(Reach::Public).await.expect_err("no address");
        assert_eq!(error.to_string(), "no address of the host is public");
    }

    #[test]
    fn an_address_in_a_url_is_checked() {
        for host in ["127.0.0.1", "[::1]", "[::ffff:10.0.0.1]", "192.168.1.1"] {
            assert!(!may_reach(Reach::Public, host), "{host}");
            assert!(may_reach(Reach::Any, host), "{host}");
        }
        for host in ["150.163.34.243", "example.org", "[2001:4860:4860::8888]"] {
            assert!(may_reach(Reach::Public, host), "{host}");
        }
    }
}
