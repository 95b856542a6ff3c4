//! The schema of a resolver's database: that of a file, and that in a server, which has the same tables.

use ibifs_sql::engine::Schema;

/// The migrations of a file, one for each version of the schema. A released entry never changes.
pub(super) const MIGRATIONS: &[&str] = &["
    -- An Archive, by the identifier of its service, in the forms that are known. `secret` is what is
    -- kept of its registration key. It is included while it has an address.
    CREATE TABLE archive (
        id            INTEGER PRIMARY KEY,
        rep           TEXT UNIQUE,
        ibip          TEXT UNIQUE,
        secret        TEXT NOT NULL,
        registered_at TEXT NOT NULL,
        address       TEXT,
        ip            TEXT,
        version       TEXT,
        email         TEXT,
        included_at   TEXT,
        CHECK (rep IS NOT NULL OR ibip IS NOT NULL)
    ) STRICT;
    ",
    "
    -- An actor of the protocol of 2009: its identifier, and what those of its documents begin with.
    -- `last_date` is the last one in an identifier with that prefix; none is used again. It has been in
    -- effect since its first document, and registered its last one when it was confirmed.
    CREATE TABLE actor (
        id            INTEGER PRIMARY KEY,
        rep           TEXT NOT NULL UNIQUE,
        prefix        TEXT NOT NULL UNIQUE,
        host          TEXT NOT NULL,
        port          INTEGER NOT NULL,
        email         TEXT NOT NULL,
        secret        TEXT NOT NULL,
        registered_at TEXT NOT NULL,
        last_date     TEXT NOT NULL,
        effective_at  TEXT,
        confirmed_at  TEXT,
        CHECK ((effective_at IS NULL) = (confirmed_at IS NULL))
    ) STRICT;
    -- A document that somebody has registered, by the canonical spelling of its identifier and the one
    -- that it was first registered with.
    CREATE TABLE document (
        id       INTEGER PRIMARY KEY,
        ibi      TEXT NOT NULL UNIQUE,
        spelling TEXT NOT NULL
    ) STRICT;
    -- What one actor has of a document. For one of them it is no copy.
    CREATE TABLE registration (
        id            INTEGER PRIMARY KEY,
        document      INTEGER NOT NULL REFERENCES document(id),
        actor         INTEGER NOT NULL REFERENCES actor(id),
        is_copy       INTEGER NOT NULL CHECK (is_copy IN (0, 1)),
        is_original   INTEGER NOT NULL CHECK (is_original IN (0, 1)),
        url           TEXT,
        updated       TEXT,
        fingerprint   TEXT,
        previous_url  TEXT,
        next_url      TEXT,
        registered_at TEXT NOT NULL,
        UNIQUE (document, actor),
        UNIQUE (actor, url),
        CHECK ((url IS NULL) = (updated IS NULL)),
        CHECK (NOT (is_copy AND is_original))
    ) STRICT;
    CREATE UNIQUE INDEX one_is_no_copy ON registration(document) WHERE is_copy = 0;
    CREATE TABLE metadata (
        registration INTEGER NOT NULL REFERENCES registration(id) ON DELETE CASCADE,
        position     INTEGER NOT NULL,
        url          TEXT NOT NULL,
        updated      TEXT NOT NULL,
        format       TEXT,
        language     TEXT,
        PRIMARY KEY (registration, position)
    ) STRICT;
    ",
    "
    -- Who makes the identifiers of a prefix, by its host or address: an Archive.
    CREATE TABLE maker (
        archive  INTEGER NOT NULL REFERENCES archive(id) ON DELETE CASCADE,
        name     TEXT NOT NULL,
        noted_at TEXT NOT NULL,
        PRIMARY KEY (archive, name)
    ) STRICT;
    CREATE INDEX maker_by_name ON maker(name);
    -- From where an actor was registered, and its domain: each has room for so many. `dead_since` is
    -- when its URLs were first found not to work, if they still do not; `tried_at`, when they were tried.
    ALTER TABLE actor ADD COLUMN client TEXT;
    ALTER TABLE actor ADD COLUMN domain TEXT;
    ALTER TABLE actor ADD COLUMN dead_since TEXT;
    ALTER TABLE actor ADD COLUMN tried_at TEXT;
    ALTER TABLE actor ADD COLUMN tried_to INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE actor ADD COLUMN tried_all INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX registration_by_actor ON registration(actor);
    CREATE INDEX actor_by_client ON actor(client);
    CREATE INDEX actor_by_domain ON actor(domain);
    -- Whether the identifier of the document is of the actor's own making, or was handed over by who made it.
    ALTER TABLE registration ADD COLUMN is_own INTEGER NOT NULL DEFAULT 0;
    ",
    "
    -- The prefixes that an Archive announces, separated by spaces.
    ALTER TABLE archive ADD COLUMN prefixes TEXT NOT NULL DEFAULT '';
    -- Which Archives have answered for a prefix, by the identifiers of their services, separated by spaces; and
    -- when it was noted, in seconds.
    CREATE TABLE remembered (
        prefix   TEXT PRIMARY KEY,
        services TEXT NOT NULL,
        noted    INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX remembered_by_time ON remembered(noted);
    -- The secret key with which the list of Archives is signed, and the serial number of the last one.
    CREATE TABLE signer (
        one    INTEGER PRIMARY KEY CHECK (one = 1),
        seed   BLOB NOT NULL,
        serial INTEGER NOT NULL
    ) STRICT;
    -- The last list of a peer, by its public key.
    CREATE TABLE peer (
        key    TEXT PRIMARY KEY,
        serial INTEGER NOT NULL,
        list   BLOB NOT NULL
    ) STRICT;
    "];

/// The schema in a server, under the same rules.
pub(super) const SERVER: Schema = Schema {
    table: "ibifs_registry",
    migrations: &[
        // 1: the tables of SQLite's fourth version.
        r#"
    CREATE TABLE archive (
        id            BIGINT PRIMARY KEY,
        rep           TEXT COLLATE "C" UNIQUE,
        ibip          TEXT COLLATE "C" UNIQUE,
        secret        TEXT COLLATE "C" NOT NULL,
        registered_at TEXT COLLATE "C" NOT NULL,
        address       TEXT COLLATE "C",
        ip            TEXT COLLATE "C",
        version       TEXT COLLATE "C",
        email         TEXT COLLATE "C",
        included_at   TEXT COLLATE "C",
        prefixes      TEXT COLLATE "C" NOT NULL DEFAULT '',
        CHECK (rep IS NOT NULL OR ibip IS NOT NULL)
    );

    CREATE TABLE actor (
        id            BIGINT PRIMARY KEY,
        rep           TEXT COLLATE "C" NOT NULL UNIQUE,
        prefix        TEXT COLLATE "C" NOT NULL UNIQUE,
        host          TEXT COLLATE "C" NOT NULL,
        port          BIGINT NOT NULL,
        email         TEXT COLLATE "C" NOT NULL,
        secret        TEXT COLLATE "C" NOT NULL,
        registered_at TEXT COLLATE "C" NOT NULL,
        last_date     TEXT COLLATE "C" NOT NULL,
        effective_at  TEXT COLLATE "C",
        confirmed_at  TEXT COLLATE "C",
        client        TEXT COLLATE "C",
        domain        TEXT COLLATE "C",
        dead_since    TEXT COLLATE "C",
        tried_at      TEXT COLLATE "C",
        tried_to      BIGINT NOT NULL DEFAULT 0,
        tried_all     BIGINT NOT NULL DEFAULT 0,
        CHECK ((effective_at IS NULL) = (confirmed_at IS NULL))
    );
    CREATE INDEX actor_by_client ON actor (client);
    CREATE INDEX actor_by_domain ON actor (domain);

    CREATE TABLE document (
        id       BIGINT PRIMARY KEY,
        ibi      TEXT COLLATE "C" NOT NULL UNIQUE,
        spelling TEXT COLLATE "C" NOT NULL
    );

    CREATE TABLE registration (
        id            BIGINT PRIMARY KEY,
        document      BIGINT NOT NULL REFERENCES document (id),
        actor         BIGINT NOT NULL REFERENCES actor (id),
        is_copy       BIGINT NOT NULL CHECK (is_copy IN (0, 1)),
        is_original   BIGINT NOT NULL CHECK (is_original IN (0, 1)),
        url           TEXT COLLATE "C",
        updated       TEXT COLLATE "C",
        fingerprint   TEXT COLLATE "C",
        previous_url  TEXT COLLATE "C",
        next_url      TEXT COLLATE "C",
        registered_at TEXT COLLATE "C" NOT NULL,
        is_own        BIGINT NOT NULL DEFAULT 0,
        UNIQUE (document, actor),
        UNIQUE (actor, url),
        CHECK ((url IS NULL) = (updated IS NULL)),
        CHECK (is_copy = 0 OR is_original = 0)
    );
    CREATE UNIQUE INDEX one_is_no_copy ON registration (document) WHERE is_copy = 0;

    CREATE TABLE metadata (
        registration BIGINT NOT NULL REFERENCES registration (id) ON DELETE CASCADE,
        position     BIGINT NOT NULL,
        url          TEXT COLLATE "C" NOT NULL,
        updated      TEXT COLLATE "C" NOT NULL,
        format       TEXT COLLATE "C",
        language     TEXT COLLATE "C",
        PRIMARY KEY (registration, position)
    );

    CREATE TABLE maker (
        archive  BIGINT NOT NULL REFERENCES archive (id) ON DELETE CASCADE,
        name     TEXT COLLATE "C" NOT NULL,
        noted_at TEXT COLLATE "C" NOT NULL,
        PRIMARY KEY (archive, name)
    );
    CREATE INDEX maker_by_name ON maker (name);

    CREATE TABLE remembered (
        prefix   TEXT COLLATE "C" PRIMARY KEY,
        services TEXT COLLATE "C" NOT NULL,
        noted    BIGINT NOT NULL
    );
    CREATE INDEX remembered_by_time ON remembered (noted);

    CREATE TABLE signer (
        one    BIGINT PRIMARY KEY CHECK (one = 1),
        seed   BYTEA NOT NULL,
        serial BIGINT NOT NULL
    );

    CREATE TABLE peer (
        key    TEXT COLLATE "C" PRIMARY KEY,
        serial BIGINT NOT NULL,
        list   BYTEA NOT NULL
    );

    -- `writes` counts the transactions that have written. Each changes this row first, so that one follows the other.
    -- `number` counts the changes of registered Archives and of the key; `signed` is the one that was signed last, and
    -- `signed_at` when that was, in seconds.
    CREATE TABLE epoch (
        one       BIGINT PRIMARY KEY CHECK (one = 1),
        writes    BIGINT NOT NULL,
        number    BIGINT NOT NULL,
        signed    BIGINT NOT NULL,
        signed_at BIGINT NOT NULL
    );
    INSERT INTO epoch VALUES (1, 0, 0, -1, 0);
    "#,
    ],
};
