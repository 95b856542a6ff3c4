//! Answers to search engines, aggregators and feed readers: `/robots.txt` (RFC 9309), lists of all public items
//! ([`lists`]) and of what has changed ([`changes`]), a feed of the latest items (RFC 4287), and how a browser searches (OpenSearch 1.1).

mod changes;
mod kept;
mod lists;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use maud::html;

use super::{Site, failure, oai, pages};
use crate::archive::ArchiveError;
use crate::formats::query::encoded;
use crate::http::server::answer::{self, Refusal};
use crate::http::server::page::{self, html::finished};

/// The time that a list of a version of the index is kept. An item made private without a change of it stays as long.
const KEPT: Duration = Duration::from_secs(10);
/// The same for what was noticed, which changes each second.
const KEPT_BRIEFLY: Duration = Duration::from_secs(1);
/// The seconds after which a refused client may try again.
const ASK_AGAIN: u16 = 5;

const XML: &str = "application/xml; charset=utf-8";

pub(super) use lists::RESOURCE_SYNC;

/// Whether a path is that of the list of changes, before which those are noticed.
pub(super) fn are_changes(path: &str) -> bool {
    path == lists::CHANGES
}

/// A list that takes time to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Listed {
    /// The feed.
    Feed,
    /// The list of the parts of a list, or a part of it.
    Items(lists::List, Option<i64>),
    /// The same of what has changed; a part is known by its first second.
    Changes(Option<i64>),
}

/// The lists that were made.
pub(super) type Lists = kept::Kept<Listed>;

/// The list of this name.
pub(super) fn list(site: &Site, name: &str) -> Result<Option<Listed>, ArchiveError> {
    if name == "feed.atom" {
        return Ok(Some(Listed::Feed));
    }
    match changes::named(site, name) {
        Some(changes) => Ok(Some(changes)),
        None => lists::named(site, name),
    }
}

/// The answer to a request for a list.
pub(super) async fn answer_list(site: &Arc<Site>, listed: Listed) -> Response<Body> {
    let version = site.index_version();
    let making = Arc::clone(site);
    let make = async move {
        let made = answer::aside(move || make(&making, listed)).await;
        made.unwrap_or_else(|refusal| Err(Box::new(refusal)))
    };
    let lifetime = match listed {
        Listed::Changes(_) => KEPT_BRIEFLY,
        Listed::Feed | Listed::Items(..) => KEPT,
    };
    match site.lists.get(&listed, version, lifetime, make).await {
        Some(Ok(document)) if listed == Listed::Feed => {
            sent("application/atom+xml; charset=utf-8", document)
        }
        Some(Ok(document)) => sent(XML, document),
        Some(Err(refusal)) => *refusal,
        None => answer::busy(
            "too many lists are being made; ask again in a while",
            ASK_AGAIN,
        ),
    }
}

fn make(site: &Site, listed: Listed) -> Result<Bytes, Refusal> {
    let made = match listed {
        Listed::Feed => feed(site).map(Some),
        Listed::Items(list, part) => lists::document_of(site, list, part).map(Some),
        Listed::Changes(part) => changes::document_of(site, part),
    };
    match made {
        Ok(Some(document)) => Ok(document.into()),
        Ok(None) => Err(Box::new(oai::refuse_for_now(site))),
        Err(error) => Err(Box::new(failure::of(&error))),
    }
}

/// The answer to the name of one of the other texts.
pub(super) fn answer(site: &Site, name: &str) -> Option<Response<Body>> {
    if let Some(icon) = page::icon(name) {
        return Some(icon);
    }
    match name {
        "robots.txt" => {
            let text = format!(
                "User-agent: *\nDisallow: {prefix}/archive.cgi/\nDisallow: {prefix}/dav/\nSitemap: {map}\n",
                prefix = site.url.prefix(),
                map = site.url.at("sitemap.xml")
            );
            Some(sent("text/plain; charset=utf-8", text))
        }
        "opensearch.xml" => {
            let kind = "application/opensearchdescription+xml; charset=utf-8";
            Some(sent(kind, search_description(site)))
        }
        name => lists::description_of(site, name).map(|document| sent(XML, document)),
    }
}

fn sent(kind: &'static str, text: impl Into<Body>) -> Response<Body> {
    answer::fresh(answer::whole(StatusCode::OK, kind, text))
}

/// A text as XML has it.
fn escape(text: &str) -> String {
    finished(&html! { (text) })
}

/// The latest items that were identified here, as on the home page.
fn feed(site: &Site) -> Result<String, ArchiveError> {
    let host = escape(&site.archive.facts().host);
    let mut entries = String::new();
    let mut last = None;
    for (names, title) in pages::latest(site)? {
        let name = names.preferred();
        let url = site.url.at(&format!("{}?page", encoded(name.as_bytes())));
        let identifier = site.archive.facts().persistent_url(&names);
        let date = pages::date_of(&names).map_or_else(String::new, |date| date.to_rfc3339());
        last.get_or_insert_with(|| date.clone());
        let title = escape(title.as_deref().unwrap_or(&name));
        entries.push_str(&format!(
            "<entry><title>{title}</title><id>{}</id><link href=\"{}\"/><updated>{date}</updated></entry>\n",
            escape(&identifier),
            escape(&url)
        ));
    }
    let updated = last.unwrap_or_else(|| "1970-01-01T00:00:00Z".to_owned());
    Ok(format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <title>{host}</title><id>{home}</id><updated>{updated}</updated><author><name>{host}</name></author>\n\
         <link href=\"{home}\"/><link rel=\"self\" href=\"{own}\"/>\n{entries}</feed>\n",
        home = escape(&site.url.at("")),
        own = escape(&site.url.at("feed.atom"))
    ))
}

/// Describes how a browser searches here.
fn search_description(site: &Site) -> String {
    let host = escape(&site.archive.facts().host);
    // The short name has at most 16 characters.
    let short: String = site.archive.facts().host.chars().take(16).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <OpenSearchDescription xmlns=\"http://a9.com/-/spec/opensearch/1.1/\">\n\
         <ShortName>{}</ShortName><Description>{host}</Description><InputEncoding>UTF-8</InputEncoding>\n\
         <Url type=\"text/html\" template=\"{}\"/>\n</OpenSearchDescription>\n",
        escape(&short),
        escape(&site.url.at("search?q={searchTerms}"))
    )
}
