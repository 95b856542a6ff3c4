//! `ibifs mint --with-metadata`: the new edition gets a copy of the metadata of the one before it.
//!
//! The things that are copied are read before anything is minted; no symbolic link is followed.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use super::super::access::StoreAccess;
use super::from::Files;
use crate::archive::ArchiveError;
use crate::archive::tree::{METADATA_TEXT, Tree};
use crate::command::exit::{Exit, Failure};
use crate::formats::item::Names;
use crate::os::directory::Directory;
use ibi::message;

/// The metadata of an item that another is to get.
pub(super) enum Inherited<'a> {
    /// The metadata text.
    Text(Vec<u8>),
    /// The files of the metadata item.
    Item(Files<'a>),
}

/// The metadata item of an item, if it has one that is held here.
fn metadata_item(access: &StoreAccess, names: &Names) -> Result<Option<Names>, Failure> {
    let archive = access.read_about(&[&names.preferred()])?;
    Ok(archive.metadata_held(names)?)
}

/// The metadata text of an item, if it has one.
fn text_of(access: &StoreAccess, names: &Names) -> Result<Option<Vec<u8>>, Failure> {
    let path = access.directory_of(names);
    let item = Directory::open(&path).map_err(|errno| failed(&path, &errno.into()))?;
    let text = Tree::over(path, OwnedFd::from(item)).read_small(METADATA_TEXT);
    Ok(text.map_err(ArchiveError::from)?)
}

impl<'a> Inherited<'a> {
    /// The metadata of an item; fails if it has none that are held here.
    pub(super) fn of(access: &'a StoreAccess, names: &Names) -> Result<Inherited<'a>, Failure> {
        if let Some(metadata) = metadata_item(access, names)? {
            return Files::of(access, &metadata).map(Inherited::Item);
        }
        match text_of(access, names)? {
            Some(text) => Ok(Inherited::Text(text)),
            None => Err(Failure::new(
                Exit::Failed,
                message!(
                    "{item} has no metadata here that another could get; leave --with-metadata out",
                    item = names.preferred()
                ),
            )),
        }
    }

    /// Gives a copy to a new item. `mint_metadata` mints an item as its metadata, for those that are an item.
    pub(super) fn copy_to(
        &self,
        access: &StoreAccess,
        names: &Names,
        mint_metadata: impl FnOnce() -> Result<Names, Failure>,
    ) -> Result<(), Failure> {
        match self {
            Inherited::Text(text) => write(&access.directory_of(names).join(METADATA_TEXT), text),
            Inherited::Item(files) => files.copy_to(&mint_metadata()?),
        }
    }
}

/// Writes a new file.
#[expect(clippy::disallowed_methods, reason = "the item is new")]
fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create_new(true).open(path);
    opened
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Failed,
        message!(
            "the metadata are not copied: {path}: {error}",
            path = path.display(),
            error
        ),
    )
}
