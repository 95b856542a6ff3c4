//! Completion of a prefix of an identifier.

use super::query::end_below;
use super::{Store, StoreError};
use crate::sql::engine::params;
use ibi::relation::{Language, RelationKind};

impl Store {
    /// The completions of a prefix among the reps and IBIps of the items here, regardless of case:
    /// up to the end of a level, including the slash, or to the end. At most `most` of each form.
    pub fn completions(&self, prefix: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let mut found = self.completions_in("rep_key", &prefix.to_ascii_lowercase(), most)?;
        let upper = prefix.to_ascii_uppercase();
        found.extend(self.completions_in("ibip_key", &upper, most)?);
        // Case counts in IBIps in base 53.
        if prefix != upper {
            found.extend(self.completions_in("ibip_key", prefix, most)?);
        }
        Ok(found)
    }

    fn completions_in(
        &self,
        column: &str,
        prefix: &str,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let connection = self.reading();
        // One step of the index for each level, regardless of the number of items below it.
        let sql = format!(
            "SELECT {column} FROM item WHERE {column} >= ?1 AND {column} < ?2
             AND state <> 'Deleted' ORDER BY {column} LIMIT 1"
        );
        let mut found = Vec::new();
        let mut from = prefix.to_owned();
        let end = format!("{prefix}\u{7f}");
        while found.len() < most
            && let Some(key) =
                connection.first(&sql, params![&from, &end], |row| row.get::<String>(0))?
        {
            let rest = key.get(prefix.len()..).unwrap_or_default();
            match rest.split_once('/') {
                Some((level, _)) => {
                    from = end_below(&format!("{prefix}{level}"));
                    found.push(format!("{prefix}{level}/"));
                }
                None => {
                    from = format!("{key} ");
                    found.push(key);
                }
            }
        }
        Ok(found)
    }

    /// The languages of the translations declared here, sorted.
    pub fn languages(&self) -> Result<Vec<Language>, StoreError> {
        let sql = "SELECT DISTINCT kind FROM relation WHERE kind LIKE 'ibi.translation(%'";
        let kinds = self.reading().each(sql, &[], |row| row.get::<String>(0))?;
        let mut languages = Vec::new();
        for kind in kinds {
            if let Some(Ok(RelationKind::Translation(language))) =
                RelationKind::from_pair_name(&kind)
            {
                languages.push(language);
            }
        }
        languages.sort_by_key(ToString::to_string);
        Ok(languages)
    }
}
