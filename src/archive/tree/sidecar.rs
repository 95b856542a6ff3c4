//! The sidecar and the metadata text of an item: read, replaced, removed, and their owner.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::action::Action;
use super::place::{Author, NOT_OWNERS, Place, STRANGERS, TreeError, failed};
use super::place::{METADATA_TEXT, SIDECAR};
use super::root::Tree;
use super::small::{SMALL_FILE_LIMIT, read_opened, read_small_in};
use crate::archive::owner::Owner;
use crate::os::opening::{self, by_descriptor};

/// The name of a file that is not accepted as a sidecar; a hyphen and a number follow.
const REFUSED: &str = ".ibi.broken";

/// The number of files that an item keeps that were not accepted as its sidecar. The last one is replaced.
const REFUSED_LIMIT: u32 = 99;

/// Returns whether a sidecar speaks with the rights of its owner: no other user has written it, or may write it by a
/// mode, an access control list (whose mask is in the bits of the group) or another name of the file.
pub fn speaks_for_owner(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_nlink <= 1
        && stat.st_mode & NOT_OWNERS == 0
}

/// Marks a file with [`STRANGERS`].
pub fn mark_strangers(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let mode = rustix::fs::fstat(file)?.st_mode & 0o7777;
    opening::set_mode(file, Mode::from_raw_mode(mode | STRANGERS))
}

impl Tree {
    /// The bytes of an item's sidecar, or None where it has none.
    pub fn read_sidecar(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("{}/{SIDECAR}", place.as_str()))
    }

    /// Opens an item's sidecar (O_PATH), of whatever file type; None where the item has none.
    pub fn open_sidecar(&self, place: &Place) -> Result<Option<OwnedFd>, TreeError> {
        self.open_in_item(place, SIDECAR)
    }

    /// Opens a file in an item's directory (O_PATH), of whatever file type; None where it does not exist.
    pub fn open_in_item(&self, place: &Place, name: &str) -> Result<Option<OwnedFd>, TreeError> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(self.open_item(place)?, name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed(Action::Open, &format!("{}/{name}", place.as_str()))(
                errno,
            )),
        }
    }

    /// The bytes of an item's metadata text, or None where it has none.
    pub fn read_metadata_text(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("{}/{METADATA_TEXT}", place.as_str()))
    }

    /// Removes an item's sidecar, if it has one.
    pub(in crate::archive) fn remove_sidecar(&self, place: &Place) -> Result<(), TreeError> {
        let item = self.open_item(place)?;
        match rustix::fs::unlinkat(&item, SIDECAR, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(failed(Action::RemoveSidecar, place.as_str())(errno)),
        }
    }

    /// Replaces an item's sidecar as a whole, synced. EFBIG if it is too large to be read back.
    pub(in crate::archive) fn write_sidecar(
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
        let owned = |uid, gid, marked: bool| {
            let mode = 0o644 | if marked { STRANGERS } else { 0 };
            Owner {
                uid,
                gid,
                mode,
                doc_mode: mode,
            }
        };
        let before = match author {
            Author::User { uid, gid } => return Ok(owned(uid, gid, false)),
            Author::Marked { uid, gid } => return Ok(owned(uid, gid, true)),
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
            Some(file) => owned(file.st_uid, file.st_gid, file.st_mode & NOT_OWNERS != 0),
            None => owned(stat.st_uid, stat.st_gid, false),
        })
    }

    /// The bytes of a file that is to become a sidecar, found with O_PATH. EFBIG if it is too large to be
    /// one, EINVAL if it is not a regular file.
    pub fn read_candidate(&self, file: BorrowedFd<'_>) -> Result<Vec<u8>, TreeError> {
        let opened = opening::again(file, OFlags::RDONLY).map_err(failed(Action::Open, SIDECAR))?;
        let read = read_opened(&opened.into(), SIDECAR, SMALL_FILE_LIMIT)?;
        Ok(read.unwrap_or_default())
    }

    /// Gives a file that is not accepted as an item's sidecar another name in the item, the first free one of
    /// `.ibi.broken-1` to `.ibi.broken-99`, and returns it. A file with the same bytes that has such a name
    /// already is kept instead.
    pub(in crate::archive) fn keep_refused(
        &self,
        place: &Place,
        file: BorrowedFd<'_>,
        bytes: Option<&[u8]>,
    ) -> Result<String, TreeError> {
        let item = self.open_item(place)?;
        let from = by_descriptor(file);
        let link = |name: &str| {
            let (cwd, flags) = (rustix::fs::CWD, AtFlags::SYMLINK_FOLLOW);
            rustix::fs::linkat(cwd, from.as_str(), item.as_fd(), name, flags)
        };
        for number in 1..=REFUSED_LIMIT {
            let name = format!("{REFUSED}-{number}");
            match link(&name) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) => {
                    let kept = read_small_in(&item, &name, &name, SMALL_FILE_LIMIT);
                    if bytes.is_some() && kept.ok().flatten().as_deref() == bytes {
                        return Ok(name);
                    }
                }
                Err(errno) => return Err(failed(Action::Link, &name)(errno)),
            }
        }
        let name = format!("{REFUSED}-{REFUSED_LIMIT}");
        rustix::fs::unlinkat(&item, &name, AtFlags::empty())
            .and_then(|()| link(&name))
            .map_err(failed(Action::Link, &name))?;
        Ok(name)
    }

    /// Replaces a metadata text that cannot be read by the one before it. The first is kept under another name, see
    /// [`Tree::keep_refused`], which is returned; None where the item has no text.
    pub(in crate::archive) fn put_text_back(
        &self,
        place: &Place,
        before: &[u8],
    ) -> Result<Option<String>, TreeError> {
        let Some(file) = self.open_in_item(place, METADATA_TEXT)? else {
            return Ok(None);
        };
        let stat = rustix::fs::fstat(&file).map_err(failed(Action::Read, METADATA_TEXT))?;
        let bytes = self.read_candidate(file.as_fd())?;
        let kept = self.keep_refused(place, file.as_fd(), Some(&bytes))?;
        let mode = stat.st_mode & 0o777;
        let owner = Owner {
            uid: stat.st_uid,
            gid: stat.st_gid,
            mode,
            doc_mode: mode,
        };
        self.write_small(place.as_str(), METADATA_TEXT, before, Some(owner))?;
        Ok(Some(kept))
    }

    /// Makes a file that was refused the item's sidecar after all.
    pub fn take_back_refused(&self, place: &Place, name: &str) -> Result<(), TreeError> {
        self.rename_small(place.as_str(), name, SIDECAR)
    }
}
