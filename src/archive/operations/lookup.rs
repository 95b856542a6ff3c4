//! Items by their names, and names by the texts that users write.

use super::identifiers::as_alias;
use super::{Archive, ArchiveError};
use crate::archive::store::{Item, ItemId};
use crate::formats::item::{Names, State};
use ibi::persistent::{
    Identifier, PersistentError, PersistentKind, PersistentName, Reader, is_link,
};
use ibi::{AliasPair, Ibi, Rep};

/// Returns what reads a link or the name of a file.
#[must_use]
pub fn reader_of(text: &str) -> Reader {
    if is_link(text) {
        Reader::new().with_aliases()
    } else {
        Reader::new().literal().with_aliases()
    }
}

/// Reads an identifier or a link without a store. The error of a name that a store may complete is none here.
///
/// # Errors
/// No store has an item of this name.
pub fn read_written(text: &str) -> Result<(), PersistentError> {
    let read = |reader: Reader| Ok::<_, PersistentError>(reader.parse(text));
    match reading(text, read)? {
        Ok(_) | Err(PersistentError::Suffix { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn reading<E>(
    text: &str,
    read: impl Fn(Reader) -> Result<Result<PersistentName, PersistentError>, E>,
) -> Result<Result<PersistentName, PersistentError>, E> {
    let name = read(reader_of(text))?;
    if name.is_err() && !is_link(text) {
        // As it stands in running text.
        let found = read(Reader::new().with_aliases())?;
        if found.as_ref().is_ok_and(|name| name.path.is_empty()) {
            return Ok(found);
        }
    }
    Ok(name)
}

impl Archive {
    /// The item with this identifier, in any form and spelling, including removed items.
    pub fn find(&self, ibi: &Ibi) -> Result<Option<Item>, ArchiveError> {
        Ok(match ibi {
            Ibi::Rep(rep) => self.store.find_by_rep(rep)?,
            Ibi::Ibip(ibip) => match (self.store.find_by_ibip(ibip)?, as_alias(ibip)) {
                // An item may have an IBIp in base 53 as an alias, beside the IBIp that it has now.
                (None, Some(alias)) => self.store.find_by_alias(&alias)?,
                (found, _) => found,
            },
        })
    }

    /// The item with a name: a rep, an IBIp or a recorded alias. Returns None if the item is unknown.
    pub fn find_named(&self, text: &str) -> Result<Option<Item>, ArchiveError> {
        match Ibi::parse(text) {
            Ok(ibi) => self.find(&ibi),
            Err(error) => match AliasPair::parse(text) {
                Ok(alias) => Ok(self.store.find_by_alias(&alias)?),
                Err(_) => Err(error.into()),
            },
        }
    }

    /// Reads an identifier or a link as a user writes it, in any form that ibi(7) lists; the item need not be known here.
    ///
    /// # Errors
    /// The index, or the table of name spaces, cannot be read.
    pub fn read_written(
        &self,
        text: &str,
    ) -> Result<Result<PersistentName, PersistentError>, ArchiveError> {
        reading(text, |reader| self.read_name(reader, text))
    }

    /// The item that is held here under one of these names.
    pub fn held(&self, names: &Names) -> Result<Option<Item>, ArchiveError> {
        let found = self.store.find_by_names(names)?;
        Ok(found.filter(|item| item.state != State::Deleted))
    }

    pub(super) fn known(&self, id: ItemId) -> Result<Item, ArchiveError> {
        self.store.item(id)?.ok_or_else(|| ArchiveError::Unknown {
            name: format!("number {}", id.0),
        })
    }

    /// Completes names with the other form, if the item is held here.
    pub fn complete(&self, names: &Names) -> Result<Names, ArchiveError> {
        Ok(self
            .store
            .find_by_names(names)?
            .map_or_else(|| names.clone(), |item| item.names))
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

    /// The names of the item that a link names; None for one that names a file of it or a related item.
    fn names_in_link(&self, text: &str) -> Option<Names> {
        let reader = Reader::new().with_aliases();
        let name = self.read_name(reader, text).ok()?.ok()?;
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

    /// The rep in the spelling of its levels here, so that each level is a single directory.
    pub(super) fn as_spelled_here(&self, rep: &Rep) -> Result<Rep, ArchiveError> {
        let [subdomain, word, year, time] = rep.components();
        let mut path = "col".to_owned();
        for component in [subdomain, word, year] {
            let spelled = self.tree.spelling_in(&path, component)?;
            path = format!("{path}/{}", spelled.as_deref().unwrap_or(component));
        }
        let below = path.strip_prefix("col/").unwrap_or(&path);
        Ok(Rep::parse(&format!("{below}/{time}"))?)
    }
}
