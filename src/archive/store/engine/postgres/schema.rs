//! Schemas in PostgreSQL, under the rules of those of SQLite: lists that only grow. Texts are compared as bytes, as
//! SQLite compares them.

use std::io::ErrorKind;

use super::super::super::StoreError;
use super::super::{Connection, params};
use ibi::message;

/// A schema. It has a table `epoch` of one row, whose column `writes` each transaction that writes changes first.
#[derive(Debug)]
pub(crate) struct Schema {
    /// The table with the number of entries that a database has had.
    pub(crate) table: &'static str,
    /// One entry for each version.
    pub(crate) migrations: &'static [&'static str],
}

/// The tables of all schemas. A database has one of them, since the names of their other tables may be the same.
const TABLES: [&str; 2] = ["ibifs", "ibifs_registry"];

/// The schema of an index.
pub(crate) const INDEX: Schema = Schema {
    table: "ibifs",
    migrations: MIGRATIONS,
};

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
    // 2: what is in databases of their own in a store, so that several hosts share it (`accesses`, `harvest`).
    r#"
    CREATE TABLE access (
        name  TEXT COLLATE "C" PRIMARY KEY,
        count BIGINT NOT NULL
    );

    CREATE TABLE record (
        name      TEXT COLLATE "C" PRIMARY KEY,
        datestamp BIGINT NOT NULL,
        mark      BYTEA,
        since     BIGINT
    );
    CREATE INDEX record_by_date ON record (datestamp, name);
    CREATE INDEX record_with_form ON record (datestamp, name)
        WHERE mark IS NULL OR substr(mark, length(mark)) = '\x01'::bytea;

    CREATE TABLE whole (
        one   BIGINT PRIMARY KEY CHECK (one = 1),
        since BIGINT
    );
    "#,
    // 3: aliases are found whatever their case.
    "CREATE INDEX IF NOT EXISTS alias_by_lower ON alias (lower(name));",
    // 4: with whose rights relations are declared, as in SQLite.
    r#"
    ALTER TABLE relation ADD COLUMN IF NOT EXISTS speaker TEXT COLLATE "C";
    DROP INDEX IF EXISTS relation_by_rep;
    DROP INDEX IF EXISTS relation_by_ibip;
    CREATE INDEX IF NOT EXISTS relation_by_rep_and_speaker ON relation (target_rep_key, speaker, kind)
        WHERE target_rep_key IS NOT NULL;
    CREATE INDEX IF NOT EXISTS relation_by_ibip_and_speaker ON relation (target_ibip_key, speaker, kind)
        WHERE target_ibip_key IS NOT NULL;
    CREATE INDEX IF NOT EXISTS relation_unspoken ON relation (source) WHERE speaker IS NULL;
    "#,
];

impl Schema {
    /// The number of entries that a database has had; None if it has none.
    pub(crate) fn version(&self, connection: &Connection) -> Result<Option<usize>, StoreError> {
        if !has_table(connection, self.table)? {
            return Ok(None);
        }
        let sql = format!("SELECT version FROM {}", self.table);
        let found: Option<i64> = connection.first(&sql, &[], |row| row.get(0))?;
        Ok(found.and_then(|found| usize::try_from(found).ok()))
    }

    /// Checks, without writing, that the database has the schema that this program knows.
    pub(crate) fn check(&self, connection: &Connection) -> Result<(), StoreError> {
        let known = self.migrations.len();
        match self.version(connection)?.unwrap_or_default() {
            found if found > known => Err(StoreError::Newer { found, known }),
            found if found < known => Err(StoreError::Older { found }),
            _ => Ok(()),
        }
    }

    /// Updates the database to the newest schema. Fails if a newer ibifs has written it, or if it has another one.
    pub(crate) fn migrate(&self, connection: &Connection) -> Result<(), StoreError> {
        let Connection::Postgres(server) = connection else {
            return Ok(());
        };
        let (table, known) = (self.table, self.migrations.len());
        let found = self.version(connection)?;
        let missing =
            self.migrations
                .get(found.unwrap_or_default()..)
                .ok_or(StoreError::Newer {
                    found: found.unwrap_or_default(),
                    known,
                })?;
        if missing.is_empty() {
            return Ok(());
        }
        for other in TABLES.into_iter().filter(|it| *it != table) {
            if found.is_none() && has_table(connection, other)? {
                return Err(StoreError::Server {
                    place: server.place().to_owned(),
                    kind: ErrorKind::AlreadyExists,
                    what: message!("it holds other data of ibifs; name an empty database"),
                });
            }
        }
        // Two hosts may do this at once: the second waits for the row of the first, or for its tables. The server may
        // refuse to make a table that appears meanwhile.
        let created = server.batch(&format!(
            "CREATE TABLE IF NOT EXISTS {table} (one BIGINT PRIMARY KEY CHECK (one = 1), version BIGINT NOT NULL);
             INSERT INTO {table} VALUES (1, 0) ON CONFLICT DO NOTHING"
        ));
        if let Err(error) = created
            && self.version(connection)?.is_none()
        {
            return Err(error);
        }
        server.batch("BEGIN")?;
        let migrated = (|| {
            let sql = format!("SELECT version FROM {table} WHERE one = ?1 FOR UPDATE");
            let found: i64 = connection.value(&sql, params![1_i64])?;
            let missing = self
                .migrations
                .get(usize::try_from(found).unwrap_or_default()..);
            for migration in missing.unwrap_or_default() {
                server.batch(migration)?;
            }
            let known = i64::try_from(known).unwrap_or(i64::MAX);
            let sql = format!("UPDATE {table} SET version = ?1");
            connection.execute(&sql, params![known])
        })();
        server.end(migrated)
    }
}

fn has_table(connection: &Connection, table: &str) -> Result<bool, StoreError> {
    let sql = format!(
        "SELECT 1 FROM information_schema.tables
         WHERE table_schema = current_schema() AND table_name = '{table}'"
    );
    connection.exists(&sql, &[])
}
