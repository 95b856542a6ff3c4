//! The content of items in numbers, kept up by the process that changes the items.
//!
//! Whoever changes the content of an item holds a [`ContentChange`]; a daemon has a thread ([`watch_content`]) that removes
//! the row of such an item from the index at once, and counts the item when it is left alone. Items without a row are
//! counted while there is nothing else to do. A request never waits for that: it walks through an item that has no row.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::full_disk::with_reserve;
use super::{Archive, ArchiveError, Keeper, RunAs};
use crate::archive::scrub::{manifest_digest, scrubbed_at};
use crate::archive::store::{By, ContentRow, Item, ItemId, block_of};
use crate::archive::tree::Place;
use crate::formats::fixity::Digest;
use crate::formats::history::EventKind;
use crate::formats::item::{Names, State};
use crate::os::caller::act_as_process;
use crate::os::processors;
use ibi::Timestamp;

/// The time for which changed items are collected before their rows are removed, so that one write removes many.
const COLLECTED: Duration = Duration::from_millis(20);
/// The time for which nothing must have changed before items are counted.
const QUIET: Duration = Duration::from_secs(2);
/// The interval at which items are looked for that have been left alone. All that have changed are looked at: there are
/// many while a collection is copied in.
const LOOKED: Duration = Duration::from_secs(1);
/// The longest time for which an item that is left alone waits while others change.
const LONGEST: Duration = Duration::from_secs(60);
/// The number of items that are counted for one write.
const BATCH: usize = 256;
/// The time of rest, in times of the work, between two batches of items that have not changed.
const REST: u32 = 3;
/// The time for which an index that could not be written is not asked again.
const REFUSED: Duration = Duration::from_secs(5);

/// An item whose content changes, or has changed since it was counted.
#[derive(Debug)]
struct Changing {
    /// The number of changes in progress.
    users: usize,
    /// The number of changes until now: another one means that a walk may have missed something.
    changes: u64,
    /// Whether it is in [`Inner::fresh`].
    is_fresh: bool,
    first: Instant,
    last: Option<Instant>,
    /// The user who was the last to change its files.
    by: Option<u32>,
    /// The user who was the last to change its metadata text.
    described_by: Option<u32>,
    /// Whether its content was known before: it is not new.
    was_known: bool,
}

impl Changing {
    /// An item that was left alone until this moment.
    fn since(now: Instant) -> Changing {
        Changing {
            users: 0,
            changes: 0,
            is_fresh: false,
            first: now,
            last: None,
            by: None,
            described_by: None,
            was_known: false,
        }
    }
}

impl Changing {
    /// What was changed of an item that is not new, and by whom, once.
    fn told(&mut self, item: ItemId) -> impl Iterator<Item = Told> + use<> {
        let changed = [
            (EventKind::Changed, self.by.take()),
            (EventKind::Described, self.described_by.take()),
        ];
        let was_known = self.was_known;
        let told = changed.into_iter().filter(move |_| was_known);
        told.filter_map(move |(kind, by)| Some((item, kind, by?)))
    }
}

/// An event of an item, and the user who caused it.
type Told = (ItemId, EventKind, u32);

#[derive(Debug, Default)]
struct Inner {
    items: HashMap<ItemId, Changing>,
    /// Those whose rows have not been removed.
    fresh: Vec<ItemId>,
    marked: HashSet<i64>,
    has_marks: bool,
    last: Option<Instant>,
    refused: Option<Instant>,
    /// The last time at which items were looked for that have been left alone.
    looked_for_due: Option<Instant>,
    /// The item up to which all were looked at for those without a row.
    looked: Option<ItemId>,
    /// When all were.
    looked_at_all: Option<Instant>,
    is_over: bool,
    /// The number of programs that change items beside the mount.
    works: usize,
}

/// The items whose content changes.
#[derive(Debug, Default)]
pub(super) struct ContentChanges {
    inner: Mutex<Inner>,
    /// Held from before rows are removed until it is noted of which items there were some. It is locked before `inner`.
    forgetting: Mutex<()>,
    wake: Condvar,
}

/// A change of the content of an item, until this value is dropped.
#[derive(Debug)]
#[must_use]
pub struct ContentChange {
    changes: Arc<ContentChanges>,
    item: ItemId,
    /// The event that it is, and the user.
    by: Option<(EventKind, u32)>,
    /// Those of other items that end with it.
    others: Vec<ContentChange>,
}

impl ContentChange {
    /// Has the change of another item last as long as this one.
    pub fn take_along(&mut self, other: ContentChange) {
        self.others.push(other);
    }

    /// The item that changes.
    pub fn item(&self) -> ItemId {
        self.item
    }

    /// Names the user, and the event: [`EventKind::Described`] of the metadata text, [`EventKind::Changed`] of files.
    pub fn meant_by(&mut self, uid: u32, kind: EventKind) {
        self.by = Some((kind, uid));
    }

    /// Notes that it was changed: if a user is named, that is told when the item is left alone.
    pub fn made(&self) {
        if let Some((kind, uid)) = self.by
            && let Some(changing) = self.changes.inner.lock().items.get_mut(&self.item)
        {
            match kind {
                EventKind::Described => changing.described_by = Some(uid),
                _ => changing.by = Some(uid),
            }
        }
    }
}

impl Drop for ContentChange {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut inner = self.changes.inner.lock();
        inner.last = Some(now);
        if let Some(changing) = inner.items.get_mut(&self.item) {
            changing.users = changing.users.saturating_sub(1);
            changing.changes += 1;
            changing.last = Some(now);
        }
    }
}

impl ContentChanges {
    /// Begins a change. Returns whether the block of the item has to be marked first.
    ///
    /// An item that is known to change has no row, unless another host has counted it meanwhile.
    fn begin(&self, item: ItemId, is_shared: bool) -> bool {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        let inner = &mut *inner;
        inner.last = Some(now);
        let mut is_new = is_shared;
        let changing = inner.items.entry(item).or_insert_with(|| {
            is_new = true;
            Changing::since(now)
        });
        if is_new && !changing.is_fresh {
            changing.is_fresh = true;
            if inner.fresh.is_empty() {
                self.wake.notify_one();
            }
            inner.fresh.push(item);
        }
        changing.users += 1;
        changing.changes += 1;
        changing.last = Some(now);
        let is_refused = inner.refused.is_some_and(|at| at.elapsed() < REFUSED);
        !inner.marked.contains(&block_of(item)) && !is_refused
    }

    /// Items that have been left alone and that no program has open, with the number of their changes.
    fn due(&self, is_open: &HashSet<ItemId>, quiet: Duration) -> Vec<(ItemId, u64)> {
        let inner = self.inner.lock();
        let is_quiet = inner.last.is_none_or(|last| last.elapsed() >= quiet);
        let is_due = |item: &ItemId, it: &Changing| {
            it.users == 0
                && it.last.is_none_or(|last| last.elapsed() >= quiet)
                && (is_quiet || it.first.elapsed() >= LONGEST)
                && !is_open.contains(item)
        };
        let due = inner.items.iter().filter(|(item, it)| is_due(item, it));
        due.map(|(item, it)| (*item, it.changes)).collect()
    }
}

impl Inner {
    /// Has all items looked at for those without a row.
    fn look_at_all(&mut self) {
        (self.looked, self.looked_at_all) = (None, None);
    }
}

fn is_as_it_was(inner: &Inner, item: ItemId, changes: u64) -> bool {
    inner
        .items
        .get(&item)
        .is_some_and(|it| it.users == 0 && it.changes == changes)
}

impl Archive {
    /// Notes, before the content of an item changes, that it does. The caller keeps the result until the change has ended.
    /// A change is never refused because of that.
    pub fn change_content(&self, item: ItemId) -> ContentChange {
        if self.content.begin(item, self.is_shared()) {
            self.mark_content(item);
        }
        ContentChange {
            changes: Arc::clone(&self.content),
            item,
            by: None,
            others: Vec::new(),
        }
    }

    /// Whether a request changes the content of an item at this moment.
    pub(super) fn is_changing(&self, item: ItemId) -> bool {
        let inner = self.content.inner.lock();
        inner.items.get(&item).is_some_and(|it| it.users > 0)
    }

    /// Whether the content of an item was known before it changed now: it is not new.
    pub(super) fn was_known(&self, item: ItemId) -> Result<bool, ArchiveError> {
        let _rows_stay = self.content.forgetting.lock();
        let inner = self.content.inner.lock();
        let is_noted = inner.items.get(&item).is_some_and(|it| it.was_known);
        drop(inner);
        Ok(is_noted || self.store.content_stamp(item)?.is_some())
    }

    /// Whether programs change items beside the mount.
    pub(super) fn is_worked_in(&self) -> bool {
        self.content.inner.lock().works > 0
    }

    fn mark_content(&self, item: ItemId) {
        let block = block_of(item);
        let marked = with_reserve(&self.tree, || Ok(self.store.mark_content(block)?));
        let mut inner = self.content.inner.lock();
        match marked {
            Ok(()) => {
                inner.marked.insert(block);
                inner.has_marks = true;
            }
            Err(error) => {
                log::warn!("the size of items may be wrong after a crash: {error}");
                inner.refused = Some(Instant::now());
            }
        }
    }
}

impl Keeper<'_> {
    /// Removes what earlier processes have recorded of items that they may have changed since.
    pub(super) fn recover_content(&self) -> Result<(), ArchiveError> {
        if self.store.recover_content()? {
            self.content.inner.lock().look_at_all();
            self.content.wake.notify_one();
        }
        Ok(())
    }

    /// Notes that a program is about to change items beside the mount. What is recorded of them lasts until the end.
    pub(super) fn begin_content_work(&self) -> Result<(), ArchiveError> {
        {
            let mut inner = self.content.inner.lock();
            inner.works += 1;
            inner.has_marks = true;
        }
        Ok(self.store.mark_all_content()?)
    }

    /// Removes what is recorded of the items in a level, since a program has changed some beside the mount.
    pub(super) fn end_content_work(&self, level: &str) -> Result<(), ArchiveError> {
        match level.split_once('/') {
            Some(("col", path)) => self.forget_content_of(&self.store.items_below(path)?)?,
            Some((_, prefix)) => self.forget_content_of(&self.store.items_of_prefix(prefix)?)?,
            None => self.store.forget_all_content()?,
        }
        let mut inner = self.content.inner.lock();
        inner.works = inner.works.saturating_sub(1);
        inner.look_at_all();
        // What is being counted was counted before the end.
        for changing in inner.items.values_mut() {
            changing.changes += 1;
        }
        drop(inner);
        self.content.wake.notify_one();
        Ok(())
    }

    fn forget_content_of(&self, items: &[Item]) -> Result<(), ArchiveError> {
        let items: Vec<ItemId> = items.iter().map(|item| item.id).collect();
        self.store.forget_content(&items)?;
        Ok(())
    }

    /// Regular end: what is recorded is right.
    pub(super) fn end_content(&self) {
        if self.store.has_history() {
            self.forget_fresh_content();
            let changed: Vec<_> = {
                let mut inner = self.content.inner.lock();
                let changing = inner.items.iter_mut();
                changing.flat_map(|(item, it)| it.told(*item)).collect()
            };
            self.tell_changed(&changed);
        }
        let changing: Vec<ItemId> = {
            let mut inner = self.content.inner.lock();
            inner.is_over = true;
            self.content.wake.notify_one();
            let has_any = inner.has_marks || !inner.items.is_empty();
            if self.lock.is_none() || !has_any || inner.works > 0 {
                return;
            }
            inner.items.keys().copied().collect()
        };
        if let Err(error) = self.store.end_content(&changing) {
            log::debug!("items are counted again: {error}");
        }
    }

    /// Removes the rows of items that have begun to change.
    fn forget_fresh_content(&self) {
        let fresh = {
            let mut inner = self.content.inner.lock();
            let fresh = std::mem::take(&mut inner.fresh);
            for item in &fresh {
                if let Some(changing) = inner.items.get_mut(item) {
                    changing.is_fresh = false;
                }
            }
            fresh
        };
        let _seen_together = self.content.forgetting.lock();
        let mut forgotten = self.store.forget_content(&fresh);
        let mut inner = self.content.inner.lock();
        match &mut forgotten {
            Ok(known) => {
                for item in known {
                    if let Some(changing) = inner.items.get_mut(item) {
                        changing.was_known = true;
                    }
                }
            }
            Err(error) => {
                log::debug!("the size of items is not known: {error}");
                inner.fresh.extend(fresh);
            }
        }
    }

    /// Tells that items were changed, and by whom.
    fn tell_changed(&self, changed: &[Told]) {
        for (item, kind, uid) in changed {
            if let Ok(Some(item)) = self.store.item(*item)
                && item.state != State::Deleted
            {
                let is_of_files = *kind == EventKind::Changed;
                let before = is_of_files.then(|| self.manifest_before(&item.names));
                let note = before.flatten().map(|digest| format!("manifest {digest}"));
                let note = note.unwrap_or_default();
                self.tell(By::User(*uid), *kind, Some(&item.names), &note);
            }
        }
    }

    /// The digest of the manifest of an item that has changed, as it was before: None if it has changed since it was recorded.
    fn manifest_before(&self, names: &Names) -> Option<Digest> {
        let place = Place::of(names);
        let (seconds, rest) = scrubbed_at(&self.tree, place.as_str())?;
        let since = Timestamp::from_unix(seconds, rest);
        let is_known = self.is_untold(names, &since).ok()?;
        manifest_digest(&self.tree, place.as_str()).filter(|_| is_known)
    }

    /// Counts the items that have been left alone for some time. Returns how many there were.
    fn count_left_alone(
        &self,
        reader: u32,
        act: RunAs<'_>,
        is_open: &HashSet<ItemId>,
        quiet: Duration,
    ) -> Result<usize, ArchiveError> {
        let due = self.content.due(is_open, quiet);
        for (number, batch) in due.chunks(BATCH).enumerate() {
            // A program that has begun to work needs the processors; the rest is still due when it has ended.
            let last = self.content.inner.lock().last;
            if number > 0 && last.is_some_and(|last| last.elapsed() < quiet) {
                break;
            }
            let mut counted = Vec::new();
            let mut lost = HashSet::new();
            for (id, changes) in batch {
                let stamp = self.store.content_stamp(*id)?;
                match self.store.item(*id)? {
                    Some(item) if item.state != State::Deleted => match self.counted(&item, act) {
                        Some(found) => counted.push((
                            *changes,
                            ContentRow {
                                item: *id,
                                stamp,
                                found,
                            },
                        )),
                        None => drop(lost.insert(*id)),
                    },
                    _ => drop(lost.insert(*id)),
                }
            }
            {
                let inner = self.content.inner.lock();
                counted.retain(|(changes, row)| is_as_it_was(&inner, row.item, *changes));
            }
            let rows: Vec<ContentRow> = counted.into_iter().map(|(_, row)| row).collect();
            let recorded = self.store.record_content(reader, &rows)?;
            let recorded: HashMap<ItemId, bool> =
                rows.iter().map(|row| row.item).zip(recorded).collect();
            let mut changed = Vec::new();
            let mut inner = self.content.inner.lock();
            for (id, changes) in batch {
                // Of what has not changed here, another host has written the row.
                let is_known =
                    lost.contains(id) || *changes == 0 || recorded.get(id) == Some(&true);
                if !is_as_it_was(&inner, *id, *changes) {
                    // A change has begun before the row was written.
                    inner.fresh.push(*id);
                } else if is_known {
                    let ended = inner.items.remove(id);
                    changed.extend(ended.into_iter().flat_map(|mut it| it.told(*id)));
                }
            }
            drop(inner);
            if self.store.has_history() {
                self.tell_changed(&changed);
            }
        }
        Ok(due.len())
    }

    /// Takes the next items that have no row among those that are to be counted. Returns whether there were any.
    fn look_for_uncounted(&self) -> Result<bool, ArchiveError> {
        let after = {
            let inner = self.content.inner.lock();
            if inner.looked_at_all.is_some_and(|at| at.elapsed() < LONGEST) {
                return Ok(false);
            }
            inner.looked
        };
        let found: Vec<Item> = self.store.uncounted(after.unwrap_or(ItemId(0)), BATCH)?;
        let mut inner = self.content.inner.lock();
        match found.last() {
            Some(last) => inner.looked = Some(last.id),
            None => inner.looked_at_all = Some(Instant::now()),
        }
        let now = Instant::now();
        for item in &found {
            inner.items.entry(item.id).or_insert(Changing::since(now));
        }
        Ok(!found.is_empty())
    }
}

/// Keeps up what the index says of the content of items, in a thread that ends with the Archive. `act` runs a closure as
/// the user `reader`; `open` says in which items programs have files open for writing.
pub fn watch_content(
    archive: &Arc<Archive>,
    reader: u32,
    act: fn(&mut dyn FnMut()),
    open: impl Fn() -> HashSet<ItemId> + Send + 'static,
) -> std::io::Result<()> {
    let changes = Arc::clone(&archive.content);
    let archive = Arc::downgrade(archive);
    processors::spawn_unbound("content", move || {
        act_as_process();
        processors::give_way();
        while let Some(rest) = watch_once(&archive, &changes, reader, act, &open) {
            std::thread::sleep(rest);
        }
    })
}

/// Waits until there is something to do, and does it. Returns how long to rest, None at the end.
fn watch_once(
    archive: &Weak<Archive>,
    changes: &ContentChanges,
    reader: u32,
    act: fn(&mut dyn FnMut()),
    open: &dyn Fn() -> HashSet<ItemId>,
) -> Option<Duration> {
    {
        let mut inner = changes.inner.lock();
        if inner.fresh.is_empty() && !inner.is_over {
            wait(changes, &mut inner);
        }
        if inner.is_over {
            return None;
        }
    }
    std::thread::sleep(COLLECTED);
    let archive = archive.upgrade()?;
    let keeper = archive.keeper();
    if archive.is_shared() {
        // Another host may have counted what changes here.
        let mut inner = changes.inner.lock();
        let changing = inner.items.iter().filter(|(_, it)| it.changes > 0);
        let changing: Vec<ItemId> = changing.map(|(item, _)| *item).collect();
        inner.fresh.extend(changing);
    }
    keeper.forget_fresh_content();
    let began = Instant::now();
    {
        let mut inner = changes.inner.lock();
        let is_early = |at: Instant| began.saturating_duration_since(at) < LOOKED;
        if inner.looked_for_due.is_some_and(is_early) {
            return Some(Duration::ZERO);
        }
        inner.looked_for_due = Some(began);
    }
    let counted = keeper
        .count_left_alone(reader, &act, &open(), QUIET)
        .and_then(|count| {
            let is_busy = {
                let inner = changes.inner.lock();
                inner.last.is_some_and(|last| last.elapsed() < QUIET)
            };
            Ok(count > 0 || (!is_busy && keeper.look_for_uncounted()?))
        });
    match counted {
        Ok(true) => Some(began.elapsed() * REST),
        Ok(false) => Some(Duration::ZERO),
        Err(error) => {
            log::debug!("items are counted later: {error}");
            Some(REFUSED)
        }
    }
}

/// Waits for an item that begins to change, or until items may have been left alone for long enough.
fn wait(changes: &ContentChanges, inner: &mut MutexGuard<'_, Inner>) {
    let pause = if inner.items.is_empty() && inner.looked_at_all.is_some() {
        LONGEST
    } else {
        QUIET
    };
    changes.wake.wait_for(inner, pause);
}

#[cfg(test)]
mod tests;
