//! Visibility: what a reader may see. An item is visible if the reader has access through the
//! levels above it and may read its directory; a removed item, if its tombstone may be read. An
//! item that is not visible is not mentioned, even as the target of a relation.

use rustix::io::Errno;

use super::{Archive, ArchiveError, GoneRelation, ReadAs, Related, Relations};
use crate::archive::store::Item;
use crate::archive::tree::Action;
use crate::archive::tree::{Dependencies, Place};
use crate::formats::copies::Gone;
use crate::formats::item::{Names, State};
use ibi::relation::{Language, Modifier, Step};

/// The number of relations of an item that are checked for a reader.
const MOST_LOOKED_AT: usize = 2_000;

impl ReadAs<'_> {
    /// Whether an item is visible to the reader `act`. The Archive's own service always is.
    pub fn is_public(&self, item: &Item) -> Result<bool, ArchiveError> {
        if item.names.matches(&self.facts.service) {
            return Ok(true);
        }
        let place = Place::of(&item.names);
        if item.state == State::Deleted {
            self.give_up();
            return self.acting(|| Ok(self.tree.may_read_tombstone(&place)?));
        }
        if item.life.withdrawn.is_some() && self.tree.is_for_all(&place) {
            // Its directory is not closed yet, or was opened again.
            self.give_up();
            return Ok(false);
        }
        let seen = self.acting(|| {
            let open = self.tree.open_for_reader(&place)?;
            let seen = Dependencies::at(self.dependencies, &open, b"", || {
                open.publish(b"").map_err(|error| error.errno())
            });
            seen.map_err(|errno| self.tree.error(Action::Open, place.as_str(), errno))
        });
        match seen {
            Ok(_) => Ok(true),
            Err(error) if is_refusal(error.errno()) => {
                // A later change of these permissions cannot be detected.
                self.give_up();
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Whether an item is withdrawn that was public, and whose levels the reader may pass: what is left of it is public.
    pub fn is_withdrawn(&self, item: &Item) -> Result<bool, ArchiveError> {
        let is_withdrawn = item.state != State::Deleted
            && item.life.withdrawn.is_some()
            && item.life.citation.is_some();
        if !is_withdrawn {
            return Ok(false);
        }
        self.give_up();
        let place = Place::of(&item.names);
        self.acting(|| Ok(self.tree.may_come_near(&place)?))
    }

    /// The end of an item that was public, as readers are told of it.
    pub fn gone(&self, item: &Item) -> Result<Option<Gone>, ArchiveError> {
        let is_told = match item.state {
            State::Deleted => self.is_public(item)?,
            _ => self.is_withdrawn(item)?,
        };
        Ok(gone_of(item).filter(|_| is_told))
    }

    /// Whether the item with these names is visible. An item that is not known here is visible, since
    /// only other items name it.
    pub fn is_shown(&self, names: &Names) -> Result<bool, ArchiveError> {
        match self.store.find_by_names(names)? {
            Some(item) => self.is_public(&item),
            None => Ok(true),
        }
    }

    /// The last edition that is visible to the reader. Editions after one that is not visible are
    /// not visible either.
    pub fn last_edition_shown(&self, names: &Names) -> Result<Names, ArchiveError> {
        let mut current = self.complete(names)?;
        let mut visited = super::resolve::Visited::default();
        visited.note(&current);
        while let Some(next) = self.next_edition(&current)? {
            if !self.is_shown(&next)? {
                break;
            }
            if !visited.note(&next) {
                return Err(ArchiveError::Cycle { names: next.into() });
            }
            current = next;
        }
        Ok(current)
    }

    /// The relations of an item to items that are visible to the reader.
    pub fn relations_shown(&self, item: &Item) -> Result<Relations, ArchiveError> {
        let last = || self.last_edition_shown(&item.names);
        let relations = self.relations_with(item, last)?;
        let mut shown = Relations::new();
        for (name, names) in relations.into_iter().take(MOST_LOOKED_AT) {
            if name == "lastedition" || self.is_shown(&names)? {
                shown.push((name, names));
            }
        }
        Ok(shown)
    }

    /// [`Archive::removed_relations`](super::Archive::removed_relations), with those of which the reader may know that.
    pub fn removed_relations_shown(&self, item: &Item) -> Result<Vec<GoneRelation>, ArchiveError> {
        let removed = self.removed_relations(item)?.into_iter();
        let mut shown = Vec::new();
        for relation in removed.take(MOST_LOOKED_AT) {
            let target = self.store.find_by_names(&relation.target)?;
            if let Some(target) = target
                && (self.is_withdrawn(&target)? || self.is_public(&target)?)
            {
                shown.push(relation);
            }
        }
        Ok(shown)
    }

    /// Follows a modifier through visible items. Returns None if a relation is missing.
    pub fn resolve_shown(
        &self,
        names: &Names,
        modifier: &Modifier,
        preferences: &[Language],
    ) -> Result<Option<Related>, ArchiveError> {
        let mut current = names.clone();
        let steps = modifier.steps();
        for (index, step) in steps.iter().enumerate() {
            let is_last = index + 1 == steps.len();
            // The steps after a format still concern the metadata in that format, so they are
            // resolved together.
            let is_rest = matches!(step, Step::Metadata(Some(_)));
            let taken = if is_rest {
                steps.get(index..).unwrap_or_default().to_vec()
            } else {
                vec![step.clone()]
            };
            let related = match step {
                Step::LastEdition => {
                    let last = self.last_edition_shown(&current)?;
                    Some(Related::Item(last))
                }
                _ => match Modifier::from_steps(taken) {
                    Some(modifier) => self.resolve(&current, &modifier, preferences)?,
                    None => None,
                },
            };
            let Some(related) = related else {
                return Ok(None);
            };
            let is_shown = match &related {
                Related::Item(names) => self.is_shown(names)?,
                Related::Text(item) => self.is_public(item)?,
                Related::Description { item, from, .. } => {
                    self.is_public(item)?
                        && match from {
                            Some(from) => self.is_shown(from)?,
                            None => true,
                        }
                }
            };
            match related {
                _ if !is_shown => return Ok(None),
                Related::Item(names) if !is_rest => current = names,
                other if is_last || is_rest => return Ok(Some(other)),
                _ => return Ok(None),
            }
        }
        Ok(Some(Related::Item(current)))
    }
}

impl Archive {
    /// The same by the modes of directories, which tell it also to a process that could not act as another user.
    pub fn gone_in_public(&self, item: &Item) -> Result<Option<Gone>, ArchiveError> {
        let is_removed = item.state == State::Deleted;
        let was_public = is_removed || item.life.citation.is_some();
        let is_told = was_public
            && self
                .tree
                .is_known_to_all(&Place::of(&item.names), is_removed);
        Ok(gone_of(item).filter(|_| is_told))
    }
}

/// The end of an item that was withdrawn or removed.
fn gone_of(item: &Item) -> Option<Gone> {
    let withdrawn = item.life.withdrawn.as_ref();
    let reason = withdrawn.map_or("", |withdrawal| &*withdrawal.reason);
    match item.state {
        State::Deleted => Some(Gone::new(true, item.removed_at.as_ref()?, reason)),
        _ => Some(Gone::new(false, &withdrawn?.at, reason)),
    }
}

impl ArchiveError {
    /// Whether a reader has no access, or the item does not exist.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, ArchiveError::Tree(error) if is_refusal(error.errno()))
    }
}

/// Whether an error means that a reader has no access, or that nothing is there.
pub(super) fn is_refusal(errno: Errno) -> bool {
    [
        Errno::ACCESS,
        Errno::PERM,
        Errno::NOENT,
        Errno::NOTDIR,
        Errno::LOOP,
        Errno::XDEV,
    ]
    .contains(&errno)
}

#[cfg(test)]
mod tests;
