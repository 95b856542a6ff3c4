//! Relations: declaring them, and following a modifier to what it names (SPEC 6).
//!
//! A relation is written in the sidecar of each end of which this Archive holds the original.
//! Reading looks at both ends, so a translation here of somebody else's item is found from there.

use super::{Archive, ArchiveError};
use crate::ibi::Ibi;
use crate::item::{Names, State};
use crate::relation::{Language, Modifier, RelationKind, Step};
use crate::store::Item;

/// What a modifier leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Related {
    /// An item, held here or not.
    Item(Names),
    /// The metadata text of a held item whose metadata are no item.
    Text(Item),
    /// The Dublin Core of a held item, taken from this metadata item or from its own text.
    DublinCore {
        /// The item described.
        item: Item,
        /// The metadata item to read, if it is not the item's own.
        from: Option<Names>,
    },
}

/// Everything that is known of an item's relations.
pub type Relations = Vec<(String, Names)>;

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
        source: &Names,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<(), ArchiveError> {
        self.writable()?;
        if let Some(direct) = self.direct_of(kind, source)? {
            return self.relate(target, &direct, source);
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
        if let Some(near) = &near {
            self.forget_far_end(near, kind)?;
        }
        if let Some(far) = &far {
            self.edit_sidecar(far, |sidecar| {
                sidecar.set_relation(&inverse(kind), &source);
                if let RelationKind::Translation(language) = kind
                    && sidecar.language().is_none()
                {
                    sidecar.set_language(language);
                }
            })?;
        }
        if let Some(near) = &near {
            self.edit_sidecar(near, |sidecar| sidecar.set_relation(kind, &target))?;
        }
        Ok(())
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
    fn forget_far_end(&self, near: &Item, kind: &RelationKind) -> Result<(), ArchiveError> {
        let declared = self.store.relations_of(near.id)?;
        let Some((_, before)) = declared.into_iter().find(|(known, _)| known == kind) else {
            return Ok(());
        };
        if let Some(far) = self.held(&before)?
            && far.state == State::Original
            && self.declares(&far, &inverse(kind), &near.names)?
        {
            self.edit_sidecar(&far, |sidecar| {
                sidecar.remove_relation(&inverse(kind));
            })?;
        }
        Ok(())
    }

    /// After an original's sidecar was written by somebody: what it declares anew, and what it no
    /// longer does, is written at the far ends that are originals here. The caller holds `edits`.
    pub(super) fn tell_far_ends(
        &self,
        near: &Item,
        before: &[(RelationKind, Names)],
    ) -> Result<(), ArchiveError> {
        if near.state != State::Original {
            return Ok(());
        }
        let now = self.store.relations_of(near.id)?;
        let is_in = |relations: &[(RelationKind, Names)], kind: &RelationKind, names: &Names| {
            relations
                .iter()
                .any(|(known, other)| known == kind && other.matches(names))
        };
        let gone = before
            .iter()
            .filter(|(kind, names)| !is_in(&now, kind, names));
        let new = now
            .iter()
            .filter(|(kind, names)| !is_in(before, kind, names));
        let changes = gone
            .map(|change| (change, false))
            .chain(new.map(|change| (change, true)));
        for ((kind, names), is_new) in changes {
            // The near end says it already: a far end that cannot be written is left to fsck.
            if let Err(error) = self.tell_far_end(near, kind, names, is_new) {
                log::warn!("{} of {}: {error}", kind.pair_name(), near.names);
            }
        }
        Ok(())
    }

    fn tell_far_end(
        &self,
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
                false => self.edit_sidecar(&far, |sidecar| {
                    for known in &says_so {
                        sidecar.remove_relation(known);
                    }
                }),
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
        self.edit_sidecar(&far, |sidecar| {
            sidecar.set_relation(&back, &near.names);
            if let RelationKind::Translation(language) = kind
                && sidecar.language().is_none()
            {
                sidecar.set_language(language);
            }
        })
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
    pub fn unrelate(&self, source: &Names, kind: &RelationKind) -> Result<(), ArchiveError> {
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
            return self.unrelate_pair(&names, &direct, &item.names);
        }
        let target = self.direct_target(&item, kind)?.ok_or_else(no_relation)?;
        self.unrelate_pair(&item.names, kind, &target)
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
        source: &Names,
        kind: &RelationKind,
        target: &Names,
    ) -> Result<(), ArchiveError> {
        let _edits = self.edits();
        let mut removed = false;
        let ends = [(source, *kind, target), (target, inverse(kind), source)];
        for (end, kind, other) in ends {
            if let Some(item) = self.held(end)?
                && item.state == State::Original
                && self.declares(&item, &kind, other)?
            {
                self.edit_sidecar(&item, |sidecar| {
                    sidecar.remove_relation(&kind);
                })?;
                removed = true;
            }
        }
        match removed {
            true => Ok(()),
            false => Err(ArchiveError::NotOriginal {
                what: format!("{source} and {target}"),
            }),
        }
    }

    /// The target of a direct kind, declared at either end.
    fn direct_target(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<Option<Names>, ArchiveError> {
        match kind {
            RelationKind::NextEdition => self.next_edition(&item.names),
            RelationKind::Metadata => self.metadata(&item.names),
            RelationKind::Translation(language) => self.declared_translation(&item.names, language),
            _ => Ok(None),
        }
    }

    /// The one target of a kind: as the item itself says, else as an item that points back says.
    fn target_of(
        &self,
        names: &Names,
        kind: &RelationKind,
        back: &RelationKind,
    ) -> Result<Option<Names>, ArchiveError> {
        if let Some(item) = self.held(names)? {
            let declared = self.store.relations_of(item.id)?;
            if let Some((_, target)) = declared.into_iter().find(|(known, _)| known == kind) {
                return Ok(Some(self.complete(&target)?));
            }
        }
        let pointing = self.store.relations_to(names)?;
        Ok(pointing
            .into_iter()
            .find(|(known, _)| known == back)
            .map(|(_, item)| item.names))
    }

    /// The next edition, if there is one.
    pub fn next_edition(&self, names: &Names) -> Result<Option<Names>, ArchiveError> {
        self.target_of(names, &RelationKind::NextEdition, &RelationKind::EditionOf)
    }

    /// The metadata item, if there is one.
    pub fn metadata(&self, names: &Names) -> Result<Option<Names>, ArchiveError> {
        self.target_of(names, &RelationKind::Metadata, &RelationKind::MetadataOf)
    }

    /// The last edition: the item itself where there is no next one.
    pub fn last_edition(&self, names: &Names) -> Result<Names, ArchiveError> {
        let mut current = self.complete(names)?;
        let mut seen = vec![current.clone()];
        while let Some(next) = self.next_edition(&current)? {
            if seen.iter().any(|names| names.matches(&next)) {
                return Err(ArchiveError::Cycle { names: next.into() });
            }
            seen.push(next.clone());
            current = next;
        }
        Ok(current)
    }

    fn editions_reach(&self, from: &Names, wanted: &Names) -> Result<bool, ArchiveError> {
        let mut current = from.clone();
        let mut seen: Vec<Names> = Vec::new();
        loop {
            if current.matches(wanted) {
                return Ok(true);
            }
            if seen.iter().any(|names| names.matches(&current)) {
                return Ok(false);
            }
            seen.push(current.clone());
            match self.next_edition(&current)? {
                Some(next) => current = next,
                None => return Ok(false),
            }
        }
    }

    fn declared_translation(
        &self,
        names: &Names,
        wanted: &Language,
    ) -> Result<Option<Names>, ArchiveError> {
        let found = self.translations(names)?;
        let own = self.complete(names)?;
        let others = found.iter().filter(|(_, names)| !names.matches(&own));
        let exact = others.clone().find(|(language, _)| language == wanted);
        Ok(exact
            .or_else(|| {
                others
                    .clone()
                    .find(|(language, _)| language.matches(wanted))
            })
            .map(|(_, names)| names.clone()))
    }

    /// The item and its translations, each with its language, as far as the languages are known.
    /// Translations of one original are translations of each other.
    pub fn translations(&self, names: &Names) -> Result<Vec<(Language, Names)>, ArchiveError> {
        let own = self.complete(names)?;
        let mut found: Vec<(Language, Names)> = Vec::new();
        let mut add = |language: Option<Language>, names: Names| {
            if let Some(language) = language
                && !found.iter().any(|(_, known)| known.matches(&names))
            {
                found.push((language, names));
            }
        };
        let mut sources = Vec::new();
        if let Some(item) = self.held(&own)? {
            add(item.language, own.clone());
            for (kind, target) in self.store.relations_of(item.id)? {
                if kind == RelationKind::TranslationOf {
                    sources.push(self.complete(&target)?);
                }
            }
        }
        for (kind, item) in self.store.relations_to(&own)? {
            if let RelationKind::Translation(language) = kind {
                add(Some(language), own.clone());
                sources.push(item.names);
            }
        }
        for source in std::iter::once(own).chain(sources) {
            if let Some(item) = self.held(&source)? {
                add(item.language, source.clone());
                for (kind, target) in self.store.relations_of(item.id)? {
                    if let RelationKind::Translation(language) = kind {
                        add(Some(language), self.complete(&target)?);
                    }
                }
            }
            for (kind, item) in self.store.relations_to(&source)? {
                if kind == RelationKind::TranslationOf {
                    add(item.language, item.names);
                }
            }
        }
        Ok(found)
    }

    /// The translation into a wanted language, or by the reader's preferences where none is
    /// named; where those fit nothing, any translation is better than none.
    fn translation(
        &self,
        names: &Names,
        wanted: Option<&Language>,
        preferences: &[Language],
    ) -> Result<Option<Names>, ArchiveError> {
        let found = self.translations(names)?;
        let choose = |wanted: &Language| {
            let exact = found.iter().find(|(language, _)| language == wanted);
            exact.or_else(|| found.iter().find(|(language, _)| language.matches(wanted)))
        };
        let chosen = match wanted {
            Some(wanted) => choose(wanted),
            None => {
                let own = self.complete(names)?;
                preferences
                    .iter()
                    .find_map(choose)
                    .or_else(|| found.iter().find(|(_, names)| !names.matches(&own)))
            }
        };
        Ok(chosen.map(|(_, names)| names.clone()))
    }

    /// Follows a modifier, step by step. None: there is no such relation.
    pub fn resolve(
        &self,
        names: &Names,
        modifier: &Modifier,
        preferences: &[Language],
    ) -> Result<Option<Related>, ArchiveError> {
        let mut current = self.complete(names)?;
        let mut described: Option<Item> = None;
        let steps = modifier.steps();
        for (index, step) in steps.iter().enumerate() {
            let next = match step {
                Step::LastEdition => Some(self.last_edition(&current)?),
                Step::Translation(wanted) => {
                    self.translation(&current, wanted.as_ref(), preferences)?
                }
                Step::Metadata(None) => match self.metadata(&current)? {
                    Some(metadata) => Some(metadata),
                    None if index + 1 == steps.len() => return self.text_of(&current),
                    None => None,
                },
                Step::Metadata(Some(format)) if format.is_oai_dc() => {
                    let Some(item) = self.held(&current)? else {
                        return Ok(None);
                    };
                    if index + 1 == steps.len() {
                        return Ok(Some(Related::DublinCore { item, from: None }));
                    }
                    described = Some(item);
                    self.metadata(&current)?
                }
                Step::Metadata(Some(_)) => None,
            };
            match next {
                Some(next) => current = next,
                None => return Ok(None),
            }
        }
        Ok(Some(match described {
            Some(item) => Related::DublinCore {
                item,
                from: Some(current),
            },
            None => Related::Item(current),
        }))
    }

    fn text_of(&self, names: &Names) -> Result<Option<Related>, ArchiveError> {
        let Some(item) = self.held(names)? else {
            return Ok(None);
        };
        let place = crate::tree::Place::of(&item.names);
        // Too large to be read as a record, it is there all the same: to be looked at and removed.
        match self.tree.read_metadata_text(&place) {
            Ok(text) => Ok(text.map(|_| Related::Text(item))),
            Err(error) if error.errno() == rustix::io::Errno::FBIG => Ok(Some(Related::Text(item))),
            Err(error) => Err(error.into()),
        }
    }

    /// All relations of an item, by the names of SPEC 6 and 8, with what they lead to.
    pub fn relations(&self, item: &Item) -> Result<Relations, ArchiveError> {
        let mut relations = Relations::new();
        if item.state == State::Deleted {
            return Ok(relations);
        }
        match self.last_edition(&item.names) {
            Ok(last) => relations.push(("lastedition".to_owned(), last)),
            // Editions in a circle have no last one; the rest can be told, and mended by it.
            Err(ArchiveError::Cycle { .. }) => {}
            Err(error) => return Err(error),
        }
        let single = [
            ("nextedition", self.next_edition(&item.names)?),
            ("metadata", self.metadata(&item.names)?),
            (
                "editionof",
                self.points_back(item, &RelationKind::EditionOf)?,
            ),
            (
                "metadataof",
                self.points_back(item, &RelationKind::MetadataOf)?,
            ),
            (
                "translationof",
                self.points_back(item, &RelationKind::TranslationOf)?,
            ),
        ];
        for (name, target) in single {
            if let Some(target) = target {
                relations.push((name.to_owned(), target));
            }
        }
        for (language, names) in self.translations(&item.names)? {
            if !names.matches(&item.names) {
                relations.push((format!("translation({language})"), names));
            }
        }
        relations.sort_by(|left, right| left.0.cmp(&right.0));
        Ok(relations)
    }

    fn points_back(&self, item: &Item, kind: &RelationKind) -> Result<Option<Names>, ArchiveError> {
        let declared = self.store.relations_of(item.id)?;
        if let Some((_, names)) = declared.into_iter().find(|(known, _)| known == kind) {
            return Ok(Some(self.complete(&names)?));
        }
        let pointing = self.store.relations_to(&item.names)?;
        Ok(pointing
            .into_iter()
            .find(|(known, _)| !known.is_inverse() && inverse(known) == *kind)
            .map(|(_, source)| source.names))
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

/// The kind under which the far end says the same of a direct kind. An inverse one, which callers
/// have turned round before, is its own.
pub(super) fn inverse(kind: &RelationKind) -> RelationKind {
    kind.inverse(None).unwrap_or(*kind)
}
