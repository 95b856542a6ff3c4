//! Compares tree and index: adopting a tree, reindexing, and the check that reports every
//! inconsistency.
//!
//! A check only reads the store. It builds an index of its own from the tree, in a temporary file, and
//! compares the two side by side, so that its memory use does not grow with the store. It may run beside a
//! daemon: what it finds then is checked again, since a change may have been in progress.

mod compare;
mod finding;
mod grounds;
mod reading;
mod repair;

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use super::admission::Evidence;
use super::dates::Ahead;
use super::identifiers::{as_alias, is_ibip, names_at};
use super::ledger::{LEDGER, last_in_ledger};
use super::recovery_log::{Durability, Queued};
use super::{Archive, ArchiveError, Clock, lock};
use crate::archive::store::{Item, Record, Refill, Store, StoreError};
use crate::archive::tree::{Author, Place, Tree};
use crate::formats::item::{Names, Sidecar, State};
use ibi::message;
use ibi::{AliasPair, Ibi, Ibip, Timestamp};

pub use crate::archive::finding::Severity;
pub use finding::{CheckCode, CheckFinding, CheckReport};

/// Called now and then with the number of items read so far.
pub type ItemProgress<'a> = dyn FnMut(u64) + 'a;

/// How many passes over a store in use confirm a finding before it is reported.
const PASSES: usize = 3;

/// The result of reading the whole tree, apart from the records themselves.
#[derive(Default)]
struct Walk {
    /// The last date in the Archive's own name space that is not in the future, and its rep.
    own: Option<(Timestamp, String)>,
    /// The last date of all in that name space, and its rep.
    latest: Option<(Timestamp, String)>,
    /// Items to be moved from the directory of their IBIp to that of their rep, by the IBIp.
    unmoved: Vec<Names>,
    report: CheckReport,
}

/// A set of items, in a few bytes each.
#[derive(Default)]
struct ItemSet {
    hasher: RandomState,
    known: HashSet<u64>,
}

impl ItemSet {
    fn number(&self, names: &Names) -> u64 {
        let rep = names.rep().map(ibi::Rep::canonical);
        let key = rep.or_else(|| names.ibip().map(Ibip::canonical));
        self.hasher.hash_one(key.unwrap_or_default())
    }

    fn add(&mut self, names: &Names) {
        self.known.insert(self.number(names));
    }

    fn has(&self, names: &Names) -> bool {
        !self.known.is_empty() && self.known.contains(&self.number(names))
    }
}

/// The state known before, for items whose sidecar is not accepted now.
struct PreviousIndex<'a> {
    index: Option<&'a Store>,
    /// Whether the index is about to be replaced. Then differences from it are reported, and a tree
    /// that cannot be read is an error.
    is_last: bool,
}

impl PreviousIndex<'_> {
    fn sidecar(&self, names: &Names) -> Result<Option<Vec<u8>>, ArchiveError> {
        self.ask(|index| index.accepted_sidecar(names))
    }

    fn item(&self, names: &Names) -> Result<Option<Item>, ArchiveError> {
        self.ask(|index| index.find_by_names(names))
    }

    fn has_alias(&self, names: &Names, alias: &AliasPair) -> Result<bool, ArchiveError> {
        let holder = self.ask(|index| index.find_by_alias(alias))?;
        Ok(holder.is_some_and(|holder| holder.names.matches(names)))
    }

    fn ask<T>(
        &self,
        ask: impl FnOnce(&Store) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, ArchiveError> {
        match self.index.map(ask) {
            Some(Err(error)) if self.is_last => Err(error.into()),
            // A damaged index is reported by the comparison.
            Some(known) => Ok(known.ok().flatten()),
            None => Ok(None),
        }
    }
}

/// The time against which dates in the tree are checked.
struct Present {
    /// The present.
    now: Timestamp,
    /// Dates of the own name space up to this one count as given out; not before the present.
    last: Option<Timestamp>,
}

/// One place of the tree while it is read.
struct Reading<'a> {
    /// The item's name according to its place.
    place: &'a Names,
    before: &'a PreviousIndex<'a>,
    /// The sidecar that was last accepted for the item.
    accepted_before: Option<&'a [u8]>,
    present: &'a Present,
}

/// A finding for an alias in the sidecar that is an IBIp: a sidecar cannot give its item an IBIp that way.
fn refused_aliases(place: &Names, record: &Record) -> Option<CheckFinding> {
    let bytes = record.sidecar.as_ref()?;
    // Few sidecars contain the pair, so only those are parsed a second time.
    bytes.windows(ALIAS.len()).find(|part| *part == ALIAS)?;
    let sidecar = Sidecar::parse(bytes).ok()?;
    let alias = sidecar
        .aliases()
        .iter()
        .find(|alias| is_ibip(alias))?
        .to_string();
    Some(CheckFinding::of(CheckCode::NameRefused, place).saying(ArchiveError::NoAlias { alias }))
}

/// The error for a record whose IBIp belongs to another item.
fn ibip_taken(record: &Record, holder: Names) -> StoreError {
    let ibip = record.names.ibip();
    StoreError::Taken {
        name: ibip.map_or_else(String::new, Ibip::to_string),
        holder: Box::new(holder),
    }
}

/// The name of the pair that holds aliases.
const ALIAS: &[u8] = b"ibi.alias";

impl Archive {
    /// Rebuilds the index from the tree: identifiers, relations, states, tombstones and the date
    /// from which minting continues.
    pub fn reindex(&self, progress: &mut ItemProgress<'_>) -> Result<CheckReport, ArchiveError> {
        self.writable()?;
        let _edits = self.edits();
        // Rebuilding also replaces what the ledger reserves, so no date is given out meanwhile.
        let mut dates = self.dates.lock();
        // The rows to be replaced also list the directories that are not on disk yet.
        self.settle_now()?;
        // A reader beside the writer sees the previous contents until the writer commits.
        let index = Store::open_read_only(self.tree.root())?;
        let before = PreviousIndex {
            index: Some(&index),
            is_last: true,
        };
        let last = dates.last().cloned();
        let walk = self.index_into(&self.store, &before, last, self.clock.now(), progress)?;
        dates.go_on_after(self.store.last_date()?);
        drop(dates);
        if let Some(text) = self.tree.read_small(super::own_files::FACTS)? {
            self.store.set_facts(&text)?;
        }
        self.finish_moves(walk)
    }

    /// Accepts the sidecars of items that were not moved to the directory of their rep, which
    /// moves them. The caller holds `edits`.
    fn finish_moves(&self, walk: Walk) -> Result<CheckReport, ArchiveError> {
        let mut report = walk.report;
        for names in walk.unmoved {
            self.read_again(&Queued::at(Place::of(&names), Durability::Unsynced))?;
            if !self.tree.is_directory(Place::of(&names).as_str()) {
                let subject = names.preferred();
                let is_its = |finding: &CheckFinding| {
                    finding.code == CheckCode::NotMoved && finding.subject == subject
                };
                report.findings.retain(|finding| !is_its(finding));
            }
        }
        Ok(report)
    }

    fn index_into(
        &self,
        store: &Store,
        before: &PreviousIndex<'_>,
        known: Option<Timestamp>,
        now: Timestamp,
        progress: &mut ItemProgress<'_>,
    ) -> Result<Walk, ArchiveError> {
        let mut walk = Walk::default();
        let present = Present {
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
                walk.latest = walk.latest.take().max(own_date.clone());
                // A date in the future was not minted here, or is known from the ledger.
                let own_date = own_date.filter(|(date, _)| *date <= present.now);
                walk.own = walk.own.take().max(own_date);
                walk.report.findings.extend(scanned.finding);
                let (Some(place), Some((record, is_accepted))) = (scanned.place, scanned.record)
                else {
                    return Ok(());
                };
                let accepted_before = before.sidecar(&place)?;
                let reading = Reading {
                    place: &place,
                    before,
                    accepted_before: accepted_before.as_deref(),
                    present: &present,
                };
                let (record, is_accepted) = if scanned.is_here {
                    self.admitted(&reading, record, is_accepted, &mut walk)?
                } else {
                    (record, is_accepted)
                };
                if scanned.is_here {
                    walk.report.items += 1;
                    progress(walk.report.items);
                    if record.sidecar.is_some() && removed.has(&record.names) {
                        walk.report
                            .add(CheckFinding::of(CheckCode::LeftTombstone, &record.names));
                    }
                } else {
                    removed.add(&record.names);
                }
                self.put_accepted(&reading, record, is_accepted, refill, &mut walk.report)
            });
            match result {
                Ok(()) => Ok(known.max(walk.own.clone().map(|(date, _)| date))),
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
        Ok(walk)
    }

    /// The record of an item that is present: according to its sidecar, if the item may have those
    /// names and that state, else according to its place alone.
    fn admitted(
        &self,
        reading: &Reading<'_>,
        record: Record,
        is_accepted: bool,
        walk: &mut Walk,
    ) -> Result<(Record, bool), ArchiveError> {
        let report = &mut walk.report;
        let place = reading.place;
        let is_known =
            record.sidecar.is_some() && record.sidecar.as_deref() == reading.accepted_before;
        let known = if is_known {
            None
        } else {
            reading.before.item(place)?
        };
        let known = Evidence {
            last: reading.present.last.as_ref(),
            was_accepted: is_known,
            item: known.as_ref(),
        };
        report.findings.extend(refused_aliases(place, &record));
        let Some(error) = self.refusal_of_read(place, &record, &known)? else {
            if !is_known && let Some(holder) = self.holder_of_ibip(reading, &record)? {
                let taken = ibip_taken(&record, holder);
                report.add(CheckFinding::of(CheckCode::NameTaken, place).saying(taken));
                return Ok((Record::bare(place.clone(), State::Copy), false));
            }
            if Place::of(&record.names) != Place::of(place) {
                let rep = message!("its rep is {rep}", rep = record.names.preferred());
                report.add(CheckFinding::of(CheckCode::NotMoved, place).saying(rep));
                walk.unmoved.push(place.clone());
                return Ok((Record::bare(place.clone(), State::Copy), false));
            }
            return Ok((record, is_accepted));
        };
        let code =
            match self.refusal_of_read(place, &Record::bare(place.clone(), State::Copy), &known)? {
                Some(_) => CheckCode::NotMinted,
                None => CheckCode::NameRefused,
            };
        report.add(CheckFinding::of(code, place).saying(error));
        Ok((Record::bare(place.clone(), State::Copy), false))
    }

    /// Another item that is present and has the IBIp that a sidecar claims, according to its place
    /// or to the previous index.
    fn holder_of_ibip(
        &self,
        reading: &Reading<'_>,
        record: &Record,
    ) -> Result<Option<Names>, ArchiveError> {
        let (Some(_), Some(ibip)) = (reading.place.rep(), record.names.ibip()) else {
            return Ok(None);
        };
        let by_place = Names::from(Ibi::Ibip(ibip.clone()));
        let upper = Ibip::parse(&ibip.canonical()).map(|ibip| Place::of_ibip(&ibip));
        let places = [Some(Place::of(&by_place)), upper.ok()];
        let is_there = |place: &Place| self.tree.is_directory(place.as_str());
        if places.iter().flatten().any(is_there) {
            return Ok(Some(by_place));
        }
        let known = match (reading.before.item(&by_place)?, as_alias(ibip)) {
            // One in base 53 may have become an alias of the item that had it.
            (None, Some(alias)) => reading.before.ask(|index| index.find_by_alias(&alias))?,
            (known, _) => known,
        };
        let is_another = |item: &Item| {
            item.state != State::Deleted
                && item.names.rep() != reading.place.rep()
                && is_there(&Place::of(&item.names))
        };
        Ok(known.filter(is_another).map(|item| item.names))
    }

    /// Records an item according to its sidecar, or to the last sidecar that was accepted.
    fn put_accepted(
        &self,
        reading: &Reading<'_>,
        record: Record,
        is_accepted: bool,
        refill: &Refill<'_>,
        report: &mut CheckReport,
    ) -> Result<(), ArchiveError> {
        let mut record = record;
        if !is_accepted || record.sidecar.is_none() {
            if let Some(known) = self.previously_accepted(reading, &record)? {
                if is_accepted {
                    report.add(CheckFinding::of(CheckCode::MissingSidecar, &known.names));
                }
                record = known;
            }
        } else if reading.before.is_last
            && let Some(known) = reading.accepted_before
            && record.sidecar.as_deref() != Some(known)
        {
            let code = match record.state {
                State::Deleted => CheckCode::ChangedTombstone,
                _ => CheckCode::ChangedSidecar,
            };
            report.add(CheckFinding::of(code, &record.names));
        }
        for alias in &record.aliases {
            if let Some(holder) = refill.holder_of_alias(alias)?
                && !holder.matches(&record.names)
            {
                let taken = |names: &Names, holder: &Names| {
                    let taken = CheckFinding::of(CheckCode::AliasTaken, names);
                    taken.saying(message!(
                        "{alias} is {holder}",
                        alias,
                        holder = holder.preferred()
                    ))
                };
                // Only the previous index shows which item had the alias first.
                if reading.before.has_alias(reading.place, alias)? {
                    refill.free_alias(alias)?;
                    report.add(taken(&holder, &record.names));
                } else {
                    report.add(taken(&record.names, &holder));
                }
            }
        }
        match self.put_or_replace(reading, &record, refill, report)? {
            Some(error) => {
                report.add(CheckFinding::of(CheckCode::NameTaken, &record.names).saying(error));
                self.put_without_taken_name(reading, &record, refill)
            }
            None => Ok(()),
        }
    }

    /// Records an item. If another item has one of its names, and neither its place nor the
    /// previous index gives it to this one, the error is returned.
    fn put_or_replace(
        &self,
        reading: &Reading<'_>,
        record: &Record,
        refill: &Refill<'_>,
        report: &mut CheckReport,
    ) -> Result<Option<StoreError>, ArchiveError> {
        let (error, holder) = match refill.put(record) {
            Ok(()) => return Ok(None),
            Err(StoreError::Taken { name, holder }) => {
                let names = (*holder).clone();
                (StoreError::Taken { name, holder }, names)
            }
            Err(error) => return Err(error.into()),
        };
        let had = |known: Item| known.names.ibip() == record.names.ibip();
        let is_proper = reading.place.rep().is_none()
            || record.names.ibip().is_some()
                && reading.before.item(reading.place)?.is_some_and(had);
        if !is_proper || holder.rep().is_none() || holder.rep() == record.names.rep() {
            return Ok(Some(error));
        }
        refill.reduce_to_rep(&holder)?;
        match refill.put(record) {
            Ok(()) => {
                let taken = ibip_taken(record, record.names.clone());
                report.add(CheckFinding::of(CheckCode::NameTaken, &holder).saying(taken));
                Ok(None)
            }
            Err(error @ StoreError::Taken { .. }) => Ok(Some(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// The previous record of an item whose sidecar is not accepted. It is kept until the sidecar
    /// is repaired from it.
    fn previously_accepted(
        &self,
        reading: &Reading<'_>,
        record: &Record,
    ) -> Result<Option<Record>, ArchiveError> {
        let Some(bytes) = reading.accepted_before else {
            return Ok(None);
        };
        let names = &record.names;
        let Some(before) = Sidecar::parse(bytes).ok() else {
            return Ok(None);
        };
        let was_removed = before.state() == Some(State::Deleted);
        let known = match (was_removed, record.state == State::Deleted) {
            (false, false) => self.record_from(names, bytes.to_vec()).ok(),
            (true, true) => return Ok(self.tombstone_from(names, bytes).ok()),
            _ => None,
        };
        let Some(known) = known else {
            return Ok(None);
        };
        let gate = Evidence {
            last: reading.present.last.as_ref(),
            was_accepted: true,
            item: None,
        };
        let refused = self.refusal_of_read(reading.place, &known, &gate)?;
        Ok(refused.is_none().then_some(known))
    }

    /// Indexes an item that claims the name of another one: by its previous record, else by its place alone.
    fn put_without_taken_name(
        &self,
        reading: &Reading<'_>,
        record: &Record,
        refill: &Refill<'_>,
    ) -> Result<(), ArchiveError> {
        let by_place = Record {
            names: reading.place.clone(),
            ..record.clone()
        };
        let known = self.previously_accepted(reading, &by_place)?;
        for record in known.iter().chain([&by_place]) {
            match refill.put(record) {
                Err(StoreError::Taken { .. }) => {}
                other => return Ok(other?),
            }
        }
        Ok(())
    }

    /// Takes over items in `col/` that have no sidecar. Those of the Archive's own name space
    /// become originals; all are indexed.
    pub(super) fn adopt(
        &self,
        progress: &mut ItemProgress<'_>,
    ) -> Result<CheckReport, ArchiveError> {
        self.tree.each_item::<ArchiveError>(|area, path| {
            let Some(names) = names_at(area, path) else {
                return Ok(());
            };
            let place = Place::of(&names);
            if let Some(rep) = names.rep()
                && self.is_own_rep(rep)?
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

    /// Checks a whole store and reports all inconsistencies. Nothing is changed; the store may be mounted.
    pub fn check(
        path: &Path,
        clock: &dyn Clock,
        progress: &mut ItemProgress<'_>,
    ) -> Result<CheckReport, ArchiveError> {
        refuse_other_directories(path)?;
        let reading = lock::ReadLock::of(path);
        let mut report = check_once(path, reading.is_alone(), clock, progress)?;
        for _ in 1..PASSES {
            if reading.is_alone() || report.findings.is_empty() {
                break;
            }
            // A change in progress has ended by now; a real inconsistency is found again.
            let again = check_once(path, false, clock, progress)?;
            let found = report.identities();
            report = again;
            let is_again = |finding: &CheckFinding| found.contains(&finding.identity());
            report.findings.retain(is_again);
        }
        report.in_use = !reading.is_alone();
        Ok(report)
    }

    /// Opens a store for reading and calls `inspect` with it. If no other process has the store open,
    /// no auxiliary files are written either.
    pub fn inspect<T, E: From<ArchiveError>>(
        path: &Path,
        inspect: impl FnOnce(&Archive) -> Result<T, E>,
    ) -> Result<T, E> {
        let reading = lock::ReadLock::of(path);
        let (facts, tree) = Archive::open_tree(path)?;
        let store = Store::open_as_it_is(tree.root(), reading.is_alone());
        let clock = Box::new(super::SystemClock);
        let store = store.map_err(ArchiveError::from)?;
        inspect(&Archive::over(facts, tree, store, clock, None))
    }

    /// Compares the index with the answers of another Archive. Reports originals here that the
    /// other Archive claims too, and copies here whose original it has removed.
    pub fn check_with<E: From<ArchiveError>>(
        &self,
        other: &Names,
        mut says: impl FnMut(&Names) -> Result<Option<State>, E>,
    ) -> Result<Vec<CheckFinding>, E> {
        let (mut originals, mut copies) = (Vec::new(), Vec::new());
        let listed = self.store.each_item(|item| {
            if item.state == State::Original {
                originals.push(item.names.clone());
            }
            let holder = item.service.as_ref();
            if item.state == State::Copy && holder.is_some_and(|it| it.matches(other)) {
                copies.push(item.names.clone());
            }
            Ok(())
        });
        listed.map_err(ArchiveError::from)?;
        let mut findings = Vec::new();
        for names in originals {
            if says(&names)? == Some(State::Original) {
                let found = CheckFinding::of(CheckCode::TwoOriginals, &names);
                findings.push(found.saying(message!("the Archive {other}", other)));
            }
        }
        for names in copies {
            if says(&names)? == Some(State::Deleted) {
                let found = CheckFinding::of(CheckCode::OriginalRemoved, &names);
                findings.push(found.saying(message!("the Archive {other}", other)));
            }
        }
        Ok(findings)
    }
}

/// Fails if a directory has neither the facts nor the index: it is not a store.
fn refuse_other_directories(path: &Path) -> Result<(), ArchiveError> {
    let holds = |name: &str| path.join(name).symlink_metadata().is_ok();
    if holds(super::own_files::FACTS) || holds(crate::archive::store::FILE) {
        Ok(())
    } else {
        Err(ArchiveError::no_store(path))
    }
}

/// Checks a store once.
fn check_once(
    path: &Path,
    is_quiet: bool,
    clock: &dyn Clock,
    progress: &mut ItemProgress<'_>,
) -> Result<CheckReport, ArchiveError> {
    let mut report = CheckReport::default();
    let tree = Tree::open_as_it_is(path)?;
    let index = grounds::open_index(&tree, is_quiet, &mut report)?;
    let facts = grounds::read_facts(&tree, index.as_ref(), &mut report);
    grounds::check_store_mode(&tree, &mut report);
    if is_quiet {
        grounds::check_own_files(&tree, &mut report);
    }
    // Without these the contents of the tree cannot be interpreted.
    let (Some(facts), false) = (facts, report.has(CheckCode::IndexNewer)) else {
        return Ok(report);
    };
    let unused_clock = Box::new(super::SystemClock);
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
    let mut walk = rebuilt.index_into(&rebuilt.store, &before, known, clock.now(), progress)?;
    rebuilt.store.widen()?;
    report.items = walk.report.items;
    report.findings.append(&mut walk.report.findings);
    rebuilt.check_service(&mut report)?;
    grounds::check_handovers(&rebuilt, &mut report);
    if let (Some(index), false) = (&index, report.has(CheckCode::IndexDamaged)) {
        rebuilt.compare(index, &mut report)?;
        rebuilt.check_dates(index, &walk, is_quiet, clock, &mut report)?;
    }
    rebuilt.check_editions(&mut report)?;
    rebuilt.check_relations(&mut report)?;
    if report.has(CheckCode::AreaMissing) || report.has(CheckCode::Unreadable) {
        // Rebuilding the index now would drop the items that cannot be read.
        for finding in &mut report.findings {
            finding.repairable = false;
        }
    }
    Ok(report)
}

impl Archive {
    fn check_service(&self, report: &mut CheckReport) -> Result<(), ArchiveError> {
        let held = self.held(&self.facts.service)?;
        if held.is_none_or(|item| item.state != State::Original)
            && !is_below(
                &Place::of(&self.facts.service),
                &report.subjects(CheckCode::Unreadable),
            )
        {
            report.add(CheckFinding::of(
                CheckCode::ServiceMissing,
                &self.facts.service,
            ));
        }
        Ok(())
    }

    fn check_editions(&self, report: &mut CheckReport) -> Result<(), ArchiveError> {
        // Each chain is followed once: a chain that leads into one that ends, ends as well.
        let (mut ending, mut circling) = (ItemSet::default(), ItemSet::default());
        for id in self.store.with_next_edition()? {
            let Some(item) = self.store.item(id)? else {
                continue;
            };
            if item.state == State::Deleted {
                continue;
            }
            let mut chain = Vec::new();
            let mut current = item.names.clone();
            let mut passed = ItemSet::default();
            let is_circle = loop {
                if ending.has(&current) {
                    break false;
                }
                if circling.has(&current) || passed.has(&current) {
                    break true;
                }
                passed.add(&current);
                chain.push(current.clone());
                match self.next_edition(&current)? {
                    Some(next) => current = next,
                    None => break false,
                }
            };
            if is_circle {
                report.add(CheckFinding::of(CheckCode::EditionCycle, &item.names));
            }
            let set = if is_circle {
                &mut circling
            } else {
                &mut ending
            };
            chain.iter().for_each(|names| set.add(names));
        }
        Ok(())
    }

    fn check_relations(&self, report: &mut CheckReport) -> Result<(), ArchiveError> {
        for claim in self.store.contested()? {
            // A claim by an item whose owner may not write this one is not a fault of this one.
            if !self.may_declare_for(&claim.other, &claim.names)? {
                continue;
            }
            let differ = CheckFinding::of(CheckCode::RelationsDiffer, &claim.names);
            report.add(differ.saying(message!(
                "its {kind} is {target}, and {other} says it is that too",
                kind = claim.kind.pair_name(),
                target = claim.target.preferred(),
                other = claim.other.preferred()
            )));
        }
        let circling = report.subjects(CheckCode::EditionCycle);
        for claim in self.store.one_sided()? {
            // Which edition in a circle is wrong is not known, so no missing pair is added to one.
            if circling.contains(&claim.near.preferred()) {
                continue;
            }
            // The near end alone suffices if its owner may not write the far end.
            if !self.may_declare_for(&claim.near, &claim.far)? {
                continue;
            }
            let one_sided = CheckFinding::of(CheckCode::OneSided, &claim.near);
            report.add(one_sided.saying(message!(
                "{kind} {far}",
                kind = claim.kind.pair_name(),
                far = claim.far.preferred()
            )));
        }
        Ok(())
    }
}

/// Whether a place is in one of these directories.
fn is_below(place: &Place, directories: &BTreeSet<String>) -> bool {
    let above = place.as_str().match_indices('/');
    above
        .filter_map(|(at, _)| place.as_str().get(..at))
        .any(|above| directories.contains(above))
}

#[cfg(test)]
mod tests;
