//! Which Archives have answered for a prefix, so that a resolver asks them first after a restart, too.

use rusqlite::params;

use super::{Registry, RegistryError};
use crate::archive::database;
use ibi::Timestamp;

/// The most prefixes that are kept. The oldest are removed first.
const MOST_KEPT: i64 = 100_000;

impl Registry {
    /// The prefixes and the services that have answered for each, as [`Registry::remember`] has written them.
    ///
    /// # Errors The database cannot be read.
    pub fn remembered(&self) -> Result<Vec<(String, String)>, RegistryError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT prefix, services FROM remembered")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Writes prefixes and the services that have answered for them, in one transaction.
    ///
    /// # Errors The database cannot be written.
    pub fn remember(
        &self,
        changes: &[(String, String)],
        now: &Timestamp,
    ) -> Result<(), RegistryError> {
        let mut connection = self.lock();
        let transaction = database::writing(&mut connection)?;
        {
            let insert =
                "INSERT OR REPLACE INTO remembered (prefix, services, noted) VALUES (?1, ?2, ?3)";
            let mut statement = transaction.prepare_cached(insert)?;
            for (prefix, services) in changes {
                statement.execute(params![prefix, services, now.seconds()])?;
            }
        }
        let count = "SELECT count(*) FROM remembered";
        let count: i64 = transaction.query_row(count, [], |row| row.get(0))?;
        transaction.execute(
            "DELETE FROM remembered WHERE prefix IN
                 (SELECT prefix FROM remembered ORDER BY noted LIMIT ?1)",
            [(count - MOST_KEPT).max(0)],
        )?;
        Ok(transaction.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::RegistryDirectory;
    use super::*;

    #[test]
    fn the_oldest_are_removed() {
        let place = RegistryDirectory::new();
        let registry = place.open();
        let row = |number: i64| (format!("p{number}"), "a b".to_owned());
        let at = |seconds| Timestamp::from_unix(seconds, 0);
        let first: Vec<_> = (0..MOST_KEPT).map(row).collect();
        registry.remember(&first, &at(1)).expect("written");
        registry.remember(&[row(0)], &at(2)).expect("written");
        registry
            .remember(&[row(MOST_KEPT)], &at(3))
            .expect("written");
        let kept = registry.remembered().expect("read");
        assert_eq!(kept.len() as i64, MOST_KEPT);
        assert!(kept.contains(&row(0)) && kept.contains(&row(MOST_KEPT)));
    }
}
