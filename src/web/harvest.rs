//! What harvesters are told of the items: which have records, and since when each says what it says.
//!
//! A record is told anew when what it says has changed, whatever changed it: a file of the metadata, a
//! sidecar, another item's sidecar, or who may read. Nothing but saying it again tells all of that, so
//! all records are gone through now and then, and each is compared with what was told of it. Its
//! datestamp is when the change was noticed, which no harvester who was answered earlier can have seen.
//!
//! Items have records, but for those that are only metadata of another that is held here or was, whose
//! record says what they say, and for the Archive's service. Removed items have deleted records, and so has
//! what was told once and is not there any more, or not for everybody.

use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::archive::store::{Harvest, Item, ItemId, Mark, Stamped, Window};
use crate::archive::tree::Dependencies;
use crate::archive::{Act, Archive, ArchiveError, Clock};
use crate::formats::item::{Names, State};
use crate::formats::oai::local_name;

/// How much of a digest tells records apart, in bytes.
const MARK_BYTES: usize = 16;

/// An Archive and what harvesters know of it.
#[allow(missing_debug_implementations, reason = "it borrows closures")]
pub struct Harvester<'a> {
    /// The Archive.
    pub archive: &'a Archive,
    /// What was told.
    pub harvest: &'a Harvest,
    /// Whoever records are for: what they may not read has none.
    pub act: Act<'a>,
    /// What the datestamps are read from.
    pub clock: &'a dyn Clock,
}

/// A record that is or was told, with what it says at present.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Whose it is, and since when it says it.
    pub stamped: Stamped,
    /// Its oai_dc, as an element; none of a deleted one.
    pub metadata: Option<String>,
}

/// Some records.
#[derive(Debug)]
pub struct Part {
    /// The records.
    pub found: Vec<Found>,
    /// The datestamp and name after which more follow.
    pub next: Option<(i64, String)>,
    /// When they were looked up, in Unix seconds.
    pub at: i64,
}

impl Harvester<'_> {
    /// What there is to tell of an item at present.
    fn look(&self, item: &Item) -> Result<(Mark, Option<String>), ArchiveError> {
        if item.state == State::Deleted {
            let is_public = self
                .archive
                .is_public(item, self.act, &Dependencies::default())?;
            let mark = if is_public {
                Mark::Removed
            } else {
                Mark::Withdrawn
            };
            return Ok((mark, None));
        }
        let is_service = item.names.matches(&self.archive.facts().service);
        if is_service || self.archive.is_metadata_here(item)? {
            return Ok((Mark::Withdrawn, None));
        }
        let root = self.archive.open_content(item, b"", self.act);
        let record = root.and_then(|_| self.archive.described(item, None, self.act));
        match record {
            Ok(record) => {
                let element = record.to_oai_dc_element();
                let mut digest = Sha256::digest(element.as_bytes()).to_vec();
                digest.truncate(MARK_BYTES);
                Ok((Mark::Told(digest), Some(element)))
            }
            Err(ArchiveError::Tree(error)) if !may_pass(error.errno()) => {
                Ok((Mark::Withdrawn, None))
            }
            Err(error) => Err(error),
        }
    }

    /// The record under a local name, as it is at present; None where none was ever told.
    pub fn record(&self, name: &str) -> Result<Option<Found>, ArchiveError> {
        let (mark, metadata) = match self.item_of(name)? {
            Some(item) => self.look(&item)?,
            None => (Mark::Withdrawn, None),
        };
        let noted = self
            .harvest
            .note(&[(name.to_owned(), mark)], &|| self.clock.now().seconds())?;
        let stamped = noted.into_iter().next().flatten();
        Ok(stamped.map(|stamped| Found { stamped, metadata }))
    }

    /// The item that has its record under a local name.
    fn item_of(&self, name: &str) -> Result<Option<Item>, ArchiveError> {
        let found = self.archive.find_named(name)?;
        Ok(found.filter(|item| local_name(&item.names) == name))
    }

    /// Some records of a window, as they are at present; no more once they come to so many bytes.
    pub fn records(
        &self,
        window: &Window,
        most: usize,
        most_bytes: usize,
    ) -> Result<Part, ArchiveError> {
        let page = self
            .harvest
            .page(window, most, &|| self.clock.now().seconds())?;
        let mut part = Part {
            found: Vec::new(),
            next: None,
            at: page.at,
        };
        let mut bytes = 0;
        let last = page.records.len().saturating_sub(1);
        for (at, stamped) in page.records.into_iter().enumerate() {
            let place = (stamped.datestamp, stamped.name.clone());
            let found = if stamped.is_deleted {
                Some(Found {
                    stamped,
                    metadata: None,
                })
            } else {
                self.record(&stamped.name)?
            };
            // What has changed just now may be later than what is asked for.
            let is_in_time = |found: &Found| {
                window
                    .until
                    .is_none_or(|until| found.stamped.datestamp <= until)
            };
            if let Some(found) = found.filter(is_in_time) {
                bytes += found.metadata.as_ref().map_or(0, String::len);
                part.found.push(found);
            }
            let has_more = at < last || page.has_more;
            if has_more && (at == last || bytes >= most_bytes) {
                part.next = Some(place);
                break;
            }
        }
        Ok(part)
    }

    /// The headers of some records of a window.
    pub fn headers(&self, window: &Window, most: usize) -> Result<Part, ArchiveError> {
        let page = self
            .harvest
            .page(window, most, &|| self.clock.now().seconds())?;
        let last = page.records.last().filter(|_| page.has_more);
        let next = last.map(|stamped| (stamped.datestamp, stamped.name.clone()));
        let headers = page.records.into_iter();
        Ok(Part {
            found: headers
                .map(|stamped| Found {
                    stamped,
                    metadata: None,
                })
                .collect(),
            next,
            at: page.at,
        })
    }

    /// Notes what there is to tell of some items, from after one on; answers the last of them, None at
    /// the end.
    pub fn go_through_items(
        &self,
        after: ItemId,
        most: usize,
    ) -> Result<Option<ItemId>, ArchiveError> {
        let items = self.archive.store().items_after(after, most)?;
        let mut marks = Vec::with_capacity(items.len());
        for item in &items {
            match self.look(item) {
                Ok((mark, _)) => marks.push((local_name(&item.names), mark)),
                // It is as it was, as far as we can tell.
                Err(error) => log::warn!("the record of {} is not known: {error}", item.names),
            }
        }
        self.harvest.note(&marks, &|| self.clock.now().seconds())?;
        Ok(items.last().map(|item| item.id))
    }

    /// Notes which records have no item any more, or have another name now, in the same way.
    pub fn go_through_records(
        &self,
        after: &str,
        most: usize,
    ) -> Result<Option<String>, ArchiveError> {
        let names = self.harvest.names_after(after, most)?;
        let mut marks = Vec::new();
        for name in &names {
            if self.item_of(name)?.is_none() {
                marks.push((name.clone(), Mark::Withdrawn));
            }
        }
        self.harvest.note(&marks, &|| self.clock.now().seconds())?;
        Ok(names.into_iter().next_back())
    }
}

/// Whether what could not be read may be read the next time.
fn may_pass(errno: Errno) -> bool {
    [
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::IO,
        Errno::AGAIN,
        Errno::INTR,
        Errno::STALE,
    ]
    .contains(&errno)
}

/// The local name that an identifier has in the records.
#[must_use]
pub fn name_of(ibi: ibi::Ibi) -> String {
    local_name(&Names::from(ibi))
}

#[cfg(test)]
mod tests;
