//! The Archives that have answered for a prefix, so that a resolver asks them first after a restart, too.

use super::{Registry, RegistryError};
use ibi::Timestamp;
use ibifs_sql::engine::{Value, params};

/// The most prefixes that are kept. The oldest are removed first.
const MOST_KEPT: i64 = 100_000;

/// The number that one statement writes, so that a server is not asked for each. All of a transaction are written
/// before another resolver may write.
const AT_ONCE: usize = 1_000;

impl Registry {
    /// The prefixes and the services that have answered for each, as [`Registry::remember`] has written them.
    ///
    /// # Errors The database cannot be read.
    pub fn remembered(&self) -> Result<Vec<(String, String)>, RegistryError> {
        let select = "SELECT prefix, services FROM remembered";
        let connection = self.lock();
        Ok(connection.each(select, &[], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// Writes prefixes, each once, and the services that have answered for them.
    ///
    /// # Errors The database cannot be written. Some of them may be.
    pub fn remember(
        &self,
        changes: &[(String, String)],
        now: &Timestamp,
    ) -> Result<(), RegistryError> {
        for changes in changes.chunks(AT_ONCE) {
            let rows = (0..changes.len()).map(|at| {
                let first = at * 2 + 2;
                format!("(?{first}, ?{}, ?1)", first + 1)
            });
            let insert = format!(
                "INSERT INTO remembered (prefix, services, noted) VALUES {}
                 ON CONFLICT (prefix) DO UPDATE SET
                     services = excluded.services, noted = excluded.noted",
                rows.collect::<Vec<_>>().join(", ")
            );
            let mut values = vec![Value::from(now.seconds())];
            for (prefix, services) in changes {
                values.extend([Value::from(prefix), Value::from(services)]);
            }
            self.write(|connection| -> Result<(), RegistryError> {
                connection.execute(&insert, &values)?;
                let count = "SELECT count(*) FROM remembered";
                let count: i64 = connection.value(count, &[])?;
                let delete = "DELETE FROM remembered WHERE prefix IN
                     (SELECT prefix FROM remembered ORDER BY noted LIMIT ?1)";
                Ok(connection.execute(delete, params![(count - MOST_KEPT).max(0)])?)
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::TestRegistry;
    use super::*;

    #[test]
    fn the_oldest_are_removed() {
        let place = TestRegistry::new();
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
