//! The title and the link of an item, as its record in a mount has them.

use std::ffi::OsString;
use std::path::Path;

use rustix::fs::OFlags;

use crate::formats::metadata::{DublinCore, Element};
use crate::os::opening::read_regular;
use ibi::persistent::is_link;

/// The title of an item of a mount, if it has one, and its persistent link.
pub(in crate::command::commands) fn title_and_link(path: &Path) -> (Option<String>, String) {
    let record = read_regular(beside(path, ":(oai_dc)"), OFlags::empty()).ok();
    let record = record.and_then(|bytes| DublinCore::from_oai_dc(&bytes).ok());
    let record = record.unwrap_or_default();
    // The names come first, and then the link.
    let link = record.values(Element::Identifier).find(|it| is_link(it));
    let title = record.first(Element::Title).map(str::to_owned);
    (title, link.unwrap_or_default().to_owned())
}

/// The path of what stands beside an item under its name.
fn beside(path: &Path, modifier: &str) -> OsString {
    let mut name = path.as_os_str().to_owned();
    name.push(modifier);
    name
}
