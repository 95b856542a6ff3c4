//! Texts that are refused as the sidecar of an item where a program writes them.
//!
//! Refused is what `ibifs fsck` reports as `broken-sidecar` or `foreign-sidecar`, and a sidecar that takes
//! the service away from the service item, that takes the seal from a sealed item, or that claims an original which another Archive has been given.
//! The bytes are kept in the item under another name, and the accepted sidecar is written again. An empty file stays: a program
//! that has just truncated a sidecar is about to write it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::full_disk::with_reserve;
use super::{ArchiveError, Editor};
use crate::archive::store::{Item, ItemId};
use crate::archive::tree::{Action, Author, Place};
use crate::formats::item::{Sidecar, State};

/// A text that was refused as the sidecar of an item.
#[derive(Debug)]
pub struct RefusedSidecar {
    /// The reason.
    pub error: ArchiveError,
    /// The name in the item under which the bytes are kept; None if there are none.
    pub kept_as: Option<String>,
}

/// The program that brings a sidecar into an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bringing {
    /// A program that fills an item that it has just made. It copies a directory, and the sidecar of
    /// another item in it is left out.
    Deposit,
    /// Any other program.
    Other,
}

/// Device and inode number of a file.
pub type FileNumber = (u64, u64);

fn number(stat: &Stat) -> FileNumber {
    (stat.st_dev, stat.st_ino)
}

/// The error of a file as the sidecar of an item, and its bytes unless there are too many.
type Flaw = (ArchiveError, Option<Vec<u8>>);

impl Editor<'_> {
    fn sidecar_with(
        &self,
        place: &Place,
        written: FileNumber,
    ) -> Result<Option<(OwnedFd, Stat)>, ArchiveError> {
        let Some(file) = self.tree.open_sidecar(place)? else {
            return Ok(None);
        };
        let stat = self.stat_of(&file, place)?;
        Ok((number(&stat) == written).then_some((file, stat)))
    }

    fn stat_of(&self, file: impl AsFd, place: &Place) -> Result<Stat, ArchiveError> {
        let stat = rustix::fs::fstat(file);
        Ok(stat.map_err(|errno| self.tree.error(Action::Read, place.as_str(), errno))?)
    }

    /// Returns what fsck would report of a regular file as the sidecar of an item.
    fn flaw(
        &self,
        item: &Item,
        file: BorrowedFd<'_>,
        bringing: Bringing,
    ) -> Result<Option<Flaw>, ArchiveError> {
        let stat = self.stat_of(file, &Place::of(&item.names))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        let bytes = match self.tree.read_candidate(file) {
            Ok(bytes) => bytes,
            Err(error) if error.errno() == Errno::FBIG => return Ok(Some((error.into(), None))),
            // The file cannot be read now; it is read again when it is accepted.
            Err(_) => return Ok(None),
        };
        let is_left_out = |error: &ArchiveError| {
            matches!(error, ArchiveError::OtherItem { .. })
                && item.state == State::Original
                && bringing == Bringing::Deposit
        };
        let error = match self.parse_for(&item.names, &bytes) {
            Ok(sidecar) => self.contradiction(item, &sidecar)?,
            Err(error) if is_left_out(&error) => None,
            Err(error) => Some(error),
        };
        Ok(error.map(|error| (error, Some(bytes))))
    }

    /// Returns why a valid sidecar may not replace the one that was accepted: the service item would not name the
    /// service any more, or a copy would become an original again that another Archive has been given.
    pub(super) fn contradiction(
        &self,
        item: &Item,
        sidecar: &Sidecar,
    ) -> Result<Option<ArchiveError>, ArchiveError> {
        if let Err(sealed) = self.refuse_other_seal(item, sidecar.life()) {
            return Ok(Some(sealed));
        }
        let claims = self.facts.claims_original(sidecar);
        if !claims && item.names.matches(&self.facts.service) {
            return Ok(Some(ArchiveError::ServiceItem));
        }
        let is_given = claims
            && item.state != State::Original
            && self.given(&item.names)?.is_some()
            && self.store.sidecar(item.id)?.is_some();
        Ok(is_given.then(|| ArchiveError::Given(item.names.clone().into())))
    }

    /// The author of a sidecar that is restored after this file was written in its place. A file of the
    /// item's owner was most likely written over; another may have replaced it.
    fn author_of_restored(&self, item: &Item, written: &Stat) -> Result<Author, ArchiveError> {
        let place = Place::of(&item.names);
        let directory = self.stat_of(self.tree.open_item(&place)?, &place)?;
        if directory.st_uid == written.st_uid {
            Ok(Author::Same)
        } else {
            self.author_of_lost(item)
        }
    }

    /// Refuses a file, found with O_PATH, that is about to be renamed to the sidecar of an item. None if it
    /// is not refused.
    pub fn refuse_candidate(
        &self,
        id: ItemId,
        file: BorrowedFd<'_>,
        bringing: Bringing,
    ) -> Result<Option<RefusedSidecar>, ArchiveError> {
        let item = self.known(id)?;
        let Some((error, bytes)) = self.flaw(&item, file, bringing)? else {
            return Ok(None);
        };
        let place = Place::of(&item.names);
        let kept_as = match bytes.as_deref() {
            Some([]) => None,
            bytes => Some(self.tree.keep_refused(&place, file, bytes)?),
        };
        Ok(Some(RefusedSidecar { error, kept_as }))
    }

    /// Refuses the sidecar of an item that a program has written in place, if it is still the file with this
    /// number. The accepted one is restored. None if it is not refused.
    pub fn refuse_written(
        &self,
        id: ItemId,
        written: FileNumber,
        bringing: Bringing,
    ) -> Result<Option<RefusedSidecar>, ArchiveError> {
        let item = self.known(id)?;
        let place = Place::of(&item.names);
        let Some((file, stat)) = self.sidecar_with(&place, written)? else {
            return Ok(None);
        };
        let Some((error, bytes)) = self.flaw(&item, file.as_fd(), bringing)? else {
            return Ok(None);
        };
        let accepted = self.store.sidecar(id)?;
        let kept_as = match (bytes.as_deref(), &accepted) {
            (Some([]), None) => return Ok(None),
            // The sidecar was hidden from the program that has made this file.
            (Some([]), Some(_)) if bringing == Bringing::Deposit => return Ok(None),
            (Some([]), Some(_)) => None,
            (bytes, Some(accepted)) => {
                let name = self.tree.keep_refused(&place, file.as_fd(), bytes)?;
                let author = self.author_of_restored(&item, &stat)?;
                with_reserve(&self.tree, || {
                    self.write_sidecar(&item.names, accepted, author)
                })?;
                self.record_speaker(&item)?;
                Some(name)
            }
            (bytes, None) => {
                let name = self.tree.keep_refused(&place, file.as_fd(), bytes)?;
                self.tree.remove_sidecar(&place)?;
                self.rewritten.add(item.names.clone());
                Some(name)
            }
        };
        Ok(Some(RefusedSidecar { error, kept_as }))
    }

    /// Makes a refused file the sidecar again, if a program has gone on writing it and it is valid now. The
    /// caller then accepts it.
    pub fn take_back_refused(
        &self,
        id: ItemId,
        written: FileNumber,
        kept_as: &str,
    ) -> Result<bool, ArchiveError> {
        let item = self.known(id)?;
        let place = Place::of(&item.names);
        let Some(file) = self.tree.open_in_item(&place, kept_as)? else {
            return Ok(false);
        };
        let stat = self.stat_of(&file, &place)?;
        if number(&stat) != written || self.flaw(&item, file.as_fd(), Bringing::Other)?.is_some() {
            return Ok(false);
        }
        self.tree.take_back_refused(&place, kept_as)?;
        self.rewritten.add(item.names);
        Ok(true)
    }

    /// Replaces a metadata text that cannot be read by the one before it. Returns the name in the item under which the
    /// first is kept; None if it is gone.
    pub fn put_text_back(
        &self,
        item: &Item,
        before: &[u8],
    ) -> Result<Option<String>, ArchiveError> {
        Ok(self.tree.put_text_back(&Place::of(&item.names), before)?)
    }
}
