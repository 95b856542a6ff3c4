//! Writing. Every change is one transaction, synced at once or with the next one that is.

use super::record::{self, NewItem, RecordWrite, Recorded, put};
use super::{Item, ItemId, Record, Store, StoreError, aliases, random_number, rows};
use crate::archive::owner::Owner;
use crate::formats::item::{Life, Names, State};
use crate::sql::engine::{Connection, Sync, params};
use ibi::{AliasPair, Ibip, Rep, Timestamp};

impl Store {
    /// Records an item, new or known by any of its names, with everything that its sidecar declares.
    pub(in crate::archive) fn put(&self, record: &Record) -> Result<ItemId, StoreError> {
        let id = self.put_row(record)?;
        self.note_seal(id, record);
        Ok(id)
    }

    fn put_row(&self, record: &Record) -> Result<ItemId, StoreError> {
        match record.state {
            State::Copy => {
                if let Some(written) = self.put_arrived(record) {
                    return written;
                }
                let connection = self.lock();
                let recorded =
                    connection.transact(Sync::Later, |it| put(it, record, self.teller.get()));
                self.note_recorded(recorded)
            }
            State::Original | State::Deleted => {
                let write = RecordWrite {
                    record: record.clone(),
                    mint: None,
                };
                self.write_in_group(vec![write])
                    .pop()
                    .unwrap_or(Err(StoreError::Conflict))
            }
        }
    }

    /// Keeps an item that was recorded while this thread has the connection, for what is asked of it next.
    pub(super) fn note_recorded(
        &self,
        recorded: Result<Recorded, StoreError>,
    ) -> Result<ItemId, StoreError> {
        if !matches!(
            recorded,
            Ok(Recorded {
                is_merged: false,
                ..
            })
        ) {
            self.recent.clear();
        }
        let item = recorded?.item;
        let id = item.id;
        self.recent.note(item);
        Ok(id)
    }

    /// Records items that have arrived, in one transaction that is synced later. Returns for each whether it was recorded:
    /// one of which the index has a name already is not.
    pub fn put_new(&self, records: &[Record]) -> Result<Vec<bool>, StoreError> {
        if records.is_empty() {
            return Ok(Vec::new());
        }
        let recorded = self.write(Sync::Later, |transaction| {
            records
                .iter()
                .map(|record| record::put_new(transaction, record, self.teller.get()))
                .collect()
        })?;
        let is_held = |life: &Life| life.sealed.is_some() || life.available.is_some();
        if records.iter().any(|record| is_held(&record.life)) {
            self.read_seals()?;
        }
        Ok(recorded)
    }

    /// Records items whose directories are placed after this and synced later, in one transaction. A record is durable
    /// when this returns, and unsettled until [`Store::settle`] is called for it. A result is
    /// [`StoreError::Taken`] if the name is known already; the others are recorded then.
    pub(in crate::archive) fn mint(
        &self,
        records: &[Record],
        owner: Option<Owner>,
    ) -> Vec<Result<Item, StoreError>> {
        let write = |record: &Record| RecordWrite {
            record: record.clone(),
            mint: Some(NewItem { owner }),
        };
        let ids = self.write_in_group(records.iter().map(write).collect());
        for (record, id) in records.iter().zip(&ids) {
            if let Ok(id) = id
                && record.life.sealed.is_some()
            {
                self.note_seal(*id, record);
            }
        }
        // Reading them from the index would mean waiting for the next sync of other threads.
        let item = |(record, id): (&Record, Result<ItemId, _>)| Ok(record.item(id?));
        records.iter().zip(ids).map(item).collect()
    }

    /// Records that the directories of minted items are on disk.
    pub(in crate::archive) fn settle(&self, items: &[ItemId]) -> Result<(), StoreError> {
        self.write(Sync::Later, |transaction| {
            for item in items {
                transaction.execute("DELETE FROM unsettled WHERE item = ?1", params![item.0])?;
            }
            Ok(())
        })
    }

    /// Deletes an item whose directory could not be placed.
    pub(in crate::archive) fn forget(&self, item: ItemId) -> Result<(), StoreError> {
        let connection = self.lock();
        self.recent.clear();
        connection.transact(Sync::Later, |transaction| {
            if let Some(teller) = self.teller.get() {
                teller.tell_forgotten(transaction, item)?;
            }
            transaction.execute("DELETE FROM item WHERE id = ?1", params![item.0])
        })
    }

    /// Replaces all items in one transaction. A reader beside it sees the previous items until it
    /// ends. `fill` records the new items and returns the last date given out.
    pub(in crate::archive) fn replace_all(
        &self,
        fill: impl FnOnce(&Refill<'_>) -> Result<Option<Timestamp>, StoreError>,
    ) -> Result<(), StoreError> {
        let connection = self.lock();
        let epoch = random_number()?;
        self.recent.clear();
        connection.refill_begins()?;
        let mut fill = Some(fill);
        let written = connection.transact(Sync::Now, |transaction| {
            let fill = fill.take().ok_or(StoreError::Conflict)?;
            for table in [
                "unsettled",
                "content",
                "relation_change",
                "relation",
                "alias",
                "item",
                "ledger",
            ] {
                transaction.execute(&format!("DELETE FROM {table}"), &[])?;
            }
            transaction.execute("UPDATE epoch SET number = ?1", params![epoch])?;
            let last = fill(&Refill {
                connection: transaction,
            })?;
            match last {
                Some(last) => set_last(transaction, &last),
                None => Ok(()),
            }
        });
        connection.refill_ends()?;
        drop(connection);
        written?;
        self.read_seals()
    }

    /// Records the contents of `archive.ibi`, byte for byte.
    pub(in crate::archive) fn set_facts(&self, text: &[u8]) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| {
            transaction.execute(
                "INSERT INTO facts VALUES (1, ?1) ON CONFLICT (one) DO UPDATE SET text = ?1",
                params![text],
            )
        })
    }

    /// Records the last date given out as exact. Durable when this returns.
    pub(in crate::archive) fn set_last_date(&self, last: &Timestamp) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| set_last(transaction, last))
    }

    /// Records that dates up to `reserved` may be given out after `last`. Durable when this returns.
    pub(in crate::archive) fn reserve_dates(
        &self,
        last: &Timestamp,
        reserved: &Timestamp,
    ) -> Result<(), StoreError> {
        self.write(Sync::Now, |transaction| {
            set_last(transaction, last)?;
            let sql = "UPDATE ledger SET reserved = ?1";
            transaction.execute(sql, params![reserved.to_rfc3339()])
        })
    }
}

/// The store during a refill, in which all items are recorded again.
#[derive(Debug)]
pub struct Refill<'a> {
    connection: &'a Connection,
}

impl Refill<'_> {
    /// Records an item. Fails if the item has no rep and its IBIp is that of a present item with a rep.
    pub fn put(&self, record: &Record) -> Result<(), StoreError> {
        if record.state != State::Deleted
            && record.names.rep().is_none()
            && let Some(ibip) = record.names.ibip()
            && let Some(holder) = self.holder_with_rep(ibip)?
        {
            return Err(StoreError::Taken {
                name: ibip.to_string(),
                holder: Box::new(holder),
            });
        }
        record::fill(self.connection, record).map(drop)
    }

    /// The present item that has a rep and this IBIp.
    fn holder_with_rep(&self, ibip: &Ibip) -> Result<Option<Names>, StoreError> {
        let found = self.connection.first(
            "SELECT rep, ibip FROM item
             WHERE ibip_key = ?1 AND rep_key IS NOT NULL AND state <> 'Deleted'",
            params![ibip.canonical()],
            |row| rows::names("item", row.get(0)?, row.get(1)?),
        )?;
        Ok(found.flatten())
    }

    /// Removes everything from an item except its rep, so that its sidecar has no effect.
    pub fn reduce_to_rep(&self, names: &Names) -> Result<(), StoreError> {
        let key = names.rep().map(Rep::canonical);
        for sql in [
            "DELETE FROM relation WHERE source =
                (SELECT id FROM item WHERE rep_key = ?1 AND state <> 'Deleted')",
            "DELETE FROM alias WHERE item =
                (SELECT id FROM item WHERE rep_key = ?1 AND state <> 'Deleted')",
            "UPDATE item SET ibip = NULL, ibip_key = NULL, state = 'Copy', service_rep = NULL,
                service_ibip = NULL, language = NULL, target = NULL, removed_at = NULL,
                life = NULL, sidecar = NULL WHERE rep_key = ?1 AND state <> 'Deleted'",
        ] {
            self.connection.execute(sql, params![key.as_deref()])?;
        }
        Ok(())
    }

    /// Removes an alias from the item that has it.
    pub fn free_alias(&self, alias: &AliasPair) -> Result<(), StoreError> {
        aliases::free(self.connection, alias)
    }

    /// The item that has an alias already.
    pub fn holder_of_alias(&self, alias: &AliasPair) -> Result<Option<Names>, StoreError> {
        aliases::holder(self.connection, alias)
    }
}

fn set_last(connection: &Connection, last: &Timestamp) -> Result<(), StoreError> {
    connection.execute(
        "INSERT INTO ledger (one, last) VALUES (1, ?1)
         ON CONFLICT (one) DO UPDATE SET last = ?1, reserved = NULL",
        params![last.to_rfc3339()],
    )
}
