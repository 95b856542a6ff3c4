//! Converts rows to checked values. A row with an invalid value causes an error that names it.

use super::{Item, ItemId, StoreError};
use crate::formats::item::{Life, Names, State};
use crate::sql::engine::Row;
use ibi::message;
use ibi::relation::{Language, RelationKind};
use ibi::{Ibip, Rep, Timestamp};

/// The columns of [`item`], in a fixed order.
pub(super) const ITEM: &str = "item.id, item.rep, item.ibip, item.state, item.service_rep, \
     item.service_ibip, item.language, item.target, item.removed_at, item.life";

/// The columns of [`relation`].
pub(super) const RELATION: &str =
    "relation.kind AS kind, relation.target_rep AS target_rep, relation.target_ibip AS target_ibip";

fn broken(table: &str, column: &str, value: &str) -> StoreError {
    StoreError::Broken {
        what: message!("{table}.{column} is '{value}'", table, column, value),
    }
}

/// A time from a column.
pub(super) fn timestamp(table: &str, column: &str, text: &str) -> Result<Timestamp, StoreError> {
    Timestamp::parse_rfc3339(text).map_err(|_| broken(table, column, text))
}

/// Both forms from two columns. Fails if both are missing or one is invalid.
pub(super) fn names(
    table: &str,
    rep: Option<String>,
    ibip: Option<String>,
) -> Result<Option<Names>, StoreError> {
    let rep = rep
        .map(|text| Rep::parse(&text).map_err(|_| broken(table, "rep", &text)))
        .transpose()?;
    let ibip = ibip
        .map(|text| Ibip::parse(&text).map_err(|_| broken(table, "ibip", &text)))
        .transpose()?;
    Ok(Names::new(rep, ibip))
}

/// An item from the columns [`ITEM`].
pub(super) fn item(row: &Row<'_>) -> Result<Item, StoreError> {
    let state: String = row.get("state")?;
    let language: Option<String> = row.get("language")?;
    let removed_at: Option<String> = row.get("removed_at")?;
    let life: Option<String> = row.get("life")?;
    Ok(Item {
        id: ItemId(row.get("id")?),
        names: names("item", row.get("rep")?, row.get("ibip")?)?
            .ok_or_else(|| broken("item", "rep and ibip", ""))?,
        state: state
            .parse::<State>()
            .map_err(|_| broken("item", "state", &state))?,
        service: names("item", row.get("service_rep")?, row.get("service_ibip")?)?,
        language: language
            .map(|text| Language::parse(&text).map_err(|_| broken("item", "language", &text)))
            .transpose()?,
        target: row.get("target")?,
        removed_at: removed_at
            .map(|text| timestamp("item", "removed_at", &text))
            .transpose()?,
        life: life
            .map(|text| Life::parse(&text).map_err(|_| broken("item", "life", &text)))
            .transpose()?
            .unwrap_or_default(),
    })
}

/// A relation from the columns [`RELATION`].
pub(super) fn relation(row: &Row<'_>) -> Result<(RelationKind, Names), StoreError> {
    let kind: String = row.get("kind")?;
    let target = names("relation", row.get("target_rep")?, row.get("target_ibip")?)?
        .ok_or_else(|| broken("relation", "target", ""))?;
    match RelationKind::from_pair_name(&kind) {
        Some(Ok(parsed)) => Ok((parsed, target)),
        _ => Err(broken("relation", "kind", &kind)),
    }
}
