//! The database of a resolver: the Archives that are registered with it and their present addresses
//! (ibi-resolution(7)), and the registrations of the protocol of 2009. All SQL of the resolver is here.
//!
//! It is one SQLite file, or a database of a server that several resolvers share; it is rarely written, and synced at
//! every commit. No other lock is taken while its lock is held.

mod error;
mod guarded;
mod inclusion;
mod key;
mod makers;
mod place;
#[cfg(feature = "registration-2009")]
mod registration;
mod remembered;
mod schema;
mod secret;
mod signer;

use parking_lot::{Mutex, MutexGuard};
use std::os::fd::OwnedFd;
use std::time::Duration;

use ibi::message::Message;
use ibi::{Ibi, Timestamp};
use ibifs_formats::base_url::BaseUrl;
use ibifs_formats::item::Names;
use ibifs_sql::engine::{Connection, Row, Sync, TransactionError, params};
use ibifs_sql::error::StoreError;

pub use error::RegistryError;
pub use inclusion::{Inclusion, InclusionError, MOST_ANNOUNCED, PAIRS_READ, READ_HERE};
pub use key::{ArchiveKey, KeyError};
pub use makers::IdentifierMaker;
pub use place::RegistryPlace;
#[cfg(feature = "registration-2009")]
pub use registration::{
    LAPSE_DAYS, ListedActor, ListedDocument, LookupError, RegistrationReply, ReplyStatus,
    Requester, ToTry,
};
pub use signer::{RENEW, Signature};

/// The identifier of every resolver's own service (ibi-resolution(7), "Inclusion").
pub const RESOLVER_SERVICE: &str = "J8LNKB5R7W/3FUQHC5";

/// The time that a resolver waits for the server of its database.
const SOON: Duration = Duration::from_millis(1_500);

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
    /// The time at which it was registered.
    pub registered_at: Timestamp,
    /// The prefixes of items that it announces to hold.
    pub prefixes: Vec<String>,
    /// The place at which it is reached. None while it is excluded.
    pub included: Option<Included>,
}

/// The place at which an included Archive is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Included {
    /// Its URL.
    pub url: BaseUrl,
    /// The e-mail address of its administrator.
    pub email: String,
    /// The time at which it was included.
    pub since: Timestamp,
}

/// The open database of a resolver.
#[derive(Debug)]
pub struct Registry {
    connection: Mutex<Connection>,
    #[cfg(feature = "registration-2009")]
    bounds: registration::Bounds,
    /// The path of a file leads through this descriptor until SQLite has closed it, above.
    _directory: Option<OwnedFd>,
}

impl Registry {
    /// Opens the database. Creates or migrates it where needed. A server is waited for for a minute, until
    /// [`Registry::answer_soon`].
    ///
    /// # Errors The file cannot be opened, is not a database, or is open to other users; the server cannot be reached,
    /// or its database holds something else; the database was written by a newer version of the program.
    pub fn open(place: &RegistryPlace) -> Result<Registry, RegistryError> {
        let (connection, directory) = place.open()?;
        Ok(Registry {
            connection: Mutex::new(connection),
            #[cfg(feature = "registration-2009")]
            bounds: registration::Bounds::default(),
            _directory: directory,
        })
    }

    /// From now on a request fails soon if the database is in a server that does not answer.
    pub fn answer_soon(&self) {
        self.lock().set_timeout(SOON);
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }

    /// Runs one transaction, which no other one that writes is beside. A server may ask to run it again.
    fn write<T, E: TransactionError>(
        &self,
        change: impl FnMut(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        self.lock().transact(Sync::Now, change)
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
        self.write(|connection| {
            let id = match by_service(connection, service)? {
                Some((known, _)) => {
                    connection.execute(
                        "UPDATE archive SET secret = ?2, rep = coalesce(rep, ?3),
                                            ibip = coalesce(ibip, ?4)
                         WHERE id = ?1",
                        params![known.id.0, &secret, rep.as_deref(), ibip.as_deref()],
                    )?;
                    known.id
                }
                None => ArchiveId(connection.value(
                    "INSERT INTO archive (id, rep, ibip, secret, registered_at)
                     VALUES ((SELECT coalesce(max(id), 0) + 1 FROM archive), ?1, ?2, ?3, ?4)
                     RETURNING id",
                    params![rep.as_deref(), ibip.as_deref(), &secret, now.to_rfc3339()],
                )?),
            };
            makers::note_service(connection, id, service, now)?;
            Ok(note_change(connection)?)
        })
    }

    /// Deletes an Archive.
    ///
    /// # Errors It is not registered.
    pub fn unregister(&self, service: &Names) -> Result<(), RegistryError> {
        self.write(|connection| {
            let (known, _) = by_service(connection, service)?
                .ok_or_else(|| RegistryError::NotRegistered(Box::new(service.clone())))?;
            connection.execute("DELETE FROM archive WHERE id = ?1", params![known.id.0])?;
            Ok(note_change(connection)?)
        })
    }

    /// All registered Archives, in order of registration.
    ///
    /// # Errors The database cannot be read.
    pub fn archives(&self) -> Result<Vec<RegisteredArchive>, RegistryError> {
        Ok(registered_archives(&self.lock())?)
    }

    /// A number that changes whenever another process changes the file, or any process the registered Archives or the key
    /// in a server.
    ///
    /// # Errors The database cannot be read.
    pub fn version(&self) -> Result<i64, RegistryError> {
        let connection = self.lock();
        let select = match connection.sqlite() {
            Some(_) => "PRAGMA data_version",
            None => "SELECT number FROM epoch",
        };
        Ok(connection.value(select, &[])?)
    }

    /// Lists what an inclusion would displace: the Archive itself at another URL, and others at the same place. The key is
    /// checked if there is any.
    ///
    /// # Errors It is not registered, or the key is another one.
    pub fn displaced_by(
        &self,
        inclusion: &Inclusion,
    ) -> Result<Vec<(BaseUrl, Names)>, RegistryError> {
        let own = by_service(&self.lock(), &inclusion.service)?.map(|(own, _)| own.id);
        let all = self.archives()?.into_iter();
        let displaced = all.filter_map(|archive| {
            let url = archive.included?.url;
            let is_displaced = if own == Some(archive.id) {
                url != inclusion.url
            } else {
                url.is_same_place(&inclusion.url)
            };
            is_displaced.then_some((url, archive.service))
        });
        let displaced: Vec<_> = displaced.collect();
        if !displaced.is_empty() {
            self.checked(inclusion)?;
        }
        Ok(displaced)
    }

    /// Includes an Archive at the address that it announces, if its key is valid.
    ///
    /// # Errors It is not registered, or the key is another one.
    pub fn include(&self, inclusion: &Inclusion, now: &Timestamp) -> Result<(), RegistryError> {
        let checked = self.checked(inclusion)?;
        self.put_included(checked, inclusion, now)
    }

    fn put_included(
        &self,
        (id, secret): (ArchiveId, String),
        inclusion: &Inclusion,
        now: &Timestamp,
    ) -> Result<(), RegistryError> {
        self.write(|connection| {
            let update = "UPDATE archive SET address = ?3, ip = ?4, version = ?5, email = ?6,
                                             included_at = ?7, prefixes = ?8
                          WHERE id = ?1 AND secret = ?2 RETURNING id";
            let values = params![
                id.0,
                &secret,
                inclusion.url.short(),
                inclusion.ip.to_string(),
                &inclusion.version,
                &inclusion.email,
                now.to_rfc3339(),
                inclusion.prefixes.join(" "),
            ];
            if !connection.exists(update, values)? {
                return Err(RegistryError::WrongKey(Box::new(inclusion.service.clone())));
            }
            makers::note_service(connection, id, &inclusion.service, now)?;
            makers::note_included(connection, id, inclusion, now)?;
            Ok(note_change(connection)?)
        })
    }

    /// Excludes an Archive, if its key is valid. One that is included at another address by now stays.
    ///
    /// # Errors It is not registered, or the key is another one.
    pub fn exclude(&self, inclusion: &Inclusion) -> Result<(), RegistryError> {
        let checked = self.checked(inclusion)?;
        self.put_excluded(checked, inclusion)
    }

    fn put_excluded(
        &self,
        (id, secret): (ArchiveId, String),
        inclusion: &Inclusion,
    ) -> Result<(), RegistryError> {
        self.write(|connection| {
            let update = "UPDATE archive SET
                              included_at = CASE WHEN address = ?3 THEN NULL ELSE included_at END,
                              address = CASE WHEN address = ?3 THEN NULL ELSE address END
                          WHERE id = ?1 AND secret = ?2 RETURNING id";
            if !connection.exists(update, params![id.0, &secret, inclusion.url.short()])? {
                return Err(RegistryError::WrongKey(Box::new(inclusion.service.clone())));
            }
            Ok(note_change(connection)?)
        })
    }

    /// The Archive of a request, and the hash of its key, which the change must find again: meanwhile it may be
    /// registered with another key, or another Archive have its row.
    fn checked(&self, inclusion: &Inclusion) -> Result<(ArchiveId, String), RegistryError> {
        let found = by_service(&self.lock(), &inclusion.service)?;
        let refused = || RegistryError::NotRegistered(Box::new(inclusion.service.clone()));
        let (known, secret) = found.ok_or_else(refused)?;
        // Hashing takes long, so it runs without the lock.
        if secret::is_of(&inclusion.key.to_string(), &secret) {
            Ok((known.id, secret))
        } else {
            Err(RegistryError::WrongKey(Box::new(inclusion.service.clone())))
        }
    }
}

/// Records that resolvers must read the registered Archives and the key again. SQLite does so itself.
fn note_change(connection: &Connection) -> Result<(), StoreError> {
    match connection.sqlite() {
        Some(_) => Ok(()),
        None => connection.execute("UPDATE epoch SET number = number + 1", &[]),
    }
}

const SELECT: &str = "SELECT id, rep, ibip, secret, registered_at, address, email, included_at, prefixes FROM archive";

fn texts(names: &Names) -> (Option<String>, Option<String>) {
    let rep = names.rep().map(|rep| Ibi::from(rep.clone()).canonical());
    let ibip = names.ibip().map(|ibip| Ibi::from(ibip.clone()).canonical());
    (rep, ibip)
}

fn registered_archives(connection: &Connection) -> Result<Vec<RegisteredArchive>, StoreError> {
    connection.each(&format!("{SELECT} ORDER BY id"), &[], |row| {
        Ok(registered(row)?.0)
    })
}

fn by_service(
    connection: &Connection,
    service: &Names,
) -> Result<Option<(RegisteredArchive, String)>, RegistryError> {
    let (rep, ibip) = texts(service);
    let select = format!("{SELECT} WHERE rep = ?1 OR ibip = ?2");
    let mut found = connection.each(&select, params![rep, ibip], registered)?;
    match (found.pop(), found.is_empty()) {
        (Some(known), true) if !known.0.service.contradicts(service) => Ok(Some(known)),
        (None, _) => Ok(None),
        _ => Err(RegistryError::TwoArchives(Box::new(service.clone()))),
    }
}

fn registered(row: &Row<'_>) -> Result<(RegisteredArchive, String), StoreError> {
    let broken = |what: &str| StoreError::Broken {
        what: Message::verbatim(what),
    };
    let text = |column: &str| row.get::<Option<String>>(column);
    let forms = [text("rep")?, text("ibip")?];
    let forms = forms.iter().flatten().map(|text| Ibi::parse(text));
    let forms: Vec<Ibi> = forms
        .collect::<Result<_, _>>()
        .map_err(|_| broken("a name"))?;
    let time = |column: &str| -> Result<Option<Timestamp>, StoreError> {
        let time = text(column)?.map(|text| Timestamp::parse_rfc3339(&text));
        time.transpose().map_err(|_| broken(column))
    };
    let included = match (text("address")?, time("included_at")?) {
        (Some(address), Some(since)) => Some(Included {
            url: BaseUrl::parse_short(&address).map_err(|_| broken("address"))?,
            email: text("email")?.unwrap_or_default(),
            since,
        }),
        _ => None,
    };
    let archive = RegisteredArchive {
        id: ArchiveId(row.get("id")?),
        service: Names::collect(forms).ok_or_else(|| broken("a name"))?,
        registered_at: time("registered_at")?.ok_or_else(|| broken("registered_at"))?,
        prefixes: inclusion::prefixes(&row.get::<String>("prefixes")?),
        included,
    };
    Ok((archive, row.get("secret")?))
}

#[cfg(test)]
mod tests;
