//! The key with which a resolver signs its list of Archives, and the last lists of its peers.

use rusqlite::{OptionalExtension, params};

use super::{Registry, RegistryError};
use crate::archive::database;
use crate::formats::federation::{PublicKey, SigningKey};
use crate::os::random;
use ibi::{Timestamp, message};

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
        let mut connection = self.lock();
        let transaction = database::writing(&mut connection)?;
        let set = if makes_another {
            "ON CONFLICT DO UPDATE SET seed = excluded.seed"
        } else {
            "ON CONFLICT DO NOTHING"
        };
        let insert = format!("INSERT INTO signer (one, seed, serial) VALUES (1, ?1, 0) {set}");
        transaction.execute(&insert, [&seed[..]])?;
        let seed: Vec<u8> =
            transaction.query_row("SELECT seed FROM signer", [], |row| row.get(0))?;
        transaction.commit()?;
        Ok(signing_key(&seed)?.public())
    }

    /// The key with which the next list is signed, and its serial number. None without a key.
    ///
    /// The number is a time, so that it rises even if an older copy of the database is restored.
    ///
    /// # Errors The database cannot be written.
    pub fn next_signature(
        &self,
        now: &Timestamp,
    ) -> Result<Option<(SigningKey, u64)>, RegistryError> {
        let connection = self.lock();
        let update = "UPDATE signer SET serial = max(serial + 1, ?1) RETURNING seed, serial";
        let mut statement = connection.prepare_cached(update)?;
        let found: Option<(Vec<u8>, i64)> = statement
            .query_row([now.seconds()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((seed, serial)) = found else {
            return Ok(None);
        };
        let serial = u64::try_from(serial).map_err(|_| broken())?;
        Ok(Some((signing_key(&seed)?, serial)))
    }

    /// The last list of the peer with this key that was kept.
    ///
    /// # Errors The database cannot be read.
    pub fn list_of_peer(&self, key: &PublicKey) -> Result<Option<Vec<u8>>, RegistryError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT list FROM peer WHERE key = ?1")?;
        let list = statement.query_row([key.to_string()], |row| row.get(0));
        Ok(list.optional()?)
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
        self.lock().execute(
            "INSERT INTO peer (key, serial, list) VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET serial = excluded.serial, list = excluded.list
             WHERE excluded.serial > serial",
            params![key.to_string(), serial, list],
        )?;
        Ok(())
    }
}

fn broken() -> RegistryError {
    RegistryError::Broken(message!("the key of the resolver"))
}

fn signing_key(seed: &[u8]) -> Result<SigningKey, RegistryError> {
    SigningKey::of_seed(seed).ok_or_else(broken)
}

#[cfg(test)]
mod tests {
    use super::super::tests::RegistryDirectory;
    use super::*;

    #[test]
    fn keys_and_serial_numbers() {
        let place = RegistryDirectory::new();
        let registry = place.open();
        let at = |seconds| Timestamp::from_unix(seconds, 0);
        let next = |seconds| registry.next_signature(&at(seconds)).expect("read");
        assert!(next(5).is_none());
        let key = registry.key(false).expect("a key");
        assert_eq!(registry.key(false).expect("the same"), key);
        let (signing, serial) = next(5).expect("a key");
        assert_eq!((signing.public(), serial), (key, 5));
        let serials = [5, 4, 9].map(|seconds| next(seconds).expect("a key").1);
        assert_eq!(serials, [6, 7, 9]);
        let other = registry.key(true).expect("another key");
        assert_ne!(other, key);
        let (signing, serial) = next(1).expect("a key");
        assert_eq!((signing.public(), serial), (other, 10));
    }

    #[test]
    fn the_latest_list_of_a_peer_is_kept() {
        let place = RegistryDirectory::new();
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
