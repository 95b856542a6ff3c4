//! Looks up host addresses within a time limit. A lookup that takes longer keeps a thread, but no request.

use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::registry::LookupError;
use ibifs_http::server::share::Shares;

/// The timeout of all lookups of one request.
pub(super) const LOOKUP_TIMEOUT: Duration = Duration::from_secs(3);
/// The most lookups in progress, including those that timed out.
const MOST_UNDER_WAY: usize = 16;
/// The most lookups in progress for one client.
const MOST_OF_CLIENT: usize = 4;

/// The lookups in progress.
#[derive(Clone, Debug)]
pub(super) struct Lookups {
    places: Arc<Semaphore>,
    of_clients: Shares,
}

impl Default for Lookups {
    fn default() -> Lookups {
        Lookups {
            places: Arc::new(Semaphore::new(MOST_UNDER_WAY)),
            of_clients: Shares::new(MOST_OF_CLIENT),
        }
    }
}

impl Lookups {
    /// The addresses of a host, empty if it has none. Blocks until `until` at most.
    pub(super) fn find(
        &self,
        client: IpAddr,
        host: &str,
        until: Instant,
    ) -> Result<Vec<IpAddr>, LookupError> {
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| LookupError::Busy)?;
        let share = self.of_clients.take(client).ok_or(LookupError::Busy)?;
        let (sender, receiver) = mpsc::channel();
        let host = host.to_owned();
        let look = move || {
            let found = (host.as_str(), 0).to_socket_addrs();
            let found = found.into_iter().flatten();
            let found: Vec<IpAddr> = found.map(|found| found.ip().to_canonical()).collect();
            drop((place, share));
            let _ = sender.send(found);
        };
        let thread = std::thread::Builder::new().name("looks up".to_owned());
        thread.spawn(look).map_err(|_| LookupError::Busy)?;
        let timeout = until.saturating_duration_since(Instant::now());
        receiver
            .recv_timeout(timeout)
            .map_err(|_| LookupError::TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_own() {
        let address = |text: &str| -> IpAddr { text.parse().expect(text) };
        let lookups = Lookups::default();
        let found =
            |host: &str| lookups.find(address("::1"), host, Instant::now() + LOOKUP_TIMEOUT);
        assert_eq!(found("127.0.0.1"), Ok(vec![address("127.0.0.1")]));
        assert_eq!(found("::1"), Ok(vec![address("::1")]));
        assert_eq!(found("::ffff:127.0.0.1"), Ok(vec![address("127.0.0.1")]));
    }
}
