//! Records of items whose original is being transferred, beside the items: `handover/col/<rep>`.
//!
//! The process that transfers writes here while a mount may hold the store. It holds a lock meanwhile.

use std::fs::File;

use rustix::fs::Mode;
use rustix::io::Errno;

use super::Action;
use super::place::failed;
use super::walk::Leaf;
use super::{Area, Place, Tree, TreeError};

/// The directory of the store that holds the records.
pub const HANDOVER: &str = "handover";

/// File name of the lock in that directory.
const LOCK: &str = "lock";

impl Tree {
    /// Opens the lock of the process that transfers, and makes `handover/` where it is missing.
    pub fn open_handover_lock(&self) -> Result<File, TreeError> {
        // Other users may not see what is received here and not accepted yet.
        match rustix::fs::mkdirat(&self.root, HANDOVER, Mode::from_raw_mode(0o700)) {
            Ok(()) => self.sync_directory(".")?,
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(Action::Make, HANDOVER)(errno)),
        }
        self.open_own(&format!("{HANDOVER}/{LOCK}"))
    }

    /// Writes the record of an item; it is on disk when this returns.
    pub fn write_handover(&self, place: &Place, bytes: &[u8]) -> Result<(), TreeError> {
        let parent = format!("{HANDOVER}/{}", place.parent());
        self.make_levels(&parent)?;
        self.write_small(&parent, place.name(), bytes, None)
    }

    /// The record of an item, or None.
    pub fn read_handover(&self, place: &Place) -> Result<Option<Vec<u8>>, TreeError> {
        self.read_small(&format!("{HANDOVER}/{}", place.as_str()))
    }

    /// Removes the record of an item, if it exists; the removal is on disk when this returns.
    pub fn remove_handover(&self, place: &Place) -> Result<(), TreeError> {
        let parent = format!("{HANDOVER}/{}", place.parent());
        let failed = failed(Action::RemoveNote, place.as_str());
        self.remove_small(&parent, place.name(), failed)
    }

    /// Visits every record by the path of its item below an area.
    pub fn each_handover<E: From<TreeError>>(
        &self,
        mut visit: impl FnMut(Area, &str) -> Result<(), E>,
    ) -> Result<(), E> {
        for area in [Area::Col, Area::Ibip] {
            let root = format!("{HANDOVER}/{}", area.name());
            if !self.is_directory(&root) {
                continue;
            }
            self.descend(
                &root,
                "",
                area.depth(),
                Leaf::File,
                &mut |seen| match seen.named()? {
                    Some(path) => visit(area, path),
                    None => Ok(()),
                },
            )?;
        }
        Ok(())
    }
}
