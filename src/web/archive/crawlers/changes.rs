//! The list of changes of ResourceSync (ANSI/NISO Z39.99-2017) beside the list of resources: an
//! aggregator that has the list of resources brings it up to date with the changes.
//!
//! The list is made from the records of harvesting, which have the second in which each change was noticed. So every
//! change of a description is in it, and no change is in it before the list of resources has the change.

use super::Listed;
use crate::archive::ArchiveError;
use crate::archive::store::{ChangePart, RecordChange};
use crate::web::archive::crawlers::lists::{CAPABILITIES, CHANGES, document, instant, url_of};
use crate::web::archive::{Site, oai};
use crate::web::harvest::item_of;

/// The number of changes in a part, except where more were noticed in one second.
const PART: usize = 10_000;
/// The number of changes that are listed. An aggregator that knows an earlier state takes the list of resources again.
const MOST: usize = 200_000;

/// The list of this name.
pub(super) fn named(site: &Site, name: &str) -> Option<Listed> {
    if name == CHANGES {
        return Some(Listed::Changes(None));
    }
    let part = name.strip_prefix("changelist-")?.strip_suffix(".xml")?;
    // One spelling for each part.
    let first = part.parse::<i64>().ok()?;
    let is_known = first.to_string() == part && (0..=until(site)).contains(&first);
    is_known.then_some(Listed::Changes(Some(first)))
}

/// The list of the parts, or the part that begins in this second. None until all records have been looked at.
pub(super) fn document_of(site: &Site, part: Option<i64>) -> Result<Option<String>, ArchiveError> {
    match part {
        None => index(site),
        Some(first) => part_of(site, first),
    }
}

/// The last second of which all changes are known.
fn until(site: &Site) -> i64 {
    site.clock.seconds() - 1
}

fn head(site: &Site, is_index: bool, from: i64, until: i64) -> String {
    let (rel, up) = if is_index {
        ("up", site.url.at(CAPABILITIES))
    } else {
        ("index", site.url.at(CHANGES))
    };
    format!(
        "<rs:ln rel=\"{rel}\" href=\"{up}\"/>\n<rs:md capability=\"changelist\" from=\"{}\" until=\"{}\"/>\n",
        instant(from),
        instant(until)
    )
}

fn index(site: &Site) -> Result<Option<String>, ArchiveError> {
    let harvest = oai::harvest(site)?;
    let until = until(site);
    let Some((from, firsts)) = harvest.parts_of_changes(until, PART, MOST)? else {
        return Ok(None);
    };
    let ends = firsts.iter().skip(1).map(|next| next - 1).chain([until]);
    let mut parts = String::new();
    for (first, end) in firsts.iter().zip(ends) {
        let url = site.url.at(&format!("changelist-{first}.xml"));
        let (from, to) = (instant(*first), instant(end));
        parts.push_str(&format!(
            "<sitemap><loc>{url}</loc><rs:md capability=\"changelist\" from=\"{from}\" until=\"{to}\"/></sitemap>\n"
        ));
    }
    let head = head(site, true, from, until);
    Ok(Some(document("sitemapindex", &head, &parts)))
}

fn part_of(site: &Site, first: i64) -> Result<Option<String>, ArchiveError> {
    let harvest = oai::harvest(site)?;
    if !harvest.is_whole()? {
        return Ok(None);
    }
    let until = until(site);
    let ChangePart { records, next } = harvest.part_of_changes(first, until, PART)?;
    let mut content = String::new();
    for record in records {
        let (change, kind) = match record.change {
            RecordChange::Created => ("created", " type=\"application/xml\""),
            RecordChange::Updated => ("updated", " type=\"application/xml\""),
            RecordChange::Deleted => ("deleted", ""),
        };
        // An item that is not public any more is noticed as deleted at a later second.
        if record.change != RecordChange::Deleted {
            let item = item_of(&site.archive, &record.name)?;
            let is_public = match item {
                Some(item) => site.public().is_public(&item)?,
                None => false,
            };
            if !is_public {
                continue;
            }
        }
        let (url, at) = (url_of(site, &record.name), instant(record.datestamp));
        content.push_str(&format!(
            "<url><loc>{url}</loc><rs:md change=\"{change}\" datetime=\"{at}\"{kind}/></url>\n"
        ));
    }
    let end = next.map_or(until, |next| next - 1);
    Ok(Some(document(
        "urlset",
        &head(site, false, first, end),
        &content,
    )))
}
