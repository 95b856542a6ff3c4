//! Builds an index from the tree: for a reindex in place of the previous one, for a check beside it.

use std::os::fd::BorrowedFd;

use super::super::identifiers::names_at;
use super::super::open::ChangedFacts;
use super::super::own_files;
use super::super::recovery_log::{ChangeDurability, Queued};
use super::context::{DateBounds, PlaceContext, PreviousIndex, ScanSummary};
use super::finding::{CheckCode, CheckFinding, CheckReport, ItemProgress};
use super::item_set::ItemSet;
use super::metadata::metadata_findings;
use crate::archive::operations::Facts;
use crate::archive::store::{
    self, ACCESSES_FILE, Accesses, By, HARVEST_FILE, Harvest, Store, StoreError,
};
use crate::archive::tree::{Author, Place};
use crate::archive::{Archive, ArchiveError, Editor, Keeper, Process, Stranger};
use crate::formats::history::EventKind;
use crate::formats::item::Sidecar;
use crate::sql::index_url::{IndexPlace, IndexUrl};
use ibi::Timestamp;
use ibi::message;

/// Copies what a store has beside its index, and which the tree does not have, to where another index is.
fn copy_beside(
    root: BorrowedFd<'_>,
    from: Option<&IndexUrl>,
    to: Option<&IndexUrl>,
) -> Result<(), StoreError> {
    if let Some(accesses) = Accesses::open_if_there(root, from)? {
        accesses.copy_to(root, to)?;
    }
    Harvest::copy_all(root, from, to)
}

impl Archive {
    /// Uses an index elsewhere from now on. It has no items until [`Keeper::reindex`] has run. The previous one stays
    /// where it is until then, and is not used any more.
    ///
    /// # Errors
    /// There is another Archive's index already.
    pub fn move_index(self, place: &IndexPlace) -> Result<Archive, ArchiveError> {
        self.writable()?;
        self.keeper().settle_now()?;
        // Those that wait for the log are in the previous index alone.
        self.append_history()?;
        let index = match place {
            IndexPlace::File => None,
            IndexPlace::Server(url) => Some(url.clone()),
        };
        if index == self.facts.index {
            return Ok(self);
        }
        let facts = Facts {
            index,
            ..self.facts.clone()
        };
        let Some(lock) = self.lock else {
            return Err(ArchiveError::ReadOnly);
        };
        let store = Store::open(self.tree.root(), facts.index.as_ref())?;
        let known = store.facts()?.map(|text| Facts::parse(&text));
        let is_ours = match &known {
            None => store.is_empty()?,
            Some(known) => known
                .as_ref()
                .is_ok_and(|known| known.is_same_archive(&facts)),
        };
        if !is_ours {
            let place = facts.index.as_ref().map_or(store::FILE, IndexUrl::place);
            return Err(ArchiveError::IndexInUse {
                place: place.to_owned(),
            });
        }
        let last = self.store.last_date()?.max(self.store.reserved_date()?);
        // The new index has no item, and the store is opened only once it has, or by another reindex.
        store.replace_all(|_| Ok(last))?;
        let (from, to) = (self.facts.index.as_ref(), facts.index.as_ref());
        copy_beside(self.tree.root(), from, to)?;
        let text = facts.to_text();
        store.set_facts(text.as_bytes())?;
        self.tree
            .write_small(".", own_files::FACTS, text.as_bytes(), None)?;
        drop(store);
        self.store.leave();
        let path = self.tree.path().to_owned();
        Archive::open_held(&path, self.clock, lock, ChangedFacts::Accept)
    }
}

impl Keeper<'_> {
    /// Rebuilds the index from the tree: identifiers, relations, states, tombstones and the date
    /// from which minting continues.
    pub fn reindex(&self, progress: &mut ItemProgress<'_>) -> Result<CheckReport, ArchiveError> {
        let report = self.edit(&Stranger, |it| it.rebuild_index(progress))?;
        self.tell(By::of(&Process), EventKind::Reindexed, None, "");
        Ok(report)
    }

    /// Removes the file of an index that is in a server now, and those of what was copied with it.
    pub fn remove_index_file(&self) -> Result<(), ArchiveError> {
        self.writable()?;
        if self.facts.index.is_some() {
            for file in [store::FILE, ACCESSES_FILE, HARVEST_FILE] {
                for tail in ["", "-wal", "-shm"] {
                    self.tree.remove_own(&format!("{file}{tail}"))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn index_into(
        &self,
        store: &Store,
        before: &PreviousIndex<'_>,
        known: Option<Timestamp>,
        now: Timestamp,
        progress: &mut ItemProgress<'_>,
    ) -> Result<ScanSummary, ArchiveError> {
        let mut summary = ScanSummary::default();
        let present = DateBounds {
            last: known.clone().max(Some(now.clone())),
            now,
        };
        let mut removed = ItemSet::default();
        // The store's closure has its own error type, so other errors are passed around it.
        let mut failed = None;
        let outcome = store.replace_all(|refill| {
            let result = self.scan_tree(&mut |scanned| {
                if let (true, Some(error)) = (before.is_last, scanned.unlisted) {
                    return Err(error.into());
                }
                let own_date = scanned
                    .own_date
                    .filter(|(date, _)| !self.dates.is_ahead(date));
                summary.latest = summary.latest.take().max(own_date.clone());
                // A date in the future was not minted here, or is known from the ledger.
                let own_date = own_date.filter(|(date, _)| *date <= present.now);
                summary.own = summary.own.take().max(own_date);
                summary.report.findings.extend(scanned.finding);
                let (Some(place), Some(read)) = (scanned.place, scanned.record) else {
                    return Ok(());
                };
                if scanned.is_here && !before.is_last {
                    let findings = metadata_findings(&self.tree, &place);
                    summary.report.findings.extend(findings);
                }
                let accepted_before = before.sidecar(&place)?;
                let context = PlaceContext {
                    place: &place,
                    before,
                    accepted_before: accepted_before.as_deref(),
                    present: &present,
                };
                let read = if scanned.is_here {
                    self.admitted(&context, read, &mut summary)?
                } else {
                    Some(read)
                };
                let Some(read) = read else {
                    return Ok(());
                };
                let record = &read.record;
                if scanned.is_here {
                    summary.report.items += 1;
                    progress(summary.report.items);
                    if record.sidecar.is_some() && removed.has(&record.names) {
                        summary
                            .report
                            .add(CheckFinding::of(CheckCode::LeftTombstone, &record.names));
                    }
                } else {
                    removed.add(&record.names);
                }
                self.put_accepted(&context, read, refill, &mut summary.report)
            });
            match result {
                Ok(()) => Ok(known.max(summary.own.clone().map(|(date, _)| date))),
                Err(ArchiveError::Store(error)) => Err(error),
                Err(error) => {
                    failed = Some(error);
                    Err(StoreError::Broken {
                        what: message!("the tree could not be read"),
                    })
                }
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        outcome?;
        Ok(summary)
    }

    /// Takes over items in `col/` that have no sidecar. Those of the Archive's own name space
    /// become originals; all are indexed.
    pub(in crate::archive::operations) fn adopt(
        &self,
        progress: &mut ItemProgress<'_>,
    ) -> Result<CheckReport, ArchiveError> {
        self.tree.each_item::<ArchiveError>(|area, path| {
            let Some(names) = names_at(area, path) else {
                return Ok(());
            };
            let place = Place::of(&names);
            if let Some(rep) = names.rep()
                && self.facts.is_own_rep(rep)?
                // A rep dated in the future was not minted, and is reported.
                && rep.timestamp() <= self.clock.now()
                && self.tree.read_sidecar(&place)?.is_none()
            {
                let mut sidecar = Sidecar::new(&names);
                sidecar.set_archive_service(&self.facts.service);
                self.tree
                    .write_sidecar(&place, &sidecar.to_bytes(), Author::Same)?;
            }
            Ok(())
        })?;
        self.reindex(progress)
    }
}

impl Editor<'_> {
    fn rebuild_index(&self, progress: &mut ItemProgress<'_>) -> Result<CheckReport, ArchiveError> {
        // Rebuilding also replaces what the ledger reserves, so no date is given out meanwhile.
        let mut dates = self.dates.lock();
        // The rows to be replaced also list the directories that are not on disk yet.
        self.keeper().settle_now()?;
        // A reader beside the writer sees the previous contents until the writer commits.
        let index = Store::open_read_only(self.tree.root(), self.facts.index.as_ref())?;
        let before = PreviousIndex {
            index: Some(&index),
            is_last: true,
        };
        let last = dates.last().cloned();
        let summary =
            self.keeper()
                .index_into(&self.store, &before, last, self.clock.now(), progress)?;
        dates.go_on_after(self.store.last_date()?);
        drop(dates);
        if let Some(text) = self.tree.read_small(own_files::FACTS)? {
            self.store.set_facts(&text)?;
        }
        self.finish_moves(summary)
    }

    /// Accepts the sidecars of items that were not moved to the directory of their rep, which
    /// moves them.
    fn finish_moves(&self, summary: ScanSummary) -> Result<CheckReport, ArchiveError> {
        let mut report = summary.report;
        for names in summary.unmoved {
            self.read_again(&Queued::at(Place::of(&names), ChangeDurability::Unsynced))?;
            if !self.is_there(&names) {
                let subject = names.preferred();
                let is_its = |finding: &CheckFinding| {
                    finding.code == CheckCode::NotMoved && finding.subject == subject
                };
                report.findings.retain(|finding| !is_its(finding));
            }
        }
        Ok(report)
    }
}
