//! The prefixes of the items whose originals are here.

use super::query::end_below;
use super::{Store, StoreError};
use crate::sql::engine::params;

/// The most prefixes that are looked at.
const MOST_LOOKED_AT: usize = 4096;

impl Store {
    /// Up to `most` prefixes of reps, and as many of IBIps, in canonical spelling, with originals here.
    ///
    /// # Errors The index cannot be read.
    pub fn prefixes_of_originals(&self, most: usize) -> Result<Vec<String>, StoreError> {
        let mut found = self.prefixes_in("rep_key", 2, most)?;
        found.extend(self.prefixes_in("ibip_key", 1, most)?);
        Ok(found)
    }

    fn prefixes_in(
        &self,
        column: &str,
        depth: usize,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let next =
            format!("SELECT {column} FROM item WHERE {column} > ?1 ORDER BY {column} LIMIT 1");
        let has_original = format!(
            "SELECT 1 FROM item WHERE {column} > ?1 AND {column} < ?2 AND state = 'Original' LIMIT 1"
        );
        let (mut found, mut after) = (Vec::new(), String::new());
        for _ in 0..MOST_LOOKED_AT {
            // One step of the index for each prefix. Others may use it between two steps.
            let connection = self.reading();
            let key: Option<String> = connection.first(&next, params![&after], |row| row.get(0))?;
            let Some(key) = key.filter(|_| found.len() < most) else {
                break;
            };
            let end = key.match_indices('/').nth(depth - 1);
            let Some(prefix) = end.and_then(|(at, _)| key.get(..at)) else {
                // A damaged row.
                after = key;
                continue;
            };
            let end = end_below(prefix);
            if connection.exists(&has_original, params![format!("{prefix}/"), &end])? {
                found.push(prefix.to_owned());
            }
            after = end;
        }
        Ok(found)
    }
}
