//! Writes a record as the rows of an item: its names, relations and aliases.

use rusqlite::{Connection, OptionalExtension, named_params};

use super::{ItemId, Record, StoreError, relation_changes, rows};
use crate::archive::owner::Owner;
use crate::formats::item::{Names, State};
use ibi::{Ibip, Rep, Timestamp};

/// A record to be written and synced.
#[derive(Debug)]
pub(super) struct RecordWrite {
    pub(super) record: Record,
    /// Set for an item whose directory is not placed and synced yet.
    pub(super) mint: Option<NewItem>,
}

/// The owner of a minted item.
#[derive(Debug)]
pub(super) struct NewItem {
    pub(super) owner: Option<Owner>,
}

/// Writes one record of a group.
pub(super) fn apply(connection: &Connection, change: &RecordWrite) -> Result<ItemId, StoreError> {
    if change.mint.is_some()
        && let Some(holder) = holder_of(connection, &change.record.names)?
    {
        return Err(StoreError::Taken {
            name: change.record.names.preferred(),
            holder: Box::new(holder),
        });
    }
    let id = put(connection, &change.record)?;
    if let Some(NewItem { owner }) = &change.mint {
        let uid = owner.map(|owner| owner.uid);
        let gid = owner.map(|owner| owner.gid);
        let mode = owner.map(|owner| owner.mode);
        connection
            .prepare_cached("INSERT OR REPLACE INTO unsettled VALUES (?1, ?2, ?3, ?4)")?
            .execute((id.0, uid, gid, mode))?;
    }
    Ok(id)
}

/// The item, removed or not, that has one of these names.
fn holder_of(connection: &Connection, names: &Names) -> Result<Option<Names>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT rep, ibip FROM item WHERE rep_key = ?1 OR ibip_key = ?2")?;
    let keys = (
        names.rep().map(Rep::canonical),
        names.ibip().map(Ibip::canonical),
    );
    let found = statement
        .query_row(keys, |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    match found {
        Some((rep, ibip)) => rows::names("item", rep, ibip),
        None => Ok(None),
    }
}

const INSERT: &str = "
    INSERT INTO item (id, rep, rep_key, ibip, ibip_key, state, service_rep, service_ibip, language,
        target, removed_at, sidecar, changed)
    VALUES (:id, :rep, :rep_key, :ibip, :ibip_key, :state, :service_rep, :service_ibip, :language,
        :target, :removed_at, :sidecar, (SELECT ifnull(max(changed), 0) + 1 FROM item WHERE changed > 0))";

/// A form that the record does not have remains known.
const UPDATE: &str = "
    UPDATE item SET rep = coalesce(:rep, rep), rep_key = coalesce(:rep_key, rep_key),
        ibip = coalesce(:ibip, ibip), ibip_key = coalesce(:ibip_key, ibip_key),
        state = :state, service_rep = :service_rep, service_ibip = :service_ibip,
        language = :language, target = :target, removed_at = :removed_at, sidecar = :sidecar,
        changed = (SELECT ifnull(max(changed), 0) + 1 FROM item WHERE changed > 0)
    WHERE id = :id";

/// Records an item, new or known by any of its names, with everything that its sidecar declares.
pub(super) fn put(connection: &Connection, record: &Record) -> Result<ItemId, StoreError> {
    write(connection, record, true)
}

/// As [`put`], while all items are recorded again: what their relations were before is not known.
pub(super) fn fill(connection: &Connection, record: &Record) -> Result<ItemId, StoreError> {
    write(connection, record, false)
}

fn write(
    connection: &Connection,
    record: &Record,
    notes_relations: bool,
) -> Result<ItemId, StoreError> {
    let rep_key = record.names.rep().map(Rep::canonical);
    let ibip_key = record.names.ibip().map(Ibip::canonical);
    // If the two forms were known as two items, the one that is present remains.
    let mut statement = connection.prepare_cached(
        "SELECT id, rep, ibip FROM item WHERE rep_key = ?1 OR ibip_key = ?2
         ORDER BY state = 'Deleted', id",
    )?;
    let mut known: Vec<(i64, Option<String>, Option<String>)> = Vec::new();
    let mut found = statement.query((&rep_key, &ibip_key))?;
    while let Some(row) = found.next()? {
        known.push((row.get(0)?, row.get(1)?, row.get(2)?));
    }
    // Two items cannot share a name, and a known form of an item does not change.
    for (_, rep, ibip) in &known {
        let holder = rows::names("item", rep.clone(), ibip.clone())?;
        let Some(holder) = holder else { continue };
        if holder.contradicts(&record.names) {
            let shared = match record.names.ibip() {
                Some(ibip) if holder.ibip() == Some(ibip) => ibip.to_string(),
                _ => record.names.preferred(),
            };
            return Err(StoreError::Taken {
                name: shared,
                holder: Box::new(holder),
            });
        }
    }
    let known: Vec<i64> = known.into_iter().map(|(id, ..)| id).collect();
    let before = notes_relations.then(|| relation_changes::declared_by(connection, &known));
    let before = before.transpose()?;
    for id in &known {
        for forget in [
            "DELETE FROM relation WHERE source = ?1",
            "DELETE FROM alias WHERE item = ?1",
        ] {
            connection.prepare_cached(forget)?.execute([id])?;
        }
    }
    // The two forms were known as two items until now, and are merged.
    for merged in known.iter().skip(1) {
        connection
            .prepare_cached("DELETE FROM item WHERE id = ?1")?
            .execute([merged])?;
    }
    let known = known.first().copied();
    connection
        .prepare_cached(match known {
            Some(_) => UPDATE,
            None => INSERT,
        })?
        .execute(named_params! {
            ":id": known,
            ":rep": record.names.rep().map(Rep::as_str),
            ":rep_key": rep_key,
            ":ibip": record.names.ibip().map(Ibip::as_str),
            ":ibip_key": ibip_key,
            ":state": record.state.to_string(),
            ":service_rep": record.service.as_ref().and_then(Names::rep).map(Rep::as_str),
            ":service_ibip": record.service.as_ref().and_then(Names::ibip).map(Ibip::as_str),
            ":language": record.language.as_ref().map(ToString::to_string),
            ":target": record.target,
            ":removed_at": record.removed_at.as_ref().map(Timestamp::to_rfc3339),
            ":sidecar": record.sidecar,
        })?;
    let id = known.unwrap_or_else(|| connection.last_insert_rowid());
    if record.state == State::Deleted {
        // A minted item that was removed since is not created again.
        connection
            .prepare_cached("DELETE FROM unsettled WHERE item = ?1")?
            .execute([id])?;
    }
    for (kind, target) in &record.relations {
        connection
            .prepare_cached("INSERT OR IGNORE INTO relation VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?
            .execute((
                id,
                kind.pair_name(),
                target.rep().map(Rep::as_str),
                target.rep().map(Rep::canonical),
                target.ibip().map(Ibip::as_str),
                target.ibip().map(Ibip::canonical),
            ))?;
    }
    if let Some(before) = before {
        relation_changes::note(connection, ItemId(id), &before, &record.relations)?;
    }
    for alias in &record.aliases {
        connection
            .prepare_cached("INSERT OR IGNORE INTO alias VALUES (?1, ?2)")?
            .execute((alias.to_string(), id))?;
    }
    Ok(ItemId(id))
}
