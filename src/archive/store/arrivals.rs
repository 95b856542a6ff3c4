//! Items that have just arrived: their directories are made, and their sidecars are about to be written.
//!
//! A program that copies an item in makes its directory, writes its sidecar a moment later, and then sets its mode. The row
//! of the item is written with the sidecar, in one transaction, not before it in one of its own, and the change of the mode
//! is noted with the next item. Until then the item is known to this
//! process alone: what is asked for by its number or its name is answered from here, and before anything else is asked
//! of the index the rows are written ([`Store::lock`]), at the latest after [`HELD`]. A crash in between is one between
//! the directory and the row: the level is in the recovery log.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::record::{self, Recorded};
use super::{Item, ItemId, Record, Store, StoreError, changes};
use crate::formats::item::{Names, State};
use crate::sql::engine::{Connection, Sync};

/// The longest time that a row is held back: other processes see the item so much later.
pub const HELD: Duration = Duration::from_millis(10);

/// The changes that are held back.
#[derive(Debug, Default)]
struct Held {
    /// The items without a row.
    items: BTreeMap<ItemId, Item>,
    /// Items that other users may read than before.
    noted: BTreeSet<ItemId>,
    /// The beginning of the time in which there was always any of them.
    since: Option<Instant>,
}

/// The items that arrive.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    held: Mutex<Held>,
    /// Whether anything is held back.
    any: AtomicBool,
    /// The last number of an item, if no other one was given out since; else 0.
    last: AtomicI64,
    /// The thread that writes the rows; None if none is held back.
    writer: Mutex<Option<Thread>>,
}

impl Arrivals {
    /// Whether anything is held back now.
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::SeqCst)
    }

    /// The item with a number.
    pub(super) fn item(&self, id: ItemId) -> Option<Item> {
        self.find(|held| held.items.get(&id).cloned())
    }

    /// The item of which a condition holds.
    pub(super) fn find_item(&self, is_meant: impl Fn(&Item) -> bool) -> Option<Item> {
        let find = |held: &Held| held.items.values().find(|it| is_meant(it)).cloned();
        self.find(find)
    }

    fn find<T>(&self, find: impl FnOnce(&Held) -> Option<T>) -> Option<T> {
        if self.any() {
            find(&self.held.lock())
        } else {
            None
        }
    }

    fn change(&self, change: impl FnOnce(&mut Held)) {
        let mut held = self.held.lock();
        change(&mut held);
        let any = !held.items.is_empty() || !held.noted.is_empty();
        held.since = held.since.or_else(|| Some(Instant::now())).filter(|_| any);
        let had_any = self.any.swap(any, Ordering::SeqCst);
        if any
            && !had_any
            && let Some(writer) = &*self.writer.lock()
        {
            writer.unpark();
        }
    }

    fn is_on(&self) -> bool {
        self.writer.lock().is_some()
    }
}

impl Drop for Arrivals {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.get_mut() {
            writer.unpark();
        }
    }
}

fn note_all(connection: &Connection, items: &BTreeSet<ItemId>) -> Result<(), StoreError> {
    let mut items = items.iter();
    items.try_for_each(|item| changes::note(connection, *item))
}

impl Store {
    /// Holds back the rows of items that arrive, from now on. Does nothing if the index is in a server.
    pub fn hold_arrivals(self: &Arc<Self>) -> Result<(), StoreError> {
        if self.url.is_some() {
            return Ok(());
        }
        let store = Arc::downgrade(self);
        let write = move || {
            if let Some(store) = store.upgrade() {
                *store.arrivals.writer.lock() = Some(std::thread::current());
            }
            loop {
                let Some(store) = store.upgrade() else { return };
                let since = store.arrivals.held.lock().since;
                let age = since.map(|since| since.elapsed());
                if age.is_some_and(|age| age >= HELD) {
                    drop(store.lock());
                }
                drop(store);
                match age {
                    None => std::thread::park(),
                    Some(age) if age < HELD => std::thread::sleep(HELD - age),
                    // If the rows cannot be written, they are tried again as often.
                    Some(_) => std::thread::sleep(HELD),
                }
            }
        };
        super::spawn("arrivals", write)
    }

    /// Records an item of which only a name is known, which the index does not have: with its sidecar, if that comes soon.
    pub(in crate::archive) fn put_arriving(&self, names: &Names) -> Result<ItemId, StoreError> {
        let record = Record::bare(names.clone(), State::Copy);
        if !self.arrivals.is_on() {
            return self.put(&record);
        }
        let connection = self.connection.lock();
        let last = match self.arrivals.last.load(Ordering::SeqCst) {
            0 => connection.value("SELECT coalesce(max(id), 0) FROM item", &[])?,
            last => last,
        };
        let id = ItemId(last + 1);
        self.arrivals.last.store(id.0, Ordering::SeqCst);
        self.arrivals.change(|held| {
            held.items.insert(id, record.item(id));
        });
        Ok(id)
    }

    /// Records that other users may read an item than before; other processes notice it a moment later.
    pub(in crate::archive) fn note_readers(&self, item: ItemId) -> Result<(), StoreError> {
        if !self.arrivals.is_on() {
            return self.note_change(item);
        }
        self.arrivals.change(|held| {
            held.noted.insert(item);
        });
        Ok(())
    }

    /// Records an item whose row is held back, with its sidecar. None if it is no such item.
    pub(super) fn put_arrived(&self, record: &Record) -> Option<Result<ItemId, StoreError>> {
        if !self.arrivals.any() {
            return None;
        }
        let connection = self.connection.lock();
        let is_meant = |item: &&Item| item.names.matches(&record.names);
        let (id, noted) = self.arrivals.find(|held| {
            let mut meant = held.items.values().filter(is_meant);
            // Two items that become one are recorded first.
            let id = meant.next().filter(|_| meant.next().is_none())?.id;
            Some((id, held.noted.clone()))
        })?;
        let written = connection.transact(Sync::Later, |it| {
            note_all(it, &noted)?;
            record::put_arrived(it, id, record, self.teller.get())
        });
        let written = self.note_recorded(written);
        if let Ok(written) = written {
            if written != id {
                self.recent.clear();
            }
            self.arrivals.change(|held| {
                held.items.remove(&id);
                held.noted.retain(|item| !noted.contains(item));
            });
        }
        Some(written)
    }

    /// Writes what is held back, for other processes that are about to ask.
    pub fn write_arrivals(&self) {
        if self.arrivals.any() {
            drop(self.lock());
        }
    }

    /// Writes what is held back. What follows in this connection may add items with numbers of its own.
    pub(super) fn record_arrivals(&self, connection: &Connection) {
        self.arrivals.last.store(0, Ordering::SeqCst);
        if !self.arrivals.any() {
            return;
        }
        let (arrived, noted) = {
            let held = self.arrivals.held.lock();
            let arrived: Vec<Item> = held.items.values().cloned().collect();
            (arrived, held.noted.clone())
        };
        let written = connection.transact(Sync::Later, |it| {
            note_all(it, &noted)?;
            let bare = |item: &Item| Record::bare(item.names.clone(), item.state);
            let written = arrived
                .iter()
                .map(|item| record::put_arrived(it, item.id, &bare(item), self.teller.get()));
            written.collect::<Result<Vec<Recorded>, StoreError>>()
        });
        match written {
            Ok(written) => {
                for recorded in written {
                    self.recent.note(recorded.item);
                }
                self.arrivals.change(|held| {
                    held.items.clear();
                    held.noted.retain(|item| !noted.contains(item));
                });
            }
            Err(error) => log::warn!("items that have arrived are recorded later: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::testing::TemporaryDirectory;
    use ibi::Ibi;
    use std::os::fd::AsFd;

    const REP: &str = "example.com/src/2021/01.02.03.04.05";
    const IBIP: &str = "8JMKD3MGP8W/34PGRBS";

    fn names(text: &str) -> Names {
        Names::from(Ibi::parse(text).expect("an identifier"))
    }

    fn both() -> Names {
        let (rep, ibip) = (names(REP), names(IBIP));
        Names::new(rep.rep().cloned(), ibip.ibip().cloned()).expect("two forms")
    }

    fn with_sidecar(names: Names) -> Record {
        Record {
            sidecar: Some(b"ibi {}".to_vec()),
            ..Record::bare(names, State::Copy)
        }
    }

    /// A store that holds rows back, and no thread that writes them.
    fn holding() -> (Store, TemporaryDirectory) {
        let directory = TemporaryDirectory::new();
        let store = Store::open(directory.opened().as_fd(), None).expect("a store");
        *store.arrivals.writer.lock() = Some(std::thread::current());
        (store, directory)
    }

    fn rows(store: &Store) -> i64 {
        let connection = store.connection.lock();
        let count = connection.value("SELECT count(*) FROM item", &[]);
        count.expect("a number")
    }

    #[test]
    fn the_row_is_written_with_the_sidecar() {
        let (store, _directory) = holding();
        let id = store.put_arriving(&names(REP)).expect("held back");
        let found = store.find_by_names(&names(REP)).expect("asked");
        assert_eq!(found, store.item(id).expect("asked"));
        assert_eq!(found.map(|item| item.id), Some(id));
        assert_eq!(store.sidecar(id).expect("asked"), None);
        assert_eq!(store.relations_of(id).expect("asked"), Vec::new());
        assert_eq!(store.content_stamp(id).expect("asked"), None);
        store.note_change(id).expect("noted");
        assert_eq!(rows(&store), 0);
        let put = store.put(&with_sidecar(names(REP))).expect("recorded");
        assert_eq!((put, rows(&store)), (id, 1));
        assert!(store.sidecar(id).expect("asked").is_some());
        assert!(!store.arrivals.any());
    }

    #[test]
    fn the_row_is_written_before_anything_else_is_asked() {
        let (store, _directory) = holding();
        let id = store.put_arriving(&names(REP)).expect("held back");
        assert!(!store.is_empty().expect("asked"));
        assert_eq!(rows(&store), 1);
        let second = store.put(&Record::bare(names(IBIP), State::Original));
        assert!(
            second.expect("recorded") > id,
            "the number is not given twice"
        );
        let third = store.put_arriving(&names("example.com/src/2021/01.02.03.04.06"));
        assert!(third.expect("held back") > ItemId(id.0 + 1));
    }

    #[test]
    fn two_arriving_items_become_one() {
        let (store, _directory) = holding();
        let by_rep = store.put_arriving(&names(REP)).expect("held back");
        let by_ibip = store.put_arriving(&names(IBIP)).expect("held back");
        assert_ne!(by_rep, by_ibip);
        let id = store.put(&with_sidecar(both())).expect("recorded");
        assert_eq!((id, rows(&store)), (by_rep, 1));
        assert_eq!(store.item(by_ibip).expect("asked"), None);
        let found = store.item(id).expect("asked").expect("an item");
        assert_eq!(found.names, both());
    }

    #[test]
    fn an_arriving_item_becomes_one_that_is_known() {
        let (store, _directory) = holding();
        let known = store.put(&Record::bare(names(IBIP), State::Copy));
        let known = known.expect("recorded");
        let arriving = store.put_arriving(&names(REP)).expect("held back");
        let id = store.put(&with_sidecar(both())).expect("recorded");
        assert_eq!((id, rows(&store)), (known, 1));
        assert_eq!(store.item(arriving).expect("asked"), None);
    }

    #[test]
    fn a_mode_that_was_changed_is_noted_with_the_next_item() {
        let (store, _directory) = holding();
        let first = store.put(&with_sidecar(names(REP))).expect("recorded");
        let before = store.last_change().expect("a number");
        store.note_readers(first).expect("noted");
        store.put_arriving(&names(IBIP)).expect("held back");
        store.put(&with_sidecar(names(IBIP))).expect("recorded");
        assert!(!store.arrivals.any());
        let changed = store.changed_after(before.number, 10).expect("asked");
        assert_eq!(changed.len(), 2);
    }

    #[test]
    fn other_processes_see_an_item_soon() {
        let directory = TemporaryDirectory::new();
        let store = Store::open(directory.opened().as_fd(), None).expect("a store");
        let store = Arc::new(store);
        store.hold_arrivals().expect("a thread");
        while !store.arrivals.is_on() {
            std::thread::yield_now();
        }
        let other = Store::open_read_only(directory.opened().as_fd(), None);
        let other = other.expect("a store");
        for number in 10..13 {
            let rep = format!("example.com/src/2021/01.02.03.04.{number}");
            store.put_arriving(&names(&rep)).expect("held back");
            let end = Instant::now() + Duration::from_secs(10);
            while other.find_by_names(&names(&rep)).expect("asked").is_none() {
                assert!(Instant::now() < end, "{rep} is not written");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
