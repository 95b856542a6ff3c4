//! The records of the items for OAI-PMH harvesters: which items have one, and when each last changed.
//!
//! A record gets a new datestamp when its content has changed, for any reason: a metadata file, a sidecar,
//! another item's sidecar, or permissions. Only generating the record again detects all of these, so all
//! records are scanned from time to time, and each is compared with what was last recorded of it. The
//! datestamp is the time at which the change was noticed, so no harvester can have received the new content
//! earlier.
//!
//! Every item has a record, with two exceptions: the Archive's service, and items that are only metadata of
//! another item that is or was held here, whose record contains what they say. Removed items have deleted
//! records. So has an item whose record was published once and that no longer exists, or is no longer public.

use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::archive::store::{Harvest, Item, ItemId, RecordState, Stamped, Window};
use crate::archive::{Archive, ArchiveError, Clock, ReadAs};
use crate::formats::description::{Access, AccessRight, OpenFile};
use crate::formats::item::{Names, State};
use crate::formats::oai::{OaiFormat, local_name};

/// The length of the digest that detects changes of a record, in bytes.
const MARK_BYTES: usize = 16;

/// The number of files of an item that a record lists.
const MOST_FILES: usize = 50;

/// The URL of a file of an item, and its media type.
pub type FileOf<'a> = Box<dyn Fn(&Names, &[u8]) -> (String, &'static str) + 'a>;

/// An Archive and the state of its records.
#[allow(missing_debug_implementations, reason = "it borrows closures")]
pub struct Harvester<'a> {
    /// The Archive as the user reads it for whom the records are. An item that this user may not read has no record.
    pub archive: ReadAs<'a>,
    /// The recorded state of the records.
    pub harvest: &'a Harvest,
    /// The source of the datestamps.
    pub clock: &'a dyn Clock,
    /// The format of the records that are returned.
    pub format: OaiFormat,
    /// The URL of a file of an item, and its media type.
    pub file: FileOf<'a>,
}

/// A current or deleted record, with its present content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HarvestedRecord {
    /// Its item and its datestamp.
    pub stamped: Stamped,
    /// Its element in the wanted format. None for a deleted record, and for one that has no such form.
    pub metadata: Option<String>,
}

/// A page of records.
#[derive(Debug)]
pub struct RecordPage {
    /// The records.
    pub found: Vec<HarvestedRecord>,
    /// The datestamp and name after which the next page begins.
    pub next: Option<(i64, String)>,
    /// The time at which the page was read, in Unix seconds.
    pub at: i64,
}

impl Harvester<'_> {
    /// The present state of an item's record.
    fn look(&self, item: &Item) -> Result<(RecordState, Option<String>), ArchiveError> {
        let _near = self.archive.store().near(&item.names)?;
        if item.state == State::Deleted {
            let is_public = self.archive.is_public(item)?;
            let state = if is_public {
                RecordState::Removed
            } else {
                RecordState::Withdrawn
            };
            return Ok((state, None));
        }
        if !has_record(&self.archive, item)? {
            return Ok((RecordState::Withdrawn, None));
        }
        let root = self.archive.open_content(item, b"");
        let record = root.and_then(|_| self.archive.description(item, None));
        match record {
            Ok(mut description) => {
                // A record has the same datestamp in all formats.
                let element = description.record.core.to_oai_dc_element();
                let access = self.access(item)?;
                if description.access.is_none() {
                    let right = access.as_ref().map(|access| access.right);
                    description.access = right.filter(|right| *right == AccessRight::Restricted);
                }
                let openaire = access.and_then(|access| description.openaire_element(&access));
                let mut digest = Sha256::new();
                digest.update(element.as_bytes());
                digest.update(openaire.as_deref().unwrap_or_default().as_bytes());
                if let Some(right) = description.access {
                    digest.update(right.label().as_bytes());
                    digest.update(
                        description
                            .available
                            .as_deref()
                            .unwrap_or_default()
                            .as_bytes(),
                    );
                }
                let mut digest = digest.finalize().to_vec();
                digest.truncate(MARK_BYTES);
                let state = RecordState::Present {
                    digest,
                    has_form: openaire.is_some(),
                };
                let element = match self.format.description() {
                    Some(format) => description.xml_element(format),
                    None => openaire,
                };
                Ok((state, element))
            }
            Err(ArchiveError::Tree(error)) if !may_pass(error.errno()) => {
                Ok((RecordState::Withdrawn, None))
            }
            Err(error) => Err(error),
        }
    }

    /// The part of an item that the public may read. None if that is not known.
    fn access(&self, item: &Item) -> Result<Option<Access>, ArchiveError> {
        let content = match self.archive.readable_content(item, MOST_FILES) {
            Ok(content) => content,
            Err(ArchiveError::Tree(error)) if !may_pass(error.errno()) => return Ok(None),
            Err(error) => return Err(error),
        };
        let files = content.listing.files.iter().map(|file| {
            let (url, media_type) = (self.file)(&item.names, &file.path);
            OpenFile {
                url,
                media_type: media_type.to_owned(),
                is_main: content.main.as_ref() == Some(&file.path),
            }
        });
        Ok(Some(Access {
            right: content.right,
            files: files.collect(),
        }))
    }

    /// The present record of a local name. None if it never had one.
    pub fn record(&self, name: &str) -> Result<Option<HarvestedRecord>, ArchiveError> {
        let (state, metadata) = match self.item_of(name)? {
            Some(item) => self.look(&item)?,
            None => (RecordState::Withdrawn, None),
        };
        let noted = self
            .harvest
            .note(&[(name.to_owned(), state)], &|| self.clock.now().seconds())?;
        let stamped = noted.into_iter().next().flatten();
        Ok(stamped.map(|stamped| HarvestedRecord { stamped, metadata }))
    }

    /// The item whose record has this local name.
    fn item_of(&self, name: &str) -> Result<Option<Item>, ArchiveError> {
        item_of(&self.archive, name)
    }

    /// A page of the records of a window, with their present content. Ends early once they reach
    /// `most_bytes`.
    pub fn records(
        &self,
        window: &Window,
        most: usize,
        most_bytes: usize,
    ) -> Result<RecordPage, ArchiveError> {
        let page = self
            .harvest
            .page(window, most, &|| self.clock.now().seconds())?;
        let mut part = RecordPage {
            found: Vec::new(),
            next: None,
            at: page.at,
        };
        let mut bytes = 0;
        let last = page.records.len().saturating_sub(1);
        for (at, stamped) in page.records.into_iter().enumerate() {
            let place = (stamped.datestamp, stamped.name.clone());
            let found = if stamped.is_deleted {
                Some(HarvestedRecord {
                    stamped,
                    metadata: None,
                })
            } else {
                self.record(&stamped.name)?
            };
            // A record that has changed just now may be later than the window.
            let is_in_time = |found: &HarvestedRecord| {
                window
                    .until
                    .is_none_or(|until| found.stamped.datestamp <= until)
            };
            let has_form =
                |found: &HarvestedRecord| found.metadata.is_some() || found.stamped.is_deleted;
            if let Some(found) = found.filter(is_in_time).filter(has_form) {
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

    /// The headers of a page of records of a window.
    pub fn headers(&self, window: &Window, most: usize) -> Result<RecordPage, ArchiveError> {
        let page = self
            .harvest
            .page(window, most, &|| self.clock.now().seconds())?;
        let last = page.records.last().filter(|_| page.has_more);
        let next = last.map(|stamped| (stamped.datestamp, stamped.name.clone()));
        let headers = page.records.into_iter();
        Ok(RecordPage {
            found: headers
                .map(|stamped| HarvestedRecord {
                    stamped,
                    metadata: None,
                })
                .collect(),
            next,
            at: page.at,
        })
    }

    /// Updates the records of up to `most` items after one. Returns the last of these items, None at the end.
    pub fn go_through_items(
        &self,
        after: ItemId,
        most: usize,
    ) -> Result<Option<ItemId>, ArchiveError> {
        let items = self.archive.store().items_after(after, most)?;
        let mut states = Vec::with_capacity(items.len());
        for item in &items {
            match self.look(item) {
                Ok((state, _)) => states.push((local_name(&item.names), state)),
                // The record is not known to have changed, and stays as it was.
                Err(error) => log::warn!("the record of {} is not known: {error}", item.names),
            }
        }
        self.harvest.note(&states, &|| self.clock.now().seconds())?;
        Ok(items.last().map(|item| item.id))
    }

    /// Withdraws records whose item no longer exists or has another name, in pages as
    /// [`Self::go_through_items`].
    pub fn go_through_records(
        &self,
        after: &str,
        most: usize,
    ) -> Result<Option<String>, ArchiveError> {
        let names = self.harvest.names_after(after, most)?;
        let mut states = Vec::new();
        for name in &names {
            if self.item_of(name)?.is_none() {
                states.push((name.clone(), RecordState::Withdrawn));
            }
        }
        self.harvest.note(&states, &|| self.clock.now().seconds())?;
        Ok(names.into_iter().next_back())
    }
}

/// The item whose record has this local name.
///
/// # Errors The index cannot be read.
pub fn item_of(archive: &Archive, name: &str) -> Result<Option<Item>, ArchiveError> {
    let found = archive.find_named(name)?;
    Ok(found.filter(|item| local_name(&item.names) == name))
}

/// Whether an item that is not removed has a record of its own.
///
/// # Errors The index cannot be read.
pub fn has_record(archive: &Archive, item: &Item) -> Result<bool, ArchiveError> {
    let is_service = item.names.matches(&archive.facts().service);
    Ok(!is_service && !archive.is_metadata_here(item)?)
}

/// Whether an error is temporary, so that a later attempt may succeed.
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

/// The local name of an identifier in the records.
#[must_use]
pub fn name_of(ibi: ibi::Ibi) -> String {
    local_name(&Names::from(ibi))
}

#[cfg(test)]
mod tests;
