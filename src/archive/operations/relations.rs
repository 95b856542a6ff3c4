//! Declaring and removing relations.
//!
//! A relation is written to the sidecar of each end whose original is in this Archive.

use super::far_ends::{edit_of_far_end, inverse};
use super::rights::Traversal;
use super::sidecars::Edit;
use super::{ArchiveError, Editor};
use crate::archive::store::Item;
use crate::archive::tree::Author;
use crate::formats::item::{Names, State};
use ibi::message;
use ibi::relation::RelationKind;

impl Editor<'_> {
    /// The kind that the other end declares. A translation is one into the language of `source`.
    fn kind_at_far_end(
        &self,
        kind: &RelationKind,
        source: &Names,
    ) -> Result<RelationKind, ArchiveError> {
        if *kind != RelationKind::TranslationOf {
            return Ok(inverse(kind));
        }
        let language = self.held(source)?.and_then(|item| item.language);
        let language = language.ok_or_else(|| ArchiveError::NoRelation {
            what: message!("{source} has no language; set its language first", source),
        })?;
        Ok(RelationKind::Translation(language))
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

    /// Whether an inverse pair remains true: the original of the source declares another kind for the
    /// same target, which is not removed.
    fn is_kept_by_source(
        &self,
        kind: &RelationKind,
        removed: &[RelationKind],
        source: &Names,
        target: &Names,
    ) -> Result<bool, ArchiveError> {
        let [removed] = removed else {
            return Ok(false);
        };
        if !kind.is_inverse() {
            return Ok(false);
        }
        let source = self.held(source)?;
        match source.filter(|source| source.state == State::Original) {
            Some(source) => self.declares_otherwise(&source, removed, target),
            None => Ok(false),
        }
    }

    /// Declares that `target` is the next edition, a translation or the metadata of `source`, and
    /// replaces a previous target. With an inverse kind, declares that `source` is one of `target`.
    ///
    /// The user must have permission to write the sidecar of `source`. The relation is also written at the
    /// other end if the user may write there, but an inverse kind replaces nothing at that end.
    pub fn relate(
        &self,
        source: &Names,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<(), ArchiveError> {
        let source = self.complete(source)?;
        let target = self.complete(target)?;
        let back = self.kind_at_far_end(kind, &source)?;
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
            self.refuse_others(near)?;
        }
        let is_original = |item: &Item| item.state == State::Original;
        let far = self.held(&target)?.filter(is_original);
        let is_far_open = match &far {
            Some(far) => self.may_write_sidecar(&far.names, Traversal::Checked)?,
            None => false,
        };
        let mut edits = Vec::new();
        match near {
            Some(near) if is_original(&near) => {
                if !kind.is_inverse() {
                    edits.extend(self.removal_at_far_end(&near, kind, &target)?);
                }
                let (set, other) = (*kind, target.clone());
                let edit: Edit = Box::new(move |sidecar| sidecar.set_relation(&set, &other));
                let author = self.author_after(&near.names)?;
                edits.insert(0, (near, edit, author));
                if let Some(far) = far.filter(|_| is_far_open)
                    && !(kind.is_inverse() && self.declares_kind(&far, &back)?)
                {
                    let author = self.author_after(&far.names)?;
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
                    && let Some((_, other)) = self.current_relation(&far, &back)?
                    && !other.matches(&source)
                {
                    return Err(ArchiveError::HasOne {
                        names: far.names.into(),
                        kind: back.pair_name(),
                        target: other.into(),
                    });
                }
                let mut author = self.author_after(&far.names)?;
                if let (Some(near), Some((uid, gid))) = (near, self.actor.owner())
                    && !self.may_declare_at(&far, &near)
                    && !self.declares_anything(&far.names)?
                {
                    // The user may declare the relation, but the previous owner of the sidecar may not, whose own
                    // declarations must not get the rights of this user.
                    author = Author::User { uid, gid };
                }
                edits.push((far, edit_of_far_end(*kind, back, source), author));
            }
        }
        self.edit_sidecars(edits)
    }

    /// Removes a relation from each end whose original is here and whose sidecar the user may write.
    pub fn unrelate(&self, source: &Names, kind: &RelationKind) -> Result<(), ArchiveError> {
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
            return self.unrelate_pair(&names, &direct, (*kind, &item.names), &item);
        }
        let target = self.direct_target(&item, kind)?.ok_or_else(no_relation)?;
        let direct = [*kind];
        self.unrelate_pair(&item.names, &direct, (inverse(kind), &target), &item)
    }

    /// Removes a relation at each end that declares it, and that the user may write.
    fn unrelate_pair(
        &self,
        source: &Names,
        direct: &[RelationKind],
        (back, target): (RelationKind, &Names),
        at: &Item,
    ) -> Result<(), ArchiveError> {
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
            let mut declared = Vec::new();
            for kind in kinds {
                if item.state == State::Original
                    && self.declares(&item, &kind, other)?
                    && !self.is_kept_by_source(&kind, direct, source, target)?
                {
                    declared.push(kind);
                }
            }
            if declared.is_empty() {
                continue;
            }
            let is_here = item.id == at.id;
            let traversal = if is_here {
                Traversal::Skipped
            } else {
                Traversal::Checked
            };
            match self.may_write_sidecar(&item.names, traversal)? {
                true => {
                    let edit = self.edit_without_relation(&item, declared, other)?;
                    let author = self.author_after(&item.names)?;
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
}

#[cfg(test)]
mod tests;
