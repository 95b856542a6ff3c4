//! The results of private parsers of the web services for texts that others sent, for the fuzz targets in `tests/fuzz`,
//! which are outside of this crate. Nothing else uses it.

use std::net::IpAddr;
use std::time::{Duration, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri, header};
use ibi::relation::Language;

use super::access_log::line::Line;
use super::archive::conditions::{self, ConditionResult, FilePart, FileVersion};
use super::archive::pages::preview::{self, markdown, table};
use super::negotiation::Negotiated;
use super::{AccessLogFormat, Proxies, languages};
use crate::formats::description::DescriptionFormat;
use crate::formats::item::Names;
use crate::web::client::redirection;

/// The headers of a request.
#[derive(Debug)]
pub struct Headers(HeaderMap);

/// The part of a file that is the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// All of it.
    Whole,
    /// From the first offset up to the second, exclusive.
    Part(u64, u64),
    /// Nothing: 304, 412 or 416.
    Nothing,
}

impl Headers {
    /// Lines `name: value`. Other lines are passed over.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Headers {
        let mut headers = HeaderMap::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Some(cut) = line.iter().position(|byte| *byte == b':') else {
                continue;
            };
            let (name, value) = line.split_at(cut);
            let name = HeaderName::from_bytes(name);
            let value = HeaderValue::from_bytes(value[1..].trim_ascii());
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
        Headers(headers)
    }

    /// Returns what is sent of a file of this length, with the entity tag `"a-1"`, that changed at this second.
    #[must_use]
    pub fn sent(&self, length: u64, changed: u64) -> Sent {
        let version = FileVersion {
            tag: "\"a-1\"".to_owned(),
            changed: UNIX_EPOCH.checked_add(Duration::from_secs(changed)),
            is_settled: true,
        };
        if conditions::evaluate(&self.0, &version) != ConditionResult::Send {
            return Sent::Nothing;
        }
        match conditions::part(&self.0, &version, length) {
            FilePart::Whole => Sent::Whole,
            FilePart::Range(start, end) => Sent::Part(start, end),
            FilePart::Nothing => Sent::Nothing,
        }
    }

    /// The client of a request that a peer sent, and the addresses on its way.
    #[must_use]
    pub fn client(&self, peer: IpAddr, proxies: &[IpAddr]) -> (IpAddr, Vec<IpAddr>) {
        let proxies = Proxies::new(proxies);
        (proxies.client(peer, &self.0), proxies.way(peer, &self.0))
    }

    /// The languages that a reader prefers.
    #[must_use]
    pub fn languages(&self) -> Vec<Language> {
        languages::preferred(&self.0)
    }

    /// The description that a program asks for in place of the page.
    #[must_use]
    pub fn description(&self) -> Option<DescriptionFormat> {
        match super::negotiation::description(&self.0)? {
            Negotiated::Format(format, _) => Some(format),
            Negotiated::Turtle | Negotiated::Citation => None,
        }
    }

    /// The lines of the access log, in both formats.
    #[must_use]
    pub fn log_lines(&self, target: &str, client: IpAddr) -> Option<[String; 2]> {
        let mut request = Request::new(());
        *request.headers_mut() = self.0.clone();
        *request.uri_mut() = target.parse().ok()?;
        let line = Line::begin(&request, client);
        let formats = [AccessLogFormat::Combined, AccessLogFormat::Json];
        Some(formats.map(|format| line.written(format, 1)))
    }
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

/// Returns what a page shows of a file with this text and path: formatted, as a table, and as lines.
#[must_use]
pub fn previews(bytes: &[u8], names: &Names, path: &[u8]) -> Vec<String> {
    let Some(text) = preview::text_of(bytes) else {
        return Vec::new();
    };
    let tables = [None, Some(b'\t')].map(|separator| table::table(&text, separator, false));
    let tables = tables.into_iter().flatten().map(|(table, _)| table);
    let others = [
        markdown::formatted(&text, names, path),
        preview::lines(&text).0,
    ];
    let all = others.into_iter().chain(tables);
    all.map(maud::PreEscaped::into_string).collect()
}
