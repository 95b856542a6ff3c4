//! The results of private parsers for texts that others sent, for the fuzz targets in `tests/fuzz`, which are outside of
//! this crate. Nothing else uses it.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};

use crate::client::redirection;
use crate::server::access_log::line::Line;
use crate::server::{AccessLogFormat, Proxies};

/// The client of a request that a peer sent, and the addresses on its way.
#[must_use]
pub fn client(headers: &HeaderMap, peer: IpAddr, proxies: &[IpAddr]) -> (IpAddr, Vec<IpAddr>) {
    let proxies = Proxies::new(proxies);
    (proxies.client(peer, headers), proxies.way(peer, headers))
}

/// The lines of the access log, in both formats.
#[must_use]
pub fn log_lines(headers: &HeaderMap, target: &str, client: IpAddr) -> Option<[String; 2]> {
    let mut request = Request::new(());
    *request.headers_mut() = headers.clone();
    *request.uri_mut() = target.parse().ok()?;
    let line = Line::begin(&request, client);
    let formats = [AccessLogFormat::Combined, AccessLogFormat::Json];
    Some(formats.map(|format| line.written(format, 1)))
}

/// Returns where an answer of a URL with this header `Location` leads. None if that is nowhere that is followed.
#[must_use]
pub fn redirection(from: &str, location: &[u8]) -> Option<String> {
    let from: Uri = from.parse().ok()?;
    let mut headers = HeaderMap::new();
    headers.insert(header::LOCATION, HeaderValue::from_bytes(location).ok()?);
    let target = redirection::target(&from, StatusCode::FOUND, &headers);
    Some(target.ok()??.to_string())
}
