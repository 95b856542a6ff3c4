//! Items as packages that other archives read: BagIt bags (RFC 8493) and OCFL objects (version 1.1), for
//! export and import.
//!
//! A package has an item's directory as it is, including the sidecar, in `data/`. Beside it `ibifs.mtree`
//! describes what neither format can: names that are not UTF-8, empty directories, symbolic links, FIFOs,
//! permission bits, times, files with several names, extended attributes. A program that does not know ibifs
//! gets the files; ibifs restores the item as it was.
//!
//! An item may be read while the store is mounted. Each file is read whole and compared with the digest
//! recorded by a scrub, and is written once, to a staging directory or into a zip file there; the package appears
//! when it is complete. A package is not trusted: all digests are compared before any content is used, and no symbolic link in it is
//! followed.
//!
//! Each module uses modules above it in this list, never one below.
//!
//! - [`naming`]: names of an item's files in a package.
//! - [`rules`]: the rules of OCFL.
//! - [`finding`]: results and errors.
//! - [`work`]: the destination, and the staging directory in it.
//! - [`writing`]: where the files of a package are written.
//! - [`reading`]: copies an item into a package.
//! - [`preserved`]: the record of a package for preservation systems.
//! - [`files`]: the files of a package.
//! - [`digests`]: the digests of files.
//! - [`bagit`]: bags that are exported.
//! - [`bag`]: bags that are imported.
//! - [`inventory`]: the inventory of an OCFL object.
//! - [`ocfl`]: OCFL storage roots.
//! - [`object`]: objects that are exported.
//! - [`json`]: JSON with all its members.
//! - [`described`]: inventories of objects that are imported.
//! - [`validity`]: objects that are imported.
//! - [`pax`]: extended headers of tar files.
//! - [`unpack`]: unpacks zip and tar files.
//! - [`identity`]: what distinguishes packages.
//! - [`opened`]: reads and verifies a package.
//! - [`filling`]: makes an item from a package.
//! - [`unnamed`]: what becomes a new item.
//! - [`texts`]: what is unpacked of bytes that others sent, for the fuzz targets.

mod bag;
mod bagit;
mod described;
mod digests;
mod files;
mod filling;
mod finding;
mod identity;
mod inventory;
mod json;
pub mod naming;
mod object;
mod ocfl;
mod opened;
mod pax;
mod preserved;
mod reading;
mod rules;
pub mod texts;
mod unnamed;
mod unpack;
mod validity;
mod work;
mod writing;

use bagit::Serialization;
pub use filling::{UnpackOptions, fill};
pub use finding::{ExportOutcome, PackageError, Problem};
pub use identity::PackageIdentity;
pub use inventory::OcflInventory;
pub use opened::{Found, Package, find, find_with_others, open};
pub use unnamed::{ITEM, is_packed, made_from, stage_unnamed, unpack_package};

use std::path::Path;

use crate::archive::store::Item;
use crate::archive::{Archive, Clock};

/// The formats of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A bag for each item.
    Bagit,
    /// The same, each as one zip file.
    ZippedBag,
    /// An object for each item, with a version for each export that differs from the last.
    Ocfl,
}

/// Receives the number of files and bytes copied.
pub type ExportProgress<'a> = dyn FnMut(u64, u64) + 'a;

/// Writes packages into a directory.
pub struct Exporter<'a> {
    format: Format,
    work: work::ExportDirectory,
    clock: &'a dyn Clock,
    progress: &'a mut ExportProgress<'a>,
    files: u64,
    bytes: u64,
}

impl<'a> Exporter<'a> {
    /// Prepares a directory for packages, and makes it where it is missing.
    ///
    /// # Errors
    /// The directory cannot be made, holds something that does not belong beside packages, or another export
    /// is running there.
    pub fn new(
        format: Format,
        destination: &Path,
        clock: &'a dyn Clock,
        progress: &'a mut ExportProgress<'a>,
    ) -> Result<Exporter<'a>, PackageError> {
        let work = match format {
            Format::Bagit | Format::ZippedBag => {
                work::ExportDirectory::begin(destination, bagit::STAGING, |_| Ok(()))?
            }
            Format::Ocfl => {
                work::ExportDirectory::begin(destination, ocfl::STAGING, ocfl::prepare_root)?
            }
        };
        Ok(Exporter {
            format,
            work,
            clock,
            progress,
            files: 0,
            bytes: 0,
        })
    }

    /// Writes the package of an item.
    ///
    /// # Errors
    /// The first failure; the package is then missing, or unchanged.
    pub fn export(
        &mut self,
        archive: &Archive,
        item: &Item,
    ) -> Result<ExportOutcome, PackageError> {
        self.work.clear()?;
        let mut count = |bytes: u64| {
            self.files += u64::from(bytes == 0);
            self.bytes += bytes;
            (self.progress)(self.files, self.bytes);
        };
        let (work, clock) = (&self.work, self.clock);
        let mut bag =
            |serialization| bagit::make(archive, item, work, clock, serialization, &mut count);
        let outcome = match self.format {
            Format::Bagit => bag(Serialization::None),
            Format::ZippedBag => bag(Serialization::Zip),
            Format::Ocfl => object::make(archive, item, work, clock, &mut count),
        };
        self.work.clear()?;
        outcome
    }

    /// Waits until everything is on disk, and leaves only the packages.
    ///
    /// # Errors
    /// A failed system call.
    pub fn end(self) -> Result<(), PackageError> {
        self.work.end()
    }
}

#[cfg(test)]
mod tests;
