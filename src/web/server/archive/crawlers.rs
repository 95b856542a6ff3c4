//! What search engines, aggregators and feed readers ask for: `/robots.txt` (RFC 9309), lists of all public items
//! ([`lists`]) and of what has changed ([`changes`]), a feed of the latest items (RFC 4287), and how a browser searches (OpenSearch 1.1).

mod changes;
mod lists;

use axum::body::Body;
use axum::http::{Response, StatusCode};
use maud::html;

use super::{Site, failure, oai, pages};
use crate::archive::ArchiveError;
use crate::formats::query::encoded;
use crate::web::server::answer;
use crate::web::server::page::{self, html::finished};

const XML: &str = "application/xml; charset=utf-8";

pub(super) use lists::RESOURCE_SYNC;

/// Whether a path is that of the list of changes, before which those are noticed.
pub(super) fn are_changes(path: &str) -> bool {
    path == lists::CHANGES
}

/// The answer to the name of one of these texts.
pub(super) fn answer(site: &Site, name: &str) -> Option<Response<Body>> {
    if let Some(icon) = page::icon(name) {
        return Some(icon);
    }
    let made = match name {
        "robots.txt" => {
            let text = format!(
                "User-agent: *\nDisallow: {prefix}/archive.cgi/\nDisallow: {prefix}/dav/\nSitemap: {map}\n",
                prefix = site.url.prefix(),
                map = site.url.at("sitemap.xml")
            );
            return Some(sent("text/plain; charset=utf-8", text));
        }
        "feed.atom" => {
            return Some(match feed(site) {
                Ok(document) => sent("application/atom+xml; charset=utf-8", document),
                Err(error) => failure::of(&error),
            });
        }
        "opensearch.xml" => {
            let kind = "application/opensearchdescription+xml; charset=utf-8";
            return Some(sent(kind, search_description(site)));
        }
        name => match changes::answer(site, name) {
            Some(Ok(None)) => return Some(oai::refuse_for_now(site)),
            Some(made) => made.map(Option::unwrap_or_default),
            None => lists::answer(site, name)?,
        },
    };
    Some(match made {
        Ok(document) => sent(XML, document),
        Err(error) => failure::of(&error),
    })
}

fn sent(kind: &'static str, text: String) -> Response<Body> {
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

/// How a browser searches here.
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
