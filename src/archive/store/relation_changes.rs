//! The relations that were declared or removed after a change. They have the numbers of the changes of the items that
//! declare them.

use std::collections::BTreeMap;

use super::{ItemId, Store, StoreError, query, rows};
use crate::formats::item::Names;
use crate::sql::engine::{Connection, params};
use ibi::relation::RelationKind;
use ibi::{Ibip, Rep};

/// A relation that an item has declared or does not declare any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelationChange {
    /// The change of the item with which this has happened.
    pub number: i64,
    /// The item that declares it.
    pub source: Names,
    /// The relation of the other item to this one.
    pub kind: RelationKind,
    /// The other item, which need not be here.
    pub target: Names,
    /// Whether it is declared now.
    pub is_declared: bool,
    /// The key by which the next one is found.
    target_key: String,
}

/// The relations of items, by what a sidecar can say once: the kind.
pub(super) type Declared = BTreeMap<String, Names>;

/// Returns what these items declare now.
pub(super) fn declared_by(connection: &Connection, items: &[i64]) -> Result<Declared, StoreError> {
    let sql = format!("SELECT {} FROM relation WHERE source = ?1", rows::RELATION);
    let mut declared = Declared::new();
    for item in items {
        // A damaged row is replaced with the others.
        let found = connection.each(&sql, params![*item], |row| Ok(rows::relation(row).ok()))?;
        let found = found.into_iter().flatten();
        declared.extend(found.map(|(kind, target)| (kind.pair_name(), target)));
    }
    Ok(declared)
}

/// Records in what an item's relations differ from those of before. Returns it in words, empty if they are the same.
pub(super) fn note(
    connection: &Connection,
    item: ItemId,
    before: &Declared,
    now: &[(RelationKind, Names)],
) -> Result<String, StoreError> {
    let mut words = Vec::new();
    let mut after = Declared::new();
    for (kind, target) in now {
        // As in the table of relations, the first holds.
        after
            .entry(kind.pair_name())
            .or_insert_with(|| target.clone());
    }
    for (kind, target) in before {
        if !after.get(kind).is_some_and(|now| now.matches(target)) {
            put(connection, item, kind, target, false)?;
            words.push(format!("-{kind} {}", target.preferred()));
        }
    }
    for (kind, target) in &after {
        if !before.get(kind).is_some_and(|then| then.matches(target)) {
            put(connection, item, kind, target, true)?;
            words.push(format!("{kind} {}", target.preferred()));
        }
    }
    Ok(words.join(", "))
}

fn put(
    connection: &Connection,
    item: ItemId,
    kind: &str,
    target: &Names,
    is_declared: bool,
) -> Result<(), StoreError> {
    let key = target.rep().map(Rep::canonical);
    let key = key.or_else(|| target.ibip().map(Ibip::canonical));
    connection.execute(
        "INSERT INTO relation_change
            (source, kind, target, target_rep, target_ibip, declared, changed)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, (SELECT changed FROM item WHERE id = ?1))
         ON CONFLICT (source, kind, target) DO UPDATE SET target_rep = excluded.target_rep,
            target_ibip = excluded.target_ibip, declared = excluded.declared,
            changed = excluded.changed",
        params![
            item.0,
            kind,
            key,
            target.rep().map(Rep::as_str),
            target.ibip().map(Ibip::as_str),
            is_declared,
        ],
    )
}

impl Store {
    /// At most `most` relations that were declared or removed after one change and up to another, in the order of
    /// the changes; those after `last`, where the list continues. A relation counts once, for what it is now.
    pub fn relations_changed(
        &self,
        (after, until): (i64, i64),
        last: Option<&RelationChange>,
        most: usize,
    ) -> Result<Vec<RelationChange>, StoreError> {
        let connection = self.reading();
        let sql = format!(
            "SELECT relation.changed, relation.declared, relation.target, item.rep, item.ibip, {}
             FROM relation_change AS relation JOIN item ON item.id = relation.source
             WHERE relation.changed > ?1 AND relation.changed <= ?2
                 AND (relation.changed, relation.kind, relation.target) > (?3, ?4, ?5)
             ORDER BY relation.changed, relation.kind, relation.target LIMIT ?6",
            rows::RELATION
        );
        let place = params![
            after,
            until,
            last.map_or(after, |last| last.number),
            last.map_or_else(String::new, |last| last.kind.pair_name()),
            last.map_or("", |last| &last.target_key),
            query::limit(most),
        ];
        connection.each(&sql, place, |row| {
            let source = rows::names("item", row.get("rep")?, row.get("ibip")?)?;
            let (kind, target) = rows::relation(row)?;
            Ok(RelationChange {
                number: row.get("changed")?,
                source: source.unwrap_or_else(|| target.clone()),
                kind,
                target,
                is_declared: row.get("declared")?,
                target_key: row.get("target")?,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Record;
    use super::*;
    use crate::formats::item::State;
    use ibi::Ibi;

    fn names(text: &str) -> Names {
        Names::from(Ibi::parse(text).expect("an identifier"))
    }

    #[test]
    fn a_relation_counts_for_what_it_is_now() {
        let store = Store::temporary().expect("a store");
        let put = |relations: &[(RelationKind, &str)]| {
            let mut record = Record::bare(names("8JMKD3MGP8W/34PGRBS"), State::Copy);
            let relations = relations.iter();
            record.relations = relations
                .map(|(kind, target)| (*kind, names(target)))
                .collect();
            store.put(&record).expect("recorded");
            store.last_change().expect("a number").number
        };
        let changed = |after: i64, most: usize| -> Vec<(String, bool)> {
            let mut last = None;
            let mut all = Vec::new();
            loop {
                let found = store.relations_changed((after, i64::MAX), last.as_ref(), most);
                let found = found.expect("read");
                let Some(end) = found.last() else { return all };
                last = Some(end.clone());
                all.extend(found.into_iter().map(|change| {
                    let said = format!(
                        "{} {}",
                        change.kind.pair_name(),
                        change.target.preferred().to_ascii_uppercase()
                    );
                    (said, change.is_declared)
                }));
            }
        };
        let next = |target: &'static str| (RelationKind::NextEdition, target);
        let first = put(&[next("8JMKD3MGP8W/34PGRBK")]);
        let said = |text: &str, is: bool| (format!("ibi.nextedition 8JMKD3MGP8W/{text}"), is);
        assert_eq!(changed(0, 9), [said("34PGRBK", true)]);
        let same = put(&[next("8jmkd3mgp8w/34pgrbk")]);
        assert!(same > first);
        assert!(changed(first, 9).is_empty());
        put(&[next("8JMKD3MGP8W/34PGRBL")]);
        for most in [1, 9] {
            assert_eq!(
                changed(same, most),
                [said("34PGRBK", false), said("34PGRBL", true)]
            );
        }
        let other = put(&[]);
        assert!(changed(other, 9).is_empty());
        assert_eq!(
            changed(0, 1),
            [said("34PGRBK", false), said("34PGRBL", false)]
        );
    }

    /// A position long ago does not read what came before it.
    #[test]
    fn relations_are_found_by_the_index() {
        let store = Store::temporary().expect("a store");
        let plan: String = store
            .lock()
            .first(
                "EXPLAIN QUERY PLAN SELECT source FROM relation_change AS relation
                 WHERE relation.changed > ?1 AND relation.changed <= ?2
                     AND (relation.changed, relation.kind, relation.target) > (?3, ?4, ?5)
                 ORDER BY relation.changed, relation.kind, relation.target LIMIT 7",
                params![0_i64, 9_i64, 1_i64, "", ""],
                |row| row.get("detail"),
            )
            .expect("a plan")
            .expect("a line");
        assert!(plan.contains("relation_change_by_number"), "{plan}");
    }
}
