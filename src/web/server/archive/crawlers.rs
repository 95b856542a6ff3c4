//! What search engines and feed readers ask for: `/robots.txt` (RFC 9309), the site map (sitemaps.org, protocol 0.9)
//! with the pages of all public items, in parts, a feed of the latest items (RFC 4287), and how a browser searches
//! (OpenSearch 1.1).

use axum::body::Body;
use axum::http::{Response, StatusCode};
use maud::html;

use super::{Site, act, failure, pages};
use crate::archive::ArchiveError;
use crate::archive::store::ItemId;
use crate::archive::tree::Dependencies;
use crate::formats::item::State;
use crate::formats::query::encoded;
use crate::web::server::answer;
use crate::web::server::page::{self, html::finished};
use ibi::Timestamp;

/// How many items, by their numbers, a part of the site map is about. A map may have 50,000 parts.
const PART: i64 = 10_000;
const XML: &str = "application/xml; charset=utf-8";
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

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
        "sitemap.xml" => index(site),
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
        name => {
            let part = name.strip_prefix("sitemap-")?.strip_suffix(".xml")?;
            // One spelling for each part.
            let number = part
                .parse::<i64>()
                .ok()
                .filter(|it| it.to_string() == part)?;
            match last_part(site) {
                Ok(last) if (0..=last).contains(&number) => part_of(site, number * PART),
                Ok(_) => return None,
                Err(error) => Err(error),
            }
        }
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

/// The number of the last part.
fn last_part(site: &Site) -> Result<i64, ArchiveError> {
    let last = site.archive.store().last_number()?;
    Ok(last.map_or(0, |last| last.0) / PART)
}

/// The list of the parts.
fn index(site: &Site) -> Result<String, ArchiveError> {
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<sitemapindex xmlns=\"{NAMESPACE}\">\n"
    );
    for number in 0..=last_part(site)? {
        let url = site.url.at(&format!("sitemap-{number}.xml"));
        xml.push_str(&format!("<sitemap><loc>{url}</loc></sitemap>\n"));
    }
    xml.push_str("</sitemapindex>\n");
    Ok(xml)
}

/// The pages of the public items with the numbers of a part.
fn part_of(site: &Site, first: i64) -> Result<String, ArchiveError> {
    let archive = &site.archive;
    let mut xml =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"{NAMESPACE}\">\n");
    let most = usize::try_from(PART).unwrap_or_default();
    for item in archive.store().items_after(ItemId(first - 1), most)? {
        if item.id.0 >= first.saturating_add(PART) {
            break;
        }
        let dependencies = Dependencies::default();
        if item.state == State::Deleted || !archive.is_public(&item, &act, &dependencies)? {
            continue;
        }
        let name = encoded(item.names.preferred().as_bytes());
        // Nothing in it needs to be escaped in XML.
        let url = site.url.at(&format!("{name}?page"));
        let updated = archive.updated(&item, &act, &dependencies)?;
        let updated = updated.map_or(String::new(), |instant| {
            let second = Timestamp::from_unix(instant.seconds(), 0).to_rfc3339();
            format!("<lastmod>{second}</lastmod>")
        });
        xml.push_str(&format!("<url><loc>{url}</loc>{updated}</url>\n"));
    }
    xml.push_str("</urlset>\n");
    Ok(xml)
}
