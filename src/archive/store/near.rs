//! The items that an item is related to, read from a server in one statement.
//!
//! A modifier follows relations step by step, and each step asks for an item or its relations. From a file that costs
//! microseconds, less than reading what is not asked for; from a server a round trip each. While a thread follows
//! relations ([`Store::near`]), what it asks for is answered from what one statement has read: the item, all that are
//! connected with it, and what they declare. Anything else is asked for as ever.

use std::cell::RefCell;

use super::{Item, ItemId, Speaker, Store, StoreError, rows, speakers};
use crate::formats::item::{Names, State};
use crate::sql::engine::params;
use ibi::relation::RelationKind;
use ibi::{Ibip, Rep};

/// With this many items, they are not read at once.
const MOST: usize = 64;

/// A relation that an item declares with another one, and who speaks there.
pub(super) type Pointing = (RelationKind, Item, Option<Speaker>);

/// The relations that an item's sidecar declares.
pub(super) type Declared = Vec<(RelationKind, Names)>;

/// An item, what it declares, and who speaks there.
type NearItem = (Item, Declared, Option<Speaker>);

/// Items, all of those that are connected with them, and what each declares.
#[derive(Debug, Default)]
struct Near {
    /// The address of the store that they are from: a thread may ask several.
    store: usize,
    items: Vec<NearItem>,
}

thread_local! {
    static NEAR: RefCell<Option<Near>> = const { RefCell::new(None) };
}

/// The relations that a thread has read at once, until this value is dropped.
#[derive(Debug)]
#[must_use]
pub struct Remembered {
    is_first: bool,
}

impl Drop for Remembered {
    fn drop(&mut self) {
        if self.is_first {
            NEAR.with_borrow_mut(|near| *near = None);
        }
    }
}

/// The items that are connected with the one of these names. The order of relations is that of `Store::relations_of`.
fn connected() -> String {
    let (item, relation) = (rows::ITEM, rows::RELATION);
    format!(
        "WITH RECURSIVE near (id, rep_key, ibip_key) AS (
            SELECT id, rep_key, ibip_key FROM item WHERE rep_key = ?1 OR ibip_key = ?2
            UNION
            SELECT other.id, other.rep_key, other.ibip_key FROM near CROSS JOIN LATERAL (
                SELECT item.id, item.rep_key, item.ibip_key FROM relation
                    JOIN item ON item.rep_key = relation.target_rep_key WHERE relation.source = near.id
                UNION ALL
                SELECT item.id, item.rep_key, item.ibip_key FROM relation
                    JOIN item ON item.ibip_key = relation.target_ibip_key WHERE relation.source = near.id
                UNION ALL
                SELECT item.id, item.rep_key, item.ibip_key FROM relation
                    JOIN item ON item.id = relation.source WHERE relation.target_rep_key = near.rep_key
                UNION ALL
                SELECT item.id, item.rep_key, item.ibip_key FROM relation
                    JOIN item ON item.id = relation.source WHERE relation.target_ibip_key = near.ibip_key
            ) AS other
        )
        SELECT {item}, {relation}, relation.speaker AS speaker FROM (SELECT id FROM near LIMIT {limit}) AS chosen
            JOIN item ON item.id = chosen.id
            LEFT JOIN relation ON relation.source = item.id ORDER BY item.id, relation.kind",
        limit = MOST + 1
    )
}

impl Near {
    fn by(&self, is_meant: impl Fn(&Item) -> bool) -> Option<&NearItem> {
        self.items.iter().find(|(item, ..)| is_meant(item))
    }

    /// The relations that other items declare to one of these, as `Store::relations_to` has them.
    fn pointing_to(&self, item: &Item) -> Vec<Pointing> {
        let mut pointing = Vec::new();
        for (source, declared, speaker) in &self.items {
            if source.state == State::Deleted {
                continue;
            }
            let to_item = declared
                .iter()
                .filter(|(_, target)| target.matches(&item.names));
            pointing.extend(to_item.map(|(kind, _)| (*kind, source.clone(), *speaker)));
        }
        pointing.sort_by_cached_key(|(kind, source, _)| speakers::order(kind, source));
        pointing
    }
}

impl Store {
    /// Reads what is connected with an item, if the index is in a server, for what this thread asks until the result is
    /// dropped.
    pub fn near(&self, names: &Names) -> Result<Remembered, StoreError> {
        let is_known = NEAR.with_borrow(Option::is_some);
        if self.url.is_none() || is_known {
            return Ok(Remembered { is_first: false });
        }
        let mut near = Near {
            store: self.address(),
            items: Vec::new(),
        };
        let forms = params![
            names.rep().map(Rep::canonical),
            names.ibip().map(Ibip::canonical),
        ];
        self.lock().visit(&connected(), forms, |row| {
            let item = rows::item(row)?;
            let declared = match row.get::<Option<String>>("kind")? {
                Some(_) => Some(rows::relation(row)?),
                None => None,
            };
            match near.items.last_mut() {
                Some((last, relations, _)) if last.id == item.id => relations.extend(declared),
                _ => {
                    let speaker = speakers::speaker(row)?;
                    near.items
                        .push((item, declared.into_iter().collect(), speaker));
                }
            }
            Ok(())
        })?;
        if near.items.len() > MOST {
            near.items.clear();
        }
        NEAR.with_borrow_mut(|known| *known = Some(near));
        Ok(Remembered { is_first: true })
    }
}

impl Store {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Asks what this thread has read of this store at once.
    fn remembered<T>(&self, find: impl FnOnce(&Near) -> Option<T>) -> Option<T> {
        NEAR.with_borrow(|near| {
            let near = near.as_ref().filter(|near| near.store == self.address());
            near.and_then(find)
        })
    }

    /// An item of those read at once.
    pub(super) fn near_item(&self, is_meant: impl Fn(&Item) -> bool) -> Option<Item> {
        self.remembered(|near| Some(near.by(is_meant)?.0.clone()))
    }

    /// Returns what an item declares, if it is one of those read at once.
    pub(super) fn near_relations_of(&self, id: ItemId) -> Option<Declared> {
        self.remembered(|near| Some(near.by(|item| item.id == id)?.1.clone()))
    }

    /// Returns what others declare to an item, if it is one of those read at once.
    pub(super) fn near_relations_to(&self, names: &Names) -> Option<Vec<Pointing>> {
        self.remembered(|near| {
            let (item, ..) = near.by(|item| item.names == *names)?;
            Some(near.pointing_to(item))
        })
    }
}
