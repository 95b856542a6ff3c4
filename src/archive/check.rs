//! Tree against index: adopting, reindexing, and the check that names whatever is not as it should
//! be.
//!
//! A check reads, and writes nothing in the store. It makes an index of its own from the tree, in a
//! temporary file, and compares the two side by side, so that it needs no more memory for a large
//! store than for a small one. It can be made beside a daemon: what it finds then is looked at again,
//! since it may have been under way.

mod compare;
mod finding;
mod grounds;
mod reading;
mod repair;

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::path::Path;

use super::ledger::LEDGER;
use super::{Archive, ArchiveError, Clock, lock};
use crate::ibi::{Ibi, Rep, Timestamp};
use crate::item::{Names, Sidecar, State};
use crate::store::{Record, Refill, Store, StoreError};
use crate::tree::{Area, Author, Place, Tree};

pub use finding::{Code, Finding, Report, Severity};

/// Told now and then how many items have been looked at.
pub type Progress<'a> = dyn FnMut(u64) + 'a;

/// How often a store in use is looked over before what was found each time is believed.
const LOOKS: usize = 3;

/// What reading the whole tree gave, beside the records themselves.
#[derive(Default)]
struct Walk {
    /// The last date of the Archive's own name space, and the rep that has it.
    own: Option<(Timestamp, String)>,
    report: Report,
}

/// A set of items, in a few bytes each.
#[derive(Default)]
struct Marks {
    hasher: RandomState,
    known: HashSet<u64>,
}

impl Marks {
    fn number(&self, names: &Names) -> u64 {
        self.hasher.hash_one(names.preferred().to_ascii_lowercase())
    }

    fn add(&mut self, names: &Names) {
        self.known.insert(self.number(names));
    }

    fn has(&self, names: &Names) -> bool {
        !self.known.is_empty() && self.known.contains(&self.number(names))
    }
}

/// What was believed of sidecars before, for those that cannot be believed now.
struct Before<'a> {
    index: Option<&'a Store>,
    /// Whether the index is to be forgotten: then what it had otherwise is told, and a tree that
    /// cannot be read is an error.
    is_last: bool,
}

impl Before<'_> {
    fn sidecar(&self, names: &Names) -> Result<Option<Vec<u8>>, ArchiveError> {
        match self.index.map(|index| index.believed(names)) {
            Some(Err(error)) if self.is_last => Err(error.into()),
            // A damaged index is named where it is compared.
            Some(known) => Ok(known.ok().flatten()),
            None => Ok(None),
        }
    }
}

impl Archive {
    /// Makes the index anew from the tree: identifiers, relations, states, tombstones and the
    /// date from which minting goes on.
    pub fn reindex(&self, progress: &mut Progress<'_>) -> Result<Report, ArchiveError> {
        self.writable()?;
        let _edits = self.edits();
        // What the ledger reserves goes with the rows: nobody is handed a date meanwhile.
        let mut dates = self.dates();
        // So does which directories are not on disk.
        self.settle_now()?;
        // A reader beside the writer sees what there was, until the writer commits.
        let index = Store::open_read_only(self.tree.root())?;
        let before = Before {
            index: Some(&index),
            is_last: true,
        };
        let walk = self.index_into(&self.store, &before, dates.last().cloned(), progress)?;
        dates.go_on_after(self.store.last_date()?);
        if let Some(text) = self.tree.read_small(super::facts::FILE)? {
            self.store.set_facts(&text)?;
        }
        Ok(walk.report)
    }

    fn index_into(
        &self,
        store: &Store,
        before: &Before<'_>,
        known: Option<Timestamp>,
        progress: &mut Progress<'_>,
    ) -> Result<Walk, ArchiveError> {
        let mut walk = Walk::default();
        let mut removed = Marks::default();
        // The store's closure speaks its own errors; ours is carried round it.
        let mut failed = None;
        let outcome = store.replace_all(|refill| {
            let result = self.each_sight(&mut |sight| {
                if let (true, Some(error)) = (before.is_last, sight.unlisted) {
                    return Err(error.into());
                }
                let own_date = sight.own_date.filter(|(date, _)| !self.is_ahead(date));
                walk.own = walk.own.take().max(own_date);
                walk.report.findings.extend(sight.finding);
                let Some((record, believed)) = sight.record else {
                    return Ok(());
                };
                if sight.is_here {
                    walk.report.items += 1;
                    progress(walk.report.items);
                    if record.sidecar.is_some() && removed.has(&record.names) {
                        walk.report
                            .add(Finding::of(Code::LeftTombstone, &record.names));
                    }
                } else {
                    removed.add(&record.names);
                }
                self.put_believed(record, believed, before, refill, &mut walk.report)
            });
            match result {
                Ok(()) => Ok(known.max(walk.own.clone().map(|(date, _)| date))),
                Err(ArchiveError::Store(error)) => Err(error),
                Err(error) => {
                    failed = Some(error);
                    Err(StoreError::Broken {
                        what: "the tree could not be read".to_owned(),
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

    /// Records an item as its sidecar says, or as the last one said that was believed.
    fn put_believed(
        &self,
        record: Record,
        believed: bool,
        before: &Before<'_>,
        refill: &Refill<'_>,
        report: &mut Report,
    ) -> Result<(), ArchiveError> {
        let mut record = record;
        if !believed || record.sidecar.is_none() {
            if let Some(known) = self.believed_before(&record, before)? {
                if believed {
                    report.add(Finding::of(Code::MissingSidecar, &known.names));
                }
                record = known;
            }
        } else if before.is_last
            && let Some(known) = before.sidecar(&record.names)?
            && record.sidecar.as_ref() != Some(&known)
        {
            let code = match record.state {
                State::Deleted => Code::ChangedTombstone,
                _ => Code::ChangedSidecar,
            };
            report.add(Finding::of(code, &record.names));
        }
        for alias in &record.aliases {
            if let Some(holder) = refill.holder_of_alias(alias)?
                && !holder.matches(&record.names)
            {
                let taken = Finding::of(Code::AliasTaken, &record.names);
                report.add(taken.saying(format!("{alias} is {}", holder.preferred())));
            }
        }
        match refill.put(&record) {
            Err(error @ StoreError::Taken { .. }) => {
                report.add(Finding::of(Code::NameTaken, &record.names).saying(error));
                self.put_without_taken_name(&record, before, refill)
            }
            other => Ok(other?),
        }
    }

    /// What the index has known until now of an item whose sidecar is not believed: it must not be
    /// forgotten before the sidecar is mended from it.
    fn believed_before(
        &self,
        record: &Record,
        before: &Before<'_>,
    ) -> Result<Option<Record>, ArchiveError> {
        let names = &record.names;
        let bytes = before.sidecar(names)?;
        Ok(bytes.and_then(|bytes| {
            let before = Sidecar::parse(&bytes).ok()?;
            let was_removed = before.state() == Some(State::Deleted);
            match (was_removed, record.state == State::Deleted) {
                (false, false) => self.record_from(names, bytes).ok(),
                (true, true) => self.tombstone_from(names, &bytes).ok(),
                _ => None,
            }
        }))
    }

    /// An item that claims another's name is still here: it is indexed by what was believed of it
    /// before, else by its place alone.
    fn put_without_taken_name(
        &self,
        record: &Record,
        before: &Before<'_>,
        refill: &Refill<'_>,
    ) -> Result<(), ArchiveError> {
        let place = match (record.names.rep(), record.names.ibip()) {
            (Some(rep), _) => Ibi::Rep(rep.clone()),
            (None, Some(ibip)) => Ibi::Ibip(ibip.clone()),
            (None, None) => return Ok(()),
        };
        let by_place = Record {
            names: Names::from(place),
            ..record.clone()
        };
        let known = self.believed_before(&by_place, before)?;
        for record in known.iter().chain([&by_place]) {
            match refill.put(record) {
                Err(StoreError::Taken { .. }) => {}
                other => return Ok(other?),
            }
        }
        Ok(())
    }

    /// Takes over what lies in `col/` without sidecars: items of the Archive's own name space
    /// become originals, all are indexed.
    pub(super) fn adopt(&self, progress: &mut Progress<'_>) -> Result<Report, ArchiveError> {
        self.tree.each_item::<ArchiveError>(|area, path| {
            let Some(names) = names_at(area, path) else {
                return Ok(());
            };
            let place = Place::of(&names);
            if let Some(rep) = names.rep()
                && self.is_own_rep(rep)?
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

    /// Looks a whole store over and names whatever is not as it should be, beside whoever has it
    /// mounted. Nothing is changed.
    pub fn check(
        path: &Path,
        clock: &dyn Clock,
        progress: &mut Progress<'_>,
    ) -> Result<Report, ArchiveError> {
        refuse_other_directories(path)?;
        let reading = lock::Reading::of(path);
        let mut report = look(path, reading.is_alone(), clock, progress)?;
        for _ in 1..LOOKS {
            if reading.is_alone() || report.findings.is_empty() {
                break;
            }
            // What was under way is done by now; what is wrong is there again.
            let again = look(path, false, clock, progress)?;
            let found = report.identities();
            report = again;
            let is_again = |finding: &Finding| found.contains(&finding.identity());
            report.findings.retain(is_again);
        }
        report.in_use = !reading.is_alone();
        Ok(report)
    }

    /// Opens a store for reading while `look` looks at it. Where nobody else has it, nothing is written
    /// beside it either.
    pub fn looked_at<T, E: From<ArchiveError>>(
        path: &Path,
        look: impl FnOnce(&Archive) -> Result<T, E>,
    ) -> Result<T, E> {
        let reading = lock::Reading::of(path);
        let (facts, tree) = Archive::open_tree(path)?;
        let store = Store::open_as_it_is(tree.root(), reading.is_alone());
        let clock = Box::new(super::SystemClock);
        let store = store.map_err(ArchiveError::from)?;
        look(&Archive::over(facts, tree, store, clock, None))
    }

    /// The originals here, as the index knows them, that another Archive claims as well, by what it says
    /// of each.
    pub fn check_with<E: From<ArchiveError>>(
        &self,
        other: &Names,
        mut says: impl FnMut(&Names) -> Result<Option<State>, E>,
    ) -> Result<Vec<Finding>, E> {
        let mut originals = Vec::new();
        let listed = self.store.each_item(|item| {
            if item.state == State::Original {
                originals.push(item.names.clone());
            }
            Ok(())
        });
        listed.map_err(ArchiveError::from)?;
        let mut findings = Vec::new();
        for names in originals {
            if says(&names)? == Some(State::Original) {
                let found = Finding::of(Code::TwoOriginals, &names);
                findings.push(found.saying(format!("the Archive {other}")));
            }
        }
        Ok(findings)
    }
}

/// A directory that has neither the facts nor the index is no damaged store, but none.
fn refuse_other_directories(path: &Path) -> Result<(), ArchiveError> {
    let holds = |name: &str| path.join(name).symlink_metadata().is_ok();
    match holds(super::facts::FILE) || holds(crate::store::FILE) {
        true => Ok(()),
        false => Err(ArchiveError::NotAStore {
            path: path.to_owned(),
        }),
    }
}

/// Looks a store over once.
fn look(
    path: &Path,
    is_quiet: bool,
    clock: &dyn Clock,
    progress: &mut Progress<'_>,
) -> Result<Report, ArchiveError> {
    let mut report = Report::default();
    let tree = Tree::open_as_it_is(path)?;
    let index = grounds::open_index(&tree, is_quiet, &mut report)?;
    let facts = grounds::read_facts(&tree, index.as_ref(), &mut report);
    if is_quiet {
        grounds::look_around(&tree, &mut report);
    }
    // Without these nobody could say what the tree means.
    let (Some(facts), false) = (facts, report.has(Code::IndexNewer)) else {
        return Ok(report);
    };
    let unused_clock = Box::new(super::SystemClock);
    let told = Archive::over(facts, tree, Store::temporary()?, unused_clock, None);
    told.remember_ahead(
        &told
            .tree
            .read_small(LEDGER)
            .ok()
            .flatten()
            .unwrap_or_default(),
    );
    let before = Before {
        index: index.as_ref(),
        is_last: false,
    };
    let walk = told.index_into(&told.store, &before, None, progress)?;
    told.store.widen()?;
    report.items = walk.report.items;
    report.findings.extend(walk.report.findings);
    told.check_service(&mut report)?;
    grounds::look_at_handovers(&told, &mut report);
    if let (Some(index), false) = (&index, report.has(Code::IndexDamaged)) {
        told.compare(index, &mut report)?;
        told.check_dates(index, walk.own, is_quiet, clock, &mut report)?;
    }
    told.check_editions(&mut report)?;
    told.check_relations(&mut report)?;
    if report.has(Code::AreaMissing) || report.has(Code::Unreadable) {
        // An index made anew would forget what cannot be seen now.
        for finding in &mut report.findings {
            finding.repairable = false;
        }
    }
    Ok(report)
}

impl Archive {
    fn check_service(&self, report: &mut Report) -> Result<(), ArchiveError> {
        let held = self.held(&self.facts.service)?;
        if held.is_none_or(|item| item.state != State::Original)
            && !is_below(
                &Place::of(&self.facts.service),
                &report.subjects(Code::Unreadable),
            )
        {
            report.add(Finding::of(Code::ServiceMissing, &self.facts.service));
        }
        Ok(())
    }

    fn check_editions(&self, report: &mut Report) -> Result<(), ArchiveError> {
        // Each chain is followed once: what leads into one that ends, ends as well.
        let (mut ending, mut circling) = (Marks::default(), Marks::default());
        for id in self.store.with_next_edition()? {
            let Some(item) = self.store.item(id)? else {
                continue;
            };
            if item.state == State::Deleted {
                continue;
            }
            let mut chain = Vec::new();
            let mut current = item.names.clone();
            let mut passed = Marks::default();
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
                report.add(Finding::of(Code::EditionCycle, &item.names));
            }
            let marks = match is_circle {
                true => &mut circling,
                false => &mut ending,
            };
            chain.iter().for_each(|names| marks.add(names));
        }
        Ok(())
    }

    fn check_relations(&self, report: &mut Report) -> Result<(), ArchiveError> {
        for claim in self.store.contested()? {
            // What strangers claim is no fault of the item.
            if !self.may_speak(&claim.other, &claim.names)? {
                continue;
            }
            let differ = Finding::of(Code::RelationsDiffer, &claim.names);
            report.add(differ.saying(format!(
                "its {} is {}, and {} says it is that too",
                claim.kind.pair_name(),
                claim.target.preferred(),
                claim.other.preferred()
            )));
        }
        let circling = report.subjects(Code::EditionCycle);
        for claim in self.store.one_sided()? {
            // Which of the editions in a circle is wrong is not known: none is written once more.
            if circling.contains(&claim.near.preferred()) {
                continue;
            }
            // Who may not write the other end has said all that there is to say.
            if !self.may_speak(&claim.near, &claim.far)? {
                continue;
            }
            let one_sided = Finding::of(Code::OneSided, &claim.near);
            report.add(one_sided.saying(format!(
                "{} {}",
                claim.kind.pair_name(),
                claim.far.preferred()
            )));
        }
        Ok(())
    }
}

/// Whether a place lies in one of these directories.
fn is_below(place: &Place, directories: &BTreeSet<String>) -> bool {
    let above = place.as_str().match_indices('/');
    above
        .filter_map(|(at, _)| place.as_str().get(..at))
        .any(|above| directories.contains(above))
}

/// The names that a place in the tree gives an item, if it is the place of one.
pub(super) fn names_at(area: Area, path: &str) -> Option<Names> {
    let ibi = match area {
        Area::Col => Ibi::Rep(Rep::parse(path).ok()?),
        Area::Ibip => match Ibi::parse(path) {
            Ok(ibi @ Ibi::Ibip(_)) => ibi,
            _ => return None,
        },
    };
    Some(Names::from(ibi))
}
