//! The things that a scan of the tree is compared with, and its results: the previous index, the present date, and
//! the state of the scan. Nothing here reads the tree.

use std::collections::BTreeSet;

use super::finding::CheckReport;
use crate::archive::ArchiveError;
use crate::archive::store::{Item, Record, Speaker, Store, StoreError};
use crate::archive::tree::Place;
use crate::formats::item::{Names, State};
use ibi::{AliasPair, Timestamp};

/// The result of reading the whole tree, apart from the records themselves.
#[derive(Default)]
pub(super) struct ScanSummary {
    /// The last date in the Archive's own name space that is not in the future, and its rep.
    pub(super) own: Option<(Timestamp, String)>,
    /// The last date of all in that name space, and its rep.
    pub(super) latest: Option<(Timestamp, String)>,
    /// Items to be moved from the directory of their IBIp to that of their rep, by the IBIp.
    pub(super) unmoved: Vec<Names>,
    pub(super) report: CheckReport,
}

/// The state known before, for items whose sidecar is not accepted now.
pub(super) struct PreviousIndex<'a> {
    pub(super) index: Option<&'a Store>,
    /// Whether the index is about to be replaced. Then differences from it are reported, and a tree
    /// that cannot be read is an error.
    pub(super) is_last: bool,
}

impl PreviousIndex<'_> {
    pub(super) fn sidecar(&self, names: &Names) -> Result<Option<Vec<u8>>, ArchiveError> {
        self.query(|index| index.accepted_sidecar(names))
    }

    pub(super) fn item(&self, names: &Names) -> Result<Option<Item>, ArchiveError> {
        self.query(|index| index.find_by_names(names))
    }

    /// The user who speaks in the sidecar that was last accepted for an item.
    pub(super) fn speaker(&self, names: &Names) -> Result<Option<Speaker>, ArchiveError> {
        match self.item(names)? {
            Some(item) => self.query(|index| index.speaker(item.id)),
            None => Ok(None),
        }
    }

    pub(super) fn has_alias(&self, names: &Names, alias: &AliasPair) -> Result<bool, ArchiveError> {
        let holder = self.query(|index| index.find_by_alias(alias))?;
        Ok(holder.is_some_and(|holder| holder.names.matches(names)))
    }

    pub(super) fn query<T>(
        &self,
        query: impl FnOnce(&Store) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, ArchiveError> {
        match self.index.map(query) {
            Some(Err(error)) if self.is_last => Err(error.into()),
            // A damaged index is reported by the comparison.
            Some(known) => Ok(known.ok().flatten()),
            None => Ok(None),
        }
    }
}

/// The time against which dates in the tree are checked.
pub(super) struct DateBounds {
    /// The present.
    pub(super) now: Timestamp,
    /// Dates of the own name space up to this one count as given out; not before the present.
    pub(super) last: Option<Timestamp>,
}

/// The record of an item or a tombstone in the tree.
pub(super) struct ReadRecord {
    pub(super) record: Record,
    /// Whether it is that of a sidecar that is accepted.
    pub(super) is_accepted: bool,
}

impl ReadRecord {
    /// The names of the place and a state, for a sidecar that is not accepted.
    pub(super) fn bare(place: &Names, state: State) -> ReadRecord {
        ReadRecord {
            record: Record::bare(place.clone(), state),
            is_accepted: false,
        }
    }
}

/// One place of the tree while it is read.
pub(super) struct PlaceContext<'a> {
    /// The item's name according to its place.
    pub(super) place: &'a Names,
    pub(super) before: &'a PreviousIndex<'a>,
    /// The sidecar that was last accepted for the item.
    pub(super) accepted_before: Option<&'a [u8]>,
    pub(super) present: &'a DateBounds,
}

/// Whether a place is in one of these directories.
pub(super) fn is_below(place: &Place, directories: &BTreeSet<String>) -> bool {
    let above = place.as_str().match_indices('/');
    above
        .filter_map(|(at, _)| place.as_str().get(..at))
        .any(|above| directories.contains(above))
}
