//! The state of a store at a glance. It does not look for what `fsck` checks.

use std::path::Path;

use super::identifiers::names_at;
use super::{Archive, ArchiveError, Clock, Facts, Keeper, ReadAs, Role, holder};
use crate::archive::scrub::damage;
use crate::archive::store::{ContentTotals, Counts, HostState, StoreError};
use crate::archive::tree::{Area, Tree};
use crate::formats::copies::KnownCopy;
use crate::formats::item::{Names, Sidecar};
use crate::formats::question::Line;
use ibi::Timestamp;
use ibi::message;
use ibi::message::{Localize, Message};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

/// The state of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// It agrees with the tree, as far as is known.
    Current,
    /// It is out of date after a crash; the next start updates it.
    Behind,
    /// An older ibifs has written it; the next start updates it.
    Older,
    /// A newer ibifs has written it.
    Newer,
    /// It is missing; the next start rebuilds it.
    Missing,
    /// SQLite cannot read it.
    Damaged,
    /// It or the store cannot be opened.
    Unreadable,
}

impl IndexState {
    /// The word for the state.
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

/// The number of items minted lately, by the dates in their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Minted {
    /// In the last hour.
    pub hour: u64,
    /// In the last 24 hours.
    pub day: u64,
    /// In the last 30 days.
    pub month: u64,
    /// The last date given out, as last recorded.
    pub last: Option<Timestamp>,
}

/// The state of a store.
#[derive(Clone, Debug)]
pub struct Status {
    /// The names of the Archive's service, if the index can be read.
    pub service: Option<Names>,
    /// The state of its index.
    pub index: IndexState,
    /// A sentence about a problem with the index.
    pub trouble: Option<Message>,
    /// The number of items, if the index can be read.
    pub items: Option<Counts>,
    /// The public content of the items of which it is known, if the index can be read.
    pub content: Option<ContentTotals>,
    /// The number of items minted lately, if the index can be read.
    pub minted: Option<Minted>,
    /// Originals removed in the last 30 days that no other Archive has claimed, the latest first.
    pub removed: Vec<Removed>,
    /// Transfers of originals to other Archives that are not finished; none if the user may not read them.
    pub transfers: Vec<PendingTransfer>,
    /// Items with damaged or lost files, and the number of these.
    pub damaged: Vec<(Names, u64)>,
    /// Copies whose original its Archive says to have withdrawn or removed.
    pub originals_gone: Vec<(Names, KnownCopy)>,
    /// The server of the index, and the processes that write it; None if the index is a file.
    pub server: Option<Server>,
}

/// The server of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Host, port and database.
    pub place: String,
    /// The processes that have it open for writing.
    pub hosts: Vec<HostState>,
}

/// A transfer of an original that was begun and is not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingTransfer {
    /// The item.
    pub names: Names,
    /// The service of the Archive to which it goes.
    pub to: Names,
    /// Whether it is being cancelled.
    pub is_cancelled: bool,
}

/// An original that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The item.
    pub names: Names,
    /// The time of its removal.
    pub at: Timestamp,
    /// The Archives that are known to have a copy.
    pub copies: Vec<String>,
}

impl Status {
    /// The status of a mount that is in use, of which [`Status::add`] says more: not the numbers of all items, which a user who
    /// may not enter the store is not told.
    #[must_use]
    pub fn of_mount() -> Status {
        Status {
            service: None,
            index: IndexState::Current,
            trouble: None,
            items: None,
            content: None,
            minted: None,
            removed: Vec::new(),
            transfers: Vec::new(),
            damaged: Vec::new(),
            originals_gone: Vec::new(),
            server: None,
        }
    }

    /// Adds what a line of [`Keeper::status_lines`] says.
    pub fn add(&mut self, line: &Line) {
        if let Some(text) = line.get("text") {
            let facts = Facts::parse(text.as_bytes());
            self.service = facts.ok().map(|facts| facts.service);
        }
        let Some(names) = line.names("item") else {
            return;
        };
        if let Some(at) = line
            .get("at")
            .and_then(|at| Timestamp::parse_rfc3339(at).ok())
        {
            let copies = line.all("copy").map(str::to_owned).collect();
            self.removed.push(Removed { names, at, copies });
        } else if let Some(to) = line.names("to") {
            let is_cancelled = line.get("cancelled").is_some();
            self.transfers.push(PendingTransfer {
                names,
                to,
                is_cancelled,
            });
        }
    }

    /// The status of a store, mounted or not. What cannot be read is part of the status, not an error.
    pub fn of(store: &Path, clock: &dyn Clock) -> Status {
        let read =
            Archive::open_read_only(store).and_then(|archive| archive.keeper().status(clock));
        read.unwrap_or_else(|error| {
            let index = match &error {
                ArchiveError::Store(StoreError::Away { .. }) => IndexState::Unreadable,
                _ if is_missing(store) => IndexState::Missing,
                ArchiveError::Store(StoreError::Older { .. }) => IndexState::Older,
                ArchiveError::Store(StoreError::Newer { .. }) => IndexState::Newer,
                ArchiveError::Store(error) if error.is_damage() => IndexState::Damaged,
                _ => IndexState::Unreadable,
            };
            Status {
                service: None,
                index,
                trouble: Some(error.message()),
                items: None,
                content: None,
                minted: None,
                removed: Vec::new(),
                transfers: Vec::new(),
                damaged: Vec::new(),
                originals_gone: Vec::new(),
                server: server_of(store),
            }
        })
    }
}

/// The items that have damaged or lost files, with the number of these.
pub(super) fn damaged_items(tree: &Tree) -> Vec<(Names, u64)> {
    let named = |(place, count): (String, u64)| Some((names_of_place(&place)?, count));
    damage(tree).into_iter().filter_map(named).collect()
}

/// The names of an item by its place.
pub fn names_of_place(place: &str) -> Option<Names> {
    let (area, path) = place.split_once('/')?;
    let area = [Area::Col, Area::Ibip]
        .into_iter()
        .find(|it| it.name() == area)?;
    names_at(area, path)
}

/// The server of a store's index, which does not answer.
fn server_of(store: &Path) -> Option<Server> {
    let (facts, _) = Archive::open_tree(store).ok()?;
    Some(Server {
        place: facts.index?.place().to_owned(),
        hosts: Vec::new(),
    })
}

fn is_missing(store: &Path) -> bool {
    let file = store.join(crate::archive::store::FILE);
    file.symlink_metadata()
        .is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

impl Keeper<'_> {
    /// The originals removed in the last 30 days that no other Archive has claimed.
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
                removed.push((item.id, item.names.clone(), at));
            }
            Ok(())
        })?;
        let mut originals = Vec::new();
        for (id, names, at) in removed {
            let tombstone = self.store.sidecar(id)?;
            let tombstone = tombstone.and_then(|bytes| Sidecar::parse(&bytes).ok());
            if !tombstone.is_some_and(|it| it.is_unminted()) {
                let copies = self.copies_elsewhere(&names);
                originals.push(Removed { names, at, copies });
            }
        }
        let mut removed = originals;
        removed.sort_by(|one, other| other.at.cmp(&one.at));
        // A claim that was made beside a mount is written to the tombstone later.
        removed.retain(|it| {
            let noted = self.handover(&it.names).ok().flatten();
            !noted.is_some_and(|noted| noted.is_taken)
        });
        Ok(removed)
    }

    /// The transfers under way. One that cannot be read is a finding of a check.
    fn pending_transfers(&self) -> Vec<PendingTransfer> {
        let handovers = self.handovers().unwrap_or_else(|error| {
            log::debug!("the items being transferred are not known: {error}");
            Vec::new()
        });
        let pending = handovers.into_iter().filter(|(_, it)| it.is_pending());
        let pending = pending.map(|(names, handover)| PendingTransfer {
            names,
            is_cancelled: handover.role == Role::TakesBack,
            to: handover.other,
        });
        pending.collect()
    }

    /// The status of this store in lines, without what concerns all of its items, and with the items that a reader may see.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn status_lines(
        &self,
        reader: &ReadAs<'_>,
        clock: &dyn Clock,
    ) -> Result<Vec<Line>, ArchiveError> {
        let mut lines = vec![self.facts_line()?];
        for Removed { names, at, copies } in self.removed_originals(&clock.now())? {
            if reader.is_shown(&names)? {
                let line = Line::new("removed").with_names("item", &names);
                lines.push(line.with("at", at.to_rfc3339()).with_all("copy", copies));
            }
        }
        for pending in self.pending_transfers() {
            if reader.is_shown(&pending.names)? {
                let line = Line::new("transfer").with_names("item", &pending.names);
                let line = line.with_names("to", &pending.to);
                let cancelled = pending.is_cancelled.then_some("yes");
                lines.push(line.with_all("cancelled", cancelled));
            }
        }
        Ok(lines)
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
        // A process that has the store open leaves marks, which mean nothing while it runs.
        let is_marked = || -> Result<bool, ArchiveError> {
            Ok(!self.store.dirty_regions()?.is_empty() || !self.store.unsettled()?.is_empty())
        };
        let hosts = self.store.hosts()?;
        let is_unused = holder(self.tree.path()).is_none() && hosts.is_empty();
        let is_behind = is_unused && is_marked()?;
        Ok(Status {
            service: Some(self.facts.service.clone()),
            index: if is_behind {
                IndexState::Behind
            } else {
                IndexState::Current
            },
            trouble: is_behind.then(|| {
                message!("it was not closed after a crash; the next mount brings it up to date")
            }),
            items: Some(self.store.counts()?),
            content: Some(self.store.content_totals()?),
            minted: Some(minted),
            removed: self.removed_originals(&now)?,
            transfers: self.pending_transfers(),
            damaged: damaged_items(&self.tree),
            originals_gone: self.originals_gone(),
            server: self.facts.index.as_ref().map(|index| Server {
                place: index.place().to_owned(),
                hosts,
            }),
        })
    }
}

#[cfg(test)]
mod tests;
