//! Lists of all public items, in parts: the site map with their pages (sitemaps.org, protocol 0.9), and the lists of
//! ResourceSync (ANSI/NISO Z39.99-2017) with their descriptions, for aggregators.

use super::Listed;
use crate::archive::ArchiveError;
use crate::archive::store::{Item, ItemId};
use crate::formats::item::State;
use crate::formats::oai::local_name;
use crate::formats::query::encoded;
use crate::web::archive::Site;
use crate::web::harvest::has_record;
use ibi::Timestamp;

/// The number of items, by their numbers, that a part of a list is about. A list may have 50,000 parts.
const PART: i64 = 10_000;
/// The place where aggregators look first.
pub(in super::super) const RESOURCE_SYNC: &str = ".well-known/resourcesync";
pub(super) const CAPABILITIES: &str = "capabilitylist.xml";
const RESOURCES: &str = "resourcelist.xml";
/// The list of what has changed.
pub(super) const CHANGES: &str = "changelist.xml";
const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"";
const SYNC: &str = "xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

/// The purpose of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum List {
    /// Search engines: the items' pages.
    SiteMap,
    /// Aggregators: the items' descriptions.
    Resources,
}

/// The text of this name that describes the lists.
pub(super) fn description_of(site: &Site, name: &str) -> Option<String> {
    match name {
        RESOURCE_SYNC => Some(description(site)),
        CAPABILITIES => Some(capabilities(site)),
        _ => None,
    }
}

/// The list of this name, if there is one.
pub(super) fn named(site: &Site, name: &str) -> Result<Option<Listed>, ArchiveError> {
    match name {
        "sitemap.xml" => return Ok(Some(Listed::Items(List::SiteMap, None))),
        RESOURCES => return Ok(Some(Listed::Items(List::Resources, None))),
        _ => {}
    }
    let part = name
        .strip_suffix(".xml")
        .and_then(|name| name.split_once('-'));
    let (list, part) = match part {
        Some(("sitemap", part)) => (List::SiteMap, part),
        Some(("resourcelist", part)) => (List::Resources, part),
        _ => return Ok(None),
    };
    // One spelling for each part.
    let number = part.parse::<i64>().ok();
    let Some(number) = number.filter(|number| number.to_string() == part) else {
        return Ok(None);
    };
    let is_there = (0..=last_part(site)?).contains(&number);
    Ok(is_there.then_some(Listed::Items(list, Some(number))))
}

/// The list of the parts, or a part.
pub(super) fn document_of(
    site: &Site,
    list: List,
    part: Option<i64>,
) -> Result<String, ArchiveError> {
    match part {
        None => index(site, list),
        Some(number) => part_of(site, list, number * PART),
    }
}

/// The description of the source: where its capabilities are listed.
fn description(site: &Site) -> String {
    let url = site.url.at(CAPABILITIES);
    document(
        "urlset",
        "<rs:md capability=\"description\"/>\n",
        &format!("<url><loc>{url}</loc><rs:md capability=\"capabilitylist\"/></url>\n"),
    )
}

/// Lists what the source offers.
fn capabilities(site: &Site) -> String {
    let up = site.url.at(RESOURCE_SYNC);
    let lists = [(RESOURCES, "resourcelist"), (CHANGES, "changelist")];
    let lists: String = lists
        .iter()
        .map(|(name, capability)| {
            let url = site.url.at(name);
            format!("<url><loc>{url}</loc><rs:md capability=\"{capability}\"/></url>\n")
        })
        .collect();
    document(
        "urlset",
        &format!("<rs:ln rel=\"up\" href=\"{up}\"/>\n<rs:md capability=\"capabilitylist\"/>\n"),
        &lists,
    )
}

pub(super) fn document(element: &str, head: &str, content: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{element} {NAMESPACES} {SYNC}>\n{head}{content}</{element}>\n"
    )
}

/// A second as ResourceSync has it.
pub(super) fn instant(second: i64) -> String {
    Timestamp::from_unix(second, 0).to_rfc3339()
}

/// The URL of a description, by the name of the item's record. Nothing in it needs to be escaped in XML.
pub(super) fn url_of(site: &Site, name: &str) -> String {
    let name = encoded(name.as_bytes());
    site.url.at(&format!("{name}:(oai_dc)"))
}

/// The head of a list; that of ResourceSync says when it is true.
fn head(site: &Site, list: List) -> String {
    match list {
        List::SiteMap => String::new(),
        List::Resources => {
            let up = site.url.at(CAPABILITIES);
            // An item that changes in this second may be in it as before or after that.
            let at = instant(site.clock.seconds() - 1);
            format!(
                "<rs:ln rel=\"up\" href=\"{up}\"/>\n<rs:md capability=\"resourcelist\" at=\"{at}\"/>\n"
            )
        }
    }
}

/// The number of the last part.
fn last_part(site: &Site) -> Result<i64, ArchiveError> {
    let last = site.archive.store().last_number()?;
    Ok(last.map_or(0, |last| last.0) / PART)
}

/// The list of the parts.
fn index(site: &Site, list: List) -> Result<String, ArchiveError> {
    let name = match list {
        List::SiteMap => "sitemap",
        List::Resources => "resourcelist",
    };
    let mut parts = String::new();
    for number in 0..=last_part(site)? {
        let url = site.url.at(&format!("{name}-{number}.xml"));
        parts.push_str(&format!("<sitemap><loc>{url}</loc></sitemap>\n"));
    }
    Ok(document("sitemapindex", &head(site, list), &parts))
}

/// The last change of the description of an item, by all that is read for it.
fn last_described(site: &Site, item: &Item) -> Result<Option<Timestamp>, ArchiveError> {
    let archive = &site.archive;
    let metadata = match archive.metadata(&item.names)? {
        Some(names) => archive.held(&names)?,
        None => None,
    };
    let metadata = match metadata {
        Some(metadata) if site.public().is_public(&metadata)? => Some(metadata),
        _ => None,
    };
    site.public().description_updated(item, metadata.as_ref())
}

/// The public items with the numbers of a part.
fn part_of(site: &Site, list: List, first: i64) -> Result<String, ArchiveError> {
    let archive = &site.archive;
    let mut content = String::new();
    let most = usize::try_from(PART).unwrap_or_default();
    for item in archive.store().items_after(ItemId(first - 1), most)? {
        if item.id.0 >= first.saturating_add(PART) {
            break;
        }
        if item.state == State::Deleted || !site.public().is_public(&item)? {
            continue;
        }
        let name = encoded(item.names.preferred().as_bytes());
        // Nothing in these needs to be escaped in XML.
        let (url, updated, more) = match list {
            List::SiteMap => {
                let described = last_described(site, &item)?;
                let updated = site.public().updated(&item)?.max(described);
                (site.url.at(&format!("{name}?page")), updated, String::new())
            }
            List::Resources => {
                if !has_record(archive, &item)? {
                    continue;
                }
                let page = site.url.at(&name);
                let described = format!("<rs:ln rel=\"describes\" href=\"{page}\"/>");
                let kind = "<rs:md type=\"application/xml\"/>";
                let url = url_of(site, &local_name(&item.names));
                let updated = last_described(site, &item)?;
                (url, updated, kind.to_owned() + &described)
            }
        };
        let updated = updated.map_or(String::new(), |updated| {
            format!("<lastmod>{}</lastmod>", instant(updated.seconds()))
        });
        content.push_str(&format!("<url><loc>{url}</loc>{updated}{more}</url>\n"));
    }
    Ok(document("urlset", &head(site, list), &content))
}
