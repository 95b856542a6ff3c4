//! The registrations of the protocol of 2009 as the administrator of a resolver lists and removes them.

use super::verbs::Verbs;
use crate::registry::makers::{IdentifierMaker, is_of_an_archive};
use crate::registry::{Registry, RegistryError};
use ibi::Ibi;
use ibi::message;
use ibifs_sql::engine::{Connection, params};
use ibifs_sql::error::StoreError;

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
    /// The time at which it was registered.
    pub registered_at: String,
    /// The time at which it registered its last document. None if it has registered none.
    pub confirmed_at: Option<String>,
    /// The time since when none of its URLs has worked. None while one works.
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
        self.lock().at_one_instant(listed_documents)
    }

    /// Deletes an actor with all its registrations. Of a document that others have copies of, the oldest copy
    /// takes the place of the deleted registration.
    ///
    /// # Errors The actor is not registered.
    pub fn remove_actor(&self, id: &Ibi) -> Result<(), RegistryError> {
        self.write(|connection| {
            let verbs = Verbs(connection);
            let actor = verbs.actor(id)?;
            let actor = actor.ok_or_else(|| RegistryError::NoActor(id.to_string()))?;
            Ok(verbs.forget_actor(actor.row)?)
        })
    }

    /// Deletes a document with all its copies.
    ///
    /// # Errors The document is not registered.
    pub fn remove_document(&self, id: &Ibi) -> Result<(), RegistryError> {
        self.write(|connection| {
            let select = "SELECT id FROM document WHERE ibi = ?1";
            let row = connection.first(select, params![id.canonical()], |row| row.get::<i64>(0));
            let row = row?.ok_or_else(|| RegistryError::NoDocument(id.to_string()))?;
            let delete = "DELETE FROM registration WHERE document = ?1";
            connection.execute(delete, params![row])?;
            Ok(connection.execute("DELETE FROM document WHERE id = ?1", params![row])?)
        })
    }
}

fn listed_documents(connection: &Connection) -> Result<Vec<ListedDocument>, RegistryError> {
    let select = "SELECT document.id, spelling, rep, url FROM document
         JOIN registration ON registration.document = document.id
         JOIN actor ON actor.id = registration.actor
         ORDER BY document.id, is_copy, registration.id";
    let rows = connection.each(select, &[], |row| {
        let (spelling, actor): (String, String) = (row.get("spelling")?, row.get("rep")?);
        Ok((row.get::<i64>("id")?, spelling, actor, row.get("url")?))
    })?;
    let mut found: Vec<ListedDocument> = Vec::new();
    let mut current = None;
    for (document, id, actor, url) in rows {
        if current == Some(document)
            && let Some(known) = found.last_mut()
        {
            known.actors.push(actor);
            continue;
        }
        current = Some(document);
        let ibi = Ibi::parse(&id).map_err(|_| RegistryError::Broken(message!("a document")))?;
        found.push(ListedDocument {
            is_of_archive: is_of_an_archive(connection, &IdentifierMaker::of(&ibi))?,
            id,
            actors: vec![actor],
            url,
        });
    }
    Ok(found)
}

impl Verbs<'_> {
    /// Deletes an actor with all its registrations.
    pub(super) fn forget_actor(&self, actor: i64) -> Result<(), StoreError> {
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
        let delete = "DELETE FROM registration WHERE actor = ?1";
        self.0.execute(delete, params![actor])?;
        let delete = "DELETE FROM document WHERE id NOT IN (SELECT document FROM registration)";
        self.0.execute(delete, &[])?;
        let delete = "DELETE FROM actor WHERE id = ?1";
        self.0.execute(delete, params![actor])
    }
}
