//! The reports of an Archive's service about itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, Method};
use parking_lot::Mutex;
use rustix::fs::fstatvfs;

use super::copies::{self, CopyCounter};
use super::{Site, dav, oai, transfer};
use crate::archive::scrub::{self, LastScrub};
use crate::archive::store::{ChangeCounts, ChangeNumber, Counts, ItemId, Store, StoreError};
use crate::archive::{Archive, CopyFigures};
use crate::http::server::metrics::{MetricKind, MetricsText, Monitored, RequestKinds};

/// The shortest time between two counts of the items, which read the whole index.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// The kinds of requests to an Archive.
const KINDS: [&str; 8] = [
    "service", "harvest", "transfer", "zip", "file", "search", "webdav", "item",
];

/// Returns how its requests are counted.
pub(super) fn kinds(site: &Site) -> RequestKinds {
    RequestKinds {
        names: &KINDS,
        of: |method, path, query| match path {
            _ if oai::is_of(path) => 1,
            _ if *method == Method::POST && transfer::is_of(path) => 2,
            _ if query.contains("servicesubject=") => 0,
            _ if path.starts_with("archive.cgi/") => 3,
            _ if path.starts_with("col/") || path.starts_with("attachment.cgi/") => 4,
            "search" => 5,
            _ if dav::is_of(path) => 6,
            _ => 7,
        },
        url: site.url.clone(),
    }
}

/// The state that is read for reports alone.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    state: Mutex<State>,
    copies: CopyCounter,
}

#[derive(Debug, Default)]
struct State {
    /// A connection to the index besides that of the requests, which a count would delay.
    index: Option<Arc<Store>>,
    scrub: Option<LastScrub>,
    counted: Option<(Instant, Counts)>,
    changes: Changes,
}

/// The changes of items since the service was started.
#[derive(Debug, Default)]
struct Changes {
    /// The last change and the newest item that are counted.
    counted: Option<(ChangeNumber, ItemId)>,
    total: ChangeCounts,
}

impl Changes {
    /// Counts what has happened since the last time. Nothing of an index that was built again, in which all items have
    /// changed.
    fn follow(&mut self, index: &Store) -> Result<(), StoreError> {
        let newest = index.last_number()?.unwrap_or(ItemId(0));
        let last = index.last_change()?;
        if let Some((known, item)) = self.counted
            && known.epoch == last.epoch
        {
            let new = index.count_after(known.number, item)?;
            self.total.added += new.added;
            self.total.changed += new.changed;
            self.total.removed += new.removed;
        }
        self.counted = Some((last, newest));
        Ok(())
    }
}

impl Gauges {
    /// Opens what needs root.
    pub(super) fn open(&self, archive: &Archive) {
        let mut state = self.state.lock();
        let root = archive.tree().root();
        match Store::open_read_only(root, archive.facts().index.as_ref()) {
            Ok(index) => {
                if let Err(error) = state.changes.follow(&index) {
                    log::debug!("changes are counted later: {}", error.cause());
                }
                state.index = Some(Arc::new(index));
            }
            Err(error) => log::warn!("items are not counted: {}", error.cause()),
        }
        state.scrub = LastScrub::open(archive.tree());
    }

    /// The figures of the copies of all items, as they were last counted.
    fn copies(&self, archive: &Arc<Archive>) -> Option<CopyFigures> {
        let index = self.state.lock().index.clone()?;
        self.copies.figures(archive, &index)
    }
}

impl State {
    /// The items by state, as they were at most [`COUNT_EVERY`] ago.
    fn counts(&mut self) -> Option<Counts> {
        if let Some((at, counts)) = self.counted
            && at.elapsed() < COUNT_EVERY
        {
            return Some(counts);
        }
        match self.index.as_ref()?.counts() {
            Ok(counts) => {
                self.counted = Some((Instant::now(), counts));
                Some(counts)
            }
            Err(error) => {
                log::warn!("items are not counted: {}", error.cause());
                None
            }
        }
    }
}

impl State {
    /// Returns what has happened to items since the start.
    fn changes(&mut self) -> Option<ChangeCounts> {
        if let Err(error) = self.changes.follow(self.index.as_ref()?) {
            log::warn!("changes are not counted: {}", error.cause());
        }
        Some(self.changes.total)
    }
}

impl Monitored for Site {
    fn trouble(&self) -> Option<String> {
        if let Err(error) = self.archive.store().last_date() {
            return Some(format!("the index cannot be read: {}", error.cause()));
        }
        // A directory that was opened as root stays open, whatever happens to its name.
        match rustix::fs::fstat(self.archive.tree().root()) {
            Ok(stat) if stat.st_nlink == 0 => Some("the store has been removed".to_owned()),
            Ok(_) => None,
            Err(errno) => Some(format!("the store cannot be reached: {errno}")),
        }
    }

    fn page(&self, path: &str, headers: &HeaderMap) -> Option<String> {
        if path != "/copies" {
            return None;
        }
        let (archive, figures) = (&self.archive, self.gauges.copies(&self.archive));
        let backups = archive.backups_or_none();
        Some(copies::page(archive, figures.as_ref(), &backups, headers))
    }

    fn measure(&self, text: &mut MetricsText) {
        let mut state = self.gauges.state.lock();
        if let Some(counts) = state.counts() {
            let name = "ibifs_items";
            text.metric(
                name,
                MetricKind::Gauge,
                "Items by state; counted once a minute at most.",
            );
            for (word, count) in [
                ("original", counts.originals),
                ("copy", counts.copies),
                ("removed", counts.removed),
            ] {
                text.sample(name, &[("state", word)], count);
            }
        }
        if let Some(changes) = state.changes() {
            let name = "ibifs_item_changes_total";
            text.metric(
                name,
                MetricKind::Counter,
                "Items that were added, changed and removed; one counts once for all between two reports.",
            );
            for (event, count) in [
                ("added", changes.added),
                ("changed", changes.changed),
                ("removed", changes.removed),
            ] {
                text.sample(name, &[("event", event)], count);
            }
        }
        if let Ok(Some(last)) = self.archive.store().last_date() {
            text.single(
                "ibifs_last_date_timestamp_seconds",
                MetricKind::Gauge,
                "The last date that was given out to an item, as recorded in the index, in Unix seconds.",
                last.seconds(),
            );
        }
        if let Some(seconds) = state.scrub.as_ref().and_then(LastScrub::completed) {
            text.single(
                "ibifs_last_scrub_timestamp_seconds",
                MetricKind::Gauge,
                "When the last scrub of the whole store was completed, in Unix seconds.",
                seconds,
            );
        }
        drop(state);
        let figures = self.gauges.copies(&self.archive);
        copies::measure(figures.as_ref(), &self.archive.backups_or_none(), text);
        let damaged = scrub::damage(self.archive.tree()).into_iter();
        text.single(
            "ibifs_damaged_files",
            MetricKind::Gauge,
            "Files that were found damaged or lost, and are neither mended nor accepted.",
            damaged.map(|(_, files)| files).sum::<u64>(),
        );
        if let Ok(space) = fstatvfs(self.archive.tree().root()) {
            text.single(
                "ibifs_store_free_bytes",
                MetricKind::Gauge,
                "Free space of the filesystem of the store, in bytes.",
                space.f_bavail.saturating_mul(space.f_frsize),
            );
            text.single(
                "ibifs_store_size_bytes",
                MetricKind::Gauge,
                "Size of the filesystem of the store, in bytes.",
                space.f_blocks.saturating_mul(space.f_frsize),
            );
            text.single(
                "ibifs_store_free_inodes",
                MetricKind::Gauge,
                "Free inodes of the filesystem of the store.",
                space.f_favail,
            );
        }
        let name = "ibifs_cache_lookups_total";
        text.metric(
            name,
            MetricKind::Counter,
            "Lookups in the caches of answers, of items and of small files, by result.",
        );
        for (cache, counts) in self.cache.lookups() {
            for (result, count) in [("hit", counts.hits), ("miss", counts.misses)] {
                text.sample(name, &[("cache", cache), ("result", result)], count);
            }
        }
    }
}
