//! Follows relations: next and last edition, translations, metadata, modifiers; see ibi(7).
//!
//! An item's own sidecar has precedence. If it declares nothing of a kind, declarations by other
//! items count if the owners of their sidecars may write this one's. All others are claims, which
//! are shown but not followed.

use std::collections::HashSet;

use super::{Archive, ArchiveError};
use crate::archive::store::{Item, Kinds};
use crate::archive::tree::Place;
use crate::formats::description::DescriptionFormat;
use crate::formats::item::{Names, State};
use ibi::Ibi;
use ibi::relation::{Language, Modifier, RelationKind, Step};

/// The result of a modifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Related {
    /// An item, held here or not.
    Item(Names),
    /// The metadata text of a held item that has no metadata item.
    Text(Item),
    /// The description of a held item, taken from this metadata item or from its own text.
    Description {
        /// The item described.
        item: Item,
        /// The metadata item to read, if it is not the item's own.
        from: Option<Names>,
        /// The format in which it is asked for.
        format: DescriptionFormat,
    },
}

/// The most declarations of one kind by other items that are considered. It bounds the time for an item of which
/// very many items declare something.
const MOST_DECLARATIONS: usize = 10_000;

/// The most claims that are listed.
const MOST_CLAIMS: usize = 100;

/// The items visited so far. A set, because a sidecar may name very many items and a chain of
/// editions may be very long.
#[derive(Debug, Default)]
pub(super) struct Visited(HashSet<Ibi>);

impl Visited {
    /// Adds an item. Returns whether no item with a form of its names was added before.
    pub(super) fn note(&mut self, names: &Names) -> bool {
        let rep = names.rep().cloned().map(Ibi::Rep);
        let ibip = names.ibip().cloned().map(Ibi::Ibip);
        let mut is_new = true;
        for form in rep.into_iter().chain(ibip) {
            is_new &= self.0.insert(form);
        }
        is_new
    }
}

/// The translation for a wanted language: the one in exactly that language, else one that matches it.
pub fn matching_translation<'a>(
    translations: impl Iterator<Item = &'a (Language, Names)> + Clone,
    wanted: &Language,
) -> Option<&'a (Language, Names)> {
    let exact = translations
        .clone()
        .find(|(language, _)| language == wanted);
    exact.or_else(|| {
        translations
            .clone()
            .find(|(language, _)| language.matches(wanted))
    })
}

/// All known relations of an item, by name.
pub type Relations = Vec<(String, Names)>;

/// A relation to an item that was removed here, or is withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoneRelation {
    /// The name of the relation.
    pub name: String,
    /// The item.
    pub target: Names,
    /// Whether the item is withdrawn, not removed.
    pub is_withdrawn: bool,
}

/// The declarations by other items that do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// The first, each with the declaring item.
    pub listed: Vec<(RelationKind, Names)>,
    /// The number of others, of which some may count if there are very many.
    pub others: u64,
}

impl Archive {
    /// Whether the original of an item was removed here, or the item is withdrawn. Relations to it are kept as history, and
    /// not followed.
    pub fn is_removed(&self, names: &Names) -> Result<bool, ArchiveError> {
        let found = self.store.find_by_names(names)?;
        Ok(found.is_some_and(|item| self.is_gone(&item)))
    }

    fn is_gone(&self, item: &Item) -> bool {
        let service = item.service.as_ref();
        match item.state {
            State::Deleted => service.is_some_and(|it| it.matches(&self.facts.service)),
            State::Original | State::Copy => item.life.withdrawn.is_some(),
        }
    }

    /// The relations in an item's own sidecar to items that were removed here or are withdrawn.
    pub fn removed_relations(&self, item: &Item) -> Result<Vec<GoneRelation>, ArchiveError> {
        let mut removed = Vec::new();
        if item.state == State::Deleted {
            return Ok(removed);
        }
        for (kind, names) in self.store.relations_of(item.id)? {
            let target = self.store.find_by_names(&names)?;
            if let Some(target) = target.filter(|target| self.is_gone(target)) {
                let pair = kind.pair_name();
                removed.push(GoneRelation {
                    name: pair.strip_prefix("ibi.").unwrap_or(&pair).to_owned(),
                    is_withdrawn: target.state != State::Deleted,
                    target: target.names,
                });
            }
        }
        Ok(removed)
    }

    /// What an item's own sidecar declares for a kind.
    pub(super) fn declared_relation(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<Option<(RelationKind, Names)>, ArchiveError> {
        let declared = self.store.relations_of(item.id)?;
        Ok(declared.into_iter().find(|(known, _)| known == kind))
    }

    /// The same, without a relation to an item that was removed: another one may take its place.
    pub(super) fn current_relation(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<Option<(RelationKind, Names)>, ArchiveError> {
        match self.declared_relation(item, kind)? {
            Some((_, target)) if self.is_removed(&target)? => Ok(None),
            declared => Ok(declared),
        }
    }

    /// The target of a direct kind, declared at either end. The item's own sidecar may name one that was removed.
    pub(super) fn direct_target(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<Option<Names>, ArchiveError> {
        if !kind.is_inverse()
            && let Some((_, target)) = self.declared_relation(item, kind)?
        {
            return Ok(Some(self.complete(&target)?));
        }
        match kind {
            RelationKind::NextEdition => self.next_edition(&item.names),
            RelationKind::Metadata => self.metadata(&item.names),
            RelationKind::Translation(language) => self.declared_translation(&item.names, language),
            _ => Ok(None),
        }
    }

    /// The declarations by other items, of these kinds, that count for this one. An item that is not held here, or was
    /// removed, has no sidecar. For it, those count whose authors may write the sidecar of `asker`, the item from which it
    /// was reached.
    fn relations_to_item(
        &self,
        names: &Names,
        asker: &Names,
        kinds: &Kinds,
    ) -> Result<Vec<(RelationKind, Item)>, ArchiveError> {
        let mut speakers = self.store.speakers_to(names)?;
        if speakers.is_empty() {
            return Ok(Vec::new());
        }
        let subject = match self.held(names)? {
            Some(item) => Some(item),
            None => self.held(asker)?,
        };
        let Some(subject) = subject else {
            return Ok(Vec::new());
        };
        speakers.retain(|speaker| self.may_speak_at(*speaker, &subject));
        let mut declared = self
            .store
            .declared_to(names, kinds, &speakers, MOST_DECLARATIONS)?;
        declared.retain(|(_, item)| item.life.withdrawn.is_none());
        Ok(declared)
    }

    /// The relations that other items declare with this one, without those that its own sidecar
    /// declares and those that count for it.
    pub fn claims(&self, item: &Item) -> Result<Claims, ArchiveError> {
        let mut claims = Claims::default();
        if item.state == State::Deleted {
            return Ok(claims);
        }
        let own = self.store.relations_of(item.id)?;
        let counting = self.speakers_that_count(item)?;
        let mut declarations = self.store.relations_to(&item.names, MOST_DECLARATIONS)?;
        let is_cut = declarations.len() >= MOST_DECLARATIONS;
        let mut others = 0;
        if is_cut {
            let all = self.store.count_relations_to(&item.names)?;
            others = all.saturating_sub(declarations.len() as u64);
        }
        declarations.sort_by_cached_key(|(kind, declarer, _)| {
            (Place::of(&declarer.names), kind.pair_name())
        });
        let has = |wanted| declarations.iter().any(|(kind, ..)| *kind == wanted);
        // An item has one of these: the one in its own sidecar, else the first.
        let next = if has(RelationKind::EditionOf) {
            self.next_edition(&item.names)?
        } else {
            None
        };
        let metadata = if has(RelationKind::MetadataOf) {
            self.metadata(&item.names)?
        } else {
            None
        };
        for (kind, declarer, speaker) in declarations {
            let is_the_other = |known: &RelationKind| {
                known.inverse(None) == Some(kind) || kind.inverse(None) == Some(*known)
            };
            let declaring_kinds = own
                .iter()
                .any(|(known, names)| is_the_other(known) && names.matches(&declarer.names));
            let target = match kind {
                RelationKind::EditionOf => next.as_ref(),
                RelationKind::MetadataOf => metadata.as_ref(),
                _ => None,
            };
            let is_followed = match target {
                Some(target) => target.matches(&declarer.names),
                None => speaker.is_some_and(|speaker| counting.contains(&speaker)),
            };
            if declaring_kinds || is_followed || declarer.names.matches(&item.names) {
                continue;
            }
            if claims.listed.len() < MOST_CLAIMS {
                claims.listed.push((kind, declarer.names));
            } else {
                others += 1;
            }
        }
        claims.others = others;
        Ok(claims)
    }

    /// The single target of a kind: from the item's own sidecar, else from an item that points back. From an edition that
    /// was removed the chain goes on.
    fn target_of(
        &self,
        names: &Names,
        asker: &Names,
        kind: &RelationKind,
    ) -> Result<Option<Names>, ArchiveError> {
        let back = Kinds::facing(kind);
        let goes_on = matches!(kind, RelationKind::NextEdition | RelationKind::EditionOf);
        let mut visited = Visited::default();
        let mut current = names.clone();
        loop {
            let declared = match self.held(&current)? {
                Some(item) => self.declared_relation(&item, kind)?,
                None => None,
            };
            let removed = match declared {
                Some((_, target)) if self.is_removed(&target)? => Some(target),
                Some((_, target)) => return Ok(Some(self.complete(&target)?)),
                None => None,
            };
            let pointing = self.relations_to_item(&current, asker, &back)?;
            if let Some((_, item)) = pointing.into_iter().next() {
                return Ok(Some(item.names));
            }
            match removed {
                Some(removed) if goes_on && visited.note(&removed) => current = removed,
                _ => return Ok(None),
            }
        }
    }

    /// The next edition, if it has one.
    pub fn next_edition(&self, names: &Names) -> Result<Option<Names>, ArchiveError> {
        self.next_edition_for(names, names)
    }

    fn next_edition_for(
        &self,
        names: &Names,
        asker: &Names,
    ) -> Result<Option<Names>, ArchiveError> {
        self.target_of(names, asker, &RelationKind::NextEdition)
    }

    /// The metadata item, if it has one.
    pub fn metadata(&self, names: &Names) -> Result<Option<Names>, ArchiveError> {
        self.target_of(names, names, &RelationKind::Metadata)
    }

    /// The item of which this one is the metadata, if any.
    pub fn metadata_of(&self, item: &Item) -> Result<Option<Names>, ArchiveError> {
        self.points_back(item, &RelationKind::MetadataOf)
    }

    /// The edition before an item, if it has one.
    pub fn previous_edition(&self, item: &Item) -> Result<Option<Names>, ArchiveError> {
        self.current_source(item, &RelationKind::EditionOf)
    }

    /// The item that this one is an edition, a translation or the metadata of, unless it was removed.
    fn current_source(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<Option<Names>, ArchiveError> {
        self.target_of(&item.names, &item.names, kind)
    }

    /// The last edition; the item itself if it has no next one.
    pub fn last_edition(&self, names: &Names) -> Result<Names, ArchiveError> {
        let mut current = self.complete(names)?;
        let mut visited = Visited::default();
        visited.note(&current);
        while let Some(next) = self.next_edition_for(&current, names)? {
            if !visited.note(&next) {
                return Err(ArchiveError::Cycle { names: next.into() });
            }
            current = next;
        }
        Ok(current)
    }

    pub(super) fn editions_reach(
        &self,
        from: &Names,
        wanted: &Names,
    ) -> Result<bool, ArchiveError> {
        let mut current = from.clone();
        let mut visited = Visited::default();
        loop {
            if current.matches(wanted) {
                return Ok(true);
            }
            if !visited.note(&current) {
                return Ok(false);
            }
            match self.next_edition_for(&current, wanted)? {
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
        Ok(matching_translation(others, wanted).map(|(_, names)| names.clone()))
    }

    /// The item and its translations, each with its language if known. Translations of one original
    /// are translations of each other.
    pub fn translations(&self, names: &Names) -> Result<Vec<(Language, Names)>, ArchiveError> {
        let own = self.complete(names)?;
        let mut found: Vec<(Language, Names)> = Vec::new();
        let mut visited = Visited::default();
        let mut add = |language: Option<Language>, names: Names, counts_always: bool| {
            if let Some(language) = language
                && (visited.note(&names) || counts_always)
            {
                found.push((language, names));
            }
        };
        let mut sources = Vec::new();
        if let Some(item) = self.held(&own)? {
            add(item.language, own.clone(), false);
            for (kind, target) in self.store.relations_of(item.id)? {
                if kind == RelationKind::TranslationOf {
                    sources.push(self.complete(&target)?);
                }
            }
        }
        for (kind, item) in self.relations_to_item(&own, &own, &Kinds::translations())? {
            if let RelationKind::Translation(language) = kind {
                add(Some(language), own.clone(), false);
                sources.push(item.names);
            }
        }
        let asker = own.clone();
        for (index, source) in std::iter::once(own).chain(sources).enumerate() {
            if let Some(item) = self.held(&source)? {
                add(item.language, source.clone(), false);
                for (kind, target) in self.store.relations_of(item.id)? {
                    if let RelationKind::Translation(language) = kind
                        && !self.is_removed(&target)?
                    {
                        // The item's own declarations count, even if they name one text for two languages.
                        add(Some(language), self.complete(&target)?, index == 0);
                    }
                }
            }
            let back = Kinds::of(&RelationKind::TranslationOf);
            for (_, item) in self.relations_to_item(&source, &asker, &back)? {
                add(item.language, item.names, false);
            }
        }
        Ok(found)
    }

    /// The translation into a wanted language, or by the reader's preferences if none is named. If
    /// no translation matches the preferences, the item itself is returned if its language is
    /// recorded, else any translation.
    fn translation(
        &self,
        names: &Names,
        wanted: Option<&Language>,
        preferences: &[Language],
    ) -> Result<Option<Names>, ArchiveError> {
        let found = self.translations(names)?;
        let choose = |wanted: &Language| matching_translation(found.iter(), wanted);
        let chosen = match wanted {
            Some(wanted) => choose(wanted),
            None => {
                let own = self.complete(names)?;
                let is_own = |(_, names): &&(Language, Names)| names.matches(&own);
                let preferred = preferences.iter().find_map(choose);
                let itself = || found.iter().find(is_own);
                preferred.or_else(itself).or_else(|| found.first())
            }
        };
        Ok(chosen.map(|(_, names)| names.clone()))
    }

    /// Follows a modifier step by step. Returns None if a relation is missing.
    pub fn resolve(
        &self,
        names: &Names,
        modifier: &Modifier,
        preferences: &[Language],
    ) -> Result<Option<Related>, ArchiveError> {
        let _near = self.store.near(names)?;
        let mut current = self.complete(names)?;
        let mut described: Option<(Item, DescriptionFormat)> = None;
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
                Step::Metadata(Some(format)) => {
                    let format = DescriptionFormat::from_word(format.as_str());
                    let (Some(item), Some(format)) = (self.held(&current)?, format) else {
                        return Ok(None);
                    };
                    if !self.has_format(&item, format)? {
                        return Ok(None);
                    }
                    if index + 1 == steps.len() {
                        let from = None;
                        return Ok(Some(Related::Description { item, from, format }));
                    }
                    described = Some((item, format));
                    self.metadata(&current)?
                }
            };
            match next {
                Some(next) => current = next,
                None => return Ok(None),
            }
        }
        Ok(Some(match described {
            Some((item, format)) => Related::Description {
                item,
                format,
                from: Some(current),
            },
            None => Related::Item(current),
        }))
    }

    fn text_of(&self, names: &Names) -> Result<Option<Related>, ArchiveError> {
        let Some(item) = self.held(names)? else {
            return Ok(None);
        };
        let place = Place::of(&item.names);
        // A text too large for a record still exists, and can be read and removed.
        match self.tree.read_metadata_text(&place) {
            Ok(text) => Ok(text.map(|_| Related::Text(item))),
            Err(error) if error.errno() == rustix::io::Errno::FBIG => Ok(Some(Related::Text(item))),
            Err(error) => Err(error.into()),
        }
    }

    /// All relations of an item with their targets, under the names of ibi(7) and ibi-resolution(7).
    pub fn relations(&self, item: &Item) -> Result<Relations, ArchiveError> {
        self.relations_with(item, || self.last_edition(&item.names))
    }

    /// [`Archive::relations`], with the last edition that `last` finds.
    pub(super) fn relations_with(
        &self,
        item: &Item,
        last: impl FnOnce() -> Result<Names, ArchiveError>,
    ) -> Result<Relations, ArchiveError> {
        let mut relations = Relations::new();
        if item.state == State::Deleted {
            return Ok(relations);
        }
        match last() {
            Ok(last) => relations.push(("lastedition".to_owned(), last)),
            // Editions in a circle have no last one. The others are returned, and help to correct it.
            Err(ArchiveError::Cycle { .. }) => {}
            Err(error) => return Err(error),
        }
        let single = [
            ("nextedition", self.next_edition(&item.names)?),
            ("metadata", self.metadata(&item.names)?),
            ("editionof", self.previous_edition(item)?),
            (
                "metadataof",
                self.current_source(item, &RelationKind::MetadataOf)?,
            ),
            (
                "translationof",
                self.current_source(item, &RelationKind::TranslationOf)?,
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

    /// Whether an item is the metadata of another that is or was held here.
    pub fn is_metadata_here(&self, item: &Item) -> Result<bool, ArchiveError> {
        match self.points_back(item, &RelationKind::MetadataOf)? {
            Some(names) if !names.matches(&item.names) => {
                Ok(self.store.find_by_names(&names)?.is_some())
            }
            _ => Ok(false),
        }
    }

    pub(super) fn points_back(
        &self,
        item: &Item,
        kind: &RelationKind,
    ) -> Result<Option<Names>, ArchiveError> {
        if let Some((_, names)) = self.declared_relation(item, kind)? {
            return Ok(Some(self.complete(&names)?));
        }
        let direct = Kinds::facing(kind);
        let pointing = self.relations_to_item(&item.names, &item.names, &direct)?;
        Ok(pointing.into_iter().next().map(|(_, source)| source.names))
    }
}

#[cfg(test)]
mod tests;
