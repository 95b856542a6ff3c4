//! The schema of an index in PostgreSQL, under the rules of that of SQLite ([`super::schema`]): a list that only grows.

use crate::sql::engine::Schema;

/// The schema of an index.
pub(super) const INDEX: Schema = Schema {
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
    // 5: what is known of the content of items, as in SQLite.
    r#"
    CREATE TABLE content (
        item   BIGINT PRIMARY KEY REFERENCES item (id) ON DELETE CASCADE,
        reader BIGINT NOT NULL,
        newest TEXT COLLATE "C",
        files  BIGINT NOT NULL,
        bytes  BIGINT NOT NULL,
        stamp  BIGINT NOT NULL
    );
    CREATE TABLE content_mark (
        block BIGINT,
        host  BIGINT,
        PRIMARY KEY (block, host)
    );
    "#,
    // 6: what was decided about items, as in SQLite.
    r#"ALTER TABLE item ADD COLUMN IF NOT EXISTS life TEXT COLLATE "C";"#,
    // 7: which items are sealed, as in SQLite.
    "CREATE INDEX IF NOT EXISTS item_with_life ON item (id) WHERE life IS NOT NULL;",
    // 8: what was done to items and to the store, as in SQLite.
    r#"
    CREATE TABLE event (
        number BIGINT PRIMARY KEY,
        item   TEXT COLLATE "C",
        salt   BYTEA NOT NULL,
        line   TEXT COLLATE "C" NOT NULL,
        logged BIGINT
    );
    CREATE INDEX event_by_item ON event (item, number) WHERE item IS NOT NULL;
    CREATE INDEX event_waiting ON event (number) WHERE logged IS NULL;
    CREATE UNIQUE INDEX event_logged ON event (logged) WHERE logged IS NOT NULL;
    "#,
    // 9: the name of an item is kept once, as in SQLite.
    r#"
    CREATE TABLE event_item (
        name  TEXT COLLATE "C" PRIMARY KEY,
        first BIGINT NOT NULL
    );
    INSERT INTO event_item SELECT item, min(number) FROM event WHERE item IS NOT NULL GROUP BY item;
    DROP INDEX event_by_item;
    UPDATE event SET item = (SELECT first::text FROM event_item WHERE name = item) WHERE item IS NOT NULL;
    ALTER TABLE event ALTER COLUMN item TYPE BIGINT USING item::bigint;
    CREATE INDEX event_by_item ON event (item, number) WHERE item IS NOT NULL;
    "#,
    // 10: events are numbered as in the log, as in SQLite.
    r#"
    CREATE TABLE event_log (
        one  BIGINT PRIMARY KEY CHECK (one = 1),
        size BIGINT NOT NULL
    );
    INSERT INTO event_log SELECT 1, count(logged) FROM event;
    CREATE TABLE event_number AS
        SELECT number AS before, row_number() OVER (ORDER BY logged IS NULL, logged, number) AS number FROM event;
    CREATE UNIQUE INDEX event_number_before ON event_number (before);
    ALTER TABLE event RENAME TO event_before;
    CREATE TABLE event (
        number BIGINT PRIMARY KEY,
        item   BIGINT,
        salt   BYTEA NOT NULL,
        line   TEXT COLLATE "C" NOT NULL
    );
    INSERT INTO event
        SELECT own.number, coalesce(first.number, -item), salt, line
        FROM event_before JOIN event_number own ON own.before = event_before.number
        LEFT JOIN event_number first ON first.before = item;
    UPDATE event_item SET first = coalesce((SELECT number FROM event_number WHERE before = first), -first);
    DROP TABLE event_before;
    DROP TABLE event_number;
    CREATE INDEX event_by_item ON event (item, number) WHERE item IS NOT NULL;
    "#,
];
