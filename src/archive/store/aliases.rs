//! Recorded aliases. As in other names, case does not matter; it does in those that are IBIps in base 53.

use super::query::below;
use super::{Item, ItemId, Store, StoreError, rows};
use crate::formats::item::Names;
use crate::sql::engine::{Connection, params};
use ibi::{AliasPair, Ibip};

/// Returns whether the case of an alias counts.
fn is_exact(alias: &str) -> bool {
    Ibip::parse(alias).is_ok()
}

fn is_same(known: &str, alias: &str) -> bool {
    known == alias || !is_exact(alias) && !is_exact(known)
}

/// The items that have an alias in any spelling that is the same name, each with its spelling. Two had one of these each
/// before case was ignored: the item that was recorded first is the first here.
fn holders(
    connection: &Connection,
    alias: &AliasPair,
) -> Result<Vec<(String, ItemId)>, StoreError> {
    let sql = "SELECT name, item FROM alias WHERE lower(name) = ?1 ORDER BY item, name";
    let lower = params![alias.as_str().to_ascii_lowercase()];
    let mut found = connection.each(sql, lower, |row| {
        Ok((row.get::<String>("name")?, ItemId(row.get("item")?)))
    })?;
    found.retain(|(name, _)| is_same(name, alias.as_str()));
    Ok(found)
}

/// Records the aliases of an item, but for those that another item has.
pub(super) fn add(
    connection: &Connection,
    item: ItemId,
    aliases: &[AliasPair],
) -> Result<(), StoreError> {
    for alias in aliases {
        let holders = holders(connection, alias)?;
        if holders.iter().all(|(_, holder)| *holder == item) {
            connection.execute(
                "INSERT INTO alias (name, item) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
                params![alias.as_str(), item.0],
            )?;
        }
    }
    Ok(())
}

/// Removes an alias, in all spellings, from the items that have it.
pub(super) fn free(connection: &Connection, alias: &AliasPair) -> Result<(), StoreError> {
    for (name, _) in holders(connection, alias)? {
        connection.execute("DELETE FROM alias WHERE name = ?1", params![name])?;
    }
    Ok(())
}

/// The names of the item that has an alias.
pub(super) fn holder(
    connection: &Connection,
    alias: &AliasPair,
) -> Result<Option<Names>, StoreError> {
    let Some((_, item)) = holders(connection, alias)?.into_iter().next() else {
        return Ok(None);
    };
    let sql = "SELECT rep, ibip FROM item WHERE id = ?1";
    let found = connection.first(sql, params![item.0], |row| {
        rows::names("item", row.get("rep")?, row.get("ibip")?)
    })?;
    Ok(found.flatten())
}

impl Store {
    /// The item with this recorded alias.
    pub fn find_by_alias(&self, alias: &AliasPair) -> Result<Option<Item>, StoreError> {
        let holders = holders(&self.reading(), alias)?;
        match holders.first() {
            Some((_, item)) => self.item(*item),
            None => Ok(None),
        }
    }

    /// The aliases recorded for an item.
    pub fn aliases_of(&self, id: ItemId) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT name FROM alias WHERE item = ?1 ORDER BY name";
        self.reading().each(sql, params![id.0], |row| row.get(0))
    }

    /// Returns whether a recorded alias has this first component.
    pub fn has_alias_prefix(&self, prefix: &str) -> Result<bool, StoreError> {
        let sql = format!("SELECT 1 FROM alias WHERE {} LIMIT 1", below("lower(name)"));
        self.reading()
            .exists(&sql, params![prefix.to_ascii_lowercase()])
    }
}
