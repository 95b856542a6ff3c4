//! Items in the index, by name, by number, and in order.

use super::{Item, ItemId, Store, StoreError, Unsettled, query, recovery_log, rows};
use crate::archive::owner::Owner;
use crate::formats::item::Names;
use crate::sql::engine::params;
use ibi::{Ibip, Rep};

impl Store {
    /// The item with this rep, in any spelling.
    pub fn find_by_rep(&self, rep: &Rep) -> Result<Option<Item>, StoreError> {
        let is_meant = |item: &Item| item.names.rep() == Some(rep);
        let near = self.near_item(is_meant);
        match near.or_else(|| self.arrivals.find_item(is_meant)) {
            Some(item) => Ok(Some(item)),
            None => self.find("rep_key = ?1", params![rep.canonical()]),
        }
    }

    /// The item with this IBIp, in any spelling.
    pub fn find_by_ibip(&self, ibip: &Ibip) -> Result<Option<Item>, StoreError> {
        let is_meant = |item: &Item| item.names.ibip() == Some(ibip);
        let near = self.near_item(is_meant);
        match near.or_else(|| self.arrivals.find_item(is_meant)) {
            Some(item) => Ok(Some(item)),
            None => self.find("ibip_key = ?1", params![ibip.canonical()]),
        }
    }

    /// The item that has one of these names. If both forms are known, the rep has precedence.
    pub fn find_by_names(&self, names: &Names) -> Result<Option<Item>, StoreError> {
        if let Some(rep) = names.rep()
            && let Some(item) = self.find_by_rep(rep)?
        {
            return Ok(Some(item));
        }
        match names.ibip() {
            Some(ibip) => self.find_by_ibip(ibip),
            None => Ok(None),
        }
    }

    /// The item with this number.
    pub fn item(&self, id: ItemId) -> Result<Option<Item>, StoreError> {
        let near = || self.near_item(|item| item.id == id);
        let known = self.recent.item(id).or_else(|| self.arrivals.item(id));
        match known.or_else(near) {
            Some(item) => Ok(Some(item)),
            None => self.find("id = ?1", params![id.0]),
        }
    }

    /// The last accepted sidecar, byte for byte.
    pub fn sidecar(&self, id: ItemId) -> Result<Option<Vec<u8>>, StoreError> {
        if self.arrivals.item(id).is_some() {
            return Ok(None);
        }
        let connection = self.reading_rows();
        let sql = "SELECT sidecar FROM item WHERE id = ?1";
        Ok(connection
            .first(sql, params![id.0], |row| row.get(0))?
            .flatten())
    }

    /// The last accepted sidecar of the item with one of these names, even if other columns are damaged.
    pub fn accepted_sidecar(&self, names: &Names) -> Result<Option<Vec<u8>>, StoreError> {
        let connection = self.reading();
        let keys = [
            ("rep_key", names.rep().map(Rep::canonical)),
            ("ibip_key", names.ibip().map(Ibip::canonical)),
        ];
        for (column, key) in keys {
            let sql = format!("SELECT sidecar FROM item WHERE {column} = ?1");
            let found = connection.first(&sql, params![key], |row| row.get(0))?;
            if let Some(sidecar) = found {
                return Ok(sidecar);
            }
        }
        Ok(None)
    }

    /// Whether the store has no items.
    pub fn is_empty(&self) -> Result<bool, StoreError> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM item)";
        self.lock().value(sql, &[])
    }

    /// The items whose mint earlier processes have not settled, see [`Store::mint`].
    pub fn unsettled(&self) -> Result<Vec<Unsettled>, StoreError> {
        let connection = self.lock();
        // CROSS JOIN: the few unsettled items are read first, regardless of SQLite's estimate.
        let sql = format!(
            "SELECT {}, item.sidecar, uid, gid, mode FROM unsettled
             CROSS JOIN item WHERE item.id = unsettled.item {} ORDER BY unsettled.item",
            rows::ITEM,
            recovery_log::left(&connection)
        );
        connection.each(&sql, &[], |row| {
            let (uid, gid, mode): (Option<u32>, Option<u32>, Option<u32>) =
                (row.get("uid")?, row.get("gid")?, row.get("mode")?);
            Ok(Unsettled {
                item: rows::item(row)?,
                sidecar: row.get::<Option<_>>("sidecar")?.unwrap_or_default(),
                owner: uid.zip(gid).zip(mode).map(|((uid, gid), mode)| Owner {
                    uid,
                    gid,
                    mode,
                    doc_mode: mode,
                }),
            })
        })
    }

    /// Whether any item that is not removed has a rep.
    pub fn has_reps(&self) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM item WHERE rep_key IS NOT NULL AND state <> 'Deleted' LIMIT 1";
        self.reading().exists(sql, &[])
    }

    /// The number of items that are not removed.
    pub fn held_items(&self) -> Result<u64, StoreError> {
        let sql = "SELECT count(*) FROM item WHERE state <> 'Deleted'";
        let found: i64 = self.reading().value(sql, &[])?;
        Ok(found.unsigned_abs())
    }

    /// At most `most` of the items here whose reps have a prefix, the latest first.
    pub fn latest_of_prefix(&self, prefix: &str, most: usize) -> Result<Vec<Item>, StoreError> {
        let below = query::below("rep_key");
        self.items(
            &format!("{below} AND state <> 'Deleted' ORDER BY rep_key DESC LIMIT ?2"),
            params![prefix.to_ascii_lowercase(), query::limit(most)],
        )
    }

    /// At most `most` items after one, in the order of their numbers, including removed items.
    pub fn items_after(&self, after: ItemId, most: usize) -> Result<Vec<Item>, StoreError> {
        self.items(
            "id > ?1 ORDER BY id LIMIT ?2",
            params![after.0, query::limit(most)],
        )
    }

    /// The largest number that an item has; None in an empty index.
    pub fn last_number(&self) -> Result<Option<ItemId>, StoreError> {
        let last: Option<i64> = self.lock().value("SELECT max(id) FROM item", &[])?;
        Ok(last.map(ItemId))
    }

    /// Calls a closure for every item, in the order of their names.
    pub fn each_item(
        &self,
        visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_item_where("", visit)
    }

    /// Calls a closure for every removed item, in the order of their names.
    pub fn each_removed(
        &self,
        visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_item_where("WHERE state = 'Deleted'", visit)
    }

    /// Calls a closure for every item that is removed or was ever published, sealed or withdrawn, in the order of their names.
    pub fn each_with_life(
        &self,
        visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.each_item_where("WHERE state = 'Deleted' OR life IS NOT NULL", visit)
    }

    fn each_item_where(
        &self,
        condition: &'static str,
        mut visit: impl FnMut(&Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let connection = self.reading();
        let sql = format!(
            "SELECT {} FROM item {condition} ORDER BY coalesce(rep_key, ibip_key)",
            rows::ITEM
        );
        connection.visit(&sql, &[], |row| visit(&rows::item(row)?))
    }
}
