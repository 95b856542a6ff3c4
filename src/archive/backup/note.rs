//! `backup.ibi`: of which Archive a backup is, and whether it is finished.

use std::path::Path;

use rustix::fs::OFlags;

use super::finding::BackupError;
use crate::archive::tree::{Action, Tree};
use crate::archive::{Archive, BACKUP_NOTE};
use crate::formats::item::Names;
use crate::os::opening::read_regular;
use ibi::pairs::Pairs;

/// The time of a file, as stat(2) has it.
pub(super) type FileTime = (i64, u64);

/// The means by which files are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// The blocks alone.
    Blocks,
    /// The file, as a further name of it.
    Files,
    /// None: the filesystem has neither.
    Nothing,
}

/// The statements of a backup about itself.
#[derive(Debug)]
pub(super) struct ReadNote {
    /// The service of the Archive.
    pub(super) service: Names,
    /// Whether it is one of several.
    pub(super) is_generation: bool,
    /// When it was finished.
    pub(super) finished: Option<String>,
    /// The time after which a change of a file of the store may not be in it.
    pub(super) since: Option<FileTime>,
    /// The number of items.
    pub(super) items: Option<u64>,
    /// Whether it shares blocks with the generation before, and not files.
    pub(super) shares_blocks: bool,
}

/// Reads the note of the backup in a directory. None where there is none that can be understood.
pub(super) fn read(directory: &Path) -> Option<ReadNote> {
    let bytes = read_regular(directory.join(BACKUP_NOTE), OFlags::NOFOLLOW).ok()?;
    let pairs = Pairs::parse(&bytes).ok()?;
    let text = |key| pairs.get(key).map(ToString::to_string);
    let time = |text: String| {
        let (seconds, nanoseconds) = text.split_once('.')?;
        Some((seconds.parse().ok()?, nanoseconds.parse().ok()?))
    };
    Some(ReadNote {
        service: Names::from_value(pairs.get("ibi.archiveservice")?).ok()?,
        is_generation: pairs.get("generation").is_some(),
        finished: text("finished"),
        since: text("since").and_then(time),
        items: text("items").and_then(|text| text.parse().ok()),
        shares_blocks: pairs.get("shares").is_some(),
    })
}

/// The note of a backup that is being made.
pub(super) struct BackupNote<'a> {
    from: &'a Archive,
    to: &'a Tree,
    started: String,
    is_generation: bool,
    since: FileTime,
}

impl<'a> BackupNote<'a> {
    /// Writes that a backup is not finished.
    pub(super) fn begin(
        from: &'a Archive,
        to: &'a Tree,
        started: String,
        is_generation: bool,
    ) -> Result<BackupNote<'a>, BackupError> {
        let mut note = BackupNote {
            from,
            to,
            started,
            is_generation,
            since: (0, 0),
        };
        note.write("")?;
        // By the clock of a filesystem, as the times with which it is compared.
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        let written = rustix::fs::statat(to.root(), BACKUP_NOTE, flags)
            .map_err(|errno| to.error(Action::Read, BACKUP_NOTE, errno))?;
        note.since = (written.st_ctime, written.st_ctime_nsec);
        Ok(note)
    }

    /// Writes that it is finished.
    pub(super) fn finish(
        &self,
        finished: &str,
        items: u64,
        sharing: Option<Sharing>,
    ) -> Result<(), BackupError> {
        let (seconds, nanoseconds) = self.since;
        let shares = match sharing {
            Some(Sharing::Blocks) => "shares blocks\n",
            _ => "",
        };
        self.write(&format!(
            "since {seconds}.{nanoseconds:09}\nitems {items}\n{shares}finished {finished}\n"
        ))
    }

    fn write(&self, more: &str) -> Result<(), BackupError> {
        let service = &self.from.facts().service;
        let kind = if self.is_generation {
            "generation yes\n"
        } else {
            ""
        };
        let text = format!(
            "ibi.archiveservice {service}\nstarted {}\n{kind}{more}",
            self.started
        );
        Ok(self
            .to
            .write_small(".", BACKUP_NOTE, text.as_bytes(), None)?)
    }
}
