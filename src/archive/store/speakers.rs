//! The users with whose rights items declare relations: recorded with each relation, so that a look at the relations of
//! an item opens no other item, however many declare something of it.
//!
//! The user who speaks is decided in `archive/operations/rights.rs`, by what is on disk.

use super::{Item, ItemId, Speaker, Store, StoreError, query, rows};
use crate::formats::item::Names;
use crate::sql::engine::{Connection, Row, Sync, params};
use ibi::relation::RelationKind;
use ibi::{Ibip, Rep};

/// The number of users who declare something of one item that are considered.
const MOST_SPEAKERS: usize = 256;

/// The text in the column: NULL is not known yet, and an empty one that of a sidecar that speaks with no rights.
pub(super) fn to_column(speaker: Option<Speaker>) -> String {
    speaker
        .map(|speaker| speaker.to_string())
        .unwrap_or_default()
}

fn of_column(text: &str) -> Option<Speaker> {
    let (uid, gid) = match text.split_once(':') {
        Some((uid, gid)) => (uid, Some(gid.parse().ok()?)),
        None => (text, None),
    };
    let uid = uid.parse().ok()?;
    Some(Speaker { uid, gid })
}

/// The column `speaker` of a row.
pub(super) fn speaker(row: &Row<'_>) -> Result<Option<Speaker>, StoreError> {
    let text: Option<String> = row.get("speaker")?;
    Ok(text.as_deref().and_then(of_column))
}

/// Kinds of relations, as a range of the names of their pairs.
#[derive(Clone, Debug)]
pub struct Kinds(String, String);

impl Kinds {
    /// A kind alone.
    pub fn of(kind: &RelationKind) -> Kinds {
        Kinds(kind.pair_name(), kind.pair_name())
    }

    /// Translations into all languages.
    pub fn translations() -> Kinds {
        // A parenthesis follows the other in ASCII.
        Kinds("ibi.translation(".to_owned(), "ibi.translation)".to_owned())
    }

    /// The kinds that another item declares of the one that has this kind.
    pub fn facing(kind: &RelationKind) -> Kinds {
        match kind {
            RelationKind::NextEdition => Kinds::of(&RelationKind::EditionOf),
            RelationKind::EditionOf => Kinds::of(&RelationKind::NextEdition),
            RelationKind::Metadata => Kinds::of(&RelationKind::MetadataOf),
            RelationKind::MetadataOf => Kinds::of(&RelationKind::Metadata),
            RelationKind::Translation(_) => Kinds::of(&RelationKind::TranslationOf),
            RelationKind::TranslationOf => Kinds::translations(),
        }
    }

    /// Returns whether a kind is one of these.
    pub(super) fn has(&self, kind: &RelationKind) -> bool {
        let name = kind.pair_name();
        self.0 <= name && name <= self.1
    }
}

/// The columns by which the target of a relation is found, with the parameter that has its name.
const TARGETS: [(&str, &str); 2] = [("target_rep_key", "?1"), ("target_ibip_key", "?2")];

/// The users that speak in relations to an item. Each is found by a search in an index after the one before, however
/// many relations a user has declared.
fn speaking(column: &str, name: &str) -> String {
    format!(
        "WITH RECURSIVE speaking (speaker) AS (
            SELECT min(speaker) FROM relation WHERE {column} = {name} AND speaker > ''
            UNION ALL
            SELECT (SELECT min(relation.speaker) FROM relation
                WHERE {column} = {name} AND relation.speaker > speaking.speaker)
            FROM speaking WHERE speaking.speaker IS NOT NULL
         )
         SELECT speaker FROM speaking WHERE speaker IS NOT NULL LIMIT {MOST_SPEAKERS}"
    )
}

/// The relations of some kinds of one speaker to an item.
fn declared() -> String {
    let parts = TARGETS.map(|(column, name)| {
        format!(
            "SELECT * FROM (SELECT {relation}, {item} FROM relation JOIN item ON item.id = relation.source
                WHERE {column} = {name} AND relation.speaker = ?3 AND relation.kind BETWEEN ?4 AND ?5
                    AND state <> 'Deleted' LIMIT ?6) AS {column}s",
            relation = rows::RELATION,
            item = rows::ITEM,
        )
    });
    format!(
        "{} ORDER BY rep NULLS FIRST, ibip NULLS FIRST, kind",
        parts.join(" UNION ")
    )
}

fn forms(names: &Names) -> [Option<String>; 2] {
    [
        names.rep().map(Rep::canonical),
        names.ibip().map(Ibip::canonical),
    ]
}

/// The place of a declaration among others: by the names of who declares, then by the kind.
pub(super) fn order(kind: &RelationKind, item: &Item) -> impl Ord + use<> {
    let rep = item.names.rep().map(|rep| rep.as_str().to_owned());
    let ibip = item.names.ibip().map(|ibip| ibip.as_str().to_owned());
    (rep, ibip, kind.pair_name())
}

impl Store {
    /// The users that speak in relations to the item with these names.
    pub fn speakers_to(&self, names: &Names) -> Result<Vec<Speaker>, StoreError> {
        if let Some(known) = self.near_relations_to(names) {
            let mut speakers: Vec<Speaker> = Vec::new();
            for speaker in known.into_iter().filter_map(|(.., speaker)| speaker) {
                if !speakers.contains(&speaker) {
                    speakers.push(speaker);
                }
            }
            return Ok(speakers);
        }
        let connection = self.reading();
        let mut speakers: Vec<Speaker> = Vec::new();
        for ((column, _), form) in TARGETS.into_iter().zip(forms(names)) {
            let Some(form) = form else { continue };
            let found = connection.each(&speaking(column, "?1"), params![form], speaker)?;
            for speaker in found.into_iter().flatten() {
                if !speakers.contains(&speaker) {
                    speakers.push(speaker);
                }
            }
        }
        Ok(speakers)
    }

    /// At most `most` relations of some kinds to the item with these names, in which one of these users speaks.
    pub fn declared_to(
        &self,
        names: &Names,
        kinds: &Kinds,
        speakers: &[Speaker],
        most: usize,
    ) -> Result<Vec<(RelationKind, Item)>, StoreError> {
        if let Some(known) = self.near_relations_to(names) {
            let is_meant = |kind: &RelationKind, speaker: Option<Speaker>| {
                kinds.has(kind) && speaker.is_some_and(|speaker| speakers.contains(&speaker))
            };
            let known = known.into_iter();
            let meant = known.filter(|(kind, _, speaker)| is_meant(kind, *speaker));
            return Ok(meant.map(|(kind, item, _)| (kind, item)).collect());
        }
        let [rep, ibip] = forms(names);
        let connection = self.reading();
        let mut declared_by_all = Vec::new();
        for speaker in speakers {
            let parameters = params![
                rep.as_deref(),
                ibip.as_deref(),
                speaker.to_string(),
                kinds.0.as_str(),
                kinds.1.as_str(),
                query::limit(most),
            ];
            let found = connection.each(&declared(), parameters, |row| {
                Ok((rows::relation(row)?.0, rows::item(row)?))
            })?;
            declared_by_all.extend(found);
        }
        if speakers.len() > 1 {
            declared_by_all.sort_by_cached_key(|(kind, item)| order(kind, item));
        }
        declared_by_all.truncate(most);
        Ok(declared_by_all)
    }

    /// The user who speaks in the relations that an item declares; None also if it declares none.
    pub fn speaker(&self, id: ItemId) -> Result<Option<Speaker>, StoreError> {
        let sql = "SELECT speaker FROM relation WHERE source = ?1 LIMIT 1";
        let found = self.reading().first(sql, params![id.0], speaker)?;
        Ok(found.flatten())
    }

    /// Records who speaks in the relations that items declare.
    pub(in crate::archive) fn set_speakers(
        &self,
        speakers: &[(ItemId, Option<Speaker>)],
    ) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| {
            for (id, speaker) in speakers {
                set(transaction, *id, *speaker)?;
            }
            Ok(())
        })
    }

    /// At most `most` items after one that declare relations of which it is not known who speaks: an earlier version has
    /// recorded them.
    pub fn unspoken(&self, after: ItemId, most: usize) -> Result<Vec<Item>, StoreError> {
        self.items(
            "id IN (SELECT DISTINCT source FROM relation WHERE speaker IS NULL AND source > ?1
                ORDER BY source LIMIT ?2) ORDER BY id",
            params![after.0, query::limit(most)],
        )
    }
}

fn set(connection: &Connection, id: ItemId, speaker: Option<Speaker>) -> Result<(), StoreError> {
    connection.execute(
        "UPDATE relation SET speaker = ?2 WHERE source = ?1",
        params![id.0, to_column(speaker)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speaker_is_read_back() {
        for speaker in [
            None,
            Some(Speaker { uid: 0, gid: None }),
            Some(Speaker {
                uid: u32::MAX,
                gid: Some(0),
            }),
        ] {
            assert_eq!(of_column(&to_column(speaker)), speaker);
        }
        for text in ["", "x", ":1", "1:", "1:x", "-1"] {
            assert_eq!(of_column(text), None, "{text}");
        }
    }

    /// Statements use the indices, also for the next speaker.
    #[test]
    fn who_speaks_is_found_by_an_index() {
        let store = Store::temporary().expect("a store");
        let connection = store.lock();
        let connection = connection.sqlite().expect("SQLite");
        for (column, index) in [
            ("target_rep_key", "relation_by_rep_and_speaker"),
            ("target_ibip_key", "relation_by_ibip_and_speaker"),
        ] {
            for sql in [speaking(column, "?1"), declared()] {
                let mut statement = connection
                    .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
                    .expect("a statement");
                let count = statement.parameter_count();
                let found = statement
                    .query_map(rusqlite::params_from_iter(vec!["a"; count]), |row| {
                        row.get::<_, String>("detail")
                    })
                    .expect("asked");
                let plan: Vec<String> = found.map(|line| line.expect("a line")).collect();
                let plan = plan.join("\n");
                let wanted = format!("INDEX {index} ({column}=? AND speaker");
                assert!(plan.contains(&wanted), "{plan}");
            }
        }
    }
}
