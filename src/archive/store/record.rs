//! Writes a record as the rows of an item: its names, relations and aliases.

use super::history::{Before, Teller};
use super::{
    Item, ItemId, Record, StoreError, aliases, recovery_log, relation_changes, rows, speakers,
};
use crate::archive::owner::Owner;
use crate::formats::item::{Names, State};
use crate::sql::engine::{Connection, Value, params};
use ibi::{Ibip, Rep, Timestamp};

/// A record to be written and synced.
#[derive(Debug)]
pub(super) struct RecordWrite {
    pub(super) record: Record,
    /// Set for an item whose directory is not placed and synced yet.
    pub(super) mint: Option<NewItem>,
}

/// An item as it was recorded.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) item: Item,
    /// Whether another one, which had its other name, was removed for it.
    pub(super) is_merged: bool,
}

/// The owner of a minted item.
#[derive(Debug)]
pub(super) struct NewItem {
    pub(super) owner: Option<Owner>,
}

/// Writes one record of a group.
pub(super) fn apply(
    connection: &Connection,
    change: &RecordWrite,
    teller: Option<&Teller>,
) -> Result<Recorded, StoreError> {
    if change.mint.is_some()
        && let Some(holder) = holder_of(connection, &change.record.names)?
    {
        return Err(StoreError::Taken {
            name: change.record.names.preferred(),
            holder: Box::new(holder),
        });
    }
    let known = match change.mint {
        Some(_) => Vec::new(),
        None => known_as(connection, &change.record.names)?,
    };
    let noted = Noted {
        is_mint: change.mint.is_some(),
        ..Noted::by(teller)
    };
    let recorded = write(connection, &change.record, known, &noted, None)?;
    if let Some(NewItem { owner }) = &change.mint {
        let uid = owner.map(|owner| owner.uid);
        let gid = owner.map(|owner| owner.gid);
        let mode = owner.map(|owner| owner.mode);
        let (column, value) = match recovery_log::noted(connection) {
            None => ("", String::new()),
            Some(host) => (", host", format!(", {host}")),
        };
        let sql = format!(
            "INSERT INTO unsettled (item, uid, gid, mode{column}) VALUES (?1, ?2, ?3, ?4{value})
             ON CONFLICT (item) DO UPDATE SET uid = ?2, gid = ?3, mode = ?4"
        );
        connection.execute(&sql, params![recorded.item.id.0, uid, gid, mode])?;
    }
    Ok(recorded)
}

/// The item, removed or not, that has one of these names.
fn holder_of(connection: &Connection, names: &Names) -> Result<Option<Names>, StoreError> {
    let found = connection.first(
        "SELECT rep, ibip FROM item WHERE rep_key = ?1 OR ibip_key = ?2",
        params![
            names.rep().map(Rep::canonical),
            names.ibip().map(Ibip::canonical)
        ],
        |row| rows::names("item", row.get(0)?, row.get(1)?),
    )?;
    Ok(found.flatten())
}

/// The number of a change, greater than those of all before.
pub(super) const NEXT_CHANGE: &str =
    "(SELECT coalesce(max(changed), 0) + 1 FROM item WHERE changed > 0)";

/// The number of a new item.
pub(super) const NEXT_ITEM: &str = "(SELECT coalesce(max(id), 0) + 1 FROM item)";

/// The columns of [`values`].
pub(super) const COLUMNS: &str = "rep, rep_key, ibip, ibip_key, state, service_rep, service_ibip, \
     language, target, removed_at, life, sidecar";

fn insert(number: &str) -> String {
    format!(
        "INSERT INTO item (id, {COLUMNS}, changed)
         VALUES ({number}, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,
            ?10, ?11, ?12, {NEXT_CHANGE})
         RETURNING id"
    )
}

/// A form that the record does not have remains known.
fn update() -> String {
    format!(
        "UPDATE item SET rep = coalesce(?1, rep), rep_key = coalesce(?2, rep_key),
            ibip = coalesce(?3, ibip), ibip_key = coalesce(?4, ibip_key),
            state = ?5, service_rep = ?6, service_ibip = ?7, language = ?8, target = ?9,
            removed_at = ?10, life = ?11, sidecar = ?12, changed = {NEXT_CHANGE}
         WHERE id = ?13
         RETURNING id"
    )
}

/// Records an item, new or known by any of its names, with everything that its sidecar declares.
pub(super) fn put(
    connection: &Connection,
    record: &Record,
    teller: Option<&Teller>,
) -> Result<Recorded, StoreError> {
    let known = known_as(connection, &record.names)?;
    write(connection, record, known, &Noted::by(teller), None)
}

/// Records an item unless one of its names is known.
pub(super) fn put_new(
    connection: &Connection,
    record: &Record,
    teller: Option<&Teller>,
) -> Result<bool, StoreError> {
    if holder_of(connection, &record.names)?.is_some() {
        return Ok(false);
    }
    write(connection, record, Vec::new(), &Noted::by(teller), None)?;
    Ok(true)
}

/// Records an item that has a number already, and no row.
pub(super) fn put_arrived(
    connection: &Connection,
    id: ItemId,
    record: &Record,
    teller: Option<&Teller>,
) -> Result<Recorded, StoreError> {
    // Another item with its other name becomes this one, or keeps the name.
    if holder_of(connection, &record.names)?.is_some() {
        return put(connection, record, teller);
    }
    let noted = Noted::by(teller);
    write(connection, record, Vec::new(), &noted, Some(id))
}

/// As [`put`], while all items are recorded again: what their relations were before is not known.
pub(super) fn fill(connection: &Connection, record: &Record) -> Result<Recorded, StoreError> {
    let known = known_as(connection, &record.names)?;
    let noted = Noted {
        relations: false,
        ..Noted::by(None)
    };
    write(connection, record, known, &noted, None)
}

/// An item: its number and the forms of its identifier.
type Known = (i64, Option<String>, Option<String>);

/// The items that have one of these names. If the two forms were known as two items, the one that is present is the
/// first, and remains.
fn known_as(connection: &Connection, names: &Names) -> Result<Vec<Known>, StoreError> {
    connection.each(
        "SELECT id, rep, ibip FROM item WHERE rep_key = ?1 OR ibip_key = ?2
         ORDER BY state = 'Deleted', id",
        params![
            names.rep().map(Rep::canonical),
            names.ibip().map(Ibip::canonical)
        ],
        |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
    )
}

/// The values of a record in the columns [`COLUMNS`].
pub(super) fn values<'a>(
    record: &'a Record,
    rep_key: Option<&'a str>,
    ibip_key: Option<&'a str>,
) -> Vec<Value<'a>> {
    let service = record.service.as_ref();
    vec![
        Value::from(record.names.rep().map(Rep::as_str)),
        Value::from(rep_key),
        Value::from(record.names.ibip().map(Ibip::as_str)),
        Value::from(ibip_key),
        Value::from(record.state.to_string()),
        Value::from(service.and_then(Names::rep).map(Rep::as_str)),
        Value::from(service.and_then(Names::ibip).map(Ibip::as_str)),
        Value::from(record.language.as_ref().map(ToString::to_string)),
        Value::from(record.target.as_deref()),
        Value::from(record.removed_at.as_ref().map(Timestamp::to_rfc3339)),
        Value::from(record.life.text()),
        Value::from(record.sidecar.as_deref()),
    ]
}

/// The records of a change beside the item itself.
struct Noted<'a> {
    /// Whether the relations in which it differs are.
    relations: bool,
    /// Records events, if they are recorded.
    teller: Option<&'a Teller>,
    /// Whether the item is minted.
    is_mint: bool,
}

impl<'a> Noted<'a> {
    fn by(teller: Option<&'a Teller>) -> Noted<'a> {
        Noted {
            relations: true,
            teller,
            is_mint: false,
        }
    }
}

fn write(
    connection: &Connection,
    record: &Record,
    known: Vec<Known>,
    noted: &Noted<'_>,
    number: Option<ItemId>,
) -> Result<Recorded, StoreError> {
    let rep_key = record.names.rep().map(Rep::canonical);
    let ibip_key = record.names.ibip().map(Ibip::canonical);
    let mut names = None;
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
        names.get_or_insert(holder);
    }
    let known: Vec<i64> = known.into_iter().map(|(id, ..)| id).collect();
    let before = noted
        .relations
        .then(|| relation_changes::declared_by(connection, &known));
    let before = before.transpose()?;
    let row_before = match (noted.teller, known.first()) {
        (Some(_), Some(item)) => Before::of(connection, *item)?,
        _ => None,
    };
    for id in &known {
        for forget in [
            "DELETE FROM relation WHERE source = ?1",
            "DELETE FROM alias WHERE item = ?1",
        ] {
            connection.execute(forget, params![*id])?;
        }
    }
    // The two forms were known as two items until now, and are merged.
    for merged in known.iter().skip(1) {
        connection.execute("DELETE FROM item WHERE id = ?1", params![*merged])?;
    }
    let is_merged = known.len() > 1;
    let known = known.first().copied();
    let number = known.or(number.map(|id| id.0));
    let sql = match (known, number) {
        (Some(_), _) => update(),
        (None, Some(_)) => insert("?13"),
        (None, None) => insert(NEXT_ITEM),
    };
    let mut values = values(record, rep_key.as_deref(), ibip_key.as_deref());
    values.extend(number.map(Value::from));
    let id: i64 = connection.value(&sql, &values)?;
    if record.state == State::Deleted {
        // A minted item that was removed since is not created again.
        connection.execute("DELETE FROM unsettled WHERE item = ?1", params![id])?;
        connection.execute("DELETE FROM content WHERE item = ?1", params![id])?;
    }
    for (kind, target) in &record.relations {
        connection.execute(
            "INSERT INTO relation (source, kind, target_rep, target_rep_key, target_ibip, target_ibip_key, speaker)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
            params![
                id,
                kind.pair_name(),
                target.rep().map(Rep::as_str),
                target.rep().map(Rep::canonical),
                target.ibip().map(Ibip::as_str),
                target.ibip().map(Ibip::canonical),
                speakers::to_column(record.speaker),
            ],
        )?;
    }
    let mut related = String::new();
    if let Some(before) = before {
        related = relation_changes::note(connection, ItemId(id), &before, &record.relations)?;
    }
    if let Some(teller) = noted.teller {
        let change = (noted.is_mint, related.as_str());
        teller.tell_change(connection, record, row_before.as_ref(), change)?;
    }
    aliases::add(connection, ItemId(id), &record.aliases)?;
    let mut item = record.item(ItemId(id));
    if let Some(known) = names {
        let rep = item.names.rep().or(known.rep()).cloned();
        let ibip = item.names.ibip().or(known.ibip()).cloned();
        item.names = Names::new(rep, ibip).unwrap_or(item.names);
    }
    Ok(Recorded { item, is_merged })
}
