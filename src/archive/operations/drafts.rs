//! Drafts: items whose directories only their owners and groups may enter. The mode says so, and nothing else.

use std::os::fd::AsFd;

use rustix::fs::{Mode, Stat};

use super::{Archive, ArchiveError, Editor};
use crate::archive::store::{By, Item};
use crate::archive::tree::{Action, Place};
use crate::formats::history::EventKind;
use crate::formats::item::{Names, State};
use crate::os::opening::set_mode;

/// Whether an item is a draft, by the mode of its directory.
#[must_use]
pub fn is_draft(mode: u32) -> bool {
    mode & 0o001 == 0
}

/// The mode of a draft's directory after it was published.
#[must_use]
pub fn opened(mode: u32) -> u32 {
    (mode & 0o7777) | 0o055
}

/// The mode of an item's directory when it is closed to all but its owner and group.
#[must_use]
pub fn closed(mode: u32) -> u32 {
    mode & 0o7770
}

impl Archive {
    /// Whether an item that is here is a draft: one that is withdrawn is closed for another reason.
    pub fn is_draft(&self, item: &Item) -> Result<bool, ArchiveError> {
        if item.state == State::Deleted || item.life.withdrawn.is_some() {
            return Ok(false);
        }
        Ok(is_draft(self.stat_of_directory(item)?.st_mode))
    }

    /// Whether there is a directory where the names of an item place it.
    pub(super) fn is_there(&self, names: &Names) -> bool {
        self.tree.is_directory(Place::of(names).as_str())
    }

    /// The attributes of the directory of an item that is here.
    pub(super) fn stat_of_directory(&self, item: &Item) -> Result<Stat, ArchiveError> {
        let place = Place::of(&item.names);
        let stat = rustix::fs::fstat(self.tree.open_item(&place)?);
        Ok(stat.map_err(|errno| self.tree.error(Action::Read, place.as_str(), errno))?)
    }
}

impl Editor<'_> {
    /// Lets all users into an item's directory, with the rights of this process. Returns whether it was a draft.
    pub fn publish(&self, names: &Names) -> Result<bool, ArchiveError> {
        let item = self.held(names)?.ok_or_else(|| ArchiveError::Unknown {
            name: names.preferred(),
        })?;
        let was_draft = is_draft(self.set_directory_mode(&item, opened)?);
        if was_draft {
            self.tell(
                By::of(self.actor),
                EventKind::Published,
                Some(&item.names),
                "",
            );
            self.announce_published(item.id)?;
        }
        Ok(was_draft)
    }

    /// Changes the mode of an item's directory, with the rights of this process. Returns the mode before.
    pub(super) fn set_directory_mode(
        &self,
        item: &Item,
        change: impl Fn(u32) -> u32,
    ) -> Result<u32, ArchiveError> {
        let place = Place::of(&item.names);
        let failed = |errno| self.tree.error(Action::Write, place.as_str(), errno);
        let directory = self.tree.open_item(&place)?;
        let before = rustix::fs::fstat(&directory).map_err(failed)?.st_mode;
        let after = Mode::from_raw_mode(change(before & 0o7777));
        set_mode(directory.as_fd(), after).map_err(failed)?;
        self.rewritten.add(item.names.clone());
        self.note_readers(item.id)?;
        Ok(before)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Process;
    use super::super::testing::TestArchive;
    use super::*;

    #[test]
    fn modes_of_drafts() {
        for (mode, draft, published) in [
            (0o40_750, true, 0o755),
            (0o40_700, true, 0o755),
            (0o42_770, true, 0o2775),
            (0o40_754, true, 0o755),
            (0o40_755, false, 0o755),
            (0o40_711, false, 0o755),
        ] {
            assert_eq!(is_draft(mode), draft, "{mode:o}");
            assert_eq!(opened(mode), published, "{mode:o}");
        }
    }

    #[test]
    fn a_draft_is_published_once() {
        use std::os::unix::fs::PermissionsExt;
        let archive = TestArchive::new();
        let item = archive.new_item();
        let is_draft = || archive.is_draft(&archive.again(&item)).expect("read");
        assert!(!is_draft());
        let closed = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(archive.file(&item, ""), closed).expect("closed");
        assert!(is_draft());
        for expected in [true, false] {
            let was_draft = archive.edit(&Process, |it| it.publish(&item.names));
            assert_eq!(was_draft.expect("published"), expected);
            assert!(!is_draft());
        }
        archive.remove_whole(&item);
        let gone = archive.edit(&Process, |it| it.publish(&item.names));
        assert!(
            matches!(gone, Err(ArchiveError::Unknown { .. })),
            "{gone:?}"
        );
        assert!(!is_draft());
    }
}
