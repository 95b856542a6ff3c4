//! Several items that arrive from another store of this machine at once.
//!
//! The content of all of them is copied and synced together. Then each is compared, gets its sidecar and is
//! accepted. Then all sidecars are synced together. A sidecar is never there before all content of its item
//! is on disk, as with one item.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::arrival::{Arrival, BegunArrival, Unsynced, of_the_item};
use super::local::Local;
use super::outcome::{CompareWhen, Moved, TransferError};
use crate::archive::store::Item;
use crate::archive::tree::Tree;
use crate::formats::item::Names;
use ibi::message;

/// The most items that arrive at once.
pub(super) const BATCH: usize = 1000;

/// No item is added to a batch after this time. An interruption leaves a batch without sidecars, and its
/// content is compared again.
const TIMEOUT: Duration = Duration::from_secs(2);

/// An item of a store, as it is sent to another store of this machine.
pub(super) struct SentItem<'a> {
    source: &'a Local,
    item: Item,
    directory: Tree,
    sidecar: Option<Vec<u8>>,
    is_as_it_is: bool,
}

impl SentItem<'_> {
    /// Its sidecar names `original_at`, if given, as the Archive of the original.
    pub(super) fn of<'a>(
        source: &'a Local,
        names: &Names,
        original_at: Option<&Names>,
    ) -> Result<SentItem<'a>, TransferError> {
        let item = source.item(names)?;
        Ok(SentItem {
            source,
            directory: source.directory(&item)?,
            sidecar: source.sidecar_to_send(&item, original_at)?,
            is_as_it_is: original_at.is_none(),
            item,
        })
    }

    /// With another sidecar than it has at the source.
    pub(super) fn with_sidecar(
        source: &Local,
        item: Item,
        sidecar: Vec<u8>,
    ) -> Result<SentItem<'_>, TransferError> {
        Ok(SentItem {
            source,
            directory: source.directory(&item)?,
            sidecar: Some(sidecar),
            is_as_it_is: false,
            item,
        })
    }

    /// Calls `act` with the item as one that arrives.
    pub(super) fn with<T>(&self, act: impl FnOnce(&Arrival<'_>) -> T) -> T {
        act(&Arrival {
            directory: &self.directory,
            names: &self.item.names,
            from: self.source.service(),
            sidecar: self.sidecar.clone(),
            is_as_it_is: self.is_as_it_is,
            manifest: &|progress| self.source.sound_manifest(&self.item, progress),
        })
    }
}

/// An item of a batch.
enum Member<'a> {
    /// Its content was copied.
    Begun(Box<SentItem<'a>>, Box<BegunArrival>),
    /// It cannot be copied.
    Ended(TransferError),
}

impl Local {
    /// Receives the first of some items; see [`super::Destination::receive_first`]. Each step is done on all
    /// processors.
    pub(super) fn receive_batch(
        &self,
        source: &Local,
        items: &[Names],
        comparison: CompareWhen,
    ) -> Vec<Result<Moved, TransferError>> {
        let mut known = HashSet::new();
        // One that is named again is copied again, after this batch.
        let are_new = items.iter().take(BATCH);
        let count = are_new
            .take_while(|names| known.insert(names.preferred()))
            .count();
        let items = items.get(..count).unwrap_or_default();
        let started = Instant::now();
        let unsynced = Unsynced::default();
        let begin = |names: &Names| {
            let sent = match SentItem::of(source, names, None) {
                Ok(sent) => sent,
                Err(error) => return Member::Ended(error),
            };
            match self.begin_sent(source, &sent, comparison, &unsynced) {
                Ok(begun) => Member::Begun(sent.into(), begun.into()),
                Err(error) => Member::Ended(of_the_item(error)),
            }
        };
        let members = on_all_processors(items, begin, |member| {
            matches!(member, Member::Ended(error) if !is_of_one(error))
                || started.elapsed() > TIMEOUT
        });
        if let Err(error) = self.sync(&unsynced) {
            return vec![Err(error)];
        }
        let unsynced = Unsynced::default();
        let members: Vec<Mutex<Option<Member<'_>>>> =
            members.into_iter().map(|it| Mutex::new(Some(it))).collect();
        let finish = |member: &Mutex<Option<Member<'_>>>| match member
            .lock()
            .ok()
            .and_then(|mut member| member.take())
        {
            Some(Member::Begun(sent, begun)) => sent
                .with(|arrival| self.finish(arrival, *begun, &unsynced, &mut |_| ()))
                .map_err(of_the_item),
            Some(Member::Ended(error)) => Err(error),
            None => Err(lost()),
        };
        let is_last = |result: &Result<Moved, _>| matches!(result, Err(error) if !is_of_one(error));
        let mut results = on_all_processors(&members, finish, is_last);
        if let Some(last) = results.iter().position(is_last) {
            results.truncate(last + 1);
        }
        match self.sync(&unsynced) {
            Ok(()) if results.is_empty() => vec![Err(lost())],
            Ok(()) => results,
            Err(error) => vec![Err(error)],
        }
    }

    fn begin_sent(
        &self,
        source: &Local,
        sent: &SentItem<'_>,
        comparison: CompareWhen,
        unsynced: &Unsynced,
    ) -> Result<BegunArrival, TransferError> {
        self.may_receive(&sent.item.names, source.service())?;
        let begun = sent.with(|arrival| self.begin(arrival, comparison, &mut |_| ()))?;
        self.note_unsynced(&begun, unsynced)?;
        Ok(begun)
    }
}

/// Whether an error concerns one item alone.
fn is_of_one(error: &TransferError) -> bool {
    matches!(error, TransferError::Skip(_))
}

/// Applies `work` to the first of some values, in order, on as many threads as there are processors, until a
/// result is the last or all are done.
fn on_all_processors<T: Sync, R: Send>(
    values: &[T],
    work: impl Fn(&T) -> R + Sync,
    is_last: impl Fn(&R) -> bool + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut results = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(value) = values.get(at) else {
                return results;
            };
            let result = work(value);
            if is_last(&result) {
                // No other is begun; what is being done is finished.
                next.fetch_max(values.len(), Ordering::Relaxed);
            }
            results.push((at, result));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results = std::thread::scope(|scope| {
        let others = 1..threads.min(values.len());
        let spawned: Vec<_> = others
            .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, run).ok())
            .collect();
        let mut results = run();
        for thread in spawned {
            results.extend(thread.join().unwrap_or_default());
        }
        results
    });
    results.sort_by_key(|(at, _)| *at);
    // A thread that has ended without its results leaves a gap.
    let in_order = results.into_iter().enumerate();
    in_order
        .take_while(|(count, (at, _))| count == at)
        .map(|(_, (_, result))| result)
        .collect()
}

/// A thread of a batch has panicked.
fn lost() -> TransferError {
    TransferError::System(message!("a thread ended early; run the command again"))
}
