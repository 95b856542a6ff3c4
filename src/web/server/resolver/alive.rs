//! Checks from time to time whether the URLs of actors work, so that actors lapse if none does.
//!
//! Registration is open to all, so a check must not harm third parties. Only public addresses are tried, each
//! as looked up a moment before; a URL with another address counts as not working. Redirects are not
//! followed, and only the status line of the answer is read.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use super::Resolver;
use super::lookups::{LOOKUP_TIMEOUT, Lookups};
use crate::archive::Clock;
use crate::formats::registration::WebUrl;
use crate::web::registry::{RegistryError, ToTry};
use crate::web::server::threads;
use ibi::message::Message;

/// The pause between two actors.
const PAUSE: Duration = Duration::from_secs(5);
/// The pause if no check is due.
const REST: Duration = Duration::from_secs(10 * 60);
/// The timeout of one URL.
const URL_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of an answer that are read: enough for the status.
const LONGEST_LINE: usize = 64;

/// Checks the URLs of one actor after another.
pub(super) async fn go_on(resolver: Arc<Resolver>, lookups: Lookups) {
    loop {
        let rest = match try_next(&resolver, &lookups).await {
            Ok(true) => PAUSE,
            Ok(false) => REST,
            Err(error) => {
                log::warn!("the URLs of actors are not tried: {error}");
                REST
            }
        };
        tokio::time::sleep(rest).await;
    }
}

/// Checks the URLs of the next actor. Returns whether there was one.
async fn try_next(resolver: &Arc<Resolver>, lookups: &Lookups) -> Result<bool, RegistryError> {
    let (registry, clock) = (Arc::clone(&resolver.registry), resolver.clock.clone());
    let next = done(move || registry.to_try(&clock.now())).await?;
    let Some(next) = next else {
        return Ok(false);
    };
    let works = any_works(&next, lookups).await;
    let (registry, clock) = (Arc::clone(&resolver.registry), resolver.clock.clone());
    let actor = next.actor.clone();
    if done(move || registry.tried(&next, works, &clock.now())).await? {
        log::info!("{actor} has lapsed: none of its URLs has worked for two years");
    }
    Ok(true)
}

async fn done<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, RegistryError> {
    let done = threads::aside(work).await;
    done.unwrap_or_else(|error| Err(RegistryError::Broken(Message::foreign(error.to_string()))))
}

async fn any_works(tried: &ToTry, lookups: &Lookups) -> bool {
    for url in &tried.urls {
        let works = tokio::time::timeout(URL_TIMEOUT, works(url, lookups)).await;
        if works == Ok(true) {
            return true;
        }
    }
    false
}

async fn works(url: &WebUrl, lookups: &Lookups) -> bool {
    let (host, lookups) = (url.host().to_owned(), lookups.clone());
    let own = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let found = threads::aside(move || lookups.find(own, &host, Instant::now() + LOOKUP_TIMEOUT));
    let found = found.await;
    let Ok(Ok(addresses)) = found else {
        return false;
    };
    let Some(address) = addresses.into_iter().find(|address| is_public(*address)) else {
        return false;
    };
    let Ok(stream) = TcpStream::connect(SocketAddr::new(address, url.port())).await else {
        return false;
    };
    let text = url.as_str();
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    if scheme.eq_ignore_ascii_case("https") {
        // Without TLS, an accepted connection is the only evidence.
        return true;
    }
    let rest = rest.split('#').next().unwrap_or(rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let slash = if path.starts_with('/') { "" } else { "/" };
    let request = format!(
        "HEAD {slash}{path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: ibifs-resolver\r\n\
         Connection: close\r\n\r\n"
    );
    let line = asked(&stream, request.as_bytes()).await;
    line.is_ok_and(|line| is_answer(&line))
}

/// Sends a request and reads the status line of the answer.
async fn asked(stream: &TcpStream, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut rest = request;
    while !rest.is_empty() {
        stream.writable().await?;
        match stream.try_write(rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let mut line = Vec::new();
    while line.len() < LONGEST_LINE && !line.contains(&b'\n') {
        stream.readable().await?;
        let mut piece = [0; LONGEST_LINE];
        match stream.try_read(&mut piece) {
            Ok(0) => break,
            Ok(count) => line.extend(piece.iter().take(count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}

/// Whether a status line shows that the resource exists, even if it is not public or HEAD is not allowed.
fn is_answer(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    let mut words = line.split(' ');
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    let status = words
        .next()
        .and_then(|word| word.trim().parse::<u16>().ok());
    is_http && matches!(status, Some(200..=399 | 401 | 403 | 405 | 429 | 501))
}

/// Whether an address belongs to the public Internet. Addresses that are private, local or reserved are not
/// tried.
fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_documentation()
                || first == 0
                || first >= 224
                || (first == 100 && (64..128).contains(&second))
                || (first == 192 && second == 0 && third == 0)
                || (first == 192 && second == 88 && third == 99)
                || (first == 198 && (18..20).contains(&second)))
        }
        // Of 2000::/3, ranges that can embed an IPv4 address and those for documentation are excluded.
        IpAddr::V6(address) => {
            let [first, second, ..] = Ipv6Addr::segments(&address);
            (0x2000..0x4000).contains(&first)
                && first != 0x2002
                && !(first == 0x2001 && (second < 0x200 || second == 0xdb8))
                && first != 0x3fff
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_public_is_not_tried() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
        ] {
            assert!(!is_public(text.parse().expect(text)), "{text}");
        }
        for text in ["150.163.34.243", "2001:4860:4860::8888"] {
            assert!(is_public(text.parse().expect(text)), "{text}");
        }
    }

    #[test]
    fn answers() {
        for good in [
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.0 302\r\n",
            "HTTP/1.1 405 No\r\n",
        ] {
            assert!(is_answer(good.as_bytes()), "{good}");
        }
        for bad in [
            "",
            "HTTP/1.1 404 \r\n",
            "HTTP/1.1 500 \r\n",
            "SSH-2.0-x\r\n",
            "HTTP/1.1",
        ] {
            assert!(!is_answer(bad.as_bytes()), "{bad}");
        }
    }
}
