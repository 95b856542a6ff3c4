//! The far ends of relations: what the sidecar of the other item says, and how it changes with this one's.

use std::collections::BTreeMap;

use super::rights::Traversal;
use super::sidecars::{Edit, EditOf};
use super::{ArchiveError, Editor};
use crate::archive::store::{Item, Kinds};
use crate::archive::tree::Place;
use crate::formats::item::{Names, State};
use ibi::relation::RelationKind;

/// The number of other items that are searched for one that has the same relation to an item.
const MOST_THIRD: usize = 64;

/// A change of a relation at the near end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelationChange {
    Added,
    Removed,
}

impl Editor<'_> {
    pub(super) fn declares_kind(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<bool, ArchiveError> {
        Ok(self.current_relation(item, kind)?.is_some())
    }

    pub(super) fn declares(
        &self,
        item: &Item,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<bool, ArchiveError> {
        self.declares_one(item, target, |known| known == kind)
    }

    /// Whether an item declares one of the kinds that are meant for `target`.
    fn declares_one(
        &self,
        item: &Item,
        target: &Names,
        is_meant: impl Fn(&RelationKind) -> bool,
    ) -> Result<bool, ArchiveError> {
        let declared = self.store.relations_of(item.id)?;
        let mut declared = declared.iter();
        Ok(declared.any(|(known, names)| is_meant(known) && names.matches(target)))
    }

    /// Whether an item declares another kind with the same inverse for `target`: it may be a
    /// translation into two languages, and names the item that it translates once.
    pub(super) fn declares_otherwise(
        &self,
        item: &Item,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<bool, ArchiveError> {
        self.declares_one(item, target, |known| {
            known != kind
                && !kind.is_inverse()
                && !known.is_inverse()
                && inverse(known) == inverse(kind)
        })
    }

    /// Removes an item's relations of these kinds to another item. If a third item also declares
    /// the same relation (two items may have the same next edition, and two may say that they are the
    /// next one), and its owner may write this sidecar, the pair is set to the third item instead.
    pub(super) fn edit_without_relation(
        &self,
        item: &Item,
        kinds: Vec<RelationKind>,
        other: &Names,
    ) -> Result<Edit, ArchiveError> {
        let speakers = self.speakers_that_count(item)?;
        let third = |kind: &RelationKind| -> Result<Option<Names>, ArchiveError> {
            let facing = Kinds::facing(kind);
            let declared = self
                .store
                .declared_to(&item.names, &facing, &speakers, MOST_THIRD)?;
            let third = declared.into_iter().find(|(declared, source)| {
                declared.inverse(source.language) == Some(*kind)
                    && source.state == State::Original
                    && !source.names.matches(other)
            });
            Ok(third.map(|(_, source)| source.names))
        };
        let kinds = kinds.iter().map(|kind| Ok((*kind, third(kind)?)));
        let kinds = kinds.collect::<Result<Vec<_>, ArchiveError>>()?;
        Ok(Box::new(move |sidecar| {
            for (kind, third) in &kinds {
                match third {
                    Some(third) => sidecar.set_relation(kind, third),
                    None => {
                        sidecar.remove_relation(kind);
                    }
                }
            }
        }))
    }

    /// Removes the inverse pair from the previous target of a relation, if the target changes.
    pub(super) fn removal_at_far_end(
        &self,
        near: &Item,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<Option<EditOf>, ArchiveError> {
        let declared = self.store.relations_of(near.id)?;
        let Some((_, before)) = declared.into_iter().find(|(known, _)| known == kind) else {
            return Ok(None);
        };
        if before.matches(target) || self.declares_otherwise(near, kind, &before)? {
            return Ok(None);
        }
        let back = inverse(kind);
        Ok(match self.held(&before)? {
            Some(far)
                if far.state == State::Original
                    && self.declares(&far, &back, &near.names)?
                    && self.may_write_sidecar(&far.names, Traversal::Checked)? =>
            {
                let edit = self.edit_without_relation(&far, vec![back], &near.names)?;
                let author = self.author_after(&far.names)?;
                Some((far, edit, author))
            }
            _ => None,
        })
    }

    /// After the sidecar of an original was written, updates the far ends of relations that were
    /// added or removed. Only originals here are written, and only those that `is_meant` selects and
    /// the user may write. A relation that a far end declares already is not written again.
    pub(super) fn update_far_ends(
        &self,
        near: &Item,
        before: &[(RelationKind, Names)],
        is_meant: impl Fn(&Names) -> bool,
    ) -> Result<(), ArchiveError> {
        if near.state != State::Original {
            return Ok(());
        }
        let now = self.store.relations_of(near.id)?;
        for (kind, names, change) in changes(before, &now) {
            if !is_meant(&self.complete(&names)?) {
                continue;
            }
            // The near end is already valid, so a far end that cannot be written is left to fsck.
            if let Err(error) = self.update_far_end(near, &kind, &names, change) {
                log::warn!("{} of {}: {error}", kind.pair_name(), near.names);
            }
        }
        Ok(())
    }

    pub(super) fn update_far_end(
        &self,
        near: &Item,
        kind: &RelationKind,
        names: &Names,
        change: RelationChange,
    ) -> Result<(), ArchiveError> {
        let far = self.held(names)?;
        let Some(far) = far.filter(|far| far.state == State::Original) else {
            return Ok(());
        };
        let declared = self.store.relations_of(far.id)?;
        let declaring_kinds: Vec<RelationKind> = declared
            .iter()
            .filter(|(known, other)| known != kind && other.matches(&near.names))
            .filter(|(known, _)| inverse(known) == *kind || *known == inverse(kind))
            .map(|(known, _)| *known)
            .collect();
        if change == RelationChange::Removed {
            let is_kept =
                declaring_kinds.is_empty() || self.declares_otherwise(near, kind, &far.names)?;
            return match is_kept {
                true => Ok(()),
                false if !self.may_write_sidecar(&far.names, Traversal::Checked)? => Ok(()),
                false => {
                    let edit = self.edit_without_relation(&far, declaring_kinds, &near.names)?;
                    let author = self.author_after(&far.names)?;
                    self.edit_sidecars(vec![(far, edit, author)])
                }
            };
        }
        let Some(back) = kind.inverse(near.language) else {
            return Ok(());
        };
        // The far end's own next edition, translation or metadata has precedence there.
        let is_taken = kind.is_inverse() && self.declares_kind(&far, &back)?;
        if !declaring_kinds.is_empty()
            || is_taken
            || !self.may_write_sidecar(&far.names, Traversal::Checked)?
        {
            return Ok(());
        }
        let edit = edit_of_far_end(*kind, back, near.names.clone());
        let author = self.author_after(&far.names)?;
        self.edit_sidecars(vec![(far, edit, author)])
    }

    /// After the language of an item was set, updates the item of which it is a translation.
    pub(super) fn update_translated_item(&self, item: &Item) -> Result<(), ArchiveError> {
        let kind = RelationKind::TranslationOf;
        match self.declared_relation(item, &kind)? {
            Some((_, names)) => self.update_far_end(item, &kind, &names, RelationChange::Added),
            None => Ok(()),
        }
    }

    /// The places of the originals here whose sidecars the user may write and that change with the
    /// relations of another item.
    pub(super) fn ends_of(
        &self,
        before: &[(RelationKind, Names)],
        now: &[(RelationKind, Names)],
    ) -> Result<Vec<Place>, ArchiveError> {
        let mut ends = Vec::new();
        for (_, names, _) in changes(before, now) {
            // An end that cannot be read is left to fsck.
            let is_end = |far: &Item| {
                far.state == State::Original
                    && self
                        .may_write_sidecar(&far.names, Traversal::Checked)
                        .unwrap_or(false)
            };
            let far = self.held(&names)?.filter(is_end);
            ends.extend(far.map(|far| Place::of(&far.names)));
        }
        Ok(ends)
    }
}

/// The relations that were removed and added. A sidecar declares each kind once.
fn changes(
    before: &[(RelationKind, Names)],
    now: &[(RelationKind, Names)],
) -> Vec<(RelationKind, Names, RelationChange)> {
    let not_in = |known: &[(RelationKind, Names)], change: RelationChange| {
        let known: BTreeMap<RelationKind, Names> = known.iter().cloned().collect();
        move |(kind, names): &(RelationKind, Names)| {
            let is_known = known.get(kind).is_some_and(|other| other.matches(names));
            (!is_known).then(|| (*kind, names.clone(), change))
        }
    };
    let gone = before
        .iter()
        .filter_map(not_in(now, RelationChange::Removed));
    let new = now.iter().filter_map(not_in(before, RelationChange::Added));
    gone.chain(new).collect()
}

/// Writes the inverse relation at the far end, and its language if the far end has none.
pub(super) fn edit_of_far_end(kind: RelationKind, back: RelationKind, near: Names) -> Edit {
    Box::new(move |sidecar| {
        sidecar.set_relation(&back, &near);
        if let RelationKind::Translation(language) = &kind
            && sidecar.language().is_none()
        {
            sidecar.set_language(language);
        }
    })
}

/// The inverse of a direct kind. An inverse kind is returned unchanged; callers have converted it before.
pub(super) fn inverse(kind: &RelationKind) -> RelationKind {
    kind.inverse(None).unwrap_or(*kind)
}
