//! Events in the log, as the index knows them.

use std::collections::HashSet;

use super::history::{insert, logged_events};
use super::{By, Store, StoreError, random_bytes};
use crate::formats::history::{EventKind, SALT, item_in};
use crate::formats::item::Names;
use crate::sql::engine::{Connection, Sync, params};

/// The most events that are kept until they can be recorded.
const MOST_KEPT: usize = 10_000;

/// An event as it is in the log, or was left for it.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The random bytes.
    pub salt: [u8; SALT],
    /// The line.
    pub line: String,
}

impl Logged {
    fn insert(&self, connection: &Connection) -> Result<(), StoreError> {
        insert(connection, &self.salt, &self.line)
    }
}

impl Store {
    /// The number of the events that the index knows to be in the log.
    pub fn logged_events(&self) -> Result<i64, StoreError> {
        logged_events(&self.reading())
    }

    /// Notes that as many of the events that wait are in the log.
    pub fn note_logged(&self, count: usize) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| note_logged(transaction, count))
    }

    /// Records events that follow in the log. They may be among those that wait, which are numbered after them.
    pub fn put_logged(&self, events: &[Logged]) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| {
            let known = logged_events(transaction)?;
            let sql = "SELECT salt, line FROM event WHERE number > ?1 ORDER BY number";
            let waiting = transaction.each(sql, params![known], |row| {
                let cells: (Vec<u8>, String) = (row.get("salt")?, row.get("line")?);
                Ok(cells)
            })?;
            transaction.execute("DELETE FROM event WHERE number > ?1", params![known])?;
            // Older versions noted the items of those that wait.
            if !waiting.is_empty() {
                transaction.execute("DELETE FROM event_item WHERE first > ?1", params![known])?;
            }
            for event in events {
                event.insert(transaction)?;
            }
            note_logged(transaction, events.len())?;
            let salts: HashSet<&[u8]> = events.iter().map(|it| &it.salt[..]).collect();
            for (salt, line) in waiting {
                if !salts.contains(&salt[..]) {
                    insert(transaction, &salt, &line)?;
                }
            }
            Ok(())
        })
    }

    /// Keeps an event that could not be recorded until [`Store::tell_kept`], as long as the process runs.
    pub fn keep_told(&self, by: By, kind: EventKind, item: Option<&Names>, note: &str) {
        let Some((teller, salt)) = self.teller.get().zip(random_bytes().ok()) else {
            return;
        };
        let line = teller.line(by, kind, item, note, None);
        let mut kept = teller.kept.lock();
        if kept.len() < MOST_KEPT {
            kept.push((salt, line));
        }
    }

    /// Records the events that were kept.
    pub fn tell_kept(&self) -> Result<(), StoreError> {
        let Some(teller) = self.teller.get() else {
            return Ok(());
        };
        let mut kept = teller.kept.lock();
        if kept.is_empty() {
            return Ok(());
        }
        let events = kept.iter().cloned();
        let events: Vec<_> = events.map(|(salt, line)| Logged { salt, line }).collect();
        self.put_left(&events)?;
        kept.clear();
        Ok(())
    }

    /// Records events that were left for the log, but those that wait already. They are on disk when this returns.
    pub fn put_left(&self, events: &[Logged]) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| {
            let sql = "SELECT salt FROM event WHERE number > ?1";
            let known = params![logged_events(transaction)?];
            let waiting = transaction.each(sql, known, |row| row.get("salt"))?;
            let waiting: HashSet<Vec<u8>> = waiting.into_iter().collect();
            let mut new = events.iter().filter(|it| !waiting.contains(&it.salt[..]));
            new.try_for_each(|event| event.insert(transaction))
        })
    }
}

/// Notes that as many of the events that wait are in the log, and of which items they are.
fn note_logged(connection: &Connection, count: usize) -> Result<(), StoreError> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let sql = "SELECT number, line FROM event WHERE number > ?1 ORDER BY number LIMIT ?2";
    let known = logged_events(connection)?;
    let events = connection.each(sql, params![known, count], |row| {
        let line: String = row.get("line")?;
        Ok((row.get("number")?, item_in(&line)))
    })?;
    let with_items = |(number, item): (i64, Option<Names>)| Some((number, item?.key()));
    for (number, name) in events.into_iter().filter_map(with_items) {
        let sql = "INSERT INTO event_item (name, first) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        connection.execute(sql, params![name.as_str(), number])?;
        let sql = "UPDATE event SET item = (SELECT first FROM event_item WHERE name = ?1) WHERE number = ?2";
        connection.execute(sql, params![name.as_str(), number])?;
    }
    connection.execute("UPDATE event_log SET size = size + ?1", params![count])
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use ibi::Ibi;

    use super::*;
    use crate::archive::store::{By, EventRow};
    use crate::formats::history::{EventKind, Told};
    use crate::os::testing::TemporaryDirectory;

    const ONE: &str = "8JMKD3MGP8W/34PGRBS";
    const OTHER: &str = "8JMKD3MGP8W/35MMLL8";

    struct Fixture(TemporaryDirectory, Store);

    impl Fixture {
        fn new() -> Fixture {
            let directory = TemporaryDirectory::new();
            let store = Store::open(directory.opened().as_fd(), None).expect("a store");
            store.begin_history();
            Fixture(directory, store)
        }

        fn tell(&self, name: &str, note: &str) {
            let told = self
                .1
                .tell(By::Program, EventKind::Changed, Some(&names(name)), note);
            told.expect("told");
        }

        fn change(&self, sql: &str) {
            self.1.lock().execute(sql, &[]).expect("changed");
        }

        fn of(&self, name: &str, after: i64, most: usize) -> Vec<String> {
            notes(self.1.events_of(&names(name), after, most))
        }

        fn latest(&self, most: usize) -> Vec<String> {
            notes(self.1.latest_events_of(&names(ONE), most))
        }

        fn log_all(&self) {
            let waiting = self.1.waiting_events(1_000).expect("read");
            self.1.note_logged(waiting.len()).expect("noted");
        }

        /// The pages that were written to the index.
        fn pages(&self) -> u64 {
            let log = self.0.join("relations.sqlite3-wal").metadata();
            log.expect("it is there").len() / (4096 + 24)
        }
    }

    fn names(name: &str) -> Names {
        Names::from(Ibi::parse(name).expect("a name"))
    }

    fn notes(events: Result<Vec<EventRow>, StoreError>) -> Vec<String> {
        let events = events.expect("read").into_iter();
        let told = events.filter_map(|event| Told::parse(&event.line));
        told.map(|told| told.note).collect()
    }

    /// Events of items are found by their names before and after they are in the log, in any part that is asked for.
    #[test]
    fn events_that_wait_are_found_by_name() {
        let store = Fixture::new();
        let spelled = ONE.to_lowercase();
        let mut all = Vec::new();
        for note in ["1", "2", "3"] {
            store.tell(ONE, note);
            let number = 3 * all.len() as i64 / 2 + 1;
            store.tell(OTHER, "other");
            store.tell(&spelled, "spelled");
            all.extend([note, "spelled"]);
            for is_logged in [false, true] {
                if is_logged {
                    store.log_all();
                }
                assert_eq!(store.of(ONE, 0, 100), all);
                assert_eq!(store.of(ONE, 0, 2), all[..2]);
                assert_eq!(store.of(ONE, number, 100), ["spelled"]);
                assert_eq!(store.of(ONE, number - 1, 1), [note]);
                assert_eq!(store.of(ONE, number + 2, 1), [""; 0]);
                assert_eq!(store.of(OTHER, number - 1, 100), ["other"]);
                assert_eq!(store.latest(0), [""; 0]);
                assert_eq!(store.latest(1), ["spelled"]);
                assert_eq!(store.latest(100), all);
                assert_eq!(store.latest(3), all[all.len().saturating_sub(3)..]);
            }
        }
    }

    /// An index may be of a version that noted the items of events that wait.
    #[test]
    fn an_event_that_waits_and_has_an_item_is_there_once() {
        let store = Fixture::new();
        store.tell(OTHER, "0");
        store.log_all();
        for (name, note) in [(ONE, "1"), (OTHER, "2"), (ONE, "3")] {
            store.tell(name, note);
        }
        store.change(&format!("INSERT INTO event_item VALUES ('{ONE}', 2)"));
        store.change(
            "UPDATE event SET item = CASE number WHEN 3 THEN 1 ELSE 2 END WHERE number > 1",
        );
        for is_logged in [false, true] {
            if is_logged {
                store.log_all();
            }
            assert_eq!(store.of(ONE, 0, 100), ["1", "3"]);
            assert_eq!(store.of(OTHER, 0, 100), ["0", "2"]);
        }
    }

    /// Those that wait come after others that the log has, be they of the same item or not.
    #[test]
    fn events_that_wait_get_their_items_when_they_are_logged() {
        let (store, log) = (Fixture::new(), Fixture::new());
        log.tell(OTHER, "1");
        log.tell(ONE, "2");
        for name in [ONE, OTHER] {
            store.tell(name, "waits");
        }
        // As an older version noted it.
        store.change(&format!("INSERT INTO event_item VALUES ('{ONE}', 1)"));
        let logged = |event: EventRow| Logged {
            salt: event.salt,
            line: event.line,
        };
        let events = log.1.waiting_events(9).expect("read").into_iter();
        let events: Vec<Logged> = events.map(logged).collect();
        store.1.put_logged(&events).expect("put");
        for is_logged in [false, true] {
            if is_logged {
                store.log_all();
            }
            assert_eq!(store.of(ONE, 0, 100), ["2", "waits"]);
            assert_eq!(store.of(OTHER, 0, 100), ["1", "waits"]);
            assert_eq!(
                store.1.logged_events().ok(),
                Some(if is_logged { 4 } else { 2 })
            );
        }
    }

    /// A change that is told writes one page more, and names are noted for many events at a time.
    #[test]
    fn an_event_that_waits_is_one_page() {
        let store = Fixture::new();
        let tell_some = || {
            let before = store.pages();
            for (one, two) in "BCDF"
                .chars()
                .flat_map(|one| "GHJKL".chars().map(move |two| (one, two)))
            {
                store.tell(&format!("8JMKD3MGP8W/34PGR{one}{two}"), "");
            }
            store.pages() - before
        };
        tell_some();
        let before = store.pages();
        store.log_all();
        let noted = store.pages() - before;
        // Where a page of the table becomes full, that above it is written, too.
        let told = tell_some();
        assert!((20..30).contains(&told), "{told} pages of 20 events");
        assert!((1..12).contains(&noted), "{noted} pages of 20 events");
    }
}
