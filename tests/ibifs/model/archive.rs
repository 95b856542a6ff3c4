//! The items and what their sidecars say of each other, as plain lists.

use std::collections::BTreeMap;
use std::fmt;

use super::files::Ino;

/// The names of an item, as recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Names {
    pub rep: Option<String>,
    pub ibip: Option<String>,
}

impl Names {
    pub fn matches(&self, other: &Names) -> bool {
        let same = |ours: &Option<String>, theirs: &Option<String>| match (ours, theirs) {
            (Some(ours), Some(theirs)) => ours.eq_ignore_ascii_case(theirs),
            _ => false,
        };
        same(&self.rep, &other.rep) || same(&self.ibip, &other.ibip)
    }

    /// The one to tell where there is room for one.
    pub fn preferred(&self) -> String {
        let name = self.rep.as_ref().or(self.ibip.as_ref());
        name.cloned().unwrap_or_default()
    }

    /// The first component of the IBIp.
    pub fn prefix(&self) -> Option<&str> {
        self.ibip.as_ref()?.split('/').next()
    }
}

/// As in a sidecar.
impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rep = self.rep.iter().map(|rep| format!("rep {rep}"));
        let ibip = self.ibip.iter().map(|ibip| format!("ibip {ibip}"));
        write!(f, "{{{}}}", rep.chain(ibip).collect::<Vec<_>>().join(" "))
    }
}

/// The value of a pair.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Names(Names),
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Names(names) => names.fmt(f),
            Value::Text(text) => f.write_str(text),
        }
    }
}

/// A sidecar.
pub type Pairs = Vec<(String, Value)>;

/// A sidecar as it is written.
pub fn written(pairs: &Pairs) -> Vec<u8> {
    let lines = pairs
        .iter()
        .map(|(name, value)| format!("{name} {value}\n"));
    lines.collect::<String>().into_bytes()
}

/// Sets a pair in its place, or at the end.
pub fn set(pairs: &mut Pairs, name: &str, value: Value) {
    match pairs.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = value,
        None => pairs.push((name.to_owned(), value)),
    }
}

pub fn unset(pairs: &mut Pairs, name: &str) {
    pairs.retain(|(known, _)| known != name);
}

/// An item.
#[derive(Clone, Debug, Default)]
pub struct Item {
    pub names: Names,
    /// Whether the index has ever recorded it.
    pub is_known: bool,
    /// Whether it is here.
    pub is_held: bool,
    /// Its directory.
    pub root: Ino,
    /// Its sidecar, if it has one.
    pub pairs: Option<Pairs>,
    /// Whether it was an original when it was removed.
    pub was_original: bool,
}

impl Item {
    pub fn get(&self, name: &str) -> Option<&Value> {
        let mut pairs = self.pairs.iter().flatten();
        pairs
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    pub fn names_in(&self, name: &str) -> Option<&Names> {
        match self.get(name) {
            Some(Value::Names(names)) => Some(names),
            _ => None,
        }
    }

    pub fn text_in(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn language(&self) -> Option<&str> {
        self.text_in("language")
    }

    /// The relations that it declares, by name of the pair.
    pub fn relations(&self) -> Vec<(String, Names)> {
        let mut relations = Vec::new();
        for (name, value) in self.pairs.iter().flatten() {
            if let Value::Names(names) = value
                && name != "ibi"
                && name != "ibi.archiveservice"
            {
                relations.push((name.clone(), names.clone()));
            }
        }
        relations.sort();
        relations
    }
}

/// All items, by numbers of our own; 0 is the Archive's service.
#[derive(Clone, Debug, Default)]
pub struct Items {
    pub items: BTreeMap<usize, Item>,
}

/// A step of a modifier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Last,
    Translation(Option<&'static str>),
    Metadata,
    DublinCore,
}

/// The target of a modifier.
#[derive(Clone, Debug, PartialEq)]
pub enum Related {
    Item(Names),
    /// The metadata text of this item, if there is one.
    TextOf(usize),
    /// The Dublin Core of this item.
    DublinCore(usize),
}

pub const NEXT: &str = "ibi.nextedition";
pub const METADATA: &str = "ibi.metadata";
pub const TRANSLATION_OF: &str = "ibi.translationof";

/// The name of the pair in which the far end says the same.
pub fn inverse(kind: &str) -> &'static str {
    match kind {
        NEXT => "ibi.editionof",
        METADATA => "ibi.metadataof",
        "ibi.editionof" => NEXT,
        "ibi.metadataof" => METADATA,
        _ => TRANSLATION_OF,
    }
}

/// The language of a translation's pair.
pub fn language_of(kind: &str) -> Option<&str> {
    kind.strip_prefix("ibi.translation(")?.strip_suffix(')')
}

impl Items {
    /// The item with one of these names that the index has recorded.
    pub fn find(&self, names: &Names) -> Option<usize> {
        let known = self.items.iter().filter(|(_, item)| item.is_known);
        let mut known = known.filter(|(_, item)| item.names.matches(names));
        known.next().map(|(number, _)| *number)
    }

    pub fn held(&self, names: &Names) -> Option<&Item> {
        self.held_number(names).map(|number| &self.items[&number])
    }

    pub fn held_number(&self, names: &Names) -> Option<usize> {
        self.find(names).filter(|number| self.items[number].is_held)
    }

    /// With the other form, where the index knows it.
    pub fn complete(&self, names: &Names) -> Names {
        let found = self
            .find(names)
            .map(|number| self.items[&number].names.clone());
        found.unwrap_or_else(|| names.clone())
    }

    pub fn is_original(&self, item: &Item) -> bool {
        let service = item.names_in("ibi.archiveservice");
        item.is_held && service.is_some_and(|service| service.matches(&self.items[&0].names))
    }

    /// Whether the original of an item was removed here: relations to it are not followed.
    pub fn is_removed(&self, names: &Names) -> bool {
        let item = self.find(names).map(|number| &self.items[&number]);
        item.is_some_and(|item| !item.is_held && item.was_original)
    }

    /// Returns the relations to an item that others declare, with their sources.
    pub fn relations_to(&self, names: &Names) -> Vec<(Names, String, &Item)> {
        let mut found = Vec::new();
        for item in self.items.values().filter(|item| item.is_held) {
            for (kind, target) in item.relations() {
                if target.matches(names) {
                    found.push((item.names.clone(), kind, item));
                }
            }
        }
        found.sort_by(|left, right| (&left.0, &left.1).cmp(&(&right.0, &right.1)));
        found
    }

    /// Returns the relations to an item that count for it, as another item sees them. For one that is not here, the ones
    /// that count for the item that leads to it.
    fn mentions_of(&self, names: &Names, asker: &Names) -> Vec<(Names, String, &Item)> {
        if self.held(names).is_some() || self.held(asker).is_some() {
            self.relations_to(names)
        } else {
            Vec::new()
        }
    }

    /// The target of a relation: as the item says, else as one says that points back.
    pub fn target(&self, names: &Names, kind: &str) -> Option<Names> {
        self.target_for(names, names, kind)
    }

    fn target_for(&self, names: &Names, asker: &Names, kind: &str) -> Option<Names> {
        let goes_on = kind == NEXT || kind == "ibi.editionof";
        let mut current = names.clone();
        for _ in 0..=self.items.len() {
            let declared = self.held(&current).and_then(|item| item.names_in(kind));
            let removed = match declared {
                Some(target) if self.is_removed(target) => Some(target.clone()),
                Some(target) => return Some(self.complete(target)),
                None => None,
            };
            let pointing = self.mentions_of(&current, asker).into_iter();
            let faces = |known: &str| match kind {
                TRANSLATION_OF => language_of(known).is_some(),
                kind => known == inverse(kind),
            };
            let first = pointing
                .filter(|(_, known, _)| faces(known))
                .map(|(names, ..)| names)
                .next();
            match (first, removed) {
                (Some(first), _) => return Some(first),
                (None, Some(removed)) if goes_on => current = removed,
                _ => return None,
            }
        }
        None
    }

    /// Returns the item of which this one is an edition, translation or metadata.
    pub fn points_back(&self, names: &Names, kind: &str) -> Option<Names> {
        if let Some(item) = self.held(names)
            && let Some(target) = item.names_in(kind)
        {
            return Some(self.complete(target));
        }
        let pointing = self.mentions_of(names, names).into_iter();
        let is_direct =
            |known: &str| known == NEXT || known == METADATA || language_of(known).is_some();
        pointing
            .filter(|(_, known, _)| is_direct(known) && inverse(known) == kind)
            .map(|(names, ..)| names)
            .next()
    }

    /// Returns the statements of sidecars that do not fit: next editions and metadata that an item names while another
    /// one claims to be them, and editions that go in a circle.
    pub fn contested(&self) -> Vec<String> {
        let mut found = Vec::new();
        for item in self.items.values().filter(|item| item.is_held) {
            for (kind, target) in item.relations() {
                if (kind != NEXT && kind != METADATA) || self.is_removed(&target) {
                    continue;
                }
                for (other, back, _) in self.relations_to(&item.names) {
                    if back == inverse(&kind) && !target.matches(&other) {
                        let (item, other) = (item.names.preferred(), other.preferred());
                        found.push(format!("{item} {kind} {other}"));
                    }
                }
            }
        }
        for item in self.items.values().filter(|item| item.is_held) {
            if self.last_edition(&item.names).is_none() {
                found.push(format!("{} goes in a circle", item.names.preferred()));
            }
        }
        found.sort();
        found
    }

    /// The last edition; None where they go in a circle.
    pub fn last_edition(&self, names: &Names) -> Option<Names> {
        let mut current = self.complete(names);
        for _ in 0..=self.items.len() {
            match self.target_for(&current, names, NEXT) {
                Some(next) => current = next,
                None => return Some(current),
            }
        }
        None
    }

    /// Whether one comes to an item going from edition to edition.
    pub fn leads_to(&self, from: &Names, wanted: &Names) -> bool {
        let mut current = from.clone();
        for _ in 0..=self.items.len() {
            if current.matches(wanted) {
                return true;
            }
            match self.target_for(&current, wanted, NEXT) {
                Some(next) => current = next,
                None => return false,
            }
        }
        false
    }

    /// An item and its translations, with their languages.
    pub fn translations(&self, names: &Names) -> Vec<(String, Names)> {
        let own = self.complete(names);
        let mut found: Vec<(String, Names)> = Vec::new();
        let add = |found: &mut Vec<(String, Names)>, language: Option<&str>, names: Names| {
            if let Some(language) = language
                && !found.iter().any(|(_, known)| known.matches(&names))
            {
                found.push((language.to_owned(), names));
            }
        };
        let mut sources = vec![own.clone()];
        if let Some(item) = self.held(&own) {
            add(&mut found, item.language(), own.clone());
            let source = item.names_in(TRANSLATION_OF);
            sources.extend(source.map(|source| self.complete(source)));
        }
        for (names, kind, _) in self.mentions_of(&own, &own) {
            if let Some(language) = language_of(&kind) {
                add(&mut found, Some(language), own.clone());
                sources.push(names);
            }
        }
        for source in sources {
            if let Some(item) = self.held(&source) {
                add(&mut found, item.language(), source.clone());
                for (kind, target) in item.relations() {
                    let target = self.complete(&target);
                    match language_of(&kind) {
                        _ if self.is_removed(&target) => {}
                        // Statements of the item itself always count.
                        Some(language) if source == own => {
                            found.push((language.to_owned(), target));
                        }
                        language => add(&mut found, language, target),
                    }
                }
            }
            for (names, kind, item) in self.mentions_of(&source, &own) {
                if kind == TRANSLATION_OF {
                    add(&mut found, item.language(), names);
                }
            }
        }
        found
    }

    /// Follows a modifier; ENOENT where it leads nowhere, ELOOP where it goes round.
    pub fn resolve(
        &self,
        names: &Names,
        steps: &[Step],
        preferred: &[&str],
    ) -> Result<Related, i32> {
        let mut current = self.complete(names);
        for (index, step) in steps.iter().enumerate() {
            let is_last = index + 1 == steps.len();
            let next = match step {
                Step::Last => Some(self.last_edition(&current).ok_or(libc::ELOOP)?),
                Step::Translation(wanted) => {
                    let found = self.translations(&current);
                    let choose =
                        |wanted: &str| found.iter().find(|(language, _)| language == wanted);
                    let chosen = match wanted {
                        Some(wanted) => choose(wanted),
                        None => {
                            let of_preferred = preferred.iter().find_map(|wanted| choose(wanted));
                            let own = self.complete(&current);
                            let itself = || found.iter().find(|(_, names)| names.matches(&own));
                            of_preferred.or_else(itself).or(found.first())
                        }
                    };
                    chosen.map(|(_, names)| names.clone())
                }
                Step::Metadata => match self.target(&current, METADATA) {
                    None if is_last => {
                        return self
                            .held_number(&current)
                            .map(Related::TextOf)
                            .ok_or(libc::ENOENT);
                    }
                    other => other,
                },
                Step::DublinCore => {
                    return self
                        .held_number(&current)
                        .map(Related::DublinCore)
                        .ok_or(libc::ENOENT);
                }
            };
            current = next.ok_or(libc::ENOENT)?;
        }
        Ok(Related::Item(current))
    }

    /// The translation into a language that another user is.
    pub fn declared_translation(&self, names: &Names, language: &str) -> Option<Names> {
        let own = self.complete(names);
        let found = self.translations(names).into_iter();
        found
            .filter(|(known, names)| known == language && !names.matches(&own))
            .map(|(_, names)| names)
            .next()
    }
}
