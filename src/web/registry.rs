//! The database of a resolver: the Archives that are registered with it and their present addresses
//! (ibi-resolution(7)), and the registrations of the protocol of 2009. All SQL of the resolver is here.
//!
//! It is one SQLite file, rarely written, and synced at every commit. No other lock is taken while its lock
//! is held.

mod actors;
mod bounds;
mod documents;
mod error;
mod guarded;
mod inclusion;
mod key;
mod lapse;
mod lists;
mod makers;
mod refusal;
mod registration;
mod remembered;
mod requester;
mod secret;
mod signer;
mod verbs;

use parking_lot::{Mutex, MutexGuard};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rusqlite::{Connection, Row, params};

use crate::archive::database::{self, OpenFor};
use crate::formats::base_url::BaseUrl;
use crate::formats::item::Names;
use ibi::message::Message;
use ibi::{Ibi, Timestamp};

use bounds::Bounds;
pub use error::RegistryError;
pub use inclusion::{Inclusion, InclusionError, MOST_ANNOUNCED};
pub use key::{ArchiveKey, KeyError};
pub use lapse::{LAPSE_DAYS, ToTry};
pub use lists::{ListedActor, ListedDocument};
pub use makers::IdentifierMaker;
pub use registration::{RegistrationReply, ReplyStatus};
pub use requester::{LookupError, Requester};

/// The identifier of every resolver's own service (ibi-resolution(7), "Inclusion").
pub const RESOLVER_SERVICE: &str = "J8LNKB5R7W/3FUQHC5";

/// The migrations, one for each version of the schema. A released entry never changes.
const MIGRATIONS: &[&str] = &["
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

/// The row of an Archive that is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArchiveId(i64);

#[cfg(test)]
impl ArchiveId {
    /// An identifier for tests without a database.
    pub(crate) fn for_test(id: i64) -> ArchiveId {
        ArchiveId(id)
    }
}

/// An Archive that is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredArchive {
    /// Its row.
    pub id: ArchiveId,
    /// The identifier of its service.
    pub service: Names,
    /// When it was registered.
    pub registered_at: Timestamp,
    /// The prefixes of items that it announces to hold.
    pub prefixes: Vec<String>,
    /// Where it is reached. None while it is excluded.
    pub included: Option<Included>,
}

/// Where an included Archive is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    /// Its URL.
    pub url: BaseUrl,
    /// The e-mail address of its administrator.
    pub email: String,
    /// When it was included.
    pub since: Timestamp,
}

/// The open database of a resolver.
#[derive(Debug)]
pub struct Registry {
    connection: Mutex<Connection>,
    bounds: Bounds,
    /// The path of the database leads through this descriptor until SQLite has closed it, above.
    _directory: OwnedFd,
}

impl Registry {
    /// Opens the database. Creates or migrates it where needed.
    ///
    /// # Errors The database cannot be opened, is not a database, is open to other users, or was written by a
    /// newer version of the program.
    pub fn open(path: &Path) -> Result<Registry, RegistryError> {
        let name = path.file_name().ok_or(RegistryError::NoName)?;
        let above = match path.parent() {
            Some(above) if above != Path::new("") => above,
            _ => Path::new("."),
        };
        let directory =
            OwnedFd::from(std::fs::File::open(above).map_err(RegistryError::Directory)?);
        guarded::guard(&directory, name, path)?;
        let mut connection = connect(&directory, name)?;
        database::migrate(&mut connection, MIGRATIONS)?;
        Ok(Registry {
            connection: Mutex::new(connection),
            bounds: Bounds::default(),
            _directory: directory,
        })
    }

    /// Computes in advance what the first request of the protocol of 2009 would otherwise wait for.
    pub fn prepare(&self) {
        secret::prepare();
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }

    /// Registers an Archive by the identifier of its service. An Archive that is registered already gets a
    /// new key.
    ///
    /// # Errors The forms of the identifier belong to two registered Archives.
    pub fn register(
        &self,
        service: &Names,
        key: &ArchiveKey,
        now: &Timestamp,
    ) -> Result<(), RegistryError> {
        let secret = secret::kept(&key.to_string())?;
        let (rep, ibip) = texts(service);
        let mut connection = self.lock();
        let transaction = database::writing(&mut connection)?;
        let id = match by_service(&transaction, service)? {
            Some((known, _)) => {
                transaction.execute(
                    "UPDATE archive SET secret = ?2, rep = ifnull(rep, ?3), ibip = ifnull(ibip, ?4)
                     WHERE id = ?1",
                    params![known.id.0, secret, rep, ibip],
                )?;
                known.id
            }
            None => {
                transaction.execute(
                    "INSERT INTO archive (rep, ibip, secret, registered_at) VALUES (?1, ?2, ?3, ?4)",
                    params![rep, ibip, secret, now.to_rfc3339()],
                )?;
                ArchiveId(transaction.last_insert_rowid())
            }
        };
        makers::note_service(&transaction, id, service, now)?;
        Ok(transaction.commit()?)
    }

    /// Deletes an Archive.
    ///
    /// # Errors It is not registered.
    pub fn unregister(&self, service: &Names) -> Result<(), RegistryError> {
        let connection = self.lock();
        let (known, _) = by_service(&connection, service)?
            .ok_or_else(|| RegistryError::NotRegistered(Box::new(service.clone())))?;
        connection.execute("DELETE FROM archive WHERE id = ?1", [known.id.0])?;
        Ok(())
    }

    /// All registered Archives, in order of registration.
    ///
    /// # Errors The database cannot be read.
    pub fn archives(&self) -> Result<Vec<RegisteredArchive>, RegistryError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(&format!("{SELECT} ORDER BY id"))?;
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(registered(row)?.0);
        }
        Ok(found)
    }

    /// A number that changes whenever another process changes the database.
    ///
    /// # Errors The database cannot be read.
    pub fn version(&self) -> Result<i64, RegistryError> {
        let connection = self.lock();
        Ok(connection.query_row("PRAGMA data_version", [], |row| row.get(0))?)
    }

    /// Includes an Archive at the address that it announces, if its key is valid.
    ///
    /// # Errors It is not registered, or the key is another one.
    pub fn include(&self, inclusion: &Inclusion, now: &Timestamp) -> Result<(), RegistryError> {
        let id = self.checked(inclusion)?;
        let mut connection = self.lock();
        let transaction = database::writing(&mut connection)?;
        transaction.execute(
            "UPDATE archive SET address = ?2, ip = ?3, version = ?4, email = ?5, included_at = ?6,
                                prefixes = ?7
             WHERE id = ?1",
            params![
                id.0,
                inclusion.url.short(),
                inclusion.ip.to_string(),
                inclusion.version,
                inclusion.email,
                now.to_rfc3339(),
                inclusion.prefixes.join(" "),
            ],
        )?;
        makers::note_service(&transaction, id, &inclusion.service, now)?;
        makers::note_included(&transaction, id, inclusion, now)?;
        Ok(transaction.commit()?)
    }

    /// Excludes an Archive, if its key is valid.
    ///
    /// # Errors It is not registered, or the key is another one.
    pub fn exclude(&self, inclusion: &Inclusion) -> Result<(), RegistryError> {
        let id = self.checked(inclusion)?;
        self.lock().execute(
            "UPDATE archive SET address = NULL, included_at = NULL WHERE id = ?1",
            [id.0],
        )?;
        Ok(())
    }

    fn checked(&self, inclusion: &Inclusion) -> Result<ArchiveId, RegistryError> {
        let found = by_service(&self.lock(), &inclusion.service)?;
        let refused = || RegistryError::NotRegistered(Box::new(inclusion.service.clone()));
        let (known, secret) = found.ok_or_else(refused)?;
        // Hashing takes long, so it runs without the lock.
        if secret::is_of(&inclusion.key.to_string(), &secret) {
            Ok(known.id)
        } else {
            Err(RegistryError::WrongKey(Box::new(inclusion.service.clone())))
        }
    }
}

fn connect(directory: &OwnedFd, name: &OsStr) -> Result<Connection, RegistryError> {
    database::check(directory.as_fd(), name, OpenFor::Writing).map_err(RegistryError::Unfit)?;
    let path = database::path_in(directory.as_fd(), name);
    let connection = Connection::open(path).map_err(database::plain)?;
    database::share(&connection)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", "on")?;
    Ok(connection)
}

const SELECT: &str = "SELECT id, rep, ibip, secret, registered_at, address, email, included_at, prefixes FROM archive";

fn texts(names: &Names) -> (Option<String>, Option<String>) {
    let rep = names.rep().map(|rep| Ibi::from(rep.clone()).canonical());
    let ibip = names.ibip().map(|ibip| Ibi::from(ibip.clone()).canonical());
    (rep, ibip)
}

fn by_service(
    connection: &Connection,
    service: &Names,
) -> Result<Option<(RegisteredArchive, String)>, RegistryError> {
    let (rep, ibip) = texts(service);
    let mut statement =
        connection.prepare_cached(&format!("{SELECT} WHERE rep = ?1 OR ibip = ?2"))?;
    let mut rows = statement.query(params![rep, ibip])?;
    let found = rows.next()?.map(registered).transpose()?;
    match (&found, rows.next()?) {
        (Some((known, _)), None) if !known.service.contradicts(service) => Ok(found),
        (None, _) => Ok(None),
        _ => Err(RegistryError::TwoArchives(Box::new(service.clone()))),
    }
}

fn registered(row: &Row<'_>) -> Result<(RegisteredArchive, String), RegistryError> {
    let broken = |what: &str| RegistryError::Broken(Message::verbatim(what));
    let forms = [row.get::<_, Option<String>>("rep")?, row.get("ibip")?];
    let forms = forms.iter().flatten().map(|text| Ibi::parse(text));
    let forms: Vec<Ibi> = forms
        .collect::<Result<_, _>>()
        .map_err(|_| broken("a name"))?;
    let time = |column: &str| -> Result<Option<Timestamp>, RegistryError> {
        let text: Option<String> = row.get(column)?;
        let time = text.map(|text| Timestamp::parse_rfc3339(&text)).transpose();
        time.map_err(|_| broken(column))
    };
    let included = match (
        row.get::<_, Option<String>>("address")?,
        time("included_at")?,
    ) {
        (Some(address), Some(since)) => Some(Included {
            url: BaseUrl::parse_short(&address).map_err(|_| broken("address"))?,
            email: row.get::<_, Option<String>>("email")?.unwrap_or_default(),
            since,
        }),
        _ => None,
    };
    let archive = RegisteredArchive {
        id: ArchiveId(row.get("id")?),
        service: Names::collect(forms).ok_or_else(|| broken("a name"))?,
        registered_at: time("registered_at")?.ok_or_else(|| broken("registered_at"))?,
        prefixes: inclusion::prefixes(&row.get::<_, String>("prefixes")?),
        included,
    };
    Ok((archive, row.get("secret")?))
}

#[cfg(test)]
mod tests;
