//! The key with which a resolver signs its list of Archives, and the last lists of its peers.

use super::{RegisteredArchive, Registry, RegistryError, note_change, registered_archives};
use ibi::{Timestamp, message};
use ibifs_formats::federation::{PublicKey, SigningKey};
use ibifs_os::random;
use ibifs_sql::engine::{Connection, params};
use ibifs_sql::error::StoreError;

/// The seconds after which a list that has not changed is signed again.
pub const RENEW: i64 = 300;

/// The values with which a list is signed. Resolvers that share a database sign the same list with the same, and so
/// publish the same bytes.
#[derive(Debug)]
pub struct Signature {
    /// The key.
    pub key: SigningKey,
    /// The serial number.
    pub serial: u64,
    /// The time of the list, in seconds.
    pub time: i64,
}

impl Registry {
    /// The key that verifies the signatures of this resolver. Makes one if there is none, or another one.
    ///
    /// # Errors The system returns no random numbers, or the database cannot be written.
    pub fn key(&self, makes_another: bool) -> Result<PublicKey, RegistryError> {
        let seed: [u8; 32] = random::draw().map_err(|errno| {
            let error = std::io::Error::from(errno);
            RegistryError::Broken(message!(
                "{source}: {error}",
                source = random::SOURCE,
                error
            ))
        })?;
        let seed: Vec<u8> = self.write(|connection| {
            let set = if makes_another {
                "DO UPDATE SET seed = excluded.seed"
            } else {
                "DO NOTHING"
            };
            let insert = format!(
                "INSERT INTO signer (one, seed, serial) VALUES (1, ?1, 0)
                 ON CONFLICT (one) {set} RETURNING one"
            );
            if connection.exists(&insert, params![&seed[..]])? {
                note_change(connection)?;
            }
            connection.value("SELECT seed FROM signer", &[])
        })?;
        Ok(signing_key(&seed)?.public())
    }

    /// The registered Archives, and with what their list is signed; None without a key.
    ///
    /// # Errors The database cannot be written.
    pub fn to_publish(
        &self,
        now: &Timestamp,
    ) -> Result<(Vec<RegisteredArchive>, Option<Signature>), RegistryError> {
        self.write(|connection| {
            let archives = registered_archives(connection)?;
            Ok((archives, signature(connection, now.seconds())?))
        })
    }

    /// The last list of the peer with this key that was kept.
    ///
    /// # Errors The database cannot be read.
    pub fn list_of_peer(&self, key: &PublicKey) -> Result<Option<Vec<u8>>, RegistryError> {
        let select = "SELECT list FROM peer WHERE key = ?1";
        let connection = self.lock();
        Ok(connection.first(select, params![key.to_string()], |row| row.get(0))?)
    }

    /// Keeps a list of the peer with this key, unless a later one is there.
    ///
    /// # Errors The database cannot be written.
    pub fn keep_list_of_peer(
        &self,
        key: &PublicKey,
        serial: u64,
        list: &[u8],
    ) -> Result<(), RegistryError> {
        let serial = i64::try_from(serial).map_err(|_| broken())?;
        let insert = "INSERT INTO peer (key, serial, list) VALUES (?1, ?2, ?3)
             ON CONFLICT (key) DO UPDATE SET serial = excluded.serial, list = excluded.list
             WHERE excluded.serial > peer.serial";
        self.write(|connection| {
            Ok(connection.execute(insert, params![key.to_string(), serial, list])?)
        })
    }
}

/// Reads with what the list is signed. The serial number is a time, so that it rises even if an older copy of the
/// database is restored.
fn signature(connection: &Connection, now: i64) -> Result<Option<Signature>, RegistryError> {
    let is_shared = connection.sqlite().is_none();
    let found = if is_shared {
        last_signature(connection, now)?
    } else {
        None
    };
    let found = match found {
        Some(found) => Some(found),
        None => connection.first(
            "UPDATE signer SET serial = CASE WHEN serial < ?1 THEN ?1 ELSE serial + 1 END
             RETURNING seed, serial",
            params![now],
            |row| Ok((row.get(0)?, row.get(1)?, now)),
        )?,
    };
    let Some((seed, serial, time)) = found else {
        return Ok(None);
    };
    if is_shared {
        let set = "UPDATE epoch SET signed = number, signed_at = ?1";
        connection.execute(set, params![time])?;
    }
    Ok(Some(Signature {
        key: signing_key(&seed)?,
        serial: u64::try_from(serial).map_err(|_| broken())?,
        time,
    }))
}

/// Key, serial number and time of the last list, if the Archives are still the same and it is not to be signed again.
fn last_signature(
    connection: &Connection,
    now: i64,
) -> Result<Option<(Vec<u8>, i64, i64)>, StoreError> {
    let select = "SELECT seed, serial, signed_at FROM signer, epoch WHERE signed = number";
    let last: Option<(_, _, i64)> = connection.first(select, &[], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    Ok(last.filter(|(_, _, time)| (now - time).abs() < RENEW))
}

fn broken() -> RegistryError {
    RegistryError::Broken(message!("the key of the resolver"))
}

fn signing_key(seed: &[u8]) -> Result<SigningKey, RegistryError> {
    SigningKey::of_seed(seed).ok_or_else(broken)
}

#[cfg(test)]
mod tests {
    use super::super::tests::TestRegistry;
    use super::*;

    #[test]
    fn keys_and_serial_numbers() {
        let place = TestRegistry::new();
        let registry = place.open();
        let at = |seconds| Timestamp::from_unix(seconds, 0);
        let next = |seconds| registry.to_publish(&at(seconds)).expect("read").1;
        assert!(next(5).is_none());
        let key = registry.key(false).expect("a key");
        assert_eq!(registry.key(false).expect("the same"), key);
        let first = next(5).expect("a key");
        assert_eq!((first.key.public(), first.serial, first.time), (key, 5, 5));
        let serials = [5, 4, 9].map(|seconds| next(seconds).expect("a key").serial);
        if place.is_shared() {
            assert_eq!(serials, [5, 5, 5]);
            let later = [304, 305].map(|seconds| next(seconds).expect("a key"));
            assert_eq!(later.map(|it| (it.serial, it.time)), [(5, 5), (305, 305)]);
        } else {
            assert_eq!(serials, [6, 7, 9]);
        }
        let other = registry.key(true).expect("another key");
        assert_ne!(other, key);
        let last = next(1).expect("a key");
        let serial = if place.is_shared() { 306 } else { 10 };
        assert_eq!((last.key.public(), last.serial), (other, serial));
    }

    #[test]
    fn the_latest_list_of_a_peer_is_kept() {
        let place = TestRegistry::new();
        let registry = place.open();
        let key = registry.key(false).expect("a key");
        assert_eq!(registry.list_of_peer(&key).expect("read"), None);
        for (serial, list) in [(2, b"two"), (1, b"one")] {
            registry
                .keep_list_of_peer(&key, serial, list)
                .expect("kept");
            let kept = registry.list_of_peer(&key).expect("read");
            assert_eq!(kept.as_deref(), Some(&b"two"[..]));
        }
        registry.keep_list_of_peer(&key, 3, b"3").expect("kept");
        let kept = registry.list_of_peer(&key).expect("read");
        assert_eq!(kept.as_deref(), Some(&b"3"[..]));
    }
}
