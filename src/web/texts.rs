//! The results of private parsers of the web services for texts that others sent, for the fuzz targets in `tests/fuzz`,
//! which are outside of this crate. Nothing else uses it.

use std::time::{Duration, UNIX_EPOCH};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use ibi::relation::Language;

use super::archive::conditions::{self, ConditionResult, FilePart, FileVersion};
use super::archive::pages::preview::{self, markdown, table};
use crate::formats::description::DescriptionFormat;
use crate::formats::item::Names;
use crate::http::server::languages;
use crate::http::server::negotiation::{self, Negotiated};

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

    /// The headers, for the parsers of `ibifs_http`.
    #[must_use]
    pub fn map(&self) -> &HeaderMap {
        &self.0
    }

    /// The languages that a reader prefers.
    #[must_use]
    pub fn languages(&self) -> Vec<Language> {
        languages::preferred(&self.0)
    }

    /// The description that a program asks for in place of the page.
    #[must_use]
    pub fn description(&self) -> Option<DescriptionFormat> {
        match negotiation::description(&self.0)? {
            Negotiated::Format(format, _) => Some(format),
            Negotiated::Turtle | Negotiated::Citation => None,
        }
    }
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
pub use crate::http::texts::{client, log_lines, redirection};
