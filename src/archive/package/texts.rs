//! Unpacks bytes that others sent, for the fuzz targets in `tests/fuzz`, which are outside of this crate.
//! Nothing else uses it.

use std::io::Cursor;
use std::path::Path;

use super::PackageError;
use super::unpack::{ArchiveFormat, holds_bag, unpack_at_most};
use crate::archive::tree::Action;
use crate::os::directory::Directory;

/// The format of a file with these bytes, by its name; None if it is not one of those that are unpacked.
#[must_use]
pub fn format(bytes: &[u8]) -> Option<&'static str> {
    let format = ArchiveFormat::of(&mut Cursor::new(bytes)).ok()?;
    format.map(|format| match format {
        ArchiveFormat::Zip => "zip",
        ArchiveFormat::Tar => "tar",
        ArchiveFormat::TarGz => "tar.gz",
        ArchiveFormat::TarBz2 => "tar.bz2",
        ArchiveFormat::TarXz => "tar.xz",
    })
}

/// Whether a zip file with these bytes holds a bag.
#[must_use]
pub fn is_zipped_bag(bytes: &[u8]) -> bool {
    holds_bag(Cursor::new(bytes))
}

/// Unpacks a file with these bytes into an empty directory, which gets at most `most` bytes. Returns how many it got.
///
/// # Errors
/// The file has no such format, or is not safe to unpack.
pub fn unpacked(bytes: &[u8], to: &Path, most: u64) -> Result<u64, PackageError> {
    let format = ArchiveFormat::of(&mut Cursor::new(bytes)).ok().flatten();
    let format = format.ok_or_else(|| PackageError::Nothing {
        path: to.to_owned(),
    })?;
    let mut written = 0;
    let mut count = |more: u64| written += more;
    let opened = Directory::open(to);
    let to = opened.map_err(PackageError::io(
        Action::Open,
        to.as_os_str().as_encoded_bytes(),
    ))?;
    unpack_at_most(most, Cursor::new(bytes), format, &to, &mut count).map(|()| written)
}
