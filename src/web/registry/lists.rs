//! The registrations of the protocol of 2009 as the administrator of a resolver lists and removes them.

use rusqlite::{OptionalExtension, params};

use super::makers::{IdentifierMaker, is_of_an_archive};
use super::verbs::Verbs;
use super::{Registry, RegistryError};
use crate::archive::database;
use ibi::Ibi;
use ibi::message;

/// An actor that is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedActor {
    /// Its identifier.
    pub id: String,
    /// The name of its host.
    pub host: String,
    /// The port of its URLs.
    pub port: u16,
    /// Its e-mail address.
    pub email: String,
    /// The client address from which it was registered; of IPv6, the network. None for an actor that was
    /// registered before addresses were recorded.
    pub client: Option<String>,
    /// When it was registered.
    pub registered_at: String,
    /// When it registered its last document. None if it has registered none.
    pub confirmed_at: Option<String>,
    /// Since when none of its URLs has worked. None while one works.
    pub dead_since: Option<String>,
    /// The number of documents and copies that it has registered.
    pub documents: u64,
}

/// A document that is registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedDocument {
    /// Its identifier.
    pub id: String,
    /// The actors that have registered it; the first one's registration is not a copy.
    pub actors: Vec<String>,
    /// Its URL according to the first actor. None if only its metadata are registered.
    pub url: Option<String>,
    /// Whether its prefix belongs to a registered Archive. Such a document is not resolved to its URL.
    pub is_of_archive: bool,
}

impl Registry {
    /// The actors of the protocol of 2009, in order of registration.
    ///
    /// # Errors The database cannot be read.
    pub fn actors(&self) -> Result<Vec<ListedActor>, RegistryError> {
        let connection = self.lock();
        let actors = Verbs(&connection).all_actors()?.into_iter();
        let listed = actors.map(|(actor, documents)| ListedActor {
            id: actor.id,
            host: actor.host,
            port: actor.port,
            email: actor.email,
            client: actor.client,
            registered_at: actor.registered_at.to_rfc3339(),
            confirmed_at: actor.confirmed_at.map(|time| time.to_rfc3339()),
            dead_since: actor.dead_since.map(|time| time.to_rfc3339()),
            documents,
        });
        Ok(listed.collect())
    }

    /// The documents of the protocol of 2009, in order of registration.
    ///
    /// # Errors The database cannot be read.
    pub fn documents(&self) -> Result<Vec<ListedDocument>, RegistryError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached(
            "SELECT document.id, spelling, rep, url FROM document
             JOIN registration ON registration.document = document.id
             JOIN actor ON actor.id = registration.actor
             ORDER BY document.id, is_copy, registration.id",
        )?;
        let mut rows = statement.query([])?;
        let mut found: Vec<ListedDocument> = Vec::new();
        let mut current = None;
        while let Some(row) = rows.next()? {
            let document: i64 = row.get("id")?;
            let actor: String = row.get("rep")?;
            if current == Some(document)
                && let Some(known) = found.last_mut()
            {
                known.actors.push(actor);
                continue;
            }
            current = Some(document);
            let id: String = row.get("spelling")?;
            let ibi = Ibi::parse(&id).map_err(|_| RegistryError::Broken(message!("a document")))?;
            found.push(ListedDocument {
                is_of_archive: is_of_an_archive(&connection, &IdentifierMaker::of(&ibi))?,
                id,
                actors: vec![actor],
                url: row.get("url")?,
            });
        }
        Ok(found)
    }

    /// Deletes an actor with all its registrations. Of a document that others have copies of, the oldest copy
    /// takes the place of the deleted registration.
    ///
    /// # Errors The actor is not registered.
    pub fn remove_actor(&self, id: &Ibi) -> Result<(), RegistryError> {
        let mut connection = self.lock();
        let transaction = database::writing(&mut connection)?;
        let verbs = Verbs(&transaction);
        let actor = verbs.actor(id)?;
        let actor = actor.ok_or_else(|| RegistryError::NoActor(id.to_string()))?;
        verbs.forget_actor(actor.row)?;
        Ok(transaction.commit()?)
    }

    /// Deletes a document with all its copies.
    ///
    /// # Errors The document is not registered.
    pub fn remove_document(&self, id: &Ibi) -> Result<(), RegistryError> {
        let mut connection = self.lock();
        let transaction = database::writing(&mut connection)?;
        let select = "SELECT id FROM document WHERE ibi = ?1";
        let row = transaction.query_row(select, [id.canonical()], |row| row.get::<_, i64>(0));
        let row = row.optional()?;
        let row = row.ok_or_else(|| RegistryError::NoDocument(id.to_string()))?;
        transaction.execute("DELETE FROM registration WHERE document = ?1", [row])?;
        transaction.execute("DELETE FROM document WHERE id = ?1", [row])?;
        Ok(transaction.commit()?)
    }
}

impl Verbs<'_> {
    /// Deletes an actor with all its registrations.
    pub(super) fn forget_actor(&self, actor: i64) -> Result<(), RegistryError> {
        self.0.execute(
            "UPDATE registration SET is_copy = 1, is_original = 0 WHERE actor = ?1",
            params![actor],
        )?;
        self.0.execute(
            "UPDATE registration SET is_copy = 0 WHERE id IN (
                 SELECT min(other.id) FROM registration AS held
                 JOIN registration AS other ON other.document = held.document AND other.actor <> ?1
                 WHERE held.actor = ?1
                 GROUP BY held.document HAVING min(other.is_copy) = 1)",
            params![actor],
        )?;
        self.0
            .execute("DELETE FROM registration WHERE actor = ?1", params![actor])?;
        self.0.execute(
            "DELETE FROM document WHERE id NOT IN (SELECT document FROM registration)",
            [],
        )?;
        self.0
            .execute("DELETE FROM actor WHERE id = ?1", params![actor])?;
        Ok(())
    }
}
