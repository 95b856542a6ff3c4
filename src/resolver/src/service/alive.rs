//! Checks from time to time whether the URLs of actors work, so that actors lapse if none does.
//!
//! Registration is open to all, so a check must not harm third parties. Only public addresses are tried, each
//! as looked up a moment before; a URL with another address counts as not working. Redirects are not
//! followed, and only the status line of the answer is read.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;

use super::Resolver;
use super::lookups::{LOOKUP_TIMEOUT, Lookups};
use crate::registry::{RegistryError, ToTry};
use ibi::message::Message;
use ibifs_formats::address::is_public;
use ibifs_formats::registration::WebUrl;
use ibifs_http::server::threads;
use ibifs_os::clock::Clock;

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

#[cfg(test)]
mod tests {
    use super::*;

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
