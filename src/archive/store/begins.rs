//! How identifiers go on that have been begun.

use rusqlite::OptionalExtension;

use super::{Store, StoreError};
use ibi::relation::{Language, RelationKind};

impl Store {
    /// How the reps and IBIps of the items here go on after a beginning, in any case of its letters:
    /// up to the end of a level, with the slash, or to the end. So many at most of each form.
    pub fn continued(&self, begun: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let mut found = self.continued_in("rep_key", &begun.to_ascii_lowercase(), most)?;
        found.extend(self.continued_in("ibip_key", &begun.to_ascii_uppercase(), most)?);
        Ok(found)
    }

    fn continued_in(
        &self,
        column: &str,
        begun: &str,
        most: usize,
    ) -> Result<Vec<String>, StoreError> {
        let connection = self.lock();
        // One step of the index for each level, however many items lie below it.
        let mut statement = connection.prepare_cached(&format!(
            "SELECT {column} FROM item WHERE {column} >= ?1 AND {column} < ?2
             AND state <> 'Deleted' ORDER BY {column} LIMIT 1"
        ))?;
        let mut found = Vec::new();
        let mut from = begun.to_owned();
        let end = format!("{begun}\u{7f}");
        while found.len() < most
            && let Some(key) = statement
                .query_row([&from, &end], |row| row.get::<_, String>(0))
                .optional()?
        {
            let rest = key.get(begun.len()..).unwrap_or_default();
            match rest.split_once('/') {
                Some((level, _)) => {
                    // '0' follows '/' in ASCII.
                    from = format!("{begun}{level}0");
                    found.push(format!("{begun}{level}/"));
                }
                None => {
                    from = format!("{key} ");
                    found.push(key);
                }
            }
        }
        Ok(found)
    }

    /// The languages of the translations that are declared here, sorted.
    pub fn languages(&self) -> Result<Vec<Language>, StoreError> {
        let connection = self.lock();
        let mut statement = connection
            .prepare("SELECT DISTINCT kind FROM relation WHERE kind LIKE 'ibi.translation(%'")?;
        let kinds = statement.query_map([], |row| row.get::<_, String>(0))?;
        let mut languages = Vec::new();
        for kind in kinds {
            if let Some(Ok(RelationKind::Translation(language))) =
                RelationKind::from_pair_name(&kind?)
            {
                languages.push(language);
            }
        }
        languages.sort_by_key(ToString::to_string);
        Ok(languages)
    }
}
