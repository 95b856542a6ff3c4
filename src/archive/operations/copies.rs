//! The copies of items that this Archive knows of, and whether they are as many as it wants.

use std::time::Instant;

use super::status::names_of_place;
use super::{Archive, ArchiveError, Facts};
use crate::archive::copies::{marked_gone, noted_backups, noted_copies};
use crate::archive::scrub::{marks_of, recorded_change, scrubbed_at};
use crate::archive::store::{Item, ItemId, Store};
use crate::archive::tree::Place;
use crate::formats::audit::is_name_of;
use crate::formats::copies::{BackupNote, CopyCount, CopyKind, KnownCopy, Proof};
use crate::formats::item::{Names, State};
use crate::formats::question::Line;
use ibi::Timestamp;

/// The known copies of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemCopies {
    /// The item.
    pub names: Names,
    /// Its copies; that of this Archive comes first.
    pub copies: Vec<KnownCopy>,
    /// Those that count.
    pub count: CopyCount,
}

impl ItemCopies {
    /// The number of copies that count when an Archive, that of this service, removes its own, if that is less than the
    /// least that it wants.
    #[must_use]
    pub fn too_few_without(&self, facts: &Facts, now: &Timestamp) -> Option<u32> {
        let own = facts.service.preferred();
        let others = self.copies.iter().filter(|copy| copy.holder != own);
        let others: Vec<KnownCopy> = others.cloned().collect();
        let policy = facts.policy_of(&self.names);
        let left = policy.count(&others, now).copies;
        (Some(left) < policy.minimum).then_some(left)
    }

    /// The line in which a daemon tells them, without the paths of backups and packages.
    #[must_use]
    pub fn to_line(&self) -> Line {
        let copies = self.copies.iter().map(|copy| {
            let is_shown = copy.kind == CopyKind::Archive;
            let told = KnownCopy {
                holder: if is_shown { &copy.holder } else { "-" }.to_owned(),
                ..copy.clone()
            };
            told.to_line()
        });
        let line = Line::new("copies").with_names("item", &self.names);
        line.with_all("copy", copies)
    }

    /// Reads a line, and counts at an instant what it tells.
    #[must_use]
    pub fn of_line(line: &Line, facts: &Facts, now: &Timestamp) -> Option<ItemCopies> {
        let copies: Vec<KnownCopy> = line.all("copy").filter_map(KnownCopy::parse).collect();
        let names = line.names("item")?;
        Some(ItemCopies {
            count: facts.policy_of(&names).count(&copies, now),
            names,
            copies,
        })
    }
}

/// The number of items that are read at a time when all are counted.
const PAGE: usize = 500;

/// The figures of the copies of all items, at an instant.
#[derive(Clone, Debug)]
pub struct CopyFigures {
    /// When they were counted.
    pub at: Timestamp,
    /// The originals with fewer copies than the Archive wants.
    pub short_originals: u64,
    /// The copies of other Archives' items of which there are fewer.
    pub short_copies: u64,
    /// When an item was last compared with a copy elsewhere.
    pub audited: Option<Timestamp>,
    /// The first of those that are short and may be named.
    pub named: Vec<ItemCopies>,
}

impl CopyFigures {
    fn add(&mut self, state: State, known: ItemCopies, may_be_named: impl FnOnce(usize) -> bool) {
        let others = known.copies.iter().skip(1);
        let proved = others.filter_map(|copy| copy.proof.as_ref().map(|proof| &proof.at));
        self.audited = proved.chain(&self.audited).max().cloned();
        if known.count.is_enough {
            return;
        }
        match state {
            State::Copy => self.short_copies += 1,
            _ => self.short_originals += 1,
        }
        if may_be_named(self.named.len()) {
            self.named.push(known);
        }
    }
}

impl Archive {
    /// Counts the copies of all items by a connection to the index that nothing else waits for. It rests as long as it works.
    /// `may_be_named` decides whether an item that is short is named beside so many others.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn copy_figures(
        &self,
        index: &Store,
        may_be_named: impl Fn(&Item, usize) -> bool,
    ) -> Result<CopyFigures, ArchiveError> {
        let backups = self.backups_or_none();
        let mut figures = CopyFigures {
            at: self.clock.now(),
            short_originals: 0,
            short_copies: 0,
            audited: None,
            named: Vec::new(),
        };
        let mut after = ItemId(0);
        loop {
            let begun = Instant::now();
            let items = index.items_after(after, PAGE)?;
            let Some(last) = items.last() else {
                return Ok(figures);
            };
            after = last.id;
            for item in &items {
                if item.state != State::Deleted && !item.names.matches(&self.facts.service) {
                    let known = self.copies_of(item, &backups);
                    figures.add(item.state, known, |count| may_be_named(item, count));
                }
            }
            std::thread::sleep(begun.elapsed());
        }
    }

    /// The backups of this store; none where these are not known.
    pub fn backups_or_none(&self) -> Vec<BackupNote> {
        self.backups().unwrap_or_else(|error| {
            log::debug!("the backups are not known: {error}");
            Vec::new()
        })
    }

    /// The backups of this store that it knows of.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn backups(&self) -> Result<Vec<BackupNote>, ArchiveError> {
        Ok(noted_backups(&self.tree)?)
    }

    /// The known copies of an item.
    pub fn copies_of(&self, item: &Item, backups: &[BackupNote]) -> ItemCopies {
        let place = Place::of(&item.names);
        let own = self.facts.service.preferred();
        let archive = |holder, place, proof| KnownCopy {
            place,
            proof,
            ..KnownCopy::new(CopyKind::Archive, holder)
        };
        let mut copies = Vec::new();
        let noted = self.noted(&item.names);
        if item.state != State::Deleted {
            let marks = marks_of(&self.tree, place.as_str());
            let is_good = marks.is_ok_and(|marks| marks.is_empty());
            let proof = scrubbed_at(&self.tree, place.as_str()).map(|(at, _)| Proof {
                at: Timestamp::from_unix(at, 0),
                is_good,
            });
            copies.push(archive(own.clone(), self.facts.place.clone(), proof));
        }
        let (audited, noted): (Vec<KnownCopy>, Vec<KnownCopy>) = noted
            .into_iter()
            .filter(|copy| copy.holder != own)
            .partition(|copy| copy.kind == CopyKind::Backup);
        copies.extend(noted);
        let said = item.service.as_ref().filter(|_| item.state == State::Copy);
        let said = said.map(Names::preferred);
        if let Some(said) = said.filter(|said| copies.iter().all(|it| it.holder != *said)) {
            copies.push(archive(said, Vec::new(), None));
        }
        let born = self.tree.born(&place);
        let had_it = |backup: &&BackupNote| match &item.removed_at {
            None => born.is_some_and(|born| born < backup.made.seconds()),
            Some(removed) => backup.made < *removed,
        };
        let changed = match backups {
            [] => None,
            _ => recorded_change(&self.tree, place.as_str()),
        };
        let in_backups = backups.iter().filter(had_it).map(|backup| {
            // A drill proves what the backup has, which is an earlier content if it was made before the item changed.
            let drilled = backup.proof.clone();
            let drilled = drilled.filter(|_| Some(backup.made.seconds()) >= changed);
            let drilled = drilled.filter(|_| born.or(changed).is_some());
            KnownCopy {
                made: Some(backup.made.clone()),
                place: backup.place.clone(),
                // An audit of the item, or a drill of all; what was proved before the item was there, or was what it is now, proves
                // nothing of it.
                proof: audited
                    .iter()
                    .filter(|copy| copy.holder == backup.directory)
                    .filter_map(|copy| copy.proof.clone())
                    .chain(drilled)
                    .filter(|proof| Some(proof.at.seconds()) > born)
                    .filter(|proof| Some(proof.at.seconds()) >= changed)
                    .max_by(|one, other| one.at.cmp(&other.at)),
                ..KnownCopy::new(CopyKind::Backup, backup.directory.clone())
            }
        });
        // When a removed item was made is not known, so that only a proof shows that a backup has it.
        let is_there = |copy: &KnownCopy| item.removed_at.is_none() || copy.proof.is_some();
        copies.extend(in_backups.filter(is_there));
        ItemCopies {
            names: item.names.clone(),
            count: self
                .facts
                .policy_of(&item.names)
                .count(&copies, &self.clock.now()),
            copies,
        }
    }

    /// The number of known copies of an item that count. None of the item of the service, which stays in its Archive.
    pub fn copies_counted(&self, item: &Item, backups: &[BackupNote]) -> Option<u32> {
        let is_service = item.names.matches(&self.facts.service);
        (!is_service).then(|| self.copies_of(item, backups).count.copies)
    }

    /// The copies whose original its Archive says to have withdrawn or removed, as long as they are held and shown here, with the
    /// line of the ledger that tells it.
    pub(super) fn originals_gone(&self) -> Vec<(Names, KnownCopy)> {
        let gone = marked_gone(&self.tree).into_iter().filter_map(|place| {
            let names = names_of_place(&place)?;
            let item = self.store.find_by_names(&names).ok()??;
            let is_held = item.state == State::Copy && item.life.withdrawn.is_none();
            let service = item.service.as_ref().filter(|_| is_held)?.preferred();
            let is_its = |copy: &KnownCopy| {
                let mut listed = self.facts.audits.iter();
                copy.holder == service
                    || listed.any(|(url, key)| {
                        [&copy.holder, &service]
                            .iter()
                            .all(|it| is_name_of(it, url, key))
                    })
            };
            let mut noted = self.noted(&item.names).into_iter();
            let copy = noted.find(|copy| copy.gone.is_some() && is_its(copy))?;
            Some((item.names, copy))
        });
        gone.collect()
    }

    /// The Archives that had a good copy of an item when it was last compared.
    pub(super) fn copies_elsewhere(&self, names: &Names) -> Vec<String> {
        let good = self.noted(names).into_iter().filter(|copy| {
            let is_good = copy.proof.as_ref().is_some_and(|proof| proof.is_good);
            is_good && copy.kind == CopyKind::Archive && copy.gone.is_none()
        });
        good.map(|copy| copy.holder).collect()
    }

    /// The noted copies of an item. Of a ledger that cannot be read none is known, so that none counts.
    fn noted(&self, names: &Names) -> Vec<KnownCopy> {
        noted_copies(&self.tree, &Place::of(names)).unwrap_or_else(|error| {
            log::warn!("the copies of {names} are not known: {error}");
            Vec::new()
        })
    }

    /// Logs that fewer copies of an item are left than the Archive wants at least, after it was removed.
    pub(super) fn log_too_few(&self, names: &Names) {
        let known = self.backups().and_then(|all| {
            let removed = self.store.find_by_names(names)?;
            Ok(removed.map(|removed| self.copies_of(&removed, &all)))
        });
        let left = known.map(|known| known?.too_few_without(&self.facts, &self.clock.now()));
        match left {
            Ok(None) => {}
            Ok(Some(left)) => log::warn!("proved copies of {names} that are left: {left}"),
            Err(error) => log::debug!("the copies of {names} are not known: {error}"),
        }
    }

    /// The known copies of each item that is held, but that of the service, which stays in its Archive.
    ///
    /// # Errors
    /// The index cannot be read, or that of `visit`.
    pub fn each_copies<E: From<ArchiveError>>(
        &self,
        mut visit: impl FnMut(ItemCopies) -> Result<(), E>,
    ) -> Result<(), E> {
        let backups = self.backups()?;
        let mut held = Vec::new();
        let listed = self.store.each_item(|item| {
            if item.state != State::Deleted && !item.names.matches(&self.facts.service) {
                held.push(item.clone());
            }
            Ok(())
        });
        listed.map_err(ArchiveError::from)?;
        for item in held {
            visit(self.copies_of(&item, &backups))?;
        }
        Ok(())
    }
}
