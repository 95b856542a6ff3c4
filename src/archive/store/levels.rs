//! The levels above items in the index: their spelling and their contents.

use super::query::{below, end_below, limit};
use super::{ItemId, Store, StoreError, rows};
use crate::formats::item::Names;
use crate::sql::engine::{Connection, params};
use ibi::ibip::prefix_key;
use ibi::rep::component_key;

/// An item in the listing of an IBIp prefix.
#[derive(Clone, Debug)]
pub struct PrefixRow {
    /// Its number.
    pub item: ItemId,
    /// Its names.
    pub names: Names,
    /// Its place in the order.
    pub key: String,
}

/// An item in the listing of a level of reps.
#[derive(Clone, Debug)]
pub struct LevelRow {
    /// Its number.
    pub item: ItemId,
    /// Its names; None if the row is damaged.
    pub names: Option<Names>,
    /// Its place in the order.
    pub key: String,
}

/// A prefix of IBIps that was found.
#[derive(Clone, Debug)]
pub struct PrefixFound {
    /// The prefix as it is recorded.
    pub prefix: String,
    /// The place after it.
    pub after: String,
    /// The first item that has it.
    pub item: ItemId,
}

impl Store {
    /// The recorded spelling of a level of the rep tree (`sid.inpe.br/mtc-m13@80`), if a present
    /// item is below it.
    pub fn spelling_of_level(&self, path: &str) -> Result<Option<String>, StoreError> {
        // Only the subdomain may end in a dot, which its key does not have.
        let key: Vec<String> = path.split('/').map(component_key).collect();
        let found = self.first_below("rep", "rep_key", &key.join("/"))?;
        Ok(found.and_then(|rep| {
            let depth = path.split('/').count();
            let end = rep.match_indices('/').nth(depth - 1)?.0;
            Some(rep[..end].to_owned())
        }))
    }

    /// The recorded spelling of an IBIp prefix, if a present item has it.
    pub fn spelling_of_prefix(&self, prefix: &str) -> Result<Option<String>, StoreError> {
        let found = self.first_below("ibip", "ibip_key", &prefix_key(prefix))?;
        Ok(found.and_then(|ibip| ibip.split_once('/').map(|(prefix, _)| prefix.to_owned())))
    }

    fn first_below(
        &self,
        column: &str,
        key_column: &str,
        key: &str,
    ) -> Result<Option<String>, StoreError> {
        let connection = self.reading();
        let sql = format!(
            "SELECT {column} FROM item WHERE {} AND state <> 'Deleted' LIMIT 1",
            below(key_column)
        );
        connection.first(&sql, params![key], |row| row.get(0))
    }

    /// Whether a present item without a rep has an IBIp with this prefix.
    pub fn has_items_without_rep(&self, prefix: &str) -> Result<bool, StoreError> {
        let connection = self.reading();
        let sql = format!(
            "SELECT 1 FROM item {} AND {} AND state <> 'Deleted' LIMIT 1",
            listed_by(&connection, true),
            below("ibip_key")
        );
        connection.exists(&sql, params![prefix_key(prefix)])
    }

    /// At most `most` of the items here under an IBIp prefix in the order of their IBIps, from the first one
    /// or after the key of one; with `without_rep`, only those without a rep.
    pub fn prefix_page(
        &self,
        prefix: &str,
        without_rep: bool,
        after: Option<&str>,
        most: usize,
    ) -> Result<Vec<PrefixRow>, StoreError> {
        let prefix = prefix_key(prefix);
        let first = format!("{prefix}/");
        let after = after.unwrap_or(&first);
        let connection = self.reading();
        let sql = format!(
            "SELECT rep, ibip, ibip_key, id FROM item {} AND ibip_key > ?1 AND ibip_key < ?2
             AND state <> 'Deleted' ORDER BY ibip_key LIMIT ?3",
            listed_by(&connection, without_rep)
        );
        let bounds = params![after, end_below(&prefix), limit(most)];
        let rows = connection.each(&sql, bounds, |row| {
            let names = rows::names("item", row.get(0)?, row.get(1)?)?;
            let (key, item) = (row.get(2)?, ItemId(row.get(3)?));
            Ok(names.map(|names| PrefixRow { item, names, key }))
        })?;
        Ok(rows.into_iter().flatten().collect())
    }

    /// At most `most` of the items here whose keys of reps follow one key and come before another, in that order. See
    /// [`level_bounds`] and [`key_after_level`].
    pub fn rep_page(
        &self,
        after: &str,
        before: &str,
        most: usize,
    ) -> Result<Vec<LevelRow>, StoreError> {
        let connection = self.reading();
        let sql = "SELECT rep, ibip, rep_key, id FROM item WHERE rep_key > ?1 AND rep_key < ?2
             AND state <> 'Deleted' ORDER BY rep_key LIMIT ?3";
        connection.each(sql, params![after, before, limit(most)], |row| {
            let names = rows::names("item", row.get(0)?, row.get(1)?)?;
            let (key, item) = (row.get(2)?, ItemId(row.get(3)?));
            Ok(LevelRow { item, names, key })
        })
    }

    /// The place of an item in the order of [`Store::prefix_page`], also of a removed item.
    pub fn ibip_key(&self, item: ItemId) -> Result<Option<String>, StoreError> {
        let sql = "SELECT ibip_key FROM item WHERE id = ?1";
        let found = self
            .reading()
            .first(sql, params![item.0], |row| row.get(0))?;
        Ok(found.flatten())
    }

    /// The place of an item in the order of [`Store::rep_page`], also of a removed item.
    pub fn rep_key(&self, item: ItemId) -> Result<Option<String>, StoreError> {
        let sql = "SELECT rep_key FROM item WHERE id = ?1";
        let found = self
            .reading()
            .first(sql, params![item.0], |row| row.get(0))?;
        Ok(found.flatten())
    }

    /// The recorded IBIp prefixes of the items here; with `without_rep`, only of those without a rep.
    pub fn prefixes(&self, without_rep: bool) -> Result<Vec<String>, StoreError> {
        let mut prefixes = Vec::new();
        let mut after = String::new();
        while let Some(found) = self.prefix_after(without_rep, &after)? {
            prefixes.push(found.prefix);
            after = found.after;
        }
        Ok(prefixes)
    }

    /// The first of [`Store::prefixes`] after a place, which is empty before the first one.
    pub fn prefix_after(
        &self,
        without_rep: bool,
        after: &str,
    ) -> Result<Option<PrefixFound>, StoreError> {
        let connection = self.reading();
        // One step of the index for each prefix, regardless of the number of its items.
        let sql = format!(
            "SELECT ibip, ibip_key, id FROM item {}
             AND ibip_key > ?1 AND state <> 'Deleted' ORDER BY ibip_key LIMIT 1",
            listed_by(&connection, without_rep)
        );
        connection.first(&sql, params![after], |row| {
            let ibip: String = row.get(0)?;
            let key: String = row.get(1)?;
            Ok(PrefixFound {
                prefix: ibip
                    .split_once('/')
                    .map_or("", |(prefix, _)| prefix)
                    .to_owned(),
                // The key determines the order: a damaged row may have a name that does not match it.
                after: key_after_prefix(&key).unwrap_or(key),
                item: ItemId(row.get(2)?),
            })
        })
    }
}

/// The place after the prefix of an item in the order of [`Store::prefix_after`], by the key of its IBIp.
#[must_use]
pub fn key_after_prefix(key: &str) -> Option<String> {
    key.split_once('/').map(|(first, _)| end_below(first))
}

/// The keys of reps between which the items below a level are; all reps if the path is empty.
#[must_use]
pub fn level_bounds(path: &str) -> (String, String) {
    if path.is_empty() {
        return (String::new(), "\u{10ffff}".to_owned());
    }
    let key: Vec<String> = path.split('/').map(component_key).collect();
    let key = key.join("/");
    (format!("{key}/"), end_below(&key))
}

/// A key of reps after all those below the same level, which has so many components, as a key; None if the key has no
/// more components than that.
#[must_use]
pub fn key_after_level(key: &str, depth: usize) -> Option<String> {
    let end = key.match_indices('/').nth(depth.checked_sub(1)?)?.0;
    key.get(..end).map(end_below)
}

/// The index that lists items in the order of their IBIps: one that has only those requested.
fn listed_by(connection: &Connection, without_rep: bool) -> String {
    if without_rep {
        let index = connection.by_index("item_without_rep");
        format!("{index} WHERE rep_key IS NULL")
    } else {
        "WHERE ibip_key IS NOT NULL".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row whose key does not match its name is damaged; the iteration must end all the same.
    #[test]
    fn prefixes_of_damaged_rows_end() {
        let store = Store::temporary().expect("a store");
        let damaged = "INSERT INTO item (ibip, ibip_key, state) VALUES
            ('2A/B', 'JA/B', 'Copy'), ('KA/B', 'K', 'Copy'), ('LA/B', 'LA/B', 'Copy')";
        store.lock().execute(damaged, &[]).expect("rows");
        assert_eq!(store.prefixes(false).expect("read"), ["2A", "KA", "LA"]);
    }

    /// The names of the level below one with so many components, as a listing finds them.
    fn names_below(store: &Store, path: &str, depth: usize) -> Vec<String> {
        let (mut after, end) = level_bounds(path);
        let mut names = Vec::new();
        while let Some(row) = store.rep_page(&after, &end, 1).expect("read").pop() {
            let name = row.key.split('/').nth(depth).unwrap_or("damaged");
            names.push(name.to_owned());
            let next = key_after_level(&row.key, depth + 1).unwrap_or(row.key);
            assert!(after < next, "{after} {next}");
            after = next;
        }
        names
    }

    #[test]
    fn each_name_of_a_level_is_met_once() {
        let store = Store::temporary().expect("a store");
        let rows = [
            "a.org/w/2001/01.01.00.00",
            "a.org/w/2001/01.01.00.01",
            "a.org/w/2002/01.01.00.00",
            "a.org/w@80/2001/01.01.00.00",
            "a.org-b/w/2001/01.01.00.00",
            "a.org.b/v/2001/01.01.00.00",
        ];
        let insert = "INSERT INTO item (rep, rep_key, state) VALUES (?1, ?2, 'Copy')";
        for rep in rows {
            let row = params![rep, rep];
            store.lock().execute(insert, row).expect("a row");
        }
        // Rows whose key does not match their name are damaged.
        for key in ["b", "c/d"] {
            let row = params!["d.org/w/2001/01.01.00.00", key];
            store.lock().execute(insert, row).expect("a row");
        }
        assert_eq!(
            names_below(&store, "", 0),
            ["a.org-b", "a.org.b", "a.org", "b", "c"]
        );
        assert_eq!(names_below(&store, "A.org", 1), ["w", "w@80"]);
        assert_eq!(names_below(&store, "a.org/W", 2), ["2001", "2002"]);
        let days = names_below(&store, "a.org/w/2001", 3);
        assert_eq!(days, ["01.01.00.00", "01.01.00.01"]);
        assert_eq!(names_below(&store, "a.or", 1), [""; 0]);
        assert_eq!(names_below(&store, "c", 2), ["damaged"]);
        assert_eq!(key_after_level("a/b", 0), None);
    }
}
