//! The levels above items in the index: their spelling and their contents.

use rusqlite::OptionalExtension;

use super::query::{below, each, end_below};
use super::{Store, StoreError, rows};
use crate::formats::item::Names;
use ibi::ibip::prefix_key;
use ibi::rep::component_key;

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
        let connection = self.lock();
        let sql = format!(
            "SELECT {column} FROM item WHERE {} AND state <> 'Deleted' LIMIT 1",
            below(key_column)
        );
        let mut statement = connection.prepare_cached(&sql)?;
        Ok(statement.query_row([key], |row| row.get(0)).optional()?)
    }

    /// Whether a recorded alias has this first component.
    pub fn has_alias_prefix(&self, prefix: &str) -> Result<bool, StoreError> {
        let connection = self.lock();
        let sql = format!("SELECT 1 FROM alias WHERE {} LIMIT 1", below("name"));
        let mut statement = connection.prepare_cached(&sql)?;
        Ok(statement.exists([prefix])?)
    }

    /// The names of the items here under an IBIp prefix; with `without_rep`, only of those without a rep.
    pub fn names_under_prefix(
        &self,
        prefix: &str,
        without_rep: bool,
    ) -> Result<Vec<Names>, StoreError> {
        let connection = self.lock();
        let sql = format!(
            "SELECT rep, ibip FROM item {} AND {} AND state <> 'Deleted' ORDER BY ibip_key",
            listed_by(without_rep),
            below("ibip_key")
        );
        let names = each(&connection, &sql, [prefix_key(prefix)], |row| {
            rows::names("item", row.get(0)?, row.get(1)?)
        });
        Ok(names?.into_iter().flatten().collect())
    }

    /// The recorded IBIp prefixes of the items here; with `without_rep`, only of those without a rep.
    pub fn prefixes(&self, without_rep: bool) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        // One step of the index for each prefix, regardless of the number of its items.
        let mut statement = connection.prepare_cached(&format!(
            "SELECT substr(ibip, 1, instr(ibip, '/') - 1), ibip_key FROM item {}
             AND ibip_key > ?1 AND state <> 'Deleted' ORDER BY ibip_key LIMIT 1",
            listed_by(without_rep)
        ))?;
        let mut prefixes = Vec::new();
        let mut after = String::new();
        while let Some((prefix, key)) = statement
            .query_row([&after], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })
            .optional()?
        {
            // The key determines the order: a damaged row may have a name that does not match it.
            after = match key.split_once('/') {
                Some((first, _)) => end_below(first),
                None => key,
            };
            prefixes.push(prefix);
        }
        Ok(prefixes)
    }
}

/// The index that lists items in the order of their IBIps: one that has only those requested.
fn listed_by(without_rep: bool) -> &'static str {
    if without_rep {
        "INDEXED BY item_without_rep WHERE rep_key IS NULL"
    } else {
        "WHERE ibip_key IS NOT NULL"
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::schema;
    use super::*;

    /// A row whose key does not match its name is damaged; the iteration must end all the same.
    #[test]
    fn prefixes_of_damaged_rows_end() {
        let mut connection = Connection::open_in_memory().expect("a database");
        Store::prepared(&mut connection).expect("options");
        schema::migrate(&mut connection).expect("tables");
        let damaged = "INSERT INTO item (ibip, ibip_key, state) VALUES
            ('2A/B', 'JA/B', 'Copy'), ('KA/B', 'K', 'Copy'), ('LA/B', 'LA/B', 'Copy')";
        connection.execute_batch(damaged).expect("rows");
        let store = Store::over(connection, None);
        assert_eq!(store.prefixes(false).expect("read"), ["2A", "KA", "LA"]);
    }
}
