//! How a store is doing, at a glance: what `fsck` would look for is not looked for here.

use std::path::Path;

use super::{Archive, ArchiveError, Clock, holder};
use crate::archive::store::{Counts, StoreError};
use crate::formats::item::Names;
use ibi::Timestamp;
use ibi::message;
use ibi::message::{Localize, Message};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// Whether the index can be gone by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It says what the tree says, as far as is known.
    Current,
    /// A crash has left it behind; the next start brings it up to date.
    Behind,
    /// An older ibifs has written it; the next start brings it up to date.
    Older,
    /// A newer ibifs has written it.
    Newer,
    /// It is not there; the next start makes it anew.
    Missing,
    /// SQLite cannot read it.
    Damaged,
    /// It cannot be opened, or the store cannot.
    Unreadable,
}

impl IndexState {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            IndexState::Current => "current",
            IndexState::Behind => "behind",
            IndexState::Older => "older",
            IndexState::Newer => "newer",
            IndexState::Missing => "missing",
            IndexState::Damaged => "damaged",
            IndexState::Unreadable => "unreadable",
        }
    }
}

/// How many items were minted lately, by the dates in their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minted {
    /// In the last hour.
    pub hour: u64,
    /// In the last 24 hours.
    pub day: u64,
    /// In the last 30 days.
    pub month: u64,
    /// The last date handed out, as last written down.
    pub last: Option<Timestamp>,
}

/// How a store is doing.
#[derive(Clone, Debug)]
pub struct Status {
    /// The state of its index.
    pub index: IndexState,
    /// What is wrong with that, in a sentence.
    pub trouble: Option<Message>,
    /// How many items there are, where the index can be read.
    pub items: Option<Counts>,
    /// How many were minted lately, where the index can be read.
    pub minted: Option<Minted>,
    /// Originals that were removed in the last 30 days and not claimed since, the last one first.
    pub removed: Vec<Removed>,
}

/// An original that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The item.
    pub names: Names,
    /// When.
    pub at: Timestamp,
}

impl Status {
    /// Dependencies at a store, mounted or not. Whatever cannot be read is told, not an error.
    pub fn of(store: &Path, clock: &dyn Clock) -> Status {
        let looked = Archive::open_read_only(store).and_then(|archive| archive.status(clock));
        looked.unwrap_or_else(|error| {
            let index = match &error {
                _ if is_missing(store) => IndexState::Missing,
                ArchiveError::Store(StoreError::Older { .. }) => IndexState::Older,
                ArchiveError::Store(StoreError::Newer { .. }) => IndexState::Newer,
                ArchiveError::Store(error) if error.is_damage() => IndexState::Damaged,
                _ => IndexState::Unreadable,
            };
            Status {
                index,
                trouble: Some(error.message()),
                items: None,
                minted: None,
                removed: Vec::new(),
            }
        })
    }
}

fn is_missing(store: &Path) -> bool {
    let file = store.join(crate::archive::store::FILE);
    file.symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

impl Archive {
    /// The originals that were removed in the last 30 days, and that no other Archive has claimed.
    fn removed_originals(&self, now: &Timestamp) -> Result<Vec<Removed>, ArchiveError> {
        let since = Timestamp::from_unix(now.seconds().saturating_sub(30 * DAY), 0);
        let mut removed = Vec::new();
        self.store.each_removed(|item| {
            let service = item.service.as_ref();
            let was_ours = service.is_some_and(|it| it.matches(&self.facts.service));
            if let Some(at) = item
                .removed_at
                .clone()
                .filter(|at| was_ours && *at >= since)
            {
                let names = item.names.clone();
                removed.push(Removed { names, at });
            }
            Ok(())
        })?;
        removed.sort_by(|one, other| other.at.cmp(&one.at));
        // What was claimed beside a mount is written in the record later.
        removed.retain(|it| {
            let noted = self.handover(&it.names).ok().flatten();
            !noted.is_some_and(|noted| noted.is_taken)
        });
        Ok(removed)
    }

    fn status(&self, clock: &dyn Clock) -> Result<Status, ArchiveError> {
        let now = clock.now();
        let prefix = self.facts.rep_prefix()?;
        let since = |seconds: i64| {
            let then = Timestamp::from_unix(now.seconds().saturating_sub(seconds), 0);
            self.store.dated_between(&prefix, &then, &now)
        };
        let minted = Minted {
            hour: since(HOUR)?,
            day: since(DAY)?,
            month: since(30 * DAY)?,
            last: self.store.last_date()?,
        };
        // Whoever has the store open leaves marks that mean nothing as long as it is at work.
        let is_marked = || -> Result<bool, ArchiveError> {
            Ok(!self.store.dirty_regions()?.is_empty() || !self.store.unsettled()?.is_empty())
        };
        let is_behind = holder(self.tree.path()).is_none() && is_marked()?;
        Ok(Status {
            index: if is_behind {
                IndexState::Behind
            } else {
                IndexState::Current
            },
            trouble: is_behind.then(|| {
                message!("it was not closed after a crash; the next mount brings it up to date")
            }),
            items: Some(self.store.counts()?),
            minted: Some(minted),
            removed: self.removed_originals(&now)?,
        })
    }
}
