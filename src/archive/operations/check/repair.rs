//! Repairs what a check has found. The tree is authoritative: changes made outside the Archive are accepted,
//! and the earlier sidecar of an original is kept. A sidecar that cannot be accepted is set aside, every
//! byte kept, and is written again from the index. At the end the index is rebuilt.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::SystemTime;

use super::super::far_ends::RelationChange;
use super::super::open::ChangedFacts;
use super::super::{lock, own_files};
use super::finding::{CheckCode, CheckFinding, CheckReport, ItemProgress};
use super::pass::{check_once, refuse_other_directories};
use super::scan::ASIDE;
use crate::archive::finding::Severity;
use crate::archive::store::{self, By, Item, Store, StoreUse};
use crate::archive::tree::{Author, Filled, Place, SIDECAR, Tree};
use crate::archive::{Archive, ArchiveError, Clock, Editor, Process, Stranger, leave_event};
use crate::formats::history::EventKind;
use crate::formats::item::{Names, Sidecar, State};

impl Archive {
    /// Checks a whole store, repairs what can be repaired, and checks again: a finding that is gone
    /// counts as repaired. Fails while another process writes the store.
    pub fn repair(
        path: &Path,
        clock: Box<dyn Clock>,
        progress: &mut ItemProgress<'_>,
    ) -> Result<CheckReport, ArchiveError> {
        refuse_other_directories(path)?;
        Archive::refuse_generation(path)?;
        let tree = Tree::open_as_it_is(path)?;
        let lock = lock::Lock::take(&tree)?;
        let mut report = check_once(path, StoreUse::Idle, &*clock, progress)?;
        if !report.findings.iter().any(|finding| finding.repairable) {
            let kind = if report.findings.iter().any(is_error_left) {
                EventKind::CheckFailed
            } else {
                EventKind::Checked
            };
            let note = codes_of(&report.findings, |_| true);
            leave_event(&tree, By::of(&Process), kind, None, &note);
            return Ok(report);
        }
        repair_store_files(path, &report)?;
        let archive =
            Archive::open_held(path, clock, lock::Hold::Alone(lock), ChangedFacts::Accept)?;
        archive.edit(&Stranger, |it| it.repair_found(&report))?;
        archive.keeper().reindex(progress)?;
        archive.edit(&Stranger, |it| it.complete_one_sided(&report))?;
        let note = codes_of(&report.findings, |finding| finding.repairable);
        archive.tell(By::of(&Process), EventKind::Repaired, None, &note);
        archive.close();
        let left = check_once(path, StoreUse::InUse, &*archive.clock, progress)?;
        let (found, still) = (report.identities(), left.identities());
        for finding in &mut report.findings {
            finding.repaired = !still.contains(&finding.identity());
        }
        let is_new = |finding: &CheckFinding| !found.contains(&finding.identity());
        report
            .findings
            .extend(left.findings.into_iter().filter(is_new));
        report.items = left.items;
        if report.findings.iter().any(is_error_left) {
            let note = codes_of(&report.findings, CheckFinding::is_left);
            leave_event(&tree, By::of(&Process), EventKind::CheckFailed, None, &note);
        }
        Ok(report)
    }

    /// Sets the damaged index of a store aside and returns its new name.
    pub fn set_index_aside(path: &Path) -> Result<Option<String>, ArchiveError> {
        let tree = Tree::open_as_it_is(path)?;
        let _lock = lock::Lock::take(&tree)?;
        set_index_aside(&tree)
    }
}

fn is_error_left(finding: &CheckFinding) -> bool {
    finding.is_left() && finding.code.severity() == Severity::Error
}

/// The codes of some findings, each once.
fn codes_of(findings: &[CheckFinding], is_of: impl Fn(&CheckFinding) -> bool) -> String {
    let codes = findings.iter().filter(|it| is_of(it));
    let codes: BTreeSet<&str> = codes.map(|it| it.code.word()).collect();
    codes.into_iter().collect::<Vec<_>>().join(" ")
}

/// Repairs what prevents the store from being opened.
fn repair_store_files(path: &Path, report: &CheckReport) -> Result<(), ArchiveError> {
    let tree = Tree::open(path)?;
    if report.has(CheckCode::FactsBroken) || report.has(CheckCode::FactsMissing) {
        let index = Store::open_as_it_is(tree.root(), None, StoreUse::Idle)?;
        if let Some(text) = index.facts()? {
            let aside = format!("{}.broken", own_files::FACTS);
            tree.set_aside(".", own_files::FACTS, &aside)?;
            tree.write_small(".", own_files::FACTS, &text, None)?;
        }
    }
    if report.has(CheckCode::IndexDamaged) {
        set_index_aside(&tree)?;
    }
    for finding in &report.findings {
        if finding.code == CheckCode::LoosePermissions {
            tree.tighten(&finding.subject)?;
        }
    }
    if report.has(CheckCode::StagingLeft) {
        tree.clear_staging();
    }
    if report.has(CheckCode::ArrivalLeft) {
        let now = SystemTime::now();
        for key in tree.abandoned_arrivals(now)? {
            tree.remove_abandoned(&key, now)?;
        }
    }
    Ok(())
}

impl Editor<'_> {
    /// Repairs what a check has found in the tree.
    fn repair_found(&self, report: &CheckReport) -> Result<(), ArchiveError> {
        for finding in report.findings.iter().filter(|finding| finding.repairable) {
            let names = finding.names.as_deref();
            match (finding.code, names) {
                (CheckCode::BrokenSidecar | CheckCode::ForeignSidecar, Some(names)) => {
                    self.repair_sidecar(names)?;
                }
                (CheckCode::MissingSidecar, Some(names)) => self.write_accepted_sidecar(names)?,
                (CheckCode::ChangedSidecar, Some(names)) => self.keep_previous_sidecar(names)?,
                (CheckCode::BrokenTombstone | CheckCode::MissingTombstone, Some(names)) => {
                    self.repair_tombstone(names)?;
                }
                (CheckCode::LeftTombstone, Some(names)) => {
                    self.tree.remove_tombstone(&Place::of(names))?;
                }
                (CheckCode::NotInTree, Some(names)) => self.write_missing_tombstone(names)?,
                (CheckCode::ServiceMissing, Some(names)) => self.repair_service(names)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the far ends of relations that one item alone declares.
    fn complete_one_sided(&self, report: &CheckReport) -> Result<(), ArchiveError> {
        let one_sided = report.subjects(CheckCode::OneSided);
        if one_sided.is_empty() {
            return Ok(());
        }
        for claim in self.store.one_sided()? {
            if one_sided.contains(&claim.near.preferred())
                && let Some(near) = self.held(&claim.near)?
            {
                self.with_author(&near.names, |author| {
                    let added = RelationChange::Added;
                    self.by(author)
                        .update_far_end(&near, &claim.kind, &claim.far, added)
                })?;
            }
        }
        Ok(())
    }

    /// The item in the index.
    fn indexed(&self, names: &Names) -> Result<Option<Item>, ArchiveError> {
        Ok(self.store.find_by_names(names)?)
    }

    /// Sets a sidecar that is not accepted aside, every byte kept, and writes the one in the index.
    fn repair_sidecar(&self, names: &Names) -> Result<(), ArchiveError> {
        // The sidecar may have been accepted by now: recovery after a crash restores half-written ones.
        if self.read_item(names)?.1.is_none() {
            return Ok(());
        }
        let place = Place::of(names);
        let aside = format!("{SIDECAR}.broken");
        self.tree.set_aside(place.as_str(), SIDECAR, &aside)?;
        self.write_accepted_sidecar(names)
    }

    /// Writes the last accepted sidecar of an item. Does nothing if none was accepted.
    fn write_accepted_sidecar(&self, names: &Names) -> Result<(), ArchiveError> {
        match self.store.accepted_sidecar(names)? {
            Some(bytes) if self.record_from(names, bytes.clone()).is_ok() => {
                let item = self.indexed(names)?;
                let author = item.as_ref().map(|item| self.author_of_lost(item));
                let author = author.unwrap_or(Ok(Author::Unknown))?;
                self.tree.write_sidecar(&Place::of(names), &bytes, author)?;
                item.map_or(Ok(()), |item| self.record_speaker(&item))
            }
            _ => Ok(()),
        }
    }

    /// Keeps the sidecar that an original had before it was changed outside the Archive.
    fn keep_previous_sidecar(&self, names: &Names) -> Result<(), ArchiveError> {
        let Some(item) = self.indexed(names)? else {
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

    /// Writes the tombstone of a removed item again, from the index.
    fn repair_tombstone(&self, names: &Names) -> Result<(), ArchiveError> {
        let Some(item) = self.indexed(names)? else {
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

    /// Writes a tombstone for an item whose directory is gone.
    fn write_missing_tombstone(&self, names: &Names) -> Result<(), ArchiveError> {
        let Some(item) = self.indexed(names)? else {
            return Ok(());
        };
        let place = Place::of(&item.names);
        // Checked again here: an item that was restored since does not get a tombstone.
        if self.tree.is_directory(place.as_str()) {
            return Ok(());
        }
        let tombstone = match self.tombstone_of(&item) {
            Ok(tombstone) => tombstone,
            // The sidecar in the index cannot be read, so only the names are left.
            Err(_) => self.tombstone_after(Sidecar::new(&item.names)),
        };
        Ok(self.tree.write_tombstone(&place, &tombstone.to_bytes())?)
    }

    /// Restores the Archive service's own item, and its state as an original.
    fn repair_service(&self, names: &Names) -> Result<(), ArchiveError> {
        let place = Place::of(names);
        let accepted = self.store.accepted_sidecar(names)?;
        let is_original = |bytes: &Vec<u8>| {
            let record = self.record_from(names, bytes.clone());
            record.is_ok_and(|record| record.state == State::Original)
        };
        let bytes = accepted.filter(is_original).unwrap_or_else(|| {
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

/// Sets a damaged database aside, with its write-ahead log.
fn set_index_aside(tree: &Tree) -> Result<Option<String>, ArchiveError> {
    let mut aside = None;
    for suffix in ["", "-wal", "-shm"] {
        let name = format!("{}{suffix}", store::FILE);
        let set = tree.set_aside(".", &name, &format!("{name}.broken"))?;
        aside = aside.or(set);
    }
    Ok(aside)
}
