//! Items that their owners withdraw: kept, and shown to no other user. The citation, the date and the reason stay public.

use std::collections::VecDeque;

use rustix::io::Errno;

use super::drafts::{closed, opened};
use super::{Archive, ArchiveError, Editor};
use crate::archive::lock_order::{Rank, RankedMutex};
use crate::archive::store::{Item, ItemId};
use crate::archive::tree::{METADATA_TEXT, Place};
use crate::formats::citation::{CitationLanguage, cite};
use crate::formats::item::{Life, MOST_CHARACTERS, Names, State, Withdrawal, one_line};
use crate::formats::metadata::{Element, read_metadata_text};
use crate::os::caller::Caller;
use ibi::Timestamp;

/// The style of the citation that stays public, as `ibifs cite` prints it. It leaves the title as it is.
const STYLE: &str = "apa";

/// The most texts of [`LastTexts`], the longest in bytes, and the seconds for which one counts.
const MOST_TEXTS: usize = 256;
const LONGEST_TEXT: usize = 64 << 10;
const KEPT_SECONDS: i64 = 600;

/// The metadata texts that were removed last, with their items and times: an item that is removed file by file has lost its
/// text before it is gone.
#[derive(Debug)]
pub(super) struct LastTexts(RankedMutex<VecDeque<(ItemId, i64, Vec<u8>)>>);

impl Default for LastTexts {
    fn default() -> LastTexts {
        LastTexts(RankedMutex::new(Rank::Leaf, VecDeque::new()))
    }
}

impl LastTexts {
    fn add(&self, item: ItemId, now: i64, text: Vec<u8>) {
        let mut texts = self.0.lock();
        texts.retain(|(known, at, _)| *known != item && now - at <= KEPT_SECONDS);
        if texts.len() == MOST_TEXTS {
            texts.pop_front();
        }
        texts.push_back((item, now, text));
    }

    fn take(&self, item: ItemId, now: i64) -> Option<Vec<u8>> {
        let mut texts = self.0.lock();
        let at = texts.iter().position(|(known, ..)| *known == item)?;
        let (_, at, text) = texts.remove(at)?;
        (now - at <= KEPT_SECONDS).then_some(text)
    }
}

/// Reads with the rights of the user nobody.
fn in_public(read: &mut dyn FnMut()) {
    let ran = Caller::NOBODY.read(|| {
        read();
        Ok::<(), Errno>(())
    });
    if let Err(errno) = ran {
        log::debug!("items cannot be read as the user nobody: {errno}");
    }
}

impl Archive {
    /// Keeps the metadata text of an item for a while, if all users may read it, before it is removed.
    pub fn keep_text(&self, item: ItemId) {
        let text = self.store.item(item).ok().flatten().and_then(|item| {
            let place = Place::of(&item.names);
            let read = || -> Result<_, ArchiveError> {
                let open = self.tree.open_for_reader(&place)?;
                Ok(open.read_small(METADATA_TEXT)?)
            };
            self.read_as(&in_public).acting(read).ok().flatten()
        });
        if let Some(text) = text.filter(|text| text.len() <= LONGEST_TEXT) {
            self.last_texts.add(item, self.clock.now().seconds(), text);
        }
    }
}

impl Editor<'_> {
    /// Withdraws an item: writes date, reason and citation to its sidecar, and closes its directory to all but its owner and
    /// group. Of one that is withdrawn already, the reason is replaced, and the rest completed. The item must be public.
    ///
    /// # Errors
    /// The user does not own it; it is a draft, or the item of the service.
    pub fn withdraw(&self, names: &Names, reason: &str) -> Result<(), ArchiveError> {
        let item = self.owned(names)?;
        if item.names.matches(&self.facts.service) {
            return Err(ArchiveError::ServiceItem);
        }
        let reason: String = one_line(reason).chars().take(MOST_CHARACTERS).collect();
        let mut life = item.life.clone();
        let at = match life.withdrawn {
            Some(before) => before.at,
            None => {
                let Some((citation, _)) = self.citation_in_public(&item, None)? else {
                    return Err(ArchiveError::Draft(item.names.into()));
                };
                life.citation = Some(citation);
                Timestamp::from_unix(self.clock.now().seconds(), 0)
            }
        };
        life.withdrawn = Some(Withdrawal {
            at,
            reason,
            is_of_copy: item.state == State::Copy,
        });
        // Said first: a reader who finds the directory closed and nothing said takes it for a draft.
        self.edit_sidecar(&item, move |sidecar| sidecar.set_life(life))?;
        self.close(&item.names)
    }

    /// Closes an item's directory to all but its owner and group, with the rights of this process.
    pub fn close(&self, names: &Names) -> Result<(), ArchiveError> {
        let item = self.held(names)?.ok_or_else(|| ArchiveError::Unknown {
            name: names.preferred(),
        })?;
        self.set_directory_mode(&item, closed)?;
        Ok(())
    }

    /// Ends a withdrawal: opens the item's directory, unless the item was no public one, and removes date, reason and citation
    /// from its sidecar. Returns whether it was withdrawn.
    ///
    /// # Errors
    /// The user does not own it.
    pub fn restore_withdrawn(&self, names: &Names) -> Result<bool, ArchiveError> {
        let item = self.owned(names)?;
        if item.life.withdrawn.is_none() {
            return Ok(false);
        }
        if item.life.citation.is_some() {
            self.set_directory_mode(&item, opened)?;
        }
        let life = Life {
            withdrawn: None,
            citation: None,
            ..item.life.clone()
        };
        self.edit_sidecar(&item, move |sidecar| sidecar.set_life(life))?;
        Ok(true)
    }

    /// The citation of an item that is open to all users, made of what they may read of its description, or else of its last
    /// text, and whether that has a title; None of another item.
    fn citation_in_public(
        &self,
        item: &Item,
        last_text: Option<&[u8]>,
    ) -> Result<Option<(String, bool)>, ArchiveError> {
        if !self.tree.is_for_all(&Place::of(&item.names)) {
            return Ok(None);
        }
        let reader = self.read_as(&in_public);
        let record = match reader.record_about(item, None) {
            Ok(record) => record,
            Err(error) if error.is_refusal() => {
                return Ok(Some((item.names.preferred(), false)));
            }
            Err(error) => return Err(error),
        };
        let last = last_text
            .filter(|_| record.core.first(Element::Title).is_none())
            .and_then(|text| read_metadata_text(text).ok());
        let relations = reader.relations_shown(item)?;
        let description = reader.description_by(item, last.unwrap_or(record), &relations)?;
        let cited = cite(&description, STYLE, CitationLanguage::English);
        let cited = cited.unwrap_or_else(|error| {
            log::info!("{}: {error}", item.names);
            item.names.preferred()
        });
        let has_title = description.record.core.first(Element::Title).is_some();
        Ok(Some((
            cited.chars().take(MOST_CHARACTERS).collect(),
            has_title,
        )))
    }

    /// The citation that the tombstone of an item keeps: that of a public item which has a title, or had one until now.
    pub(super) fn citation_left(&self, item: &Item) -> Option<String> {
        let text = self.last_texts.take(item.id, self.clock.now().seconds());
        let cited = self.citation_in_public(item, text.as_deref());
        let cited = cited.unwrap_or_else(|error| {
            log::info!("no citation of {} is kept: {error}", item.names);
            None
        });
        cited.and_then(|(citation, has_title)| has_title.then_some(citation))
    }

    /// An item that is held here and whose directory is this user's.
    fn owned(&self, names: &Names) -> Result<Item, ArchiveError> {
        let item = self.held_by(names)?;
        if self.actor.owns(self.stat_of_directory(&item)?.st_uid) {
            Ok(item)
        } else {
            Err(ArchiveError::NotAllowed(item.names.into()))
        }
    }
}
