//! The virtual attributes `user.ibi.*` of an item's directory: found by name, never listed.

use std::ffi::OsStr;

use rustix::io::Errno;

use super::Namespace;
use crate::archive::store::{Item, ItemId};
use crate::archive::{ArchiveError, Fact};
use crate::formats::item::{Names, instant};
use crate::fuse::errno;
use crate::fuse::inside::ErrnoResult;
use crate::os::caller::Caller;
use ibi::relation::{Language, RelationKind};

const SPACE: &str = "user.ibi.";

/// Whether an attribute's name is one of ours on an item's directory.
pub(super) fn is_virtual(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(SPACE))
}

impl Namespace {
    fn item_of(&self, id: ItemId) -> ErrnoResult<Item> {
        let item = self.archive.store().item(id).map_err(errno::of_index)?;
        item.ok_or(Errno::NOENT)
    }

    /// The value of a virtual attribute; ENODATA if the item has none of this name.
    pub(super) fn item_xattr(&self, id: ItemId, name: &OsStr) -> ErrnoResult<Vec<u8>> {
        // Another process that asks for it may read the index next.
        self.archive.store().write_arrivals();
        let item = self.item_of(id)?;
        let name = word(name)?;
        if name == "target" {
            return self.archive.default_file(&item)?.ok_or(Errno::NODATA);
        }
        let value = match name {
            "rep" => item.names.rep().map(ToString::to_string),
            "ibip" => item.names.ibip().map(ToString::to_string),
            "state" => Some(item.state.to_string()),
            "archiveservice" => item.service.as_ref().map(Names::preferred),
            "language" => item.language.as_ref().map(ToString::to_string),
            "available" => item.life.available.as_ref().map(ibi::Timestamp::to_rfc3339),
            "alias" => {
                let aliases = self
                    .archive
                    .store()
                    .aliases_of(id)
                    .map_err(errno::of_index)?;
                (!aliases.is_empty()).then(|| aliases.join(" "))
            }
            "withdrawn" => item
                .life
                .withdrawn
                .as_ref()
                .map(|it| format!("{} {}", it.at.to_rfc3339(), it.reason)),
            "lastedition" => Some(self.archive.last_edition(&item.names)?.preferred()),
            _ => {
                let wanted = relation_name(name);
                let relations = self.archive.relations(&item)?;
                relations
                    .into_iter()
                    .find(|(known, _)| *known == wanted)
                    .map(|(_, names)| names.preferred())
            }
        };
        value.map(String::into_bytes).ok_or(Errno::NODATA)
    }

    /// Sets a virtual attribute: declares the relation or property.
    pub(super) fn set_item_xattr(
        &self,
        caller: &Caller,
        id: ItemId,
        name: &OsStr,
        value: &[u8],
    ) -> ErrnoResult<()> {
        let item = self.item_of(id)?;
        let name = word(name)?;
        if name == "target" {
            let target = value.trim_ascii();
            if target.is_empty() {
                return Err(Errno::INVAL);
            }
            let target = Fact::Target(Some(target.to_vec()));
            return Ok(self
                .archive
                .edit(caller, |it| it.set_fact(&item.names, target))?);
        }
        let value = std::str::from_utf8(value).map_err(|_| Errno::INVAL)?.trim();
        match name {
            "withdrawn" => Ok(self
                .archive
                .edit(caller, |it| it.withdraw(&item.names, value))?),
            "language" => {
                let language = Language::parse(value).map_err(|_| Errno::INVAL)?;
                Ok(self.archive.edit(caller, |it| {
                    it.set_fact(&item.names, Fact::Language(Some(language)))
                })?)
            }
            "available" => {
                let at = Some(instant(value).map_err(|_| Errno::INVAL)?);
                Ok(self
                    .archive
                    .edit(caller, |it| it.set_fact(&item.names, Fact::Available(at)))?)
            }
            "alias" => {
                let alias = ibi::AliasPair::parse(value).map_err(|_| Errno::INVAL)?;
                Ok(self
                    .archive
                    .edit(caller, |it| it.set_fact(&item.names, Fact::Alias(alias)))?)
            }
            name => {
                let kind = kind_of(name).ok_or(Errno::PERM)?;
                let target = self.archive.names_at_end_of(value).ok_or(Errno::INVAL)?;
                Ok(self
                    .archive
                    .edit(caller, |it| it.relate(&item.names, &kind, &target))?)
            }
        }
    }

    /// Removes a virtual attribute: withdraws the relation or property.
    pub(super) fn remove_item_xattr(
        &self,
        caller: &Caller,
        id: ItemId,
        name: &OsStr,
    ) -> ErrnoResult<()> {
        let item = self.item_of(id)?;
        match word(name)? {
            "withdrawn" => {
                let restored = self
                    .archive
                    .edit(caller, |it| it.restore_withdrawn(&item.names))?;
                if restored { Ok(()) } else { Err(Errno::NODATA) }
            }
            "language" => Ok(self
                .archive
                .edit(caller, |it| it.set_fact(&item.names, Fact::Language(None)))?),
            "target" => Ok(self
                .archive
                .edit(caller, |it| it.set_fact(&item.names, Fact::Target(None)))?),
            "available" => Ok(self
                .archive
                .edit(caller, |it| it.set_fact(&item.names, Fact::Available(None)))?),
            name => {
                let kind = kind_of(name).ok_or(Errno::PERM)?;
                match self
                    .archive
                    .edit(caller, |it| it.unrelate(&item.names, &kind))
                {
                    Err(ArchiveError::NoRelation { .. }) => Err(Errno::NODATA),
                    other => Ok(other?),
                }
            }
        }
    }
}

fn word(name: &OsStr) -> ErrnoResult<&str> {
    let name = name.to_str().and_then(|name| name.strip_prefix(SPACE));
    name.ok_or(Errno::NODATA)
}

/// `translation.pt` is the relation `translation(pt)`.
fn relation_name(name: &str) -> String {
    match name.split_once('.') {
        Some((relation, parameter)) => format!("{relation}({parameter})"),
        None => name.to_owned(),
    }
}

fn kind_of(name: &str) -> Option<RelationKind> {
    let pair = format!("ibi.{}", relation_name(name));
    RelationKind::from_pair_name(&pair)?.ok()
}
