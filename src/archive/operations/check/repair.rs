//! Mending what a check has found. The tree counts: whatever was changed beside us is believed, and
//! what an original said before is kept. What cannot be believed is set aside, every byte kept, and
//! comes back from the index. In the end the index is made anew.

use std::path::Path;

use super::super::{facts, lock};
use super::reading::ASIDE;
use super::{Code, Finding, Progress, Report, look, refuse_other_directories};
use crate::archive::store::{self, Item, Store};
use crate::archive::tree::{Author, Filled, Place, SIDECAR, Tree};
use crate::archive::{Archive, ArchiveError, Clock};
use crate::formats::item::{Names, Sidecar, State};

impl Archive {
    /// Dependencies a whole store over, mends what can be mended, and looks again: what is not there any
    /// more counts as repaired. Refused while somebody else writes the store.
    pub fn repair(
        path: &Path,
        clock: Box<dyn Clock>,
        progress: &mut Progress<'_>,
    ) -> Result<Report, ArchiveError> {
        refuse_other_directories(path)?;
        let lock = lock::Lock::take(&Tree::open_as_it_is(path)?)?;
        let mut report = look(path, true, &*clock, progress)?;
        if !report.findings.iter().any(|finding| finding.repairable) {
            return Ok(report);
        }
        mend_grounds(path, &report)?;
        let archive = Archive::open_held(path, clock, lock, true)?;
        archive.mend(&report, progress)?;
        archive.close();
        let left = look(path, false, &*archive.clock, progress)?;
        let (found, still) = (report.identities(), left.identities());
        for finding in &mut report.findings {
            finding.repaired = !still.contains(&finding.identity());
        }
        let is_new = |finding: &Finding| !found.contains(&finding.identity());
        report
            .findings
            .extend(left.findings.into_iter().filter(is_new));
        report.items = left.items;
        Ok(report)
    }

    fn mend(&self, report: &Report, progress: &mut Progress<'_>) -> Result<(), ArchiveError> {
        for finding in report.findings.iter().filter(|finding| finding.repairable) {
            let names = finding.names.as_deref();
            match (finding.code, names) {
                (Code::BrokenSidecar | Code::ForeignSidecar, Some(names)) => {
                    self.mend_sidecar(names)?;
                }
                (Code::MissingSidecar, Some(names)) => self.write_believed(names)?,
                (Code::ChangedSidecar, Some(names)) => self.keep_before(names)?,
                (Code::BrokenTombstone | Code::MissingTombstone, Some(names)) => {
                    self.mend_tombstone(names)?;
                }
                (Code::LeftTombstone, Some(names)) => {
                    self.tree.remove_tombstone(&Place::of(names))?;
                }
                (Code::NotInTree, Some(names)) => self.bury(names)?,
                (Code::ServiceMissing, Some(names)) => self.mend_service(names)?,
                _ => {}
            }
        }
        self.reindex(&mut |items| progress(items))?;
        if report.has(Code::OneSided) {
            let told = report.subjects(Code::OneSided);
            for claim in self.store.one_sided()? {
                if told.contains(&claim.near.preferred())
                    && let Some(near) = self.held(&claim.near)?
                {
                    let _edits = self.edits();
                    self.with_author(&near.names, |author| {
                        self.tell_far_end(author, &near, &claim.kind, &claim.far, true)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The item as the index has it.
    fn known_as(&self, names: &Names) -> Result<Option<Item>, ArchiveError> {
        Ok(self.store.find_by_names(names)?)
    }

    /// Sets an unbelieved sidecar aside, every byte kept, and writes what the index knows.
    fn mend_sidecar(&self, names: &Names) -> Result<(), ArchiveError> {
        // What a crash left half written has been made again by now.
        if self.read_item(names)?.1.is_none() {
            return Ok(());
        }
        let place = Place::of(names);
        let aside = format!("{SIDECAR}.broken");
        self.tree.set_aside(place.as_str(), SIDECAR, &aside)?;
        self.write_believed(names)
    }

    /// Writes an item's sidecar again as it was last believed; nothing where there never was one.
    fn write_believed(&self, names: &Names) -> Result<(), ArchiveError> {
        match self.store.accepted_sidecar(names)? {
            Some(bytes) if self.record_from(names, bytes.clone()).is_ok() => Ok(self
                .tree
                .write_sidecar(&Place::of(names), &bytes, Author::Unknown)?),
            _ => Ok(()),
        }
    }

    /// Keeps what an original said until its sidecar was changed beside us.
    fn keep_before(&self, names: &Names) -> Result<(), ArchiveError> {
        let Some(item) = self.known_as(names)? else {
            return Ok(());
        };
        match self.store.sidecar(item.id)? {
            Some(bytes) if item.state == State::Original => {
                let before = format!("{SIDECAR}.before");
                Ok(self.tree.keep(&Place::of(names), &before, &bytes)?)
            }
            _ => Ok(()),
        }
    }

    /// Writes the tombstone of a removed item again as the index knows it.
    fn mend_tombstone(&self, names: &Names) -> Result<(), ArchiveError> {
        let Some(item) = self.known_as(names)? else {
            return Ok(());
        };
        match self.store.sidecar(item.id)? {
            Some(bytes) if item.state == State::Deleted => {
                let place = Place::of(&item.names);
                let parent = format!("deleted/{}", place.parent());
                let aside = format!("{}{ASIDE}", place.name());
                if self.tree.is_directory(&parent) {
                    self.tree.set_aside(&parent, place.name(), &aside)?;
                }
                Ok(self.tree.write_tombstone(&place, &bytes)?)
            }
            _ => Ok(()),
        }
    }

    /// Leaves a tombstone for an item whose directory is gone.
    fn bury(&self, names: &Names) -> Result<(), ArchiveError> {
        let Some(item) = self.known_as(names)? else {
            return Ok(());
        };
        let place = Place::of(&item.names);
        // Looked at just now; whatever has come back since is not buried.
        if self.tree.is_directory(place.as_str()) {
            return Ok(());
        }
        let tombstone = match self.tombstone_of(&item) {
            Ok(tombstone) => tombstone,
            // What the index kept of it cannot be read: its names are all that is left.
            Err(_) => self.tombstone_after(Sidecar::new(&item.names)),
        };
        Ok(self.tree.write_tombstone(&place, &tombstone.to_bytes())?)
    }

    /// Makes the Archive service's own item again, or makes it the original that it is.
    fn mend_service(&self, names: &Names) -> Result<(), ArchiveError> {
        let place = Place::of(names);
        let believed = self.store.accepted_sidecar(names)?;
        let is_original = |bytes: &Vec<u8>| {
            let record = self.record_from(names, bytes.clone());
            record.is_ok_and(|record| record.state == State::Original)
        };
        let bytes = believed.filter(is_original).unwrap_or_else(|| {
            let mut sidecar = Sidecar::new(names);
            sidecar.set_archive_service(names);
            sidecar.to_bytes()
        });
        if self.tree.is_directory(place.as_str()) {
            let aside = format!("{SIDECAR}.broken");
            self.tree.set_aside(place.as_str(), SIDECAR, &aside)?;
            return Ok(self.tree.write_sidecar(&place, &bytes, Author::Unknown)?);
        }
        let staged = self
            .tree
            .stage_item(&place, &bytes, None, Filled::WithDoc)?;
        self.tree.place_item(&staged, &place)?;
        Ok(self.tree.sync_item(&place)?)
    }
}

/// What must be mended before the store can be opened.
fn mend_grounds(path: &Path, report: &Report) -> Result<(), ArchiveError> {
    let tree = Tree::open(path)?;
    if report.has(Code::FactsBroken) || report.has(Code::FactsMissing) {
        let index = Store::open_as_it_is(tree.root(), true)?;
        if let Some(text) = index.facts()? {
            let aside = format!("{}.broken", facts::FILE);
            tree.set_aside(".", facts::FILE, &aside)?;
            tree.write_small(".", facts::FILE, &text, None)?;
        }
    }
    if report.has(Code::IndexDamaged) {
        set_index_aside(&tree)?;
    }
    for finding in &report.findings {
        if finding.code == Code::LoosePermissions {
            tree.tighten(&finding.subject)?;
        }
    }
    if report.has(Code::StagingLeft) {
        tree.clear_staging();
    }
    Ok(())
}

impl Archive {
    /// Sets the damaged index of a store aside, and tells how it is called then.
    pub fn set_index_aside(path: &Path) -> Result<Option<String>, ArchiveError> {
        let tree = Tree::open_as_it_is(path)?;
        let _lock = lock::Lock::take(&tree)?;
        set_index_aside(&tree)
    }
}

/// Sets a damaged database aside, with the log that belongs to it.
fn set_index_aside(tree: &Tree) -> Result<Option<String>, ArchiveError> {
    let mut aside = None;
    for suffix in ["", "-wal", "-shm"] {
        let name = format!("{}{suffix}", store::FILE);
        let set = tree.set_aside(".", &name, &format!("{name}.broken"))?;
        aside = aside.or(set);
    }
    Ok(aside)
}
