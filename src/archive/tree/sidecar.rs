//! The sidecar and the metadata text of an item: read, replaced, removed, and their owner.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::action::Action;
use super::place::{Author, Place, STRANGERS, TreeError, failed};
use super::place::{METADATA_TEXT, SIDECAR};
use super::root::Tree;
use super::small::SMALL_FILE_LIMIT;
use crate::archive::owner::Owner;

impl Tree {
    /// The bytes of an item's sidecar, or None where it has none.
    pub fn read_sidecar(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("{}/{SIDECAR}", place.as_str()))
    }

    /// Opens an item's sidecar (O_PATH), of whatever file type; None where the item has none.
    pub fn open_sidecar(&self, place: &Place) -> Result<Option<OwnedFd>, TreeError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(self.open_item(place)?, SIDECAR, flags, Mode::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(
                Action::Open,
                &format!("{}/{SIDECAR}", place.as_str()),
            )(errno)),
        }
    }

    /// The bytes of an item's metadata text, or None where it has none.
    pub fn read_metadata_text(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("{}/{METADATA_TEXT}", place.as_str()))
    }

    /// Removes an item's sidecar, if it has one.
    pub fn remove_sidecar(&self, place: &Place) -> Result<(), TreeError> {
        let item = self.open_item(place)?;
        match rustix::fs::unlinkat(&item, SIDECAR, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(Action::RemoveSidecar, place.as_str())(errno)),
        }
    }

    /// Replaces an item's sidecar as a whole, synced. EFBIG if it is too large to be read back.
    pub fn write_sidecar(
        &self,
        place: &Place,
        bytes: &[u8],
        author: Author,
    ) -> Result<(), TreeError> {
        if bytes.len() as u64 > SMALL_FILE_LIMIT {
            return Err(failed(
                Action::Write,
                &format!("{}/{SIDECAR}", place.as_str()),
            )(Errno::FBIG));
        }
        let owner = self.owner_of_sidecar(place, author)?;
        self.write_small(place.as_str(), SIDECAR, bytes, Some(owner))
    }

    fn owner_of_sidecar(&self, place: &Place, author: Author) -> Result<Owner, TreeError> {
        let failed = failed(Action::Read, place.as_str());
        let stat = rustix::fs::fstat(self.open_item(place)?).map_err(failed)?;
        let owned = |uid, gid, marked: bool| Owner {
            uid,
            gid,
            mode: 0o644 | if marked { STRANGERS } else { 0 },
        };
        let before = match author {
            Author::User { uid, gid } => return Ok(owned(uid, gid, false)),
            Author::Unknown => {
                let is_shared = stat.st_mode & 0o022 != 0;
                return Ok(owned(stat.st_uid, stat.st_gid, is_shared));
            }
            Author::Same => self.open_sidecar(place)?,
        };
        let before = before.and_then(|file| rustix::fs::fstat(file).ok());
        let before =
            before.filter(|file| FileType::from_raw_mode(file.st_mode) == FileType::RegularFile);
        Ok(match before {
            Some(file) => owned(file.st_uid, file.st_gid, file.st_mode & STRANGERS != 0),
            None => owned(stat.st_uid, stat.st_gid, false),
        })
    }
}
