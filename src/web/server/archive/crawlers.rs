//! What search engines ask for: `/robots.txt` (RFC 9309), and the site map (sitemaps.org, protocol 0.9) with the
//! pages of all public items, in parts.

use axum::body::Body;
use axum::http::{Response, StatusCode};

use super::{Site, act, failure};
use crate::archive::ArchiveError;
use crate::archive::store::ItemId;
use crate::archive::tree::Dependencies;
use crate::formats::item::State;
use crate::formats::query::encoded;
use crate::web::server::answer;
use ibi::Timestamp;

/// How many items, by their numbers, a part of the site map is about. A map may have 50,000 parts.
const PART: i64 = 10_000;
const XML: &str = "application/xml; charset=utf-8";
const NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// The answer to the name of one of these texts.
pub(super) fn answer(site: &Site, name: &str) -> Option<Response<Body>> {
    let made = match name {
        "robots.txt" => {
            let text = format!(
                "User-agent: *\nDisallow: {prefix}/archive.cgi/\nSitemap: {map}\n",
                prefix = site.url.prefix(),
                map = site.url.at("sitemap.xml")
            );
            return Some(sent("text/plain; charset=utf-8", text));
        }
        "sitemap.xml" => index(site),
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
