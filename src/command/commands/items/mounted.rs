//! The parts of an item that a user who may not enter the store is shown: what the mount says of it.
//!
//! The index is not known here, so relations that only other items declare are those that the mount has attributes of.

use std::ffi::OsString;
use std::path::Path;

use rustix::fs::OFlags;

use crate::archive::store::{Item, ItemId};
use crate::archive::tree::{METADATA_TEXT, SIDECAR};
use crate::archive::{ArchiveError, Claims, Relations};
use crate::command::commands::access::{attribute_of, names_by_attribute};
use crate::command::commands::print::ItemDetails;
use crate::command::exit::Failure;
use crate::formats::item::{Names, Sidecar, State};
use crate::formats::metadata::{DublinCore, Element, MetadataProblem, check};
use crate::os::opening::read_regular;
use ibi::Ibi;
use ibi::persistent::is_link;
use ibi::relation::RelationKind;

/// The relations that every item in a mount has an attribute of, besides translations.
const RELATIONS: [&str; 6] = [
    "lastedition",
    "nextedition",
    "metadata",
    "editionof",
    "metadataof",
    "translationof",
];

/// Prints an item of a mount, and returns the problems of its metadata text.
pub(super) fn show(
    mount_point: &Path,
    names: &Names,
    print: impl FnOnce(&ItemDetails<'_>) -> Result<(), Failure>,
) -> Result<Vec<MetadataProblem>, Failure> {
    let path = &mount_point.join(names.preferred());
    let attribute = |name: &str| attribute_of(path, &format!("user.ibi.{name}"));
    let state = attribute("state").and_then(|state| state.parse::<State>().ok());
    let Some(state) = state else {
        let name = names.preferred();
        return Err(ArchiveError::Unknown { name }.into());
    };
    // An attribute has one name; the other is known if that item is here.
    let item_of = |name: &str| {
        let name = attribute(name)?;
        let here = names_by_attribute(&mount_point.join(&name));
        here.or_else(|| Ibi::parse(&name).ok().map(Names::from))
    };
    let own = |name: &str| read_regular(path.join(name), OFlags::NOFOLLOW).ok();
    let sidecar = own(SIDECAR);
    let sidecar = sidecar.and_then(|bytes| Sidecar::parse(&bytes).ok());
    let mut relations = Relations::new();
    for name in RELATIONS {
        if let Some(related) = item_of(name) {
            relations.push((name.to_owned(), related));
        }
    }
    for (kind, names) in sidecar.iter().flat_map(Sidecar::relations) {
        if let RelationKind::Translation(language) = kind {
            relations.push((format!("translation({language})"), names));
        }
    }
    relations.sort_by(|left, right| left.0.cmp(&right.0));
    let record = read_regular(beside(path, ":(oai_dc)"), OFlags::empty()).ok();
    let record = record.and_then(|bytes| DublinCore::from_oai_dc(&bytes).ok());
    let record = record.unwrap_or_default();
    // The names come first, and then the link.
    let link = record.values(Element::Identifier).find(|it| is_link(it));
    let aliases = sidecar.iter().flat_map(Sidecar::aliases);
    let item = Item {
        id: ItemId(0),
        names: names.clone(),
        state,
        service: item_of("archiveservice"),
        language: sidecar.as_ref().and_then(Sidecar::language).copied(),
        target: attribute("target"),
        removed_at: None,
    };
    print(&ItemDetails {
        item: &item,
        title: record.first(Element::Title),
        link: link.unwrap_or_default(),
        relations: &relations,
        claims: &Claims::default(),
        aliases: &aliases.map(ToString::to_string).collect::<Vec<_>>(),
    })?;
    Ok(own(METADATA_TEXT)
        .map(|text| check(&text))
        .unwrap_or_default())
}

/// The path of what stands beside an item under its name.
fn beside(path: &Path, modifier: &str) -> OsString {
    let mut name = path.as_os_str().to_owned();
    name.push(modifier);
    name
}
