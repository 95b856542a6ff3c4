//! Copies the log of a store, to which events may be added meanwhile.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::copier::{Copier, TRIES};
use super::finding::BackupError;
use crate::archive::log_files::{self, CHECKPOINT, LOG_DIRECTORY};

impl Copier<'_> {
    /// Copies the log. Its checkpoint is read first and written last: what it counts is in the other files then, and
    /// what they have beyond it is cut off when the log is used.
    pub(super) fn log(&mut self) -> Result<(), BackupError> {
        let directory = LOG_DIRECTORY.as_bytes();
        let leave = std::mem::replace(&mut self.leave, |path| path == b"log/checkpoint");
        self.is_growing = true;
        let mut copied = Ok(());
        for _ in 0..TRIES {
            copied = self.log_once(directory);
            // A tile may have been replaced by a wider one while its directory was read.
            if copied.is_err() || log_files::is_usable(self.to.root()) {
                break;
            }
        }
        (self.leave, self.is_growing) = (leave, false);
        copied
    }

    fn log_once(&mut self, directory: &[u8]) -> Result<(), BackupError> {
        let checkpoint = self
            .from
            .read_small(&format!("{LOG_DIRECTORY}/{CHECKPOINT}"));
        let checkpoint = checkpoint.ok().flatten();
        if !self.unit_as_it_is(directory)? {
            return self.remove_left(LOG_DIRECTORY);
        }
        match checkpoint {
            Some(text) => Ok(self
                .to
                .write_small(LOG_DIRECTORY, CHECKPOINT, &text, None)?),
            None => self.remove_left(&format!("{LOG_DIRECTORY}/{CHECKPOINT}")),
        }
    }

    /// Removes what an earlier backup may have left.
    fn remove_left(&mut self, path: &str) -> Result<(), BackupError> {
        match self.to.open_far(path.as_bytes(), OFlags::PATH) {
            Err(Errno::NOENT) => Ok(()),
            _ => self.remove_unit(path),
        }
    }
}
