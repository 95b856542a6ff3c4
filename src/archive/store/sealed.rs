//! The items of which no file may change any more, in memory: each change of a file asks. Where there are none, one load
//! of a number is the answer. So are those whose files are withheld until a date, about which each open of a file asks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::RwLock;

use super::{ItemId, Record, Store, StoreError};
use crate::formats::item::{Life, Seal, State};
use crate::os::clock::{Clock, SystemClock};
use ibi::Timestamp;

/// The time for which nothing must have written in an item that arrives with its seal until this holds: the sidecar may
/// arrive before the files.
const ARRIVING: Duration = Duration::from_secs(60);

/// Since when an item is sealed.
#[derive(Clone, Copy, Debug)]
enum Hold {
    /// It is being sealed, and the index does not say so yet.
    Begun,
    /// The index says so.
    Sealed,
    /// The index says that it is from this second on, without a digest.
    From(i64),
    /// It has arrived as a copy, in which something was written at this time.
    Arriving(Instant),
}

impl Hold {
    fn of(seal: &Seal) -> Hold {
        match seal.digest {
            Some(_) => Hold::Sealed,
            None => Hold::From(seal.at.seconds()),
        }
    }
}

/// The present second.
fn now() -> i64 {
    SystemClock.now().seconds()
}

/// The sealed items.
#[derive(Debug, Default)]
pub(super) struct SealedItems {
    is_any: AtomicBool,
    items: RwLock<HashMap<ItemId, Hold>>,
    is_any_withheld: AtomicBool,
    withheld: RwLock<HashMap<ItemId, Timestamp>>,
    /// The state of the server of the index when it was last asked.
    seen: AtomicI64,
}

impl SealedItems {
    fn change(&self, change: impl FnOnce(&mut HashMap<ItemId, Hold>)) {
        let mut items = self.items.write();
        change(&mut items);
        self.is_any.store(!items.is_empty(), Ordering::SeqCst);
    }

    fn change_withheld(&self, change: impl FnOnce(&mut HashMap<ItemId, Timestamp>)) {
        let mut items = self.withheld.write();
        change(&mut items);
        self.is_any_withheld
            .store(!items.is_empty(), Ordering::SeqCst);
    }
}

impl Store {
    /// Whether any item is sealed, or arrives with its seal.
    pub fn has_sealed(&self) -> bool {
        self.follow_seals();
        self.sealed.is_any.load(Ordering::SeqCst)
    }

    /// Whether no file of an item may change. What arrives with its seal may still be written, until nothing has been for
    /// a minute.
    pub fn is_sealed(&self, item: ItemId) -> bool {
        if !self.has_sealed() {
            return false;
        }
        match self.sealed.items.read().get(&item) {
            None => return false,
            Some(Hold::Begun | Hold::Sealed) => return true,
            Some(Hold::From(at)) => return *at <= now(),
            Some(Hold::Arriving(last)) if last.elapsed() > ARRIVING => return true,
            Some(Hold::Arriving(_)) => {}
        }
        self.note_arriving(item);
        false
    }

    /// Whether the files of any item are or were withheld until a date.
    pub fn has_withheld(&self) -> bool {
        self.follow_seals();
        self.sealed.is_any_withheld.load(Ordering::SeqCst)
    }

    /// The instant until which the files of an item are or were withheld.
    pub(in crate::archive) fn withheld_until(&self, item: ItemId) -> Option<Timestamp> {
        self.sealed.withheld.read().get(&item).cloned()
    }

    /// Whether the item arrives with its seal, which does not hold yet.
    pub(in crate::archive) fn is_arriving_sealed(&self, item: ItemId) -> bool {
        let items = self.sealed.items.read();
        matches!(items.get(&item), Some(Hold::Arriving(last)) if last.elapsed() <= ARRIVING)
    }

    /// Notes that a program has just written in an item that may be arriving.
    pub fn note_arriving(&self, item: ItemId) {
        if self.sealed.is_any.load(Ordering::SeqCst)
            && let Some(Hold::Arriving(last)) = self.sealed.items.write().get_mut(&item)
        {
            *last = Instant::now();
        }
    }

    /// The items whose seals hold since an instant that was announced, and have no digest yet.
    pub(in crate::archive) fn due_seals(&self) -> Vec<ItemId> {
        if !self.has_sealed() {
            return Vec::new();
        }
        let now = now();
        let items = self.sealed.items.read();
        let is_due = |hold: &Hold| matches!(hold, Hold::From(at) if *at <= now);
        let due = items.iter().filter(|(_, hold)| is_due(hold));
        due.map(|(id, _)| *id).collect()
    }

    /// The items that are sealed, are being sealed, or arrive with their seals, or whose seals are announced.
    pub(in crate::archive) fn sealed_items(&self) -> Vec<ItemId> {
        self.sealed.items.read().keys().copied().collect()
    }

    /// Lets no file of an item change from now on, before the index says so. Returns whether it did not do so before, or was
    /// to do so later.
    pub(in crate::archive) fn begin_seal(&self, item: ItemId) -> bool {
        let mut is_new = false;
        self.sealed.change(|items| {
            is_new = matches!(items.get(&item), None | Some(Hold::From(_)));
            if is_new {
                items.insert(item, Hold::Begun);
            }
        });
        is_new
    }

    /// Ends [`Store::begin_seal`], if the index does not say that the item is sealed. What was announced before holds again.
    pub(in crate::archive) fn end_seal(&self, item: ItemId, before: Option<&Seal>) {
        self.sealed.change(|items| {
            if matches!(items.get(&item), Some(Hold::Begun)) {
                items.remove(&item);
                items.extend(before.map(|seal| (item, Hold::of(seal))));
            }
        });
    }

    /// After an item was recorded.
    pub(super) fn note_seal(&self, item: ItemId, record: &Record) {
        let until = record.life.available.as_ref();
        let until = until.filter(|_| record.state != State::Deleted).cloned();
        if until.is_some() || self.sealed.is_any_withheld.load(Ordering::SeqCst) {
            self.sealed.change_withheld(|items| match until {
                Some(until) => drop(items.insert(item, until)),
                None => drop(items.remove(&item)),
            });
        }
        let seal = record.life.sealed.as_ref();
        let seal = seal.filter(|_| record.state != State::Deleted);
        if seal.is_none() && !self.sealed.is_any.load(Ordering::SeqCst) {
            return;
        }
        let arriving = || Hold::Arriving(Instant::now());
        self.sealed.change(|items| {
            let now_held = match (seal.map(Hold::of), items.get(&item)) {
                // The item is being sealed, and this is a change of something else.
                (None | Some(Hold::From(_)), Some(Hold::Begun)) => return,
                (None, _) => {
                    items.remove(&item);
                    return;
                }
                (Some(Hold::From(at)), Some(Hold::From(_))) => Hold::From(at),
                (Some(Hold::From(at)), None) if at > now() => Hold::From(at),
                (Some(_), None) => arriving(),
                (Some(Hold::Sealed), Some(Hold::Begun)) => Hold::Sealed,
                // A copy of which the digest arrives: before the announced instant, with files.
                (Some(Hold::Sealed), Some(Hold::From(at))) if *at > now() => arriving(),
                (Some(Hold::Sealed), Some(Hold::From(_))) => Hold::Sealed,
                (Some(_), Some(_)) => return,
            };
            items.insert(item, now_held);
        });
    }

    /// Reads from the index which items are sealed, and which are withheld.
    pub(in crate::archive) fn read_seals(&self) -> Result<(), StoreError> {
        let rows = {
            let connection = self.lock();
            connection.each(
                "SELECT id, life FROM item WHERE life IS NOT NULL AND state <> 'Deleted'",
                &[],
                |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)),
            )?
        };
        let (mut known, mut withheld) = (HashMap::new(), HashMap::new());
        for (id, text) in rows {
            let life = Life::parse(&text).unwrap_or_default();
            known.extend(
                life.sealed
                    .as_ref()
                    .map(|seal| (ItemId(id), Hold::of(seal))),
            );
            withheld.extend(life.available.map(|until| (ItemId(id), until)));
        }
        self.sealed.change_withheld(|items| *items = withheld);
        self.sealed.change(|items| {
            items.retain(|id, hold| matches!(hold, Hold::Begun) || known.contains_key(id));
            for (id, hold) in known {
                let held = items.entry(id).or_insert(hold);
                if matches!(held, Hold::From(_)) {
                    *held = hold;
                }
            }
        });
        Ok(())
    }

    /// Reads the seals again where another host has changed the index.
    fn follow_seals(&self) {
        if self.url.is_none() {
            return;
        }
        if let Ok(Some(version)) = self.version()
            && self.sealed.seen.swap(version, Ordering::SeqCst) != version
            && let Err(error) = self.read_seals()
        {
            log::warn!("which items other hosts have sealed is not known: {error}");
            self.sealed.seen.store(-1, Ordering::SeqCst);
        }
    }
}
