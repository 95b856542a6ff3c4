//! Work beside the mount: a program changes a level of the tree in the store itself, and what it leaves there is taken in
//! afterwards (`ibifs work`).
//!
//! The level is in the recovery log from before the first change until it has been taken in, so that the next start does
//! what no process could. An item gets its names as after a crash: its place gives it one, and its sidecar counts as
//! written by the owner of the file. The user who works gets no right from this.

use std::time::{Duration, Instant};

use std::os::fd::AsFd;

use rustix::fs::{Access, AtFlags, Timestamps};
use rustix::io::Errno;

use super::admission::forms;
use super::leaves::{Leaf, Present, area_of};
use super::recovery_log::{ChangeDurability, DirtyRegion, Queued};
use super::{Actor, ArchiveError, Editor, Event, Keeper, Stranger, log_event};
use crate::archive::store::{By, Item, Record};
use crate::archive::tree::{Action, Area, Creator, Place, SIDECAR};
use crate::formats::item::{Names, State};
use crate::formats::tree_name::{LevelPath, is_prefix};
use ibi::message;
use ibi::message::{Localize, Message};

/// The number of items that are taken in while others wait to change something.
const BATCH: usize = 500;

/// The difference from which the clock counts as set between the beginning and the end.
const CLOCK_WAS_SET: Duration = Duration::from_secs(2);

/// Seconds and nanoseconds of the clock of the store's filesystem.
type FileTime = (i64, i64);

/// A level in which a program works beside the mount. [`Keeper::end_work`] takes in what it leaves there. If it is dropped
/// without that, the level stays in the recovery log, and the next start reads it.
#[derive(Debug)]
pub struct LevelWork {
    level: String,
    began: (FileTime, Instant),
    region: Option<DirtyRegion>,
}

impl Drop for LevelWork {
    fn drop(&mut self) {
        // A region that is in use is not cleared.
        std::mem::forget(self.region.take());
    }
}

/// The outcome for a directory below the level.
#[derive(Debug)]
pub enum Taken {
    /// An item that was not known, or was removed.
    Arrived(Names),
    /// An item that is known, whose directory or sidecar has changed.
    Changed(Names),
    /// An item that is not there any more.
    Removed(Names),
    /// A directory that is not served, or whose sidecar has no effect: its path below the store, and the reason.
    Refused(String, Message),
}

/// Receives the outcomes of a batch, and the number of directories read so far. Returns false to stop; the level then stays
/// in the recovery log.
type WatchTaken<'a> = dyn FnMut(&[Taken], u64) -> bool + 'a;

impl Keeper<'_> {
    /// Logs, durably, that a program is about to change a level of the tree: `col`, one of the three levels below it, or a
    /// directory in `ibip`.
    ///
    /// # Errors
    /// The store is read only, or shared by several hosts; the level is none, or the user may not write in it; those of the
    /// index.
    pub fn begin_work(&self, level: &str, actor: &dyn Actor) -> Result<LevelWork, ArchiveError> {
        self.writable()?;
        if self.is_shared() {
            // Another host would not read again what this one takes in.
            let shared = Errno::OPNOTSUPP;
            return Err(self.tree.error(Action::Open, level, shared).into());
        }
        let is_level = area_of(level).is_some_and(|(area, path)| {
            matches!(
                (area, LevelPath::parse(path)),
                (Area::Col, Some(LevelPath::Root | LevelPath::Rep(_)))
                    | (Area::Ibip, Some(LevelPath::Prefix(_)))
            )
        });
        if !is_level {
            return Err(self.tree.error(Action::Open, level, Errno::NOTDIR).into());
        }
        let directory = self.tree.open_directory(level)?;
        if !actor.may(directory.as_fd(), Access::WRITE_OK | Access::EXEC_OK) {
            return Err(self.tree.error(Action::Write, level, Errno::ACCESS).into());
        }
        for id in self.store.sealed_items() {
            let item = self.store.item(id)?;
            let is_in = |item: &Item| {
                let place = Place::of(&item.names);
                place
                    .as_str()
                    .strip_prefix(level)
                    .is_some_and(|rest| rest.starts_with('/'))
            };
            if let Some(item) = item.filter(is_in) {
                self.refuse_sealed(&item)?;
            }
        }
        self.begin_content_work()?;
        Ok(LevelWork {
            level: level.to_owned(),
            began: (self.file_time()?, Instant::now()),
            region: Some(
                self.recovery
                    .enter_level(level, ChangeDurability::Unsynced)?,
            ),
        })
    }

    /// Takes in what a program has changed in a level, in batches, between which others may change items.
    ///
    /// # Errors
    /// Those of reading the tree and of the index. The level stays in the recovery log then.
    pub fn end_work(
        &self,
        mut work: LevelWork,
        actor: &dyn Actor,
        watch: &mut WatchTaken<'_>,
    ) -> Result<(), ArchiveError> {
        let since = self.unless_clock_was_set(work.began)?;
        // Only items that are being minted keep their mark.
        self.minted.settle_now()?;
        let misplaced = if work.level == "col" {
            self.misplaced_prefixes()?
        } else {
            Vec::new()
        };
        if !misplaced.is_empty() && !watch(&misplaced, 0) {
            return Ok(());
        }
        self.end_content_work(&work.level)?;
        let mut count = 0;
        for path in self.leaf_paths(&work.level)? {
            let leaf = self.leaf(&path)?;
            if !self.take_leaf(leaf, since, actor, &mut count, watch)? {
                return Ok(());
            }
        }
        // From here on the level is cleared as any other, once it is on disk.
        drop(work.region.take());
        Ok(())
    }

    /// The directories in `col` that are named as prefixes of IBIps. They are not levels of reps, and no name leads to them.
    fn misplaced_prefixes(&self) -> Result<Vec<Taken>, ArchiveError> {
        let names = self.tree.directories_in("col")?.into_iter();
        let misplaced = names.filter(|name| is_prefix(name)).map(|name| {
            let why = message!(
                "it has the name of a prefix of IBIps; copy its items into that directory of the mount"
            );
            Taken::Refused(format!("col/{name}"), why)
        });
        Ok(misplaced.collect())
    }

    /// The present time of the filesystem of the store, by which it dates the changes of files.
    fn file_time(&self) -> Result<FileTime, ArchiveError> {
        let failed = |errno| self.tree.error(Action::Read, "staging", errno);
        let now = rustix::fs::Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        let (root, flags) = (self.tree.root(), AtFlags::SYMLINK_NOFOLLOW);
        rustix::fs::utimensat(root, "staging", &times, flags).map_err(failed)?;
        let stat = rustix::fs::statat(root, "staging", flags).map_err(failed)?;
        Ok((stat.st_ctime, stat.st_ctime_nsec as i64))
    }

    /// The time since when files have changed. None if the clock was set meanwhile: then all are read.
    fn unless_clock_was_set(
        &self,
        (began, monotonic): (FileTime, Instant),
    ) -> Result<Option<FileTime>, ArchiveError> {
        let seconds = |time: FileTime| time.0 as f64 + time.1 as f64 / 1e9;
        let passed = seconds(self.file_time()?) - seconds(began);
        let drift = passed - monotonic.elapsed().as_secs_f64();
        Ok((drift.abs() < CLOCK_WAS_SET.as_secs_f64()).then_some(began))
    }

    /// Takes in a directory of items. Returns false if the watcher stops it.
    fn take_leaf(
        &self,
        leaf: Leaf,
        since: Option<FileTime>,
        actor: &dyn Actor,
        count: &mut u64,
        watch: &mut WatchTaken<'_>,
    ) -> Result<bool, ArchiveError> {
        let stray = |name: &String| {
            let why = message!("its name is not that of an item");
            Taken::Refused(format!("{}/{name}", leaf.path), why)
        };
        let strays: Vec<Taken> = leaf.strays.iter().map(stray).collect();
        if !strays.is_empty() && !watch(&strays, *count) {
            return Ok(false);
        }
        let absent: Vec<Item> = leaf.absent.into_values().collect();
        for batch in absent.chunks(BATCH) {
            let taken = self.edit(actor, |it| it.take_absent(batch))?;
            if !watch(&taken, *count) {
                return Ok(false);
            }
        }
        if leaf.present.is_empty() {
            return Ok(true);
        }
        // A directory that was renamed as a whole has a new time itself, and the items in it have not.
        let above = self.tree.open_directory(&leaf.path)?;
        let is_as_before = rustix::fs::fstat(&above).is_ok_and(|stat| is_before(&stat, since));
        let is_unchanged = |present: &Present| {
            let name = Place::of(&present.names);
            let stat = |path: &str| rustix::fs::statat(&above, path, AtFlags::SYMLINK_NOFOLLOW);
            is_as_before
                && present.item.is_some()
                && stat(name.name()).is_ok_and(|stat| is_before(&stat, since))
                && stat(&format!("{}/{SIDECAR}", name.name()))
                    .is_ok_and(|stat| is_before(&stat, since))
        };
        for batch in leaf.present.chunks(BATCH) {
            let changed: Vec<&Present> = batch.iter().filter(|it| !is_unchanged(it)).collect();
            let taken = if changed.is_empty() {
                Vec::new()
            } else {
                self.take_present(&changed)?
            };
            *count += batch.len() as u64;
            if !watch(&taken, *count) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take_present(&self, batch: &[&Present]) -> Result<Vec<Taken>, ArchiveError> {
        // Most are copies that nothing is known of: they are read without the lock, and recorded in one transaction.
        let mut records: Vec<Record> = Vec::new();
        let mut others = Vec::new();
        for present in batch {
            let record = match present.item {
                None => match self.record_of_arrival(&present.names) {
                    Err(_) if !self.is_there(&present.names) => None,
                    record => record?,
                },
                Some(_) => None,
            };
            match record {
                Some(record) => records.push(record),
                None => others.push(*present),
            }
        }
        let mut taken = Vec::new();
        self.edit(&Stranger, |it| {
            records.retain(|record| it.is_there(&record.names));
            let recorded = it.store.put_new(&records)?;
            for (record, is_new) in records.iter().zip(recorded) {
                if is_new {
                    taken.push(Taken::Arrived(record.names.clone()));
                } else {
                    it.take_one(&record.names, &mut taken)?;
                }
            }
            for present in others {
                it.take_one(&present.names, &mut taken)?;
            }
            Ok(())
        })?;
        Ok(taken)
    }

    /// The record of a copy that has arrived and concerns no other item: it has no name of this Archive, no alias, no
    /// tombstone, and is where its names place it. None for all others.
    fn record_of_arrival(&self, names: &Names) -> Result<Option<Record>, ArchiveError> {
        let (mut record, refusal) = self.read_item(names)?;
        if self.store.has_history() {
            record.by = self.with_author(names, |author| Ok(By::of(author)))?;
        }
        let adds_ibip = names.ibip().is_none() && record.names.ibip().is_some();
        let is_plain = refusal.is_none()
            && record.state == State::Copy
            && record.aliases.is_empty()
            && Place::of(&record.names) == Place::of(names)
            && !forms(&record.names).any(|ibi| self.facts.is_own(&ibi))
            && !self.has_tombstone(&record.names)?
            && (!adds_ibip
                || self.with_author(names, |author| self.depositor(author).may_make("col"))?);
        Ok(is_plain.then_some(record))
    }
}

impl Editor<'_> {
    /// Takes in the directory of one item.
    fn take_one(&self, names: &Names, taken: &mut Vec<Taken>) -> Result<(), ArchiveError> {
        // It may have been removed since it was listed.
        if !self.is_there(names) {
            return Ok(());
        }
        let place = Place::of(names);
        let known = self.held(names)?;
        if let Some(item) = &known
            && Place::of(&item.names) != place
            && self.is_there(&item.names)
        {
            let error = ArchiveError::Exists(item.names.clone().into());
            taken.push(Taken::Refused(place.as_str().to_owned(), error.message()));
            return Ok(());
        }
        let removed = match known {
            Some(_) => None,
            None => self.store.find_by_names(names)?,
        };
        let is_known = known.is_some();
        let queued = Queued::at(place.clone(), ChangeDurability::Unsynced);
        let refusal = self.read_present(names, known, &queued)?;
        if let Some(error) = refusal {
            taken.push(Taken::Refused(place.as_str().to_owned(), error.message()));
        }
        if let Some(item) = self.held(names)? {
            if let Some(removed) = removed {
                // It may have had its names in another spelling.
                self.remove_tombstones(&removed.names)?;
            }
            if is_known {
                // Its files may describe it otherwise than before.
                self.note_described(item.id)?;
            }
            taken.push(if is_known {
                Taken::Changed(item.names)
            } else {
                Taken::Arrived(item.names)
            });
        }
        Ok(())
    }

    /// Writes the tombstones of items that are not in the tree any more.
    fn take_absent(&self, items: &[Item]) -> Result<Vec<Taken>, ArchiveError> {
        let mut taken = Vec::new();
        for item in items {
            let place = Place::of(&item.names);
            // One that is being minted gets its directory after its row, and this mark is removed after that.
            if self.store.has_own_mark(item.id)? || self.tree.is_directory(place.as_str()) {
                continue;
            }
            if self
                .held(&item.names)?
                .is_none_or(|known| known.id != item.id)
            {
                continue;
            }
            if item.names.matches(&self.facts.service) {
                self.make_service_again(item, &place)?;
                let why =
                    message!("the item of the service itself cannot be removed; it was made again");
                taken.push(Taken::Refused(place.as_str().to_owned(), why));
                continue;
            }
            let change = self.recovery.begin(&place, ChangeDurability::Synced)?;
            self.write_tombstone(item, &place, |_| {})?;
            change.done();
            log_event(Event::Remove, &item.names, self.actor);
            taken.push(Taken::Removed(item.names.clone()));
        }
        Ok(taken)
    }

    fn make_service_again(&self, item: &Item, place: &Place) -> Result<(), ArchiveError> {
        let col = self.tree.open_directory("col")?;
        let above = rustix::fs::fstat(&col);
        let above = above.map_err(|errno| self.tree.error(Action::Read, "col", errno))?;
        let creator = Creator {
            uid: above.st_uid,
            gid: above.st_gid,
            mode: 0o755,
            umask: 0,
        };
        self.tree.make_item(place, creator)?;
        self.restore(item)
    }
}

/// Whether a file has not changed since then.
fn is_before(stat: &rustix::fs::Stat, since: Option<FileTime>) -> bool {
    since.is_some_and(|since| (stat.st_ctime, stat.st_ctime_nsec as i64) < since)
}

#[cfg(test)]
mod tests;
