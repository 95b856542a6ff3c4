//! A check of a whole store: one pass reads the tree into an index in a temporary file and compares the two.
//! A store in use is checked again, and only what is found each time is reported.

use std::path::Path;

use super::super::dates::Ahead;
use super::super::ledger::{LEDGER, last_in_ledger};
use super::super::{SystemClock, lock, own_files};
use super::context::PreviousIndex;
use super::finding::{CheckCode, CheckFinding, CheckReport, ItemProgress};
use super::history::check_log;
use super::store_files;
use crate::archive::store::{self, HELD, Store, StoreUse};
use crate::archive::tree::Tree;
use crate::archive::{Archive, ArchiveError, Clock};
use crate::formats::item::{Names, State};
use ibi::message;

/// The number of passes over a store in use that confirm a finding before it is reported.
const PASSES: usize = 3;

impl Archive {
    /// Checks a whole store and reports all inconsistencies. Nothing is changed; the store may be mounted.
    pub fn check(
        path: &Path,
        clock: &dyn Clock,
        progress: &mut ItemProgress<'_>,
    ) -> Result<CheckReport, ArchiveError> {
        refuse_other_directories(path)?;
        let lock = lock::ReadLock::of(path);
        let is_alone = lock.is_alone() && Archive::writers(path).is_empty();
        let store_use = if is_alone {
            StoreUse::Idle
        } else {
            StoreUse::InUse
        };
        let mut report = check_once(path, store_use, clock, progress)?;
        for _ in 1..PASSES {
            if is_alone || report.findings.is_empty() {
                break;
            }
            // A change in progress ends meanwhile; a real inconsistency is found again.
            std::thread::sleep(2 * HELD);
            let again = check_once(path, StoreUse::InUse, clock, progress)?;
            let found = report.identities();
            report = again;
            let is_again = |finding: &CheckFinding| found.contains(&finding.identity());
            report.findings.retain(is_again);
        }
        report.in_use = !is_alone;
        Ok(report)
    }

    /// Opens a store for reading and calls `inspect` with it. If no other process has the store open,
    /// no auxiliary files are written either.
    pub fn inspect<T, E: From<ArchiveError>>(
        path: &Path,
        inspect: impl FnOnce(&Archive) -> Result<T, E>,
    ) -> Result<T, E> {
        let lock = lock::ReadLock::of(path);
        let (facts, tree) = Archive::open_tree(path)?;
        let store = Store::open_as_it_is(tree.root(), facts.index.as_ref(), lock.store_use());
        let clock = Box::new(SystemClock);
        let store = store.map_err(ArchiveError::from)?;
        inspect(&Archive::over(facts, tree, store, clock, None))
    }

    /// Compares the index with the answers of another Archive. Reports originals here that the
    /// other Archive claims too, copies here whose original it has removed, and originals that were removed here of which
    /// it has a copy.
    pub fn check_with<E: From<ArchiveError>>(
        &self,
        other: &Names,
        mut says: impl FnMut(&Names) -> Result<Option<State>, E>,
    ) -> Result<Vec<CheckFinding>, E> {
        let (mut originals, mut copies, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        let listed = self.store.each_item(|item| {
            if item.state == State::Original {
                originals.push(item.names.clone());
            }
            let holder = item.service.as_ref();
            if item.state == State::Copy && holder.is_some_and(|it| it.matches(other)) {
                copies.push(item.names.clone());
            }
            if item.state == State::Deleted
                && holder.is_some_and(|it| it.matches(&self.facts.service))
            {
                removed.push(item.names.clone());
            }
            Ok(())
        });
        listed.map_err(ArchiveError::from)?;
        let mut findings = Vec::new();
        for names in originals {
            if says(&names)? == Some(State::Original) {
                let found = CheckFinding::of(CheckCode::TwoOriginals, &names);
                findings.push(found.with_detail(message!("the Archive {other}", other)));
            }
        }
        for names in copies {
            if says(&names)? == Some(State::Deleted) {
                let found = CheckFinding::of(CheckCode::OriginalRemoved, &names);
                findings.push(found.with_detail(message!("the Archive {other}", other)));
            }
        }
        for names in removed {
            if says(&names)? == Some(State::Copy) {
                let found = CheckFinding::of(CheckCode::OriginalRemoved, &names);
                let detail = message!(
                    "removed here, and the copy is in the Archive {other}: 'ibifs claim' there",
                    other
                );
                findings.push(found.with_detail(detail));
            }
        }
        Ok(findings)
    }
}

/// Fails if a directory has neither the facts nor the index: it is not a store.
pub(super) fn refuse_other_directories(path: &Path) -> Result<(), ArchiveError> {
    let holds = |name: &str| path.join(name).symlink_metadata().is_ok();
    if holds(own_files::FACTS) || holds(store::FILE) {
        Ok(())
    } else {
        Err(ArchiveError::no_store(path))
    }
}

/// Checks a store once.
pub(super) fn check_once(
    path: &Path,
    store_use: StoreUse,
    clock: &dyn Clock,
    progress: &mut ItemProgress<'_>,
) -> Result<CheckReport, ArchiveError> {
    let mut report = CheckReport::default();
    let tree = Tree::open_as_it_is(path)?;
    let index = store_files::open_index(&tree, store_use, &mut report)?;
    let facts = store_files::read_facts(&tree, index.as_ref(), &mut report);
    store_files::check_store_mode(&tree, &mut report);
    store_files::check_arrivals(&tree, &mut report);
    store_files::check_damage(&tree, &mut report);
    if store_use == StoreUse::Idle {
        store_files::check_own_files(&tree, &mut report);
    }
    // Without these the contents of the tree cannot be interpreted.
    let (Some(facts), false) = (facts, report.has(CheckCode::IndexNewer)) else {
        return Ok(report);
    };
    let unused_clock = Box::new(SystemClock);
    let rebuilt = Archive::over(facts, tree, Store::temporary()?, unused_clock, None);
    let ledger = rebuilt
        .tree
        .read_small(LEDGER)
        .ok()
        .flatten()
        .unwrap_or_default();
    rebuilt.dates.set_ahead(Ahead::read(&ledger));
    let before = PreviousIndex {
        index: index.as_ref(),
        is_last: false,
    };
    let known = index
        .as_ref()
        .map(|index| (index.last_date(), index.reserved_date()));
    let known = known.map(|(last, reserved)| last.ok().flatten().max(reserved.ok().flatten()));
    let known = known.flatten().max(last_in_ledger(&ledger));
    let keeper = rebuilt.keeper();
    let mut summary = keeper.index_into(&rebuilt.store, &before, known, clock.now(), progress)?;
    rebuilt.store.widen()?;
    report.items = summary.report.items;
    report.findings.append(&mut summary.report.findings);
    keeper.check_service(&mut report)?;
    store_files::check_handovers(&rebuilt, &mut report);
    let sound = index
        .as_ref()
        .filter(|_| !report.has(CheckCode::IndexDamaged));
    check_log(&rebuilt.tree, sound, &mut report)?;
    if let Some(index) = sound {
        keeper.compare(index, &mut report)?;
        keeper.check_dates(index, &summary, store_use, clock, &mut report)?;
    }
    store_files::check_copies(&rebuilt, &mut report)?;
    keeper.check_editions(&mut report)?;
    keeper.check_relations(&mut report)?;
    if report.has(CheckCode::AreaMissing) || report.has(CheckCode::Unreadable) {
        // Rebuilding the index now would drop the items that cannot be read.
        for finding in &mut report.findings {
            finding.repairable = false;
        }
    }
    Ok(report)
}
