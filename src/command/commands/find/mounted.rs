//! A search by a user who may not enter the store: the mount answers it, below `.find`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::command::cli::Find;
use crate::command::exit::{Exit, Failure};
use crate::formats::item::Names;
use crate::formats::metadata::DublinCore;
use crate::os::directory::Directory;
use crate::os::opening::read_regular;
use ibi::{Ibi, message};

/// The directory of a mount in which any name is a query.
const SEARCHES: &str = ".find";

/// What a mount finds: at most so many items, and whether there are more.
pub(super) fn search(
    mount_point: &Path,
    options: &Find,
) -> Result<(Vec<(Names, DublinCore)>, bool), Failure> {
    let mut directory = mount_point.join(SEARCHES);
    let creators = options.creator.iter().map(|name| ("creator", name));
    let years = options.year.iter().map(|year| ("year", year));
    let types = options.r#type.iter().map(|word| ("type", word));
    if !options.words.is_empty() {
        directory.push(component(&options.words.join(" ")));
    }
    for (field, value) in creators.chain(years).chain(types) {
        // A range of years is no phrase.
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
    links.sort();
    let has_more = links.len() > options.limit;
    links.truncate(options.limit);
    let found = links.iter().filter_map(|link| item(mount_point, link));
    Ok((found.collect(), has_more))
}

/// A name of a directory: a slash separates words in it.
fn component(query: &str) -> String {
    query.replace('/', " ")
}

/// The item to which a link leads, and its description. None if it has gone meanwhile.
fn item(mount_point: &Path, link: &Path) -> Option<(Names, DublinCore)> {
    let path = std::fs::canonicalize(link).ok()?;
    let below = path
        .strip_prefix(std::fs::canonicalize(mount_point).ok()?)
        .ok()?;
    let names = Names::from(Ibi::parse(below.to_str()?).ok()?);
    let mut record = path.clone().into_os_string();
    record.push(OsStr::new(":(oai_dc)"));
    let core = read_regular(record, OFlags::empty()).ok();
    let core = core.and_then(|bytes| DublinCore::from_oai_dc(&bytes).ok());
    Some((names, core.unwrap_or_default()))
}
