//! Relations that sidecars declare.

use super::near::Pointing;
use super::{ItemId, Store, StoreError, query, rows, speakers};
use crate::formats::item::Names;
use crate::sql::engine::params;
use ibi::relation::RelationKind;
use ibi::{Ibip, Rep};

impl Store {
    /// The relations that an item's own sidecar declares.
    pub fn relations_of(&self, id: ItemId) -> Result<Vec<(RelationKind, Names)>, StoreError> {
        if let Some(known) = self.near_relations_of(id) {
            return Ok(known);
        }
        if self.arrivals.item(id).is_some() {
            return Ok(Vec::new());
        }
        let connection = self.reading_rows();
        let sql = format!(
            "SELECT {} FROM relation WHERE source = ?1 ORDER BY kind",
            rows::RELATION
        );
        connection.each(&sql, params![id.0], rows::relation)
    }

    /// The relations that other items declare to the item with these names, by either form, with who speaks there, in no
    /// order; at most `most` by each form.
    pub fn relations_to(&self, names: &Names, most: usize) -> Result<Vec<Pointing>, StoreError> {
        let connection = self.reading();
        let forms = params![
            names.rep().map(Rep::canonical),
            names.ibip().map(Ibip::canonical),
            query::limit(most),
        ];
        connection.each(&pointing(), forms, |row| {
            let speaker = speakers::speaker(row)?;
            Ok((rows::relation(row)?.0, rows::item(row)?, speaker))
        })
    }

    /// The number of relations that other items declare to the item with these names.
    pub fn count_relations_to(&self, names: &Names) -> Result<u64, StoreError> {
        let forms = params![
            names.rep().map(Rep::canonical),
            names.ibip().map(Ibip::canonical),
        ];
        let sql = "SELECT (SELECT count(*) FROM relation WHERE target_rep_key = ?1)
            + (SELECT count(*) FROM relation WHERE target_ibip_key = ?2
                AND (target_rep_key IS NULL OR target_rep_key <> ?1 OR ?1 IS NULL))";
        let found: i64 = self.reading().value(sql, forms)?;
        Ok(found.unsigned_abs())
    }
}

/// The condition for relations to an item by either form.
fn pointing() -> String {
    let columns = format!(
        "{}, relation.speaker AS speaker, {}",
        rows::RELATION,
        rows::ITEM
    );
    let parts = [("target_rep_key", "?1"), ("target_ibip_key", "?2")].map(|(column, name)| {
        format!(
            "SELECT * FROM (SELECT {columns} FROM relation JOIN item ON item.id = relation.source
                WHERE {column} = {name} AND state <> 'Deleted' LIMIT ?3) AS {column}s"
        )
    });
    parts.join(" UNION ")
}

#[cfg(test)]
mod tests {
    use rusqlite::StatementStatus;

    use super::*;

    /// Statements that run for each relation of each item are planned only once, and use indices.
    #[test]
    fn statements_are_planned_once() {
        let store = Store::temporary().expect("a store");
        let connection = store.lock();
        let connection = connection.sqlite().expect("SQLite");
        // As in a store that SQLite has analysed.
        let fill = "
            INSERT INTO item (id, rep, rep_key, state) WITH RECURSIVE number (n) AS
                (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 100)
                SELECT n, 'a/b' || n, 'a/b' || n, 'Copy' FROM number;
            INSERT INTO relation SELECT id, 'ibi.metadata', 'a/b1', 'a/b' || (id % 9), NULL, NULL, '' FROM item;
            ANALYZE;";
        connection.execute_batch(fill).expect("rows");
        let mut statement = connection.prepare(&pointing()).expect("a statement");
        for name in ["a/b1", "a/b2", "c"] {
            let mut found = statement.query((name, name, 9)).expect("asked");
            while found.next().expect("read").is_some() {}
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
        let plan = format!("EXPLAIN QUERY PLAN {}", pointing());
        let mut statement = connection.prepare(&plan).expect("a statement");
        let found = statement
            .query_map(("a", "a", 9), |row| row.get::<_, String>("detail"))
            .expect("asked");
        let plan: Vec<String> = found.map(|line| line.expect("a line")).collect();
        let plan = plan.join("\n");
        for index in ["relation_by_rep", "relation_by_ibip"] {
            assert!(
                plan.contains(&format!("SEARCH relation USING INDEX {index}")),
                "{plan}"
            );
        }
    }
}
