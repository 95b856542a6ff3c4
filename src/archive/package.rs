//! Items as packages that other archives read: BagIt bags (RFC 8493) and OCFL objects (version 1.1),
//! there and back.
//!
//! A package has an item's directory as it is, sidecar included, in `data/`, and beside it
//! `ibifs.mtree`, which says what neither format can: names that are not UTF-8, empty directories,
//! symbolic links, FIFOs, permission bits, times, files with several names, extended attributes. Who
//! knows nothing of ibifs has the files; who does gets back what was there.
//!
//! An item is read beside a mount, each file whole and compared with the digest that a scrub has kept
//! of it, and copied out of sight; the package appears when it is complete. A package is not believed: all
//! digests are compared before anything is taken from it, and no symbolic link in it is followed.

mod bagit;
mod filling;
mod finding;
mod inventory;
mod naming;
mod object;
mod ocfl;
mod opened;
mod reading;
mod work;

pub use filling::{Manner, fill};
pub use finding::{Outcome, PackageError, Problem};
pub use opened::{Package, find, open};

use std::path::Path;

use crate::archive::store::Item;
use crate::archive::{Archive, Clock};

/// The text of mtree(5) in a package.
pub const MTREE: &str = "ibifs.mtree";

/// The formats of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A bag for each item.
    Bagit,
    /// An object for each item, a version for each export of it that differs from the last.
    Ocfl,
}

/// Told how many files and bytes have been copied.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// What writes packages into a directory.
pub struct Exporter<'a> {
    format: Format,
    work: work::Work,
    clock: &'a dyn Clock,
    progress: &'a mut Progress<'a>,
    files: u64,
    bytes: u64,
}

impl<'a> Exporter<'a> {
    /// Prepares a directory for packages, making it where it is missing.
    ///
    /// # Errors
    /// It cannot be made, holds something that has no place beside the packages, or another export is
    /// at work there.
    pub fn new(
        format: Format,
        destination: &Path,
        clock: &'a dyn Clock,
        progress: &'a mut Progress<'a>,
    ) -> Result<Exporter<'a>, PackageError> {
        let work = match format {
            Format::Bagit => work::Work::begin(destination, bagit::STAGING, |_| Ok(()))?,
            Format::Ocfl => work::Work::begin(destination, ocfl::STAGING, ocfl::prepare_root)?,
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
    /// The first thing that stands in the way; then the package is not there, or as it was.
    pub fn export(&mut self, archive: &Archive, item: &Item) -> Result<Outcome, PackageError> {
        self.work.clear()?;
        let mut count = |bytes: u64| {
            self.files += u64::from(bytes == 0);
            self.bytes += bytes;
            (self.progress)(self.files, self.bytes);
        };
        let staged = reading::stage(archive, item, &self.work, &mut count)?;
        let outcome = match self.format {
            Format::Bagit => bagit::finish(archive, item, &staged, &self.work, self.clock),
            Format::Ocfl => object::finish(archive, item, &staged, &self.work, self.clock),
        };
        self.work.clear()?;
        outcome
    }

    /// Waits until all is on disk, and leaves nothing but the packages.
    ///
    /// # Errors
    /// The system's.
    pub fn end(self) -> Result<(), PackageError> {
        self.work.end()
    }
}

/// Digests of a file's content.
#[derive(Clone, Debug)]
struct Digests {
    sha256: crate::formats::fixity::Digest,
    sha512: String,
}

#[cfg(test)]
mod tests;
