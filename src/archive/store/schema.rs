//! The schema, as a list that only grows, and the migrations that update a database.
//!
//! Two rules apply: an entry of [`MIGRATIONS`] is never changed once it was released, and a new
//! entry must leave the older tables readable. The number of applied entries is in `PRAGMA
//! user_version`. All missing entries run in one immediate transaction.

use rusqlite::Connection;

use super::StoreError;
use crate::sql::database;

/// One entry for each version of the schema.
const MIGRATIONS: &[&str] = &[
    // 1: items, the relations their sidecars declare, recorded aliases, and the ledger.
    "
    -- One row an item known here, removed ones included. The `_key` columns hold the canonical
    -- spelling, by which every lookup goes; the others keep the recorded one.
    CREATE TABLE item (
        id           INTEGER PRIMARY KEY,
        rep          TEXT,
        rep_key      TEXT UNIQUE,
        ibip         TEXT,
        ibip_key     TEXT UNIQUE,
        state        TEXT NOT NULL CHECK (state IN ('Original', 'Copy', 'Deleted')),
        service_rep  TEXT,
        service_ibip TEXT,
        language     TEXT,
        target       TEXT,
        removed_at   TEXT,
        sidecar      BLOB,
        CHECK (rep_key IS NOT NULL OR ibip_key IS NOT NULL)
    ) STRICT;

    -- What an item's sidecar says of others. One target a kind (and language): two next editions
    -- of one item cannot be written down. Targets need not be held here.
    CREATE TABLE relation (
        source          INTEGER NOT NULL REFERENCES item (id) ON DELETE CASCADE,
        kind            TEXT NOT NULL,
        target_rep      TEXT,
        target_rep_key  TEXT,
        target_ibip     TEXT,
        target_ibip_key TEXT,
        PRIMARY KEY (source, kind),
        CHECK (target_rep_key IS NOT NULL OR target_ibip_key IS NOT NULL)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX relation_by_rep ON relation (target_rep_key) WHERE target_rep_key IS NOT NULL;
    CREATE INDEX relation_by_ibip ON relation (target_ibip_key) WHERE target_ibip_key IS NOT NULL;

    -- Older names of an item that decode to nothing (SPEC 10, ruling 6).
    CREATE TABLE alias (
        name TEXT PRIMARY KEY,
        item INTEGER NOT NULL REFERENCES item (id) ON DELETE CASCADE
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX alias_by_item ON alias (item);

    -- The last date handed out, in one row (SPEC 4).
    CREATE TABLE ledger (
        one  INTEGER PRIMARY KEY CHECK (one = 1),
        last TEXT NOT NULL
    ) STRICT;
    ",
    // 2: dates are reserved ahead of time.
    "
    -- Any date up to this one may have been handed out since `last` was written; NULL when none
    -- was. What is not known to be free is taken.
    ALTER TABLE ledger ADD COLUMN reserved TEXT;
    ",
    // 3: a mint is durable in the index before its directory is.
    "
    -- Minted items whose directories are not known to be on disk, and for whom they are made: a
    -- start after a crash makes again what is missing.
    CREATE TABLE unsettled (
        item INTEGER PRIMARY KEY REFERENCES item (id) ON DELETE CASCADE,
        uid  INTEGER,
        gid  INTEGER,
        mode INTEGER
    ) STRICT;
    ",
    // 4: listings select the items that have no rep.
    "
    CREATE INDEX item_without_rep ON item (ibip_key) WHERE rep_key IS NULL;
    ",
    // 5: the index has a copy of archive.ibi.
    "
    -- archive.ibi as it was when the store was last used, in one row.
    CREATE TABLE facts (
        one  INTEGER PRIMARY KEY CHECK (one = 1),
        text BLOB NOT NULL
    ) STRICT;
    ",
    // 6: the dirty regions that a start after a crash reads.
    "
    -- Levels (col/SUBDOMAIN/WORD/YEAR, ibip/PREFIX) in which something has changed that the tree and
    -- the index both tell, and that is not known to be on disk in both.
    CREATE TABLE touched (level TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    ",
    // 7: changes that concern several items, which a start after a crash completes.
    "
    -- `places` are the paths of the items whose sidecars change, separated by newlines. `before` is
    -- what the first declared before, as a sidecar. A change that has ended stays until the next one
    -- begins, or one of these items is changed alone.
    CREATE TABLE joint (
        number INTEGER PRIMARY KEY,
        places TEXT NOT NULL,
        before BLOB NOT NULL
    ) STRICT;
    ",
    // 8: what was changed after what.
    "
    -- Each change of an item gets a number greater than all before; 0 is a change before there were numbers.
    ALTER TABLE item ADD COLUMN changed INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX item_by_change ON item (changed) WHERE changed > 0;

    -- Another number each time that all items are recorded again, when their ids and changes start over.
    CREATE TABLE epoch (
        one    INTEGER PRIMARY KEY CHECK (one = 1),
        number INTEGER NOT NULL
    ) STRICT;
    INSERT INTO epoch VALUES (1, random());
    ",
    // 9: which relations were declared and removed after what.
    "
    -- What was last done to a relation, with the number of the change of its item. Relations that were declared
    -- before all items were recorded again, or before this table, are not in it until they change.
    CREATE TABLE relation_change (
        source      INTEGER NOT NULL REFERENCES item (id) ON DELETE CASCADE,
        kind        TEXT NOT NULL,
        target      TEXT NOT NULL,
        target_rep  TEXT,
        target_ibip TEXT,
        declared    INTEGER NOT NULL,
        changed     INTEGER NOT NULL,
        PRIMARY KEY (source, kind, target)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX relation_change_by_number ON relation_change (changed, kind, target);
    ",
    // 10: aliases are found whatever their case.
    "
    CREATE INDEX IF NOT EXISTS alias_by_lower ON alias (lower(name));
    ",
    // 11: with whose rights relations are declared.
    "
    -- The user and the group whose rights the sidecar of `source` has, as UID or UID:GID; empty if it has no rights
    -- over other items. NULL: not known, from a version before this one.
    ALTER TABLE relation ADD COLUMN speaker TEXT;
    DROP INDEX IF EXISTS relation_by_rep;
    DROP INDEX IF EXISTS relation_by_ibip;
    CREATE INDEX relation_by_rep_and_speaker ON relation (target_rep_key, speaker, kind)
        WHERE target_rep_key IS NOT NULL;
    CREATE INDEX relation_by_ibip_and_speaker ON relation (target_ibip_key, speaker, kind)
        WHERE target_ibip_key IS NOT NULL;
    CREATE INDEX relation_unspoken ON relation (source) WHERE speaker IS NULL;
    ",
    // 12: what is known of the content of items.
    "
    -- The content of an item as the user `reader` may read it: the newest time in it, the number of files, and their
    -- bytes. There is a row only while nothing in the item changes. `stamp` is another number in each new row.
    CREATE TABLE content (
        item   INTEGER PRIMARY KEY REFERENCES item (id) ON DELETE CASCADE,
        reader INTEGER NOT NULL,
        newest TEXT,
        files  INTEGER NOT NULL,
        bytes  INTEGER NOT NULL,
        stamp  INTEGER NOT NULL
    ) STRICT;

    -- Blocks of item numbers, in which content may have changed since its row was written; -1 is all of them.
    CREATE TABLE content_mark (block INTEGER PRIMARY KEY) STRICT;
    ",
    // 13: what was decided about items.
    "
    -- The pairs `available`, `sealed`, `withdrawn` and `citation` of the sidecar; NULL if it has none of them.
    ALTER TABLE item ADD COLUMN life TEXT;
    ",
    // 14: which items are sealed.
    "
    CREATE INDEX item_with_life ON item (id) WHERE life IS NOT NULL;
    ",
    // 15: what was done to items and to the store.
    "
    -- Events in the order in which they were told. `item` is the canonical rep, or IBIp where there is no rep; NULL for the
    -- store. `logged` is the number in the log of the store; NULL for those that wait for it.
    CREATE TABLE event (
        number INTEGER PRIMARY KEY,
        item   TEXT,
        salt   BLOB NOT NULL,
        line   TEXT NOT NULL,
        logged INTEGER
    ) STRICT;
    CREATE INDEX event_by_item ON event (item, number) WHERE item IS NOT NULL;
    CREATE INDEX event_waiting ON event (number) WHERE logged IS NULL;
    CREATE UNIQUE INDEX event_logged ON event (logged) WHERE logged IS NOT NULL;
    ",
    // 16: the name of an item is kept once, not with each of its events and in their index.
    "
    -- The canonical rep of an item with events, or its IBIp where there is no rep, and the number of its first event, which
    -- all its events have as `item`.
    CREATE TABLE event_item (
        name  TEXT PRIMARY KEY,
        first INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    INSERT INTO event_item SELECT item, min(number) FROM event WHERE item IS NOT NULL GROUP BY item;
    DROP INDEX event_by_item;
    DROP INDEX event_waiting;
    DROP INDEX event_logged;
    ALTER TABLE event RENAME TO event_before;
    CREATE TABLE event (
        number INTEGER PRIMARY KEY,
        item   INTEGER,
        salt   BLOB NOT NULL,
        line   TEXT NOT NULL,
        logged INTEGER
    ) STRICT;
    INSERT INTO event SELECT number, (SELECT first FROM event_item WHERE name = item), salt, line, logged FROM event_before;
    DROP TABLE event_before;
    CREATE INDEX event_by_item ON event (item, number) WHERE item IS NOT NULL;
    CREATE INDEX event_waiting ON event (number) WHERE logged IS NULL;
    CREATE UNIQUE INDEX event_logged ON event (logged) WHERE logged IS NOT NULL;
    ",
    // 17: events are numbered as in the log, so that none is changed when it is logged.
    "
    -- The number of events in the log of the store. They are the first ones, in its order; those after them wait.
    CREATE TABLE event_log (
        one  INTEGER PRIMARY KEY CHECK (one = 1),
        size INTEGER NOT NULL
    ) STRICT;
    INSERT INTO event_log SELECT 1, count(logged) FROM event;
    CREATE TABLE event_number AS
        SELECT number AS before, row_number() OVER (ORDER BY logged IS NULL, logged, number) AS number FROM event;
    CREATE UNIQUE INDEX event_number_before ON event_number (before);
    DROP INDEX event_by_item;
    DROP INDEX event_waiting;
    DROP INDEX event_logged;
    ALTER TABLE event RENAME TO event_before;
    CREATE TABLE event (
        number INTEGER PRIMARY KEY,
        item   INTEGER,
        salt   BLOB NOT NULL,
        line   TEXT NOT NULL
    ) STRICT;
    -- No number of an event that is gone is that of another one later.
    INSERT INTO event
        SELECT own.number, coalesce(first.number, -item), salt, line
        FROM event_before JOIN event_number own ON own.before = event_before.number
        LEFT JOIN event_number first ON first.before = item
        ORDER BY own.number;
    UPDATE event_item SET first = coalesce((SELECT number FROM event_number WHERE before = first), -first);
    DROP TABLE event_before;
    DROP TABLE event_number;
    CREATE INDEX event_by_item ON event (item, number) WHERE item IS NOT NULL;
    ",
];

/// Updates the database to the newest schema. Fails if a newer ibifs has written it.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    Ok(database::migrate(connection, MIGRATIONS)?)
}

/// Checks, without writing, that the database has the schema that this program knows.
pub(super) fn check(connection: &Connection) -> Result<(), StoreError> {
    let found = database::version(connection)?;
    match found.cmp(&MIGRATIONS.len()) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(StoreError::Newer {
            found,
            known: MIGRATIONS.len(),
        }),
        std::cmp::Ordering::Less => Err(StoreError::Older { found }),
    }
}

/// Whether the tables of a database differ from those that the migrations create.
pub(super) fn is_altered(connection: &Connection) -> Result<bool, StoreError> {
    let tables = |connection: &Connection| -> Result<Vec<(String, String)>, StoreError> {
        let mut statement = connection.prepare(
            "SELECT type || ' ' || name || ' ' || tbl_name, ifnull(sql, '') FROM sqlite_schema
             WHERE name NOT LIKE 'sqlite_stat%' ORDER BY 1",
        )?;
        let found = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(found.collect::<Result<_, _>>()?)
    };
    let mut ours = Connection::open_in_memory()?;
    migrate(&mut ours)?;
    Ok(tables(connection)? != tables(&ours)?)
}
