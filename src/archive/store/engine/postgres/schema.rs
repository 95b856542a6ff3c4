//! The schema in PostgreSQL, under the rules of the one of SQLite: a list that only grows.

use super::super::super::StoreError;
use super::super::{Connection, params};

/// One entry for each version of the schema. Texts are compared as bytes, as SQLite compares them.
const MIGRATIONS: &[&str] = &[
    // 1: the tables of SQLite's ninth version.
    r#"
    CREATE TABLE item (
        id           BIGINT PRIMARY KEY,
        rep          TEXT COLLATE "C",
        rep_key      TEXT COLLATE "C" UNIQUE,
        ibip         TEXT COLLATE "C",
        ibip_key     TEXT COLLATE "C" UNIQUE,
        state        TEXT COLLATE "C" NOT NULL CHECK (state IN ('Original', 'Copy', 'Deleted')),
        service_rep  TEXT COLLATE "C",
        service_ibip TEXT COLLATE "C",
        language     TEXT COLLATE "C",
        target       TEXT COLLATE "C",
        removed_at   TEXT COLLATE "C",
        sidecar      BYTEA,
        changed      BIGINT NOT NULL DEFAULT 0,
        CHECK (rep_key IS NOT NULL OR ibip_key IS NOT NULL)
    );
    CREATE INDEX item_without_rep ON item (ibip_key) WHERE rep_key IS NULL;
    CREATE INDEX item_by_change ON item (changed) WHERE changed > 0;

    CREATE TABLE relation (
        source          BIGINT NOT NULL REFERENCES item (id) ON DELETE CASCADE,
        kind            TEXT COLLATE "C" NOT NULL,
        target_rep      TEXT COLLATE "C",
        target_rep_key  TEXT COLLATE "C",
        target_ibip     TEXT COLLATE "C",
        target_ibip_key TEXT COLLATE "C",
        PRIMARY KEY (source, kind),
        CHECK (target_rep_key IS NOT NULL OR target_ibip_key IS NOT NULL)
    );
    CREATE INDEX relation_by_rep ON relation (target_rep_key) WHERE target_rep_key IS NOT NULL;
    CREATE INDEX relation_by_ibip ON relation (target_ibip_key) WHERE target_ibip_key IS NOT NULL;

    CREATE TABLE alias (
        name TEXT COLLATE "C" PRIMARY KEY,
        item BIGINT NOT NULL REFERENCES item (id) ON DELETE CASCADE
    );
    CREATE INDEX alias_by_item ON alias (item);

    CREATE TABLE ledger (
        one      BIGINT PRIMARY KEY CHECK (one = 1),
        last     TEXT COLLATE "C" NOT NULL,
        reserved TEXT COLLATE "C"
    );

    -- `host` in a recovery mark is the number of the process that has left it, or the negative of that of the process
    -- that has taken it over.
    CREATE TABLE unsettled (
        item BIGINT PRIMARY KEY REFERENCES item (id) ON DELETE CASCADE,
        host BIGINT NOT NULL,
        uid  BIGINT,
        gid  BIGINT,
        mode BIGINT
    );

    CREATE TABLE facts (
        one  BIGINT PRIMARY KEY CHECK (one = 1),
        text BYTEA NOT NULL
    );

    CREATE TABLE touched (
        level TEXT COLLATE "C",
        host  BIGINT,
        PRIMARY KEY (level, host)
    );

    CREATE TABLE joint (
        number BIGINT PRIMARY KEY,
        host   BIGINT NOT NULL,
        places TEXT COLLATE "C" NOT NULL,
        before BYTEA NOT NULL
    );

    -- `writes` counts the transactions that have written. Each changes this row first, so that one follows the other.
    CREATE TABLE epoch (
        one    BIGINT PRIMARY KEY CHECK (one = 1),
        number BIGINT NOT NULL,
        writes BIGINT NOT NULL
    );
    INSERT INTO epoch VALUES (1, 0, 0);

    -- Its row is locked while tree and index are changed together.
    CREATE TABLE turn (one BIGINT PRIMARY KEY CHECK (one = 1));
    INSERT INTO turn VALUES (1);

    -- Processes that have the index open for writing; `machine`, `pid` and `started` name one for ever. A row counts while
    -- `beat` is not old. `shared` is 1 if others may write the index, too, of which each says so.
    CREATE TABLE host (
        id          BIGINT PRIMARY KEY CHECK (id > 0),
        shared      BIGINT NOT NULL CHECK (shared IN (0, 1)),
        name        TEXT COLLATE "C" NOT NULL,
        machine     TEXT COLLATE "C" NOT NULL,
        pid         BIGINT NOT NULL,
        started     BIGINT NOT NULL,
        mount_point TEXT COLLATE "C",
        since       TIMESTAMPTZ NOT NULL,
        beat        TIMESTAMPTZ NOT NULL
    );

    CREATE TABLE relation_change (
        source      BIGINT NOT NULL REFERENCES item (id) ON DELETE CASCADE,
        kind        TEXT COLLATE "C" NOT NULL,
        target      TEXT COLLATE "C" NOT NULL,
        target_rep  TEXT COLLATE "C",
        target_ibip TEXT COLLATE "C",
        declared    BIGINT NOT NULL,
        changed     BIGINT NOT NULL,
        PRIMARY KEY (source, kind, target)
    );
    CREATE INDEX relation_change_by_number ON relation_change (changed, kind, target);
    "#,
];

/// The number of entries that a database has had; None if it is empty.
pub(in super::super::super) fn version(
    connection: &Connection,
) -> Result<Option<usize>, StoreError> {
    let sql = "SELECT 1 FROM information_schema.tables
        WHERE table_schema = current_schema() AND table_name = 'ibifs'";
    if !connection.exists(sql, &[])? {
        return Ok(None);
    }
    let found: Option<i64> =
        connection.first("SELECT version FROM ibifs", &[], |row| row.get(0))?;
    Ok(found.and_then(|found| usize::try_from(found).ok()))
}

/// Checks, without writing, that the database has the schema that this program knows.
pub(in super::super::super) fn check(connection: &Connection) -> Result<(), StoreError> {
    let known = MIGRATIONS.len();
    match version(connection)?.unwrap_or_default() {
        found if found > known => Err(StoreError::Newer { found, known }),
        found if found < known => Err(StoreError::Older { found }),
        _ => Ok(()),
    }
}

/// Updates the database to the newest schema. Fails if a newer ibifs has written it.
pub(in super::super::super) fn migrate(connection: &Connection) -> Result<(), StoreError> {
    let Connection::Postgres(server) = connection else {
        return Ok(());
    };
    let known = MIGRATIONS.len();
    let found = version(connection)?.unwrap_or_default();
    let missing = MIGRATIONS
        .get(found..)
        .ok_or(StoreError::Newer { found, known })?;
    if missing.is_empty() {
        return Ok(());
    }
    // Two hosts may do this at once: the second waits for the row of the first, or for its tables.
    server.batch(
        "CREATE TABLE IF NOT EXISTS ibifs (one BIGINT PRIMARY KEY CHECK (one = 1), version BIGINT NOT NULL);
         INSERT INTO ibifs VALUES (1, 0) ON CONFLICT DO NOTHING",
    )?;
    server.batch("BEGIN")?;
    let migrated = (|| {
        let sql = "SELECT version FROM ibifs WHERE one = ?1 FOR UPDATE";
        let found: i64 = connection.value(sql, params![1_i64])?;
        let missing = MIGRATIONS.get(usize::try_from(found).unwrap_or_default()..);
        for migration in missing.unwrap_or_default() {
            server.batch(migration)?;
        }
        let known = i64::try_from(known).unwrap_or(i64::MAX);
        connection.execute("UPDATE ibifs SET version = ?1", params![known])
    })();
    server.end(migrated)
}
