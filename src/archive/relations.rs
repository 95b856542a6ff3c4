//! Declaring relations and taking them back.
//!
//! A relation is written in the sidecar of each end of which this Archive holds the original.

use std::collections::BTreeMap;

use super::sidecars::Edit;
use super::{Actor, Archive, ArchiveError};
use crate::ibi::Ibi;
use crate::item::{Names, State};
use crate::relation::RelationKind;
use crate::store::Item;
use crate::tree::Place;

impl Archive {
    /// Completes names with the other form where the item is held here.
    pub fn complete(&self, names: &Names) -> Result<Names, ArchiveError> {
        Ok(self
            .store
            .find_by_names(names)?
            .map_or_else(|| names.clone(), |item| item.names))
    }

    /// Declares that the item `source` has `target` as its next edition, translation or metadata
    /// (or, by the inverse kinds, is one of it). One that was there before is replaced.
    pub fn relate(
        &self,
        _actor: &dyn Actor,
        source: &Names,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<(), ArchiveError> {
        self.writable()?;
        if let Some(direct) = self.direct_of(kind, source)? {
            return self.relate(_actor, target, &direct, source);
        }
        let _edits = self.edits();
        let source = self.complete(source)?;
        let target = self.complete(target)?;
        if source.matches(&target) {
            return Err(ArchiveError::Cycle {
                names: source.into(),
            });
        }
        if *kind == RelationKind::NextEdition && self.editions_reach(&target, &source)? {
            return Err(ArchiveError::Cycle {
                names: target.into(),
            });
        }
        let original = |names: &Names| -> Result<Option<Item>, ArchiveError> {
            Ok(self
                .held(names)?
                .filter(|item| item.state == State::Original))
        };
        let (near, far) = (original(&source)?, original(&target)?);
        if near.is_none() && far.is_none() {
            return Err(ArchiveError::NotOriginal {
                what: format!("{source} and {target}"),
            });
        }
        // The near end goes first: what it says counts wherever a crash comes in between.
        let mut edits = Vec::new();
        if let Some(near) = near {
            let forgetting = self.forgetting_far_end(&near, kind)?;
            let (kind, target) = (*kind, target.clone());
            let edit: Edit = Box::new(move |sidecar| sidecar.set_relation(&kind, &target));
            edits.push((near, edit));
            edits.extend(forgetting);
        }
        if let Some(far) = far {
            edits.push((far, telling_far_end(*kind, inverse(kind), source)));
        }
        self.edit_sidecars(edits)
    }

    /// The direct kind that an inverse one stands for, seen from the other end.
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
                    what: format!("{source} says no language; set its language first"),
                })?;
                Some(RelationKind::Translation(language))
            }
            _ => None,
        })
    }

    /// Takes the inverse pair out of the target that a relation had until now.
    fn forgetting_far_end(
        &self,
        near: &Item,
        kind: &RelationKind,
    ) -> Result<Option<(Item, Edit)>, ArchiveError> {
        let declared = self.store.relations_of(near.id)?;
        let Some((_, before)) = declared.into_iter().find(|(known, _)| known == kind) else {
            return Ok(None);
        };
        let back = inverse(kind);
        Ok(match self.held(&before)? {
            Some(far)
                if far.state == State::Original && self.declares(&far, &back, &near.names)? =>
            {
                let edit = self.letting_go(&far, vec![back], &near.names)?;
                Some((far, edit))
            }
            _ => None,
        })
    }

    /// Takes out of an item's sidecar what it is to another one. Where it is that to a third one as
    /// well (two items may have the same next edition), it says so of that one instead.
    fn letting_go(
        &self,
        item: &Item,
        kinds: Vec<RelationKind>,
        other: &Names,
    ) -> Result<Edit, ArchiveError> {
        let claims = self.store.relations_to(&item.names)?;
        let third = |kind: &RelationKind| {
            let claim = claims.iter().find(|(said, source)| {
                !said.is_inverse()
                    && inverse(said) == *kind
                    && source.state == State::Original
                    && !source.names.matches(other)
            });
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

    /// After an original's sidecar was written by somebody: what it declares anew, and what it no
    /// longer does, is written at the far ends that are originals here. The caller holds `edits`.
    pub(super) fn tell_far_ends(
        &self,
        actor: &dyn Actor,
        near: &Item,
        before: &[(RelationKind, Names)],
    ) -> Result<(), ArchiveError> {
        if near.state != State::Original {
            return Ok(());
        }
        let now = self.store.relations_of(near.id)?;
        for (kind, names, is_new) in changes(before, &now) {
            // The near end says it already: a far end that cannot be written is left to fsck.
            if let Err(error) = self.tell_far_end(actor, near, &kind, &names, is_new) {
                log::warn!("{} of {}: {error}", kind.pair_name(), near.names);
            }
        }
        Ok(())
    }

    /// The places of an item and of the originals here that are to be told when what it says changes.
    pub(super) fn ends_of(
        &self,
        near: &Names,
        before: &[(RelationKind, Names)],
        now: &[(RelationKind, Names)],
    ) -> Result<Vec<Place>, ArchiveError> {
        let mut ends = Vec::new();
        for (_, names, _) in changes(before, now) {
            let far = self.held(&names)?;
            ends.extend(
                far.filter(|far| far.state == State::Original)
                    .map(|far| Place::of(&far.names)),
            );
        }
        if !ends.is_empty() {
            ends.push(Place::of(near));
        }
        Ok(ends)
    }

    /// What an original says is written at those far ends that are meant and say nothing of the kind;
    /// and one of them that claims to be what the original says another is, claims it no more. A change
    /// of both ends may have come so far only. The caller holds `edits`.
    pub(super) fn tell_again(
        &self,
        actor: &dyn Actor,
        near: &Item,
        is_meant: impl Fn(&Names) -> bool,
    ) -> Result<(), ArchiveError> {
        let declared = self.store.relations_of(near.id)?;
        let mut told = Vec::new();
        for (kind, names) in &declared {
            let far = self.held(names)?.filter(|far| is_meant(&far.names));
            let says_something = match (far, kind.inverse(near.language)) {
                (Some(far), Some(back)) => {
                    let says = self.store.relations_of(far.id)?;
                    says.iter().any(|(known, _)| *known == back)
                }
                _ => true,
            };
            if says_something {
                told.push((*kind, names.clone()));
            }
        }
        self.tell_far_ends(actor, near, &told)?;
        if near.state != State::Original {
            return Ok(());
        }
        for (claim, far) in self.store.relations_to(&near.names)? {
            let Some(kind) = claim.inverse(far.language).filter(|_| claim.is_inverse()) else {
                continue;
            };
            let is_another = declared
                .iter()
                .any(|(known, names)| *known == kind && !names.matches(&far.names));
            if is_another && far.state == State::Original && is_meant(&far.names) {
                let edit = self.letting_go(&far, vec![claim], &near.names)?;
                self.edit_sidecars(vec![(far, edit)])?;
            }
        }
        Ok(())
    }

    pub(super) fn tell_far_end(
        &self,
        _actor: &dyn Actor,
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
        let says_so: Vec<RelationKind> = declared
            .iter()
            .filter(|(known, other)| known != kind && other.matches(&near.names))
            .filter(|(known, _)| inverse(known) == *kind || *known == inverse(kind))
            .map(|(known, _)| *known)
            .collect();
        if !is_new {
            return match says_so.is_empty() {
                true => Ok(()),
                false => {
                    let edit = self.letting_go(&far, says_so, &near.names)?;
                    self.edit_sidecars(vec![(far, edit)])
                }
            };
        }
        let Some(back) = kind.inverse(near.language) else {
            return Ok(());
        };
        // What the far end says of its own next edition, translation or metadata counts there.
        let is_taken = kind.is_inverse() && declared.iter().any(|(known, _)| *known == back);
        if !says_so.is_empty() || is_taken {
            return Ok(());
        }
        let edit = telling_far_end(*kind, back, near.names.clone());
        self.edit_sidecars(vec![(far, edit)])
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

    /// Takes a relation back, at each end of which this Archive holds the original.
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
            what: format!("{} of {source}", kind.pair_name()),
        };
        if let RelationKind::EditionOf | RelationKind::TranslationOf | RelationKind::MetadataOf =
            kind
        {
            let (direct, names) = self
                .direct_relation_behind(&item, kind)?
                .ok_or_else(no_relation)?;
            return self.unrelate_pair(actor, &names, &direct, &item.names);
        }
        let target = self.direct_target(&item, kind)?.ok_or_else(no_relation)?;
        self.unrelate_pair(actor, &item.names, kind, &target)
    }

    fn direct_relation_behind(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<Option<(RelationKind, Names)>, ArchiveError> {
        let declared = self.store.relations_of(item.id)?;
        if let Some((_, names)) = declared.into_iter().find(|(known, _)| known == kind)
            && let Some(direct) = self.direct_of(kind, &item.names)?
        {
            return Ok(Some((direct, names)));
        }
        let found = self.store.relations_to(&item.names)?;
        Ok(found
            .into_iter()
            .find(|(known, _)| !known.is_inverse() && inverse(known) == *kind)
            .map(|(known, source)| (known, source.names)))
    }

    fn unrelate_pair(
        &self,
        _actor: &dyn Actor,
        source: &Names,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<(), ArchiveError> {
        let _edits = self.edits();
        let mut edits = Vec::new();
        let ends = [(source, *kind, target), (target, inverse(kind), source)];
        for (end, kind, other) in ends {
            if let Some(item) = self.held(end)?
                && item.state == State::Original
                && self.declares(&item, &kind, other)?
            {
                let edit = self.letting_go(&item, vec![kind], other)?;
                edits.push((item, edit));
            }
        }
        match edits.is_empty() {
            false => self.edit_sidecars(edits),
            true => Err(ArchiveError::NotOriginal {
                what: format!("{source} and {target}"),
            }),
        }
    }

    /// The names that a path or text ends in: a rep's four last components or an IBIp's two.
    pub fn names_at_end_of(&self, text: &str) -> Option<Names> {
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

/// What is declared no longer, and what is declared anew (`true`). A sidecar declares each kind once.
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

/// Writes at the far end of a relation what it is to the near one, and in which language.
fn telling_far_end(kind: RelationKind, back: RelationKind, near: Names) -> Edit {
    Box::new(move |sidecar| {
        sidecar.set_relation(&back, &near);
        if let RelationKind::Translation(language) = &kind
            && sidecar.language().is_none()
        {
            sidecar.set_language(language);
        }
    })
}

/// The kind under which the far end says the same of a direct kind. An inverse one, which callers
/// have turned round before, is its own.
pub(super) fn inverse(kind: &RelationKind) -> RelationKind {
    kind.inverse(None).unwrap_or(*kind)
}
