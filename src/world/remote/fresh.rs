//! An answer that is remembered, and when it is asked for again.
//!
//! An answer counts for a minute. Then the first lookup asks again, once for all, while all are given the old answer. A
//! server that does not answer is left alone for some seconds, and the old answer stays. That a thing is missing counts
//! for a minute, too.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::world::error::ForeignError;

/// The time for which an answer counts.
pub(crate) const FRESH: Duration = Duration::from_secs(60);
/// The time for which an Archive that did not answer is not asked again about the same thing.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);

/// The time of this process, and for what outlives it that of the calendar.
pub(crate) trait AnswerClock: fmt::Debug + Send + Sync {
    /// The time of this process.
    fn now(&self) -> Instant;
    /// The seconds since 1970.
    fn unix_seconds(&self) -> i64;
}

/// The clock of the system.
#[derive(Debug)]
pub(crate) struct HostClock;

impl AnswerClock for HostClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn unix_seconds(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        })
    }
}

/// The answer about one name, and when it is asked for again.
#[derive(Debug)]
pub(crate) struct Fresh<T> {
    key: String,
    clock: Arc<dyn AnswerClock>,
    state: Mutex<Remembered<T>>,
    /// Only one lookup asks at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Remembered<T> {
    answer: Answered<T>,
    /// The time at which it was last asked whether the answer still holds.
    asked: Option<Instant>,
    is_asking: bool,
    used: Instant,
}

#[derive(Debug)]
enum Answered<T> {
    Nothing,
    Missing(Instant),
    /// The answer, and the time in Unix seconds at which a server last said so.
    Known(Arc<T>, i64),
}

/// The part of an answer that is remembered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Recalled<T> {
    /// No answer, or one that is too old to count.
    Nothing,
    /// It is missing.
    Missing,
    /// An answer that counts.
    Known(Arc<T>),
    /// An old answer, which the caller now asks for again. `settle` or `confirm` end that.
    Due(Arc<T>),
}

impl<T> Fresh<T> {
    /// The name, about which nothing is known.
    pub(crate) fn new(key: &str, clock: Arc<dyn AnswerClock>) -> Fresh<T> {
        let state = Remembered {
            answer: Answered::Nothing,
            asked: None,
            is_asking: false,
            used: clock.now(),
        };
        Fresh {
            key: key.to_owned(),
            clock,
            state: Mutex::new(state),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// The name.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The answer, however old it is.
    pub(crate) fn value(&self) -> Option<Arc<T>> {
        match &self.state.lock().answer {
            Answered::Known(value, _) => Some(Arc::clone(value)),
            _ => None,
        }
    }

    /// The time in Unix seconds at which a server last said so, 0 if none did.
    pub(crate) fn confirmed(&self) -> i64 {
        match self.state.lock().answer {
            Answered::Known(_, confirmed) => confirmed,
            _ => 0,
        }
    }

    /// Returns for how long no server has said so.
    pub(crate) fn age(&self) -> Duration {
        let seconds = self.clock.unix_seconds().saturating_sub(self.confirmed());
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    /// Returns what is remembered.
    pub(crate) fn recall(&self) -> Recalled<T> {
        let (now, age) = (self.clock.now(), self.age());
        let mut state = self.state.lock();
        let value = match &state.answer {
            Answered::Known(value, _) => Arc::clone(value),
            Answered::Missing(since) if now.saturating_duration_since(*since) < FRESH => {
                return Recalled::Missing;
            }
            _ => return Recalled::Nothing,
        };
        state.used = now;
        let is_paused = |asked: Instant| now.saturating_duration_since(asked) < PAUSE;
        if age < FRESH || state.is_asking || state.asked.is_some_and(is_paused) {
            return Recalled::Known(value);
        }
        state.is_asking = true;
        state.asked = Some(now);
        Recalled::Due(value)
    }

    /// Waits until no other lookup asks.
    pub(crate) async fn turn(
        &self,
        until: Instant,
    ) -> Result<tokio::sync::MutexGuard<'_, ()>, ForeignError> {
        let turn = tokio::time::timeout_at(until.into(), self.turn.lock()).await;
        turn.map_err(|_| ForeignError::Unreachable("no answer in time".to_owned()))
    }

    /// Remembers an answer that a server has given at this time, in Unix seconds.
    pub(crate) fn know(&self, value: T, confirmed: i64) -> Arc<T> {
        let value = Arc::new(value);
        let mut state = self.state.lock();
        state.answer = Answered::Known(Arc::clone(&value), confirmed);
        value
    }

    /// Remembers the answer to a question that has just been asked. Without one, the old answer stays.
    pub(crate) fn settle(&self, answer: Result<T, ForeignError>) -> Result<Arc<T>, ForeignError> {
        let settled = match answer {
            Ok(value) => Ok(self.know(value, self.clock.unix_seconds())),
            Err(trouble) => Err(trouble),
        };
        let mut state = self.state.lock();
        state.is_asking = false;
        if let Err(ForeignError::Missing) = &settled {
            state.answer = Answered::Missing(self.clock.now());
        }
        settled
    }

    /// Remembers that a server has said that the answer still holds.
    pub(crate) fn confirm(&self) {
        let mut state = self.state.lock();
        state.is_asking = false;
        if let Answered::Known(_, confirmed) = &mut state.answer {
            *confirmed = self.clock.unix_seconds();
        }
    }
}

/// The answers about many names.
#[derive(Debug)]
pub(crate) struct FreshTable<T> {
    clock: Arc<dyn AnswerClock>,
    /// The most names of which something is remembered.
    most: usize,
    slots: Mutex<HashMap<String, Arc<Fresh<T>>>>,
}

impl<T> FreshTable<T> {
    /// No answers yet.
    pub(crate) fn new(most: usize, clock: Arc<dyn AnswerClock>) -> FreshTable<T> {
        FreshTable {
            clock,
            most,
            slots: Mutex::default(),
        }
    }

    /// The clock of the answers.
    pub(crate) fn clock(&self) -> &Arc<dyn AnswerClock> {
        &self.clock
    }

    /// All that is known of a name.
    pub(crate) fn slot(&self, key: &str) -> Arc<Fresh<T>> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(key) {
            return Arc::clone(slot);
        }
        if slots.len() >= self.most {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        let slot = Arc::new(Fresh::new(key, Arc::clone(&self.clock)));
        slots.insert(key.to_owned(), Arc::clone(&slot));
        slot
    }

    /// The answer about a name, however old it is.
    pub(crate) fn held(&self, key: &str) -> Option<Arc<T>> {
        let slot = self.slots.lock().get(key).cloned();
        slot?.value()
    }

    /// Returns all answers.
    pub(crate) fn values(&self) -> Vec<Arc<T>> {
        let slots = self.slots.lock();
        slots.values().filter_map(|slot| slot.value()).collect()
    }

    /// Forgets answers of this weight in all, those that were not used for the longest time first. Returns those among
    /// them that are in use, which stay until they are not.
    pub(crate) fn shed(
        &self,
        mut excess: usize,
        weight: impl Fn(&T) -> usize,
    ) -> Vec<(Arc<Fresh<T>>, Arc<T>)> {
        let mut slots = self.slots.lock();
        let mut known: Vec<_> = slots
            .values()
            .filter_map(|slot| {
                let used = slot.state.lock().used;
                Some((used, Arc::clone(slot), slot.value()?))
            })
            .collect();
        known.sort_by_key(|(used, ..)| *used);
        let mut in_use = Vec::new();
        for (_, slot, value) in known {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(weight(&value));
            // One reference is here, the other one in the map.
            if Arc::strong_count(&slot) == 2 {
                slots.remove(slot.key());
            } else {
                in_use.push((slot, value));
            }
        }
        in_use
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A clock that a test sets: the time of the process and that of the calendar, each in seconds.
    #[derive(Debug)]
    pub(crate) struct SetClock(Instant, Mutex<(u64, i64)>);

    impl SetClock {
        pub(crate) fn new() -> Arc<SetClock> {
            Arc::new(SetClock(Instant::now(), Mutex::new((0, 1_000_000))))
        }

        pub(crate) fn pass(&self, seconds: u32) {
            let mut now = self.1.lock();
            *now = (now.0 + u64::from(seconds), now.1 + i64::from(seconds));
        }
    }

    impl AnswerClock for SetClock {
        fn now(&self) -> Instant {
            self.0 + Duration::from_secs(self.1.lock().0)
        }

        fn unix_seconds(&self) -> i64 {
            self.1.lock().1
        }
    }

    fn fresh() -> (Arc<SetClock>, Fresh<u32>) {
        let clock = SetClock::new();
        let slot = Fresh::new("a", Arc::clone(&clock) as Arc<dyn AnswerClock>);
        (clock, slot)
    }

    fn silent() -> ForeignError {
        ForeignError::Unreachable("silent".to_owned())
    }

    #[test]
    fn an_answer_counts_for_a_minute_and_then_one_lookup_asks_again() {
        let (clock, slot) = fresh();
        assert_eq!(slot.recall(), Recalled::Nothing);
        slot.settle(Ok(1)).expect("an answer");
        clock.pass(59);
        assert_eq!(slot.recall(), Recalled::Known(Arc::new(1)));
        clock.pass(1);
        assert_eq!(slot.recall(), Recalled::Due(Arc::new(1)));
        clock.pass(600);
        assert_eq!(slot.recall(), Recalled::Known(Arc::new(1)), "it is asked");
        slot.settle(Ok(2)).expect("an answer");
        assert_eq!(slot.recall(), Recalled::Known(Arc::new(2)));
    }

    #[test]
    fn an_old_answer_stays_while_no_server_answers_and_is_not_asked_for_at_once() {
        let (clock, slot) = fresh();
        slot.settle(Ok(1)).expect("an answer");
        clock.pass(60);
        assert_eq!(slot.recall(), Recalled::Due(Arc::new(1)));
        assert_eq!(slot.settle(Err(silent())), Err(silent()));
        clock.pass(4);
        assert_eq!(slot.recall(), Recalled::Known(Arc::new(1)));
        clock.pass(1);
        assert_eq!(slot.recall(), Recalled::Due(Arc::new(1)));
        assert_eq!(slot.age(), Duration::from_secs(65));
    }

    #[test]
    fn an_answer_that_is_confirmed_counts_for_another_minute() {
        let (clock, slot) = fresh();
        slot.settle(Ok(1)).expect("an answer");
        clock.pass(60);
        assert_eq!(slot.recall(), Recalled::Due(Arc::new(1)));
        slot.confirm();
        assert_eq!((slot.age(), slot.confirmed()), (Duration::ZERO, 1_000_060));
        clock.pass(59);
        assert_eq!(slot.recall(), Recalled::Known(Arc::new(1)));
        clock.pass(1);
        assert_eq!(slot.recall(), Recalled::Due(Arc::new(1)));
    }

    #[test]
    fn a_missing_thing_is_asked_for_after_a_minute() {
        let (clock, slot) = fresh();
        assert_eq!(
            slot.settle(Err(ForeignError::Missing)),
            Err(ForeignError::Missing)
        );
        clock.pass(59);
        assert_eq!(slot.recall(), Recalled::Missing);
        clock.pass(1);
        assert_eq!(slot.recall(), Recalled::Nothing);
        slot.settle(Ok(1)).expect("an answer");
        assert_eq!(
            slot.settle(Err(ForeignError::Missing)),
            Err(ForeignError::Missing)
        );
        assert_eq!((slot.value(), slot.recall()), (None, Recalled::Missing));
    }

    #[test]
    fn trouble_is_not_remembered_as_an_answer() {
        let (_, slot) = fresh();
        assert_eq!(slot.settle(Err(silent())), Err(silent()));
        assert_eq!(slot.recall(), Recalled::Nothing);
    }

    #[test]
    fn an_answer_of_an_earlier_process_is_as_old_as_it_says() {
        for (confirmed, age, is_due) in [
            (1_000_000 - 59, 59, false),
            (1_000_000 - 60, 60, true),
            (0, 1_000_000, true),
            // The calendar was set back since.
            (1_000_000 + 500, 0, false),
            (i64::MIN, i64::MAX as u64, true),
        ] {
            let (_, slot) = fresh();
            slot.know(1, confirmed);
            assert_eq!(slot.age(), Duration::from_secs(age), "{confirmed}");
            let is_asked = slot.recall() == Recalled::Due(Arc::new(1));
            assert_eq!(is_asked, is_due, "{confirmed}");
        }
    }

    #[tokio::test]
    async fn one_lookup_asks_at_a_time() {
        let (_, slot) = fresh();
        let first = slot.turn(Instant::now()).await.expect("a turn");
        let soon = Instant::now() + Duration::from_millis(5);
        let late = slot.turn(soon).await.expect_err("no turn");
        assert!(matches!(late, ForeignError::Unreachable(_)));
        drop(first);
        assert!(slot.turn(Instant::now()).await.is_ok());
    }

    #[test]
    fn names_that_nothing_uses_are_forgotten_at_the_limit() {
        let table: FreshTable<u32> = FreshTable::new(2, SetClock::new());
        let used = table.slot("a");
        used.settle(Ok(1)).expect("an answer");
        table.slot("b").settle(Ok(2)).expect("an answer");
        assert!(Arc::ptr_eq(&used, &table.slot("a")));
        table.slot("c");
        assert_eq!(table.held("a"), Some(Arc::new(1)));
        assert_eq!((table.held("b"), table.slots.lock().len()), (None, 2));
    }

    #[test]
    fn answers_that_were_not_used_for_the_longest_time_are_forgotten_first() {
        let clock = SetClock::new();
        let table = FreshTable::new(9, Arc::clone(&clock) as Arc<dyn AnswerClock>);
        for (key, value) in [("a", 10), ("b", 20), ("c", 30), ("d", 40)] {
            table.slot(key).settle(Ok(value)).expect("an answer");
            clock.pass(1);
        }
        table.slot("a").recall();
        let used = table.slot("b");
        // 20 are in use, so that 30 are forgotten, and no more.
        let in_use = table.shed(21, |value| *value);
        assert_eq!(in_use.len(), 1);
        assert!(Arc::ptr_eq(&in_use[0].0, &used));
        let mut left: Vec<_> = table.values().iter().map(|value| **value).collect();
        left.sort_unstable();
        assert_eq!(left, [10, 20, 40]);
        assert!(table.shed(0, |value| *value).is_empty());
    }
}
