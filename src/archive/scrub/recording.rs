//! Writes what is recorded of an item.

use std::path::Path;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::finding::ScrubError;
use super::marks::change_marks;
use super::pieces;
use super::records::{DIRECTORY, Recorded, recorded};
use super::state::Scrub;
use crate::archive::tree::{Action, Place, Tree};
use crate::formats::fixity::{self, Manifest, Marks};
use crate::formats::item::Sidecar;
use crate::formats::pronom::FORMATS;
use crate::os::writing::Durability;

impl Scrub<'_> {
    pub(super) fn recorded(&self, item: &str) -> Result<Recorded, ScrubError> {
        recorded(self.tree, item)
    }

    pub(super) fn record(
        &mut self,
        item: &str,
        old: &Recorded,
        new: &Recorded,
        started: (i64, u32),
    ) -> Result<(), ScrubError> {
        if !old.exists && new.manifest.is_empty() {
            return Ok(());
        }
        let directory = format!("{DIRECTORY}/{item}");
        if !old.exists {
            self.tree.make_directories(&directory)?;
            self.unsynced = true;
        }
        let durability = if old.exists {
            Durability::Synced
        } else {
            Durability::Unsynced
        };
        let write = |name: &str, bytes: &[u8]| {
            // A new one need not be synced: if it is lost, the item is recorded again.
            self.tree.write_beside(&directory, name, bytes, durability)
        };
        // Before the manifest: what it names has its pieces.
        pieces::write(self.tree, &directory, &new.pieces, durability)?;
        if !old.bad_lines.is_empty() || new.manifest != old.manifest {
            write(fixity::MANIFEST, &fixity::manifest_text(&new.manifest))?;
            pieces::remove_others(self.tree, &directory, &new.manifest)?;
        }
        if new.notes != old.notes {
            write(fixity::WRITTEN, &fixity::notes_text(&new.notes))?;
        }
        // The modification time of the file is the time of the item's last scrub.
        let opened = self.tree.open_directory(&directory)?;
        let time = rustix::fs::Timespec {
            tv_sec: started.0,
            tv_nsec: started.1.into(),
        };
        let times = rustix::fs::Timestamps {
            last_access: time,
            last_modification: time,
        };
        rustix::fs::utimensat(&opened, fixity::WRITTEN, &times, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| self.tree.error(Action::SetTime, &directory, errno).into())
    }

    pub(super) fn forget(&self, item: &str) -> Result<(), ScrubError> {
        let directory = format!("{DIRECTORY}/{item}");
        pieces::remove_others(self.tree, &directory, &Manifest::new())?;
        let opened = self.tree.open_directory(&directory)?;
        for name in [fixity::MANIFEST, fixity::WRITTEN, FORMATS] {
            match rustix::fs::unlinkat(&opened, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => {
                    return Err(self.tree.error(Action::Remove, &directory, errno).into());
                }
            }
        }
        Ok(())
    }
}

/// Takes the records of an item along that moved from its IBIp to its rep.
pub fn take_over(tree: &Tree, item: &str) -> Result<(), ScrubError> {
    let Some(rep) = item.strip_prefix("col/") else {
        return Ok(());
    };
    if tree.is_directory(&format!("{DIRECTORY}/{item}")) {
        return Ok(());
    }
    let Ok(rep) = ibi::Rep::parse(rep) else {
        return Ok(());
    };
    let sidecar = tree.read_sidecar(&Place::of_rep(&rep)).ok().flatten();
    let Some(sidecar) = sidecar.and_then(|bytes| Sidecar::parse(&bytes).ok()) else {
        return Ok(());
    };
    let Some(before) = sidecar.names().ibip().map(Place::of_ibip) else {
        return Ok(());
    };
    let from = format!("{DIRECTORY}/{}", before.as_str());
    if tree.is_directory(before.as_str()) || !tree.is_directory(&from) {
        return Ok(());
    }
    // The scrub that moves the record makes its marks again.
    change_marks(tree, before.as_str(), Marks::clear)?;
    let to = format!("{DIRECTORY}/{item}");
    let parent = Path::new(&to).parent().and_then(Path::to_str);
    tree.make_directories(parent.unwrap_or(DIRECTORY))?;
    rustix::fs::renameat(tree.root(), &from, tree.root(), &to)
        .map_err(|errno| tree.error(Action::Move, &from, errno).into())
}
