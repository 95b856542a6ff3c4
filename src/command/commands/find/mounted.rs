//! A search by a user who may not enter the store: the mount answers it, below `.find`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::FoundItem;
use crate::command::cli::Find;
use crate::command::commands::access::{attribute_of, names_by_attribute};
use crate::command::exit::{Exit, Failure};
use crate::formats::item::Names;
use crate::formats::metadata::DublinCore;
use crate::os::directory::Directory;
use crate::os::opening::read_regular;
use ibi::{Ibi, message};

/// The directory of a mount in which any name is a query.
const SEARCHES: &str = ".find";

/// Searches through a mount. Returns at most so many items, the best first, and whether there are more.
pub(super) fn search(
    mount_point: &Path,
    options: &Find,
) -> Result<(Vec<FoundItem>, bool), Failure> {
    let mut directory = mount_point.join(SEARCHES);
    let creators = options.creator.iter().map(|name| ("creator", name));
    let years = options.year.iter().map(|year| ("year", year));
    let types = options.r#type.iter().map(|word| ("type", word));
    if !options.words.is_empty() {
        directory.push(component(&options.words.join(" ")));
    }
    for (field, value) in creators.chain(years).chain(types) {
        // A range of years is not a phrase.
        let quote = if field == "year" { "" } else { "\"" };
        directory.push(component(&format!("{field}:{quote}{value}{quote}")));
    }
    let listed = Directory::open(&directory).and_then(|directory| directory.entries());
    let listed = listed.map_err(|errno| {
        let (path, error) = (directory.display(), std::io::Error::from(errno));
        Failure::new(Exit::Failed, message!("'{path}': {error}", path, error))
    })?;
    let names = listed.iter().map(|(name, _)| OsStr::from_bytes(name));
    let mut links: Vec<_> = names.map(|name| directory.join(name)).collect();
    let has_more = links.len() > options.limit;
    links.truncate(options.limit);
    let found = links.iter().filter_map(|link| item(mount_point, link));
    Ok((found.collect(), has_more))
}

/// A name of a directory: a slash separates words in it.
fn component(query: &str) -> String {
    query.replace('/', " ")
}

/// The item to which a link leads. None if it has gone meanwhile.
fn item(mount_point: &Path, link: &Path) -> Option<FoundItem> {
    let path = std::fs::canonicalize(link).ok()?;
    let below = path
        .strip_prefix(std::fs::canonicalize(mount_point).ok()?)
        .ok()?;
    let stated = Ibi::parse(below.to_str()?).ok()?;
    let names = names_by_attribute(&path).unwrap_or_else(|| Names::from(stated));
    let last = attribute_of(&path, "user.ibi.lastedition").and_then(|last| Ibi::parse(&last).ok());
    let last = last.map(|last| {
        let known = names_by_attribute(&mount_point.join(last.to_string()));
        known.unwrap_or_else(|| Names::from(last))
    });
    let mut record = path.into_os_string();
    record.push(OsStr::new(":(oai_dc)"));
    let core = read_regular(record, OFlags::empty()).ok();
    let core = core.and_then(|bytes| DublinCore::from_oai_dc(&bytes).ok());
    Some(FoundItem {
        last_edition: last.filter(|last| !last.matches(&names)),
        names,
        core: core.unwrap_or_default(),
    })
}
