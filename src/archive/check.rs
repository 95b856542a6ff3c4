//! Tree against index: adopting, reindexing, and the check that names each difference.

mod reading;

use std::collections::BTreeMap;

use super::relations::inverse;
use super::{Archive, ArchiveError};
use crate::ibi::{Ibi, Rep, Timestamp};
use crate::item::{Names, Sidecar, State};
use crate::relation::RelationKind;
use crate::store::{Record, Refill, Store, StoreError};
use crate::tree::{Area, Place, SIDECAR};

/// Told now and then how many items have been looked at.
pub type Progress<'a> = dyn FnMut(u64) + 'a;

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A stable word for the kind of thing.
    pub code: &'static str,
    /// The item or path.
    pub subject: String,
    /// What is wrong, and what can be done.
    pub sentence: String,
    /// Whether it was repaired.
    pub repaired: bool,
}

/// What a check found.
#[derive(Debug, Default)]
pub struct Report {
    /// How many items are in the tree.
    pub items: u64,
    /// What is not as it should be.
    pub findings: Vec<Finding>,
}

impl Finding {
    fn new(code: &'static str, subject: impl ToString, sentence: impl ToString) -> Finding {
        Finding {
            code,
            subject: subject.to_string(),
            sentence: sentence.to_string(),
            repaired: false,
        }
    }
}

impl Report {
    fn add(&mut self, code: &'static str, subject: impl ToString, sentence: impl ToString) {
        self.findings.push(Finding::new(code, subject, sentence));
    }
}

/// What reading the whole tree gave, beside the records themselves.
#[derive(Default)]
struct Walk {
    last: Option<Timestamp>,
    report: Report,
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
        let walk = self.index_into(&self.store, dates.last().cloned(), progress)?;
        dates.go_on_after(self.store.last_date()?);
        Ok(walk.report)
    }

    fn index_into(
        &self,
        store: &Store,
        known: Option<Timestamp>,
        progress: &mut Progress<'_>,
    ) -> Result<Walk, ArchiveError> {
        let mut walk = Walk {
            last: known,
            ..Walk::default()
        };
        // The store's closure speaks its own errors; ours is carried round it.
        let mut failed = None;
        let outcome = store.replace_all(|refill| {
            let result = self.each_sight(&mut |sight| {
                let own_date = sight.own_date.filter(|date| !self.is_ahead(date));
                walk.last = walk.last.take().max(own_date);
                walk.report.findings.extend(sight.finding);
                let Some((record, believed)) = sight.record else {
                    return Ok(());
                };
                if sight.is_here {
                    walk.report.items += 1;
                    progress(walk.report.items);
                }
                let known = match believed {
                    true => None,
                    false => self.believed_before(&record, store, refill)?,
                };
                let record = known.as_ref().unwrap_or(&record);
                match refill.put(record) {
                    Err(error @ StoreError::Taken { .. }) => {
                        let name = record.names.preferred();
                        walk.report.add("name-taken", name, error);
                        self.put_without_taken_name(record, store, refill)
                    }
                    other => Ok(other?),
                }
            });
            match result {
                Ok(()) => Ok(walk.last.clone()),
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

    /// What the index has known until now of an item whose sidecar is not believed: it must not be
    /// forgotten before the sidecar is mended from it.
    fn believed_before(
        &self,
        record: &Record,
        store: &Store,
        refill: &Refill<'_>,
    ) -> Result<Option<Record>, ArchiveError> {
        let names = &record.names;
        let bytes = if std::ptr::eq(store, &*self.store) {
            refill.sidecar_before(names)?
        } else {
            match self.store.find_by_names(names)? {
                Some(item) => self.store.sidecar(item.id)?,
                None => None,
            }
        };
        Ok(bytes.and_then(|bytes| {
            let before = Sidecar::parse(&bytes).ok()?;
            let was_removed = before.state() == Some(State::Deleted);
            match (was_removed, record.state == State::Deleted) {
                (false, false) => self.record_from(names, bytes).ok(),
                (true, true) => {
                    Some(self.record_of_removed(before.names().clone(), &before, bytes))
                }
                _ => None,
            }
        }))
    }

    /// An item that claims another's name is still here: it is indexed by what was believed of it
    /// before, else by its place alone.
    fn put_without_taken_name(
        &self,
        record: &Record,
        store: &Store,
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
        let before = self.believed_before(&by_place, store, refill)?;
        for record in before.iter().chain([&by_place]) {
            match refill.put(record) {
                Err(StoreError::Taken { .. }) => {}
                other => return Ok(other?),
            }
        }
        Ok(())
    }

    /// Takes over what lies in `col/` without sidecars: items of the Archive's own name space
    /// become originals, all are indexed.
    pub(super) fn adopt(&self, progress: &mut Progress<'_>) -> Result<(), ArchiveError> {
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
                self.tree.write_sidecar(&place, &sidecar.to_bytes())?;
            }
            Ok(())
        })?;
        self.reindex(progress)?;
        Ok(())
    }

    /// Compares the tree with the index and names each difference; with `repair`, mends what can
    /// be mended: unbelieved sidecars are set aside and written again from the index, lost items
    /// are recorded as removed, and the index is made anew.
    pub fn check(&self, repair: bool, progress: &mut Progress<'_>) -> Result<Report, ArchiveError> {
        let fresh = Store::in_memory()?;
        let last = self.store.last_date().ok().flatten();
        let reserved = self.store.reserved_date().ok().flatten();
        let walk = self.index_into(&fresh, last.max(reserved), progress)?;
        let mut report = walk.report;
        self.compare(&fresh, &mut report)?;
        self.check_editions(&mut report)?;
        self.check_dates(&mut report)?;
        if repair {
            self.writable()?;
            self.repair(&mut report, progress)?;
        }
        Ok(report)
    }

    fn compare(&self, fresh: &Store, report: &mut Report) -> Result<(), ArchiveError> {
        let by_subject = |lines: Vec<String>| {
            let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for line in lines {
                let (subject, rest) = line.split_once(' ').unwrap_or((&line, ""));
                map.entry(subject.to_owned())
                    .or_default()
                    .push(rest.to_owned());
            }
            map
        };
        let tree = by_subject(fresh.dump()?);
        let index = by_subject(self.store.dump()?);
        for (subject, lines) in &tree {
            match index.get(subject) {
                None => report.add(
                    "not-indexed",
                    subject,
                    "is in the tree but not in the index; 'ibifs reindex' or --repair adds it",
                ),
                Some(known) if known != lines => {
                    let differs: Vec<&str> = lines
                        .iter()
                        .filter(|line| !known.contains(line))
                        .chain(known.iter().filter(|line| !lines.contains(line)))
                        .map(String::as_str)
                        .collect();
                    report.add(
                        "index-differs",
                        subject,
                        format!("tree and index disagree: {}", differs.join(" | ")),
                    );
                }
                Some(_) => {}
            }
        }
        for subject in index.keys().filter(|subject| !tree.contains_key(*subject)) {
            report.add(
                "not-in-tree",
                subject,
                "is in the index but neither in the tree nor among the removed; \
                 --repair records it as removed",
            );
        }
        Ok(())
    }

    fn check_editions(&self, report: &mut Report) -> Result<(), ArchiveError> {
        let mut all = Vec::new();
        self.store.each_item(|item| {
            all.push(item.clone());
            Ok(())
        })?;
        for item in all {
            match self.last_edition(&item.names) {
                Err(ArchiveError::Cycle { .. }) => report.add(
                    "edition-cycle",
                    &item.names,
                    "its editions go in a circle; remove one with 'ibifs unrelate'",
                ),
                Err(error) => return Err(error),
                Ok(_) => {}
            }
            let declared = self.store.relations_of(item.id)?;
            let back = self.store.relations_to(&item.names)?;
            for (kind, target) in declared.iter().filter(|(kind, _)| {
                matches!(kind, RelationKind::NextEdition | RelationKind::Metadata)
            }) {
                for (_, other) in back.iter().filter(|(known, _)| *known == inverse(kind)) {
                    if !target.matches(&other.names) {
                        report.add(
                            "relations-differ",
                            &item.names,
                            format!(
                                "says that its {} is {target}, but {} says it is that too",
                                kind.pair_name(),
                                other.names
                            ),
                        );
                    }
                }
            }
        }
        Ok(())
    }

    fn check_dates(&self, report: &mut Report) -> Result<(), ArchiveError> {
        let now = self.clock.now();
        if let Some(last) = self.store.last_date()?
            && last.seconds() > now.seconds() + 60
        {
            report.add(
                "date-ahead",
                last.to_rfc3339(),
                "the last date handed out lies in the future: minting is refused until then; \
                 check the clock",
            );
        }
        Ok(())
    }

    fn repair(&self, report: &mut Report, progress: &mut Progress<'_>) -> Result<(), ArchiveError> {
        for finding in &mut report.findings {
            finding.repaired = match finding.code {
                "broken-sidecar" | "foreign-sidecar" => self.mend_sidecar(&finding.subject)?,
                "broken-tombstone" => self.mend_tombstone(&finding.subject)?,
                "not-in-tree" => self.bury(&finding.subject)?,
                "not-indexed" | "index-differs" => true,
                _ => false,
            };
        }
        self.reindex(progress)?;
        Ok(())
    }

    fn named(&self, subject: &str) -> Result<Option<crate::store::Item>, ArchiveError> {
        let text = subject.trim_matches(['{', '}']);
        let text = text.split(' ').nth(1).unwrap_or(text);
        match Ibi::parse(text) {
            Ok(ibi) => self.find(&ibi),
            Err(_) => Ok(None),
        }
    }

    /// Sets an unbelieved sidecar aside, every byte kept, and writes what the index knows.
    fn mend_sidecar(&self, subject: &str) -> Result<bool, ArchiveError> {
        let Some(item) = self.named(subject)? else {
            return Ok(false);
        };
        let place = Place::of(&item.names);
        for number in 1..1000 {
            match self
                .tree
                .set_aside(&place, SIDECAR, &format!("{SIDECAR}.broken-{number}"))
            {
                Err(error) if error.errno() == rustix::io::Errno::EXIST => continue,
                Err(error) => return Err(error.into()),
                Ok(()) => break,
            }
        }
        self.restore(&item)?;
        Ok(true)
    }

    /// Writes the tombstone of a removed item again as the index knows it.
    fn mend_tombstone(&self, subject: &str) -> Result<bool, ArchiveError> {
        let path = ["deleted/col/", "deleted/ibip/"]
            .iter()
            .find_map(|area| subject.strip_prefix(area));
        let Some(item) = self.named(path.unwrap_or(subject))? else {
            return Ok(false);
        };
        match self.store.sidecar(item.id)? {
            Some(bytes) if item.state == State::Deleted => {
                self.tree.write_tombstone(&Place::of(&item.names), &bytes)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Leaves a tombstone for an item whose directory is gone.
    fn bury(&self, subject: &str) -> Result<bool, ArchiveError> {
        let Some(item) = self.named(subject)? else {
            return Ok(false);
        };
        let tombstone = self.tombstone_of(&item)?;
        self.tree
            .write_tombstone(&Place::of(&item.names), &tombstone.to_bytes())?;
        Ok(true)
    }
}

/// The names that a place in the tree gives an item, if it is the place of one.
fn names_at(area: Area, path: &str) -> Option<Names> {
    let ibi = match area {
        Area::Col => Ibi::Rep(Rep::parse(path).ok()?),
        Area::Ibip => match Ibi::parse(path) {
            Ok(ibi @ Ibi::Ibip(_)) => ibi,
            _ => return None,
        },
    };
    Some(Names::from(ibi))
}
