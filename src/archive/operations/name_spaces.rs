//! Name spaces of `upn:` names: the table of a store, and names that it completes.

use std::path::Path;

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::own_files::NAME_SPACES;
use super::{Archive, ArchiveError};
use crate::archive::tree::{Action, Tree};
use crate::formats::item::State;
use crate::formats::name_spaces::NameSpaces;
use crate::os::writing::Durability;
use ibi::persistent::{Identifier, PersistentError, PersistentName, Reader};
use ibi::{IbipPrefix, RepPrefix};

/// The table of a store; empty where the store has none.
///
/// # Errors
/// A table that is not valid: the error names file and line.
pub fn name_spaces(store: &Path) -> Result<NameSpaces, ArchiveError> {
    read(&Tree::open_as_it_is(store)?)
}

/// Changes the table of a store, which may be in use. The change is on disk when this returns.
///
/// # Errors
/// Another user than the owner of the store, a table that is not valid.
pub fn change_name_spaces<T>(
    store: &Path,
    change: impl FnOnce(&mut NameSpaces) -> T,
) -> Result<T, ArchiveError> {
    let tree = Tree::open_as_it_is(store)?;
    let failed = |errno| tree.error(Action::Open, NAME_SPACES, errno);
    let owner = rustix::fs::fstat(tree.root()).map_err(failed)?.st_uid;
    if owner != rustix::process::geteuid().as_raw() {
        let path = tree.path().join(NAME_SPACES);
        return Err(ArchiveError::NotStoreOwner { path });
    }
    // Another process that waits for the lock may replace the file with this name.
    let _lock = loop {
        let locked = tree.open_own(NAME_SPACES)?;
        rustix::fs::flock(&locked, FlockOperation::LockExclusive).map_err(failed)?;
        let now = tree.open_own(NAME_SPACES)?;
        let [locked_as, now] = [&locked, &now].map(rustix::fs::fstat);
        if locked_as.map_err(failed)?.st_ino == now.map_err(failed)?.st_ino {
            break locked;
        }
    };
    let mut table = read(&tree)?;
    let before = table.clone();
    let changed = change(&mut table);
    if table != before {
        let text = table.to_text();
        tree.write_beside(".", NAME_SPACES, text.as_bytes(), Durability::Synced)?;
    }
    Ok(changed)
}

impl Archive {
    /// Up to `most` prefixes of identifiers, in canonical spelling, that this Archive announces to a resolver: its
    /// own, and those of other originals that it holds.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn announced_prefixes(&self, most: usize) -> Result<Vec<String>, ArchiveError> {
        let facts = self.facts();
        let own = RepPrefix::from_host(&facts.host, facts.port).ok();
        let mut prefixes: Vec<String> = own.iter().map(RepPrefix::canonical).collect();
        prefixes.push(IbipPrefix::from_address(facts.ip, facts.ip_port).to_string());
        for prefix in self.store().prefixes_of_originals(most / 2)? {
            if !prefixes.contains(&prefix) {
                prefixes.push(prefix);
            }
        }
        prefixes.truncate(most);
        Ok(prefixes)
    }
}

fn read(tree: &Tree) -> Result<NameSpaces, ArchiveError> {
    let bytes = tree.read_small(NAME_SPACES)?.unwrap_or_default();
    NameSpaces::parse(&bytes).map_err(|what| {
        let path = tree.path().join(NAME_SPACES);
        ArchiveError::NameSpaces { path, what }
    })
}

impl Archive {
    /// Keeps the table as it is now, for a process that gives up the right to enter the store.
    pub fn keep_name_spaces(&self) -> Result<(), ArchiveError> {
        let _ = self.name_spaces.set(read(&self.tree)?);
        Ok(())
    }

    /// The table of this store, as it is now or as it is kept.
    ///
    /// # Errors
    /// It cannot be read, or is not valid.
    pub fn name_spaces(&self) -> Result<NameSpaces, ArchiveError> {
        if self.tree.is_mount() {
            return Ok(self.name_spaces.get().cloned().unwrap_or_default());
        }
        match (read(&self.tree), self.name_spaces.get()) {
            (Err(ArchiveError::Tree(error)), Some(kept)) if error.errno() == Errno::ACCESS => {
                Ok(kept.clone())
            }
            (read, _) => read,
        }
    }

    /// Reads a persistent name. A `upn:` name without an identifier is completed by the prefixes that are
    /// registered for its name space: by the first under which an item is held here, else by the first under
    /// which one is known, else by the only one with which it is an identifier.
    ///
    /// The inner error is that of a text that is not a name, completed or not.
    ///
    /// # Errors
    /// A table that is not valid; a name of which several prefixes make an identifier, where no such item is
    /// known.
    pub fn read_name(
        &self,
        reader: Reader,
        text: &str,
    ) -> Result<Result<PersistentName, PersistentError>, ArchiveError> {
        let read = reader.parse(text);
        let name_space = match &read {
            Err(PersistentError::Suffix { name_space, .. }) => name_space,
            Ok(PersistentName {
                name_space: Some(name_space),
                identifier,
                ..
            }) => match identifier {
                Identifier::Ibi(_) => return Ok(read),
                Identifier::Alias(alias) if self.store.find_by_alias(alias)?.is_some() => {
                    return Ok(read);
                }
                Identifier::Alias(_) | Identifier::Level(_) => name_space,
            },
            _ => return Ok(read),
        };
        let table = self.name_spaces()?;
        let Some(entry) = table.get(name_space) else {
            return Ok(read);
        };
        let mut completed = Vec::new();
        let mut removed = None;
        for prefix in entry.prefixes() {
            let Ok(name) = reader.parse_below(prefix, text) else {
                continue;
            };
            let Identifier::Ibi(ibi) = &name.identifier else {
                continue;
            };
            match self.find(ibi)? {
                Some(item) if item.state != State::Deleted => return Ok(Ok(name)),
                Some(_) if removed.is_none() => removed = Some(name),
                _ => completed.push(name),
            }
        }
        match (removed, completed.pop(), completed.is_empty()) {
            (Some(name), _, _) => Ok(Ok(name)),
            (None, Some(only), true) => Ok(Ok(only)),
            (None, Some(_), false) => {
                let name = text.to_owned();
                Err(ArchiveError::Unknown { name })
            }
            (None, None, _) => Ok(read),
        }
    }
}
