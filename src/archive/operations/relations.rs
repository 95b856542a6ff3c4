//! Declaring and removing relations.
//!
//! A relation is written to the sidecar of each end whose original is in this Archive.

use std::collections::BTreeMap;

use super::sidecars::{Edit, EditOf};
use super::{Actor, Archive, ArchiveError};
use crate::archive::store::Item;
use crate::archive::tree::{Author, Place};
use crate::formats::item::{Names, State};
use ibi::Ibi;
use ibi::message;
use ibi::persistent::{Identifier, PersistentKind, Reader, is_link};
use ibi::relation::RelationKind;

/// How many other items are searched for one that has the same relation to an item.
const MOST_THIRD: usize = 64;

impl Archive {
    /// Completes names with the other form, if the item is held here.
    pub fn complete(&self, names: &Names) -> Result<Names, ArchiveError> {
        Ok(self
            .store
            .find_by_names(names)?
            .map_or_else(|| names.clone(), |item| item.names))
    }

    /// Declares that `target` is the next edition, a translation or the metadata of `source`, and
    /// replaces a previous target. With an inverse kind, declares that `source` is one of `target`.
    ///
    /// The user must have permission to write the sidecar of `source`. The relation is also written at the
    /// other end if the user may write there, but an inverse kind replaces nothing at that end.
    pub fn relate(
        &self,
        actor: &dyn Actor,
        source: &Names,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<(), ArchiveError> {
        self.writable()?;
        let _edits = self.edits();
        let source = self.complete(source)?;
        let target = self.complete(target)?;
        let back = match self.direct_of(kind, &source)? {
            Some(direct) => direct,
            None => inverse(kind),
        };
        if source.matches(&target) {
            return Err(ArchiveError::Cycle {
                names: source.into(),
            });
        }
        let (older, newer) = if kind.is_inverse() {
            (&target, &source)
        } else {
            (&source, &target)
        };
        if [*kind, back].contains(&RelationKind::NextEdition)
            && self.editions_reach(newer, older)?
        {
            return Err(ArchiveError::Cycle {
                names: newer.clone().into(),
            });
        }
        let near = self.held(&source)?;
        if let Some(near) = &near {
            self.refuse_others(actor, near)?;
        }
        let is_original = |item: &Item| item.state == State::Original;
        let far = self.held(&target)?.filter(is_original);
        let is_far_open = match &far {
            Some(far) => self.may_write_sidecar(actor, &far.names, true)?,
            None => false,
        };
        let mut edits = Vec::new();
        match near {
            Some(near) if is_original(&near) => {
                if !kind.is_inverse() {
                    edits.extend(self.removal_at_far_end(actor, &near, kind, &target)?);
                }
                let (said, other) = (*kind, target.clone());
                let edit: Edit = Box::new(move |sidecar| sidecar.set_relation(&said, &other));
                let author = self.author_after(actor, &near.names)?;
                edits.insert(0, (near, edit, author));
                if let Some(far) = far.filter(|_| is_far_open)
                    && !(kind.is_inverse() && self.declares_kind(&far, &back)?)
                {
                    let author = self.author_after(actor, &far.names)?;
                    let edit = edit_of_far_end(*kind, back, source);
                    // The end that has the relation is written first: it is valid alone if a crash follows.
                    let at = if kind.is_inverse() { 0 } else { 1 };
                    edits.insert(at, (far, edit, author));
                }
            }
            near => {
                let far = far.ok_or_else(|| ArchiveError::NotOriginal {
                    what: message!("{source} and {target}", source, target),
                })?;
                if !is_far_open {
                    return Err(ArchiveError::NotAllowed(far.names.into()));
                }
                if kind.is_inverse()
                    && let Some((_, other)) = self.declared_relation(&far, &back)?
                    && !other.matches(&source)
                {
                    return Err(ArchiveError::HasOne {
                        names: far.names.into(),
                        kind: back.pair_name(),
                        target: other.into(),
                    });
                }
                let mut author = self.author_after(actor, &far.names)?;
                if let (Some(near), Some((uid, gid))) = (near, actor.owner())
                    && !self.may_declare_at(&far, &near)
                {
                    // The user may declare the relation, but the previous owner of the sidecar may not.
                    author = Author::User { uid, gid };
                }
                edits.push((far, edit_of_far_end(*kind, back, source), author));
            }
        }
        self.edit_sidecars(edits)
    }

    /// What an item itself declares for a kind.
    fn declared_relation(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<Option<(RelationKind, Names)>, ArchiveError> {
        let declared = self.store.relations_of(item.id)?;
        Ok(declared.into_iter().find(|(known, _)| known == kind))
    }

    fn declares_kind(&self, item: &Item, kind: &RelationKind) -> Result<bool, ArchiveError> {
        Ok(self.declared_relation(item, kind)?.is_some())
    }

    /// After the language of an item was set, updates the item of which it is a translation.
    pub(super) fn update_translated_item(
        &self,
        actor: &dyn Actor,
        item: &Item,
    ) -> Result<(), ArchiveError> {
        let kind = RelationKind::TranslationOf;
        match self.declared_relation(item, &kind)? {
            Some((_, names)) => self.update_far_end(actor, item, &kind, &names, true),
            None => Ok(()),
        }
    }

    /// The direct kind of an inverse one, as seen from the other end.
    fn direct_of(
        &self,
        kind: &RelationKind,
        source: &Names,
    ) -> Result<Option<RelationKind>, ArchiveError> {
        Ok(match kind {
            RelationKind::EditionOf => Some(RelationKind::NextEdition),
            RelationKind::MetadataOf => Some(RelationKind::Metadata),
            RelationKind::TranslationOf => {
                let language = self.held(source)?.and_then(|item| item.language);
                let language = language.ok_or_else(|| ArchiveError::NoRelation {
                    what: message!("{source} has no language; set its language first", source),
                })?;
                Some(RelationKind::Translation(language))
            }
            _ => None,
        })
    }

    /// Removes the inverse pair from the previous target of a relation, if the target changes.
    fn removal_at_far_end(
        &self,
        actor: &dyn Actor,
        near: &Item,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<Option<EditOf>, ArchiveError> {
        let declared = self.store.relations_of(near.id)?;
        let Some((_, before)) = declared.into_iter().find(|(known, _)| known == kind) else {
            return Ok(None);
        };
        if before.matches(target) {
            return Ok(None);
        }
        let back = inverse(kind);
        Ok(match self.held(&before)? {
            Some(far)
                if far.state == State::Original
                    && self.declares(&far, &back, &near.names)?
                    && self.may_write_sidecar(actor, &far.names, true)? =>
            {
                let edit = self.edit_without_relation(&far, vec![back], &near.names)?;
                let author = self.author_after(actor, &far.names)?;
                Some((far, edit, author))
            }
            _ => None,
        })
    }

    /// Removes an item's relations of these kinds to another item. If a third item also declares
    /// the same relation (two items may have the same next edition), and its owner may write this
    /// sidecar, the pair is set to the third item instead.
    fn edit_without_relation(
        &self,
        item: &Item,
        kinds: Vec<RelationKind>,
        other: &Names,
    ) -> Result<Edit, ArchiveError> {
        let claims = self.store.relations_to(&item.names)?;
        let third = |kind: &RelationKind| {
            let claims = claims.iter().filter(|(said, source)| {
                !said.is_inverse()
                    && inverse(said) == *kind
                    && source.state == State::Original
                    && !source.names.matches(other)
            });
            let claim = claims
                .take(MOST_THIRD)
                .find(|(_, source)| self.may_declare_at(source, item));
            claim.map(|(_, source)| source.names.clone())
        };
        let kinds: Vec<_> = kinds.iter().map(|kind| (*kind, third(kind))).collect();
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

    /// After the sidecar of an original was written, updates the far ends of relations that were
    /// added or removed. Only originals here are written, and only those that `is_meant` selects and
    /// the user may write. What a far end declares already is not written again. The caller holds
    /// `edits`.
    pub(super) fn update_far_ends(
        &self,
        actor: &dyn Actor,
        near: &Item,
        before: &[(RelationKind, Names)],
        is_meant: impl Fn(&Names) -> bool,
    ) -> Result<(), ArchiveError> {
        if near.state != State::Original {
            return Ok(());
        }
        let now = self.store.relations_of(near.id)?;
        for (kind, names, is_new) in changes(before, &now) {
            if !is_meant(&self.complete(&names)?) {
                continue;
            }
            // The near end is already valid, so a far end that cannot be written is left to fsck.
            if let Err(error) = self.update_far_end(actor, near, &kind, &names, is_new) {
                log::warn!("{} of {}: {error}", kind.pair_name(), near.names);
            }
        }
        Ok(())
    }

    /// The places of the originals here whose sidecars the user may write and that change with the
    /// relations of another item.
    pub(super) fn ends_of(
        &self,
        actor: &dyn Actor,
        before: &[(RelationKind, Names)],
        now: &[(RelationKind, Names)],
    ) -> Result<Vec<Place>, ArchiveError> {
        let mut ends = Vec::new();
        for (_, names, _) in changes(before, now) {
            // An end that cannot be read is left to fsck.
            let is_end = |far: &Item| {
                far.state == State::Original
                    && self
                        .may_write_sidecar(actor, &far.names, true)
                        .unwrap_or(false)
            };
            let far = self.held(&names)?.filter(is_end);
            ends.extend(far.map(|far| Place::of(&far.names)));
        }
        Ok(ends)
    }

    pub(super) fn update_far_end(
        &self,
        actor: &dyn Actor,
        near: &Item,
        kind: &RelationKind,
        names: &Names,
        is_new: bool,
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
        if !is_new {
            return match declaring_kinds.is_empty() {
                true => Ok(()),
                false if !self.may_write_sidecar(actor, &far.names, true)? => Ok(()),
                false => {
                    let edit = self.edit_without_relation(&far, declaring_kinds, &near.names)?;
                    let author = self.author_after(actor, &far.names)?;
                    self.edit_sidecars(vec![(far, edit, author)])
                }
            };
        }
        let Some(back) = kind.inverse(near.language) else {
            return Ok(());
        };
        // The far end's own next edition, translation or metadata has precedence there.
        let is_taken = kind.is_inverse() && declared.iter().any(|(known, _)| *known == back);
        if !declaring_kinds.is_empty()
            || is_taken
            || !self.may_write_sidecar(actor, &far.names, true)?
        {
            return Ok(());
        }
        let edit = edit_of_far_end(*kind, back, near.names.clone());
        let author = self.author_after(actor, &far.names)?;
        self.edit_sidecars(vec![(far, edit, author)])
    }

    fn declares(
        &self,
        item: &Item,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<bool, ArchiveError> {
        let declared = self.store.relations_of(item.id)?;
        Ok(declared
            .iter()
            .any(|(known, names)| known == kind && names.matches(target)))
    }

    /// Removes a relation from each end whose original is here and whose sidecar the user may write.
    pub fn unrelate(
        &self,
        actor: &dyn Actor,
        source: &Names,
        kind: &RelationKind,
    ) -> Result<(), ArchiveError> {
        self.writable()?;
        let item = self.held(source)?.ok_or_else(|| ArchiveError::Unknown {
            name: source.preferred(),
        })?;
        let no_relation = || ArchiveError::NoRelation {
            what: message!("{kind} of {source}", kind = kind.pair_name(), source),
        };
        if kind.is_inverse() {
            let (direct, names) = self
                .direct_relation_behind(&item, kind)?
                .ok_or_else(no_relation)?;
            return self.unrelate_pair(actor, &names, &direct, (*kind, &item.names), &item);
        }
        let target = self.direct_target(&item, kind)?.ok_or_else(no_relation)?;
        let direct = [*kind];
        self.unrelate_pair(actor, &item.names, &direct, (inverse(kind), &target), &item)
    }

    /// The item that has a relation to this one, and the kinds under which it may declare it.
    fn direct_relation_behind(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<Option<(Vec<RelationKind>, Names)>, ArchiveError> {
        let Some(names) = self.points_back(item, kind)? else {
            return Ok(None);
        };
        let mut direct = Vec::new();
        if let Some(other) = self.held(&names)? {
            for (known, target) in self.store.relations_of(other.id)? {
                if !known.is_inverse() && inverse(&known) == *kind && target.matches(&item.names) {
                    direct.push(known);
                }
            }
        }
        Ok(Some((direct, names)))
    }

    fn unrelate_pair(
        &self,
        actor: &dyn Actor,
        source: &Names,
        direct: &[RelationKind],
        (back, target): (RelationKind, &Names),
        at: &Item,
    ) -> Result<(), ArchiveError> {
        let _edits = self.edits();
        let mut edits = Vec::new();
        let mut refused = None;
        let back_at_here = target.matches(&at.names);
        let ends = [
            (source, direct.to_vec(), target),
            (target, vec![back], source),
        ];
        for (end, kinds, other) in ends {
            let Some(item) = self.held(end)? else {
                continue;
            };
            let mut said = Vec::new();
            for kind in kinds {
                if item.state == State::Original && self.declares(&item, &kind, other)? {
                    said.push(kind);
                }
            }
            if said.is_empty() {
                continue;
            }
            let is_here = item.id == at.id;
            match self.may_write_sidecar(actor, &item.names, !is_here)? {
                true => {
                    let edit = self.edit_without_relation(&item, said, other)?;
                    let author = self.author_after(actor, &item.names)?;
                    edits.push((item, edit, author));
                }
                // The user may not remove it here, or the declaration of the other end would remain
                // valid here.
                false if is_here || !back_at_here && self.may_declare_at(&item, at) => {
                    return Err(ArchiveError::NotAllowed(item.names.into()));
                }
                // The declaration of the other end is left as it is.
                false => refused = Some(item.names),
            }
        }
        match (edits.is_empty(), refused) {
            (false, _) => self.edit_sidecars(edits),
            (true, Some(names)) => Err(ArchiveError::NotAllowed(names.into())),
            (true, None) => Err(ArchiveError::NotOriginal {
                what: message!("{source} and {target}", source, target),
            }),
        }
    }

    /// The names at the end of a path or text: the last four components for a rep, two for an IBIp.
    pub fn names_at_end_of(&self, text: &str) -> Option<Names> {
        if is_link(text) {
            return self.names_in_link(text);
        }
        let parts: Vec<&str> = text
            .trim_end_matches('/')
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        let last = |count: usize| {
            let start = parts.len().checked_sub(count)?;
            Some(parts[start..].join("/"))
        };
        for count in [4, 2] {
            if let Some(text) = last(count)
                && let Ok(ibi) = Ibi::parse(&text)
            {
                return Some(Names::from(ibi));
            }
        }
        let alias = last(2)?;
        self.find_named(&alias)
            .ok()
            .flatten()
            .map(|item| item.names)
    }
}

impl Archive {
    /// The names of the item that a link names; None for one that names a file of it or a related item.
    fn names_in_link(&self, text: &str) -> Option<Names> {
        let name = Reader::new().with_aliases().parse(text).ok()?;
        let is_item = matches!(name.kind, PersistentKind::Item | PersistentKind::Record);
        match name.identifier {
            _ if !is_item || name.request.is_some() => None,
            Identifier::Ibi(ibi) => Some(Names::from(ibi)),
            Identifier::Alias(alias) => {
                let found = self.store.find_by_alias(&alias).ok()?;
                found.map(|item| item.names)
            }
            Identifier::Level(_) => None,
        }
    }
}

/// The relations that were removed (`false`) and added (`true`). A sidecar declares each kind once.
fn changes(
    before: &[(RelationKind, Names)],
    now: &[(RelationKind, Names)],
) -> Vec<(RelationKind, Names, bool)> {
    let not_in = |known: &[(RelationKind, Names)], is_new: bool| {
        let known: BTreeMap<RelationKind, Names> = known.iter().cloned().collect();
        move |(kind, names): &(RelationKind, Names)| {
            let is_known = known.get(kind).is_some_and(|other| other.matches(names));
            (!is_known).then(|| (*kind, names.clone(), is_new))
        }
    };
    let gone = before.iter().filter_map(not_in(now, false));
    let new = now.iter().filter_map(not_in(before, true));
    gone.chain(new).collect()
}

/// Writes the inverse relation at the far end, and its language if the far end has none.
fn edit_of_far_end(kind: RelationKind, back: RelationKind, near: Names) -> Edit {
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

#[cfg(test)]
mod tests;
