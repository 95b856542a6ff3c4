//! `ibifs mint --with-metadata`: the new edition gets a copy of the metadata of the one before it.
//!
//! The things that are copied are read before anything is minted, through the Archive, which follows no symbolic link.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::access::StoreAccess;
use crate::archive::MetadataFiles;
use crate::archive::tree::{METADATA_TEXT, Place};
use crate::command::exit::{Exit, Failure};
use crate::formats::item::Names;
use ibi::message;

/// The metadata of an item that another is to get.
pub(super) struct Inherited(MetadataFiles);

impl Inherited {
    /// The metadata of an item; fails if it has none that are held here.
    pub(super) fn of(access: &StoreAccess, names: &Names) -> Result<Inherited, Failure> {
        let archive = access.read()?;
        match archive.metadata_files(names)? {
            Some(files) => Ok(Inherited(files)),
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
        match &self.0 {
            MetadataFiles::Text(text) => {
                let path = directory(access, names).join(METADATA_TEXT);
                write(&path, text)
            }
            MetadataFiles::Item(files) => {
                let metadata = mint_metadata()?;
                let directory = directory(access, &metadata);
                for (name, bytes) in files {
                    let path = directory.join(std::ffi::OsStr::from_bytes(name));
                    if let Some(above) = path.parent() {
                        #[expect(clippy::disallowed_methods, reason = "the item is new")]
                        std::fs::create_dir_all(above).map_err(|error| failed(above, &error))?;
                    }
                    write(&path, bytes)?;
                }
                Ok(())
            }
        }
    }
}

/// An item's directory: in the mount, or in a store that is not mounted.
fn directory(access: &StoreAccess, names: &Names) -> PathBuf {
    let place = || access.store.join(Place::of(names).as_str());
    access.path_in_mount(names).unwrap_or_else(place)
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
            "the item is minted, and its metadata are not complete: {path}: {error}",
            path = path.display(),
            error
        ),
    )
}
