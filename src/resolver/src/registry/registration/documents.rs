//! The documents that actors have registered, and their copies.

use std::time::Duration;

use super::actors::ActorRow;
use super::bounds::Bounds;
use super::refusal::{RuleViolation, VerbError};
use super::verbs::{DocumentRequest, Verbs};
use crate::registry::makers::IdentifierMaker;
use crate::registry::{Registry, RegistryError};
use ibi::message;
use ibi::relation::{Language, MetadataFormat};
use ibi::{Ibi, Timestamp};
use ibifs_formats::registration::{
    Document, DocumentContent, DocumentFingerprint, DocumentRecord, Holding, LastUpdate, Metadata,
    RegistrationAnswer, WebUrl,
};
use ibifs_sql::engine::{Row, params};
use ibifs_sql::error::StoreError;

/// The seconds that the date of an identifier may lie in the future, to allow for clocks that differ.
const MOST_AHEAD: i64 = 1;

/// A document in the database, with its identifier as first written.
struct DocumentRow {
    row: i64,
    id: String,
}

/// The registration of a document by one actor.
struct HoldingRow {
    row: i64,
    actor: i64,
    is_copy: bool,
    is_original: bool,
    is_own: bool,
}

impl Registry {
    /// The registrations of a document. None if it has none.
    ///
    /// # Errors The database cannot be read.
    pub fn registered_document(&self, id: &Ibi) -> Result<Option<DocumentRecord>, RegistryError> {
        let connection = self.lock();
        Ok(connection.at_one_instant(|connection| Verbs(connection).record(id))?)
    }
}

impl Verbs<'_> {
    /// Registers a document for an actor. Replaces the actor's earlier registration of it.
    pub(super) fn register_document(
        &self,
        actor: &ActorRow,
        request: &DocumentRequest<'_>,
        bounds: Bounds,
        now: &Timestamp,
    ) -> Result<(RegistrationAnswer, Duration), VerbError> {
        let DocumentRequest {
            id,
            document,
            is_own,
        } = *request;
        // The Archive may have been registered after the actor; the actor's own identifiers are refused then,
        // too.
        self.refuse_archives(&IdentifierMaker::of_host(&actor.host), &actor.host)?;
        let url = document.content.as_ref().map(|content| &content.url);
        let same = match url {
            Some(url) => self.with_url(actor, url)?,
            None => None,
        };
        let mut wait = Duration::ZERO;
        let known = match (id, same) {
            (None, Some(same)) => same,
            (None, None) => {
                let (rep, until) = self.new_document(actor, now)?;
                wait = until;
                self.add_document(&Ibi::from(rep))?
            }
            (Some(id), same) => {
                self.check_id(id, now)?;
                let known = match self.document(id)? {
                    Some(known) => known,
                    None => self.add_document(id)?,
                };
                if let Some((same, url)) = same.zip(url)
                    && same.row != known.row
                {
                    let url = url.as_str().to_owned();
                    let document = same.id;
                    return Err(RuleViolation::SameUrl { url, document }.into());
                }
                self.use_date(id)?;
                known
            }
        };
        // The transaction is given up, and the document of a new identifier with it.
        if let Some(fingerprint) = &document.fingerprint
            && let Some(equal) = self.other_with_fingerprint(actor, fingerprint, &known)?
        {
            let document = equal.id;
            return Err(RuleViolation::SameFingerprint { document }.into());
        }
        if is_own {
            self.give_way(actor, &known)?;
        }
        let holder = self.holder(&known)?;
        let is_copy = holder
            .as_ref()
            .is_some_and(|holder| holder.actor != actor.row);
        if let Some(holder) = holder.filter(|_| is_copy && document.is_original) {
            return Err(RuleViolation::CopyNoOriginal {
                document: known.id,
                holder: self.actor_id(holder.actor)?,
            }
            .into());
        }
        if self.holding(actor, &known)?.is_none() {
            self.see_to_room_for_a_document(actor, bounds)?;
        }
        self.put(actor, &known, is_copy, request, now)?;
        self.confirm(actor, now)?;
        Ok((RegistrationAnswer::Document(known.id), wait))
    }

    /// Transfers a document to another actor. The registration of the first becomes a copy.
    pub(super) fn change_actor(
        &self,
        actor: &ActorRow,
        document: &Ibi,
        to: &Ibi,
    ) -> Result<RegistrationAnswer, VerbError> {
        let (known, held) = self.held(actor, document)?;
        if held.is_copy {
            return Err(RuleViolation::CopyNotHandedOver {
                holder: self.holder_id(&known)?,
                document: known.id,
            }
            .into());
        }
        let new = self.actor(to)?;
        let new = new.ok_or_else(|| RuleViolation::UnknownNewActor(to.to_string()))?;
        if new.row == actor.row {
            return Err(RuleViolation::SameActor(new.id).into());
        }
        let Some(copy) = self.holding(&new, &known)? else {
            return Err(RuleViolation::NewActorHasNone {
                document: known.id,
                actor: new.id,
            }
            .into());
        };
        let set =
            "UPDATE registration SET is_copy = ?2, is_original = ?3, is_own = ?4 WHERE id = ?1";
        // In this order, since at most one registration of a document is not a copy.
        self.0.execute(set, params![held.row, true, false, false])?;
        let now = params![copy.row, false, held.is_original, held.is_own];
        self.0.execute(set, now)?;
        let what = if held.is_original {
            "the original of "
        } else {
            ""
        };
        Ok(RegistrationAnswer::Confirmed(format!(
            "{what}document {} is transferred to {}; what {} has is now a copy",
            known.id, new.id, actor.id
        )))
    }

    /// Deletes an actor's registration of a document.
    pub(super) fn delete_registration(
        &self,
        actor: &ActorRow,
        document: &Ibi,
    ) -> Result<RegistrationAnswer, VerbError> {
        let (known, held) = self.held(actor, document)?;
        if !held.is_copy {
            let actors = self.copies(&known)?;
            if !actors.is_empty() {
                let document = known.id;
                return Err(RuleViolation::HasCopies { document, actors }.into());
            }
        }
        let delete = "DELETE FROM registration WHERE id = ?1";
        self.0.execute(delete, params![held.row])?;
        if !held.is_copy {
            let delete = "DELETE FROM document WHERE id = ?1";
            self.0.execute(delete, params![known.row])?;
        }
        Ok(RegistrationAnswer::Confirmed(format!(
            "the registration of document {} by {} is deleted",
            known.id, actor.id
        )))
    }

    /// Enforces the limits on documents and copies.
    fn see_to_room_for_a_document(
        &self,
        actor: &ActorRow,
        bounds: Bounds,
    ) -> Result<(), VerbError> {
        let own = "SELECT count(*) FROM registration WHERE actor = ?1";
        if self.count(own, params![actor.row])? >= bounds.of_one_actor {
            return Err(RuleViolation::TooManyOfOne {
                actor: actor.id.clone(),
                most: bounds.of_one_actor,
            }
            .into());
        }
        let of_origin = |column: &str, value: &Option<String>| {
            let select = format!(
                "SELECT count(*) FROM registration JOIN actor ON actor.id = registration.actor
                 WHERE {column} = ?1"
            );
            match value {
                Some(value) => self.count(&select, params![value]),
                None => Ok(0),
            }
        };
        let most = bounds.of_one_origin;
        if of_origin("client", &actor.client)? >= most {
            return Err(RuleViolation::TooManyDocumentsOf("client address", most).into());
        }
        if of_origin("domain", &actor.domain)? >= most {
            return Err(RuleViolation::TooManyDocumentsOf("domain", most).into());
        }
        if self.count("SELECT count(*) FROM registration", &[])? < bounds.in_all {
            Ok(())
        } else {
            Err(RuleViolation::TooManyInAll(bounds.in_all).into())
        }
    }

    /// Makes the registration of another actor a copy if the identifier is not of that actor's own making. It
    /// is of this actor's.
    fn give_way(&self, actor: &ActorRow, known: &DocumentRow) -> Result<(), VerbError> {
        let set = "UPDATE registration SET is_copy = 1, is_original = 0
             WHERE document = ?1 AND is_copy = 0 AND is_own = 0 AND actor <> ?2 RETURNING id";
        if self.0.exists(set, params![known.row, actor.row])? {
            let set = "UPDATE registration SET is_copy = 0 WHERE document = ?1 AND actor = ?2";
            self.0.execute(set, params![known.row, actor.row])?;
        }
        Ok(())
    }

    fn check_id(&self, id: &Ibi, now: &Timestamp) -> Result<(), VerbError> {
        self.refuse_archives(&IdentifierMaker::of(id), &id.to_string())?;
        let date = match id {
            Ibi::Rep(rep) => rep.timestamp(),
            Ibi::Ibip(ibip) => ibip.timestamp(),
        };
        if date.seconds() > now.seconds() + MOST_AHEAD {
            return Err(RuleViolation::NotYet {
                document: id.to_string(),
                date: date.to_rfc3339(),
            }
            .into());
        }
        match self.actor(id)? {
            Some(actor) => Err(RuleViolation::IsAnActor(actor.id).into()),
            None => Ok(()),
        }
    }

    fn document(&self, id: &Ibi) -> Result<Option<DocumentRow>, StoreError> {
        let select = "SELECT id, spelling FROM document WHERE ibi = ?1";
        self.0.first(select, params![id.canonical()], known)
    }

    /// The document that an actor has registered with this URL.
    fn with_url(&self, actor: &ActorRow, url: &WebUrl) -> Result<Option<DocumentRow>, StoreError> {
        let select = "SELECT document.id, spelling FROM document
             JOIN registration ON registration.document = document.id
             WHERE actor = ?1 AND url = ?2";
        self.0
            .first(select, params![actor.row, url.as_str()], known)
    }

    /// Another document of an actor with this fingerprint.
    fn other_with_fingerprint(
        &self,
        actor: &ActorRow,
        fingerprint: &DocumentFingerprint,
        document: &DocumentRow,
    ) -> Result<Option<DocumentRow>, StoreError> {
        let select = "SELECT document.id, spelling FROM document
             JOIN registration ON registration.document = document.id
             WHERE actor = ?1 AND fingerprint = ?2 AND document.id <> ?3 LIMIT 1";
        let params = params![actor.row, fingerprint.as_str(), document.row];
        self.0.first(select, params, known)
    }

    fn add_document(&self, id: &Ibi) -> Result<DocumentRow, StoreError> {
        let row = self.0.value(
            "INSERT INTO document (id, ibi, spelling)
             VALUES ((SELECT coalesce(max(id), 0) + 1 FROM document), ?1, ?2) RETURNING id",
            params![id.canonical(), id.to_string()],
        )?;
        Ok(DocumentRow {
            row,
            id: id.to_string(),
        })
    }

    /// An actor's registration of a document.
    fn held(&self, actor: &ActorRow, id: &Ibi) -> Result<(DocumentRow, HoldingRow), VerbError> {
        let known = self.document(id)?;
        let known = known.ok_or_else(|| RuleViolation::UnknownDocument(id.to_string()))?;
        match self.holding(actor, &known)? {
            Some(held) => Ok((known, held)),
            None => Err(RuleViolation::NotHeld {
                document: known.id,
                actor: actor.id.clone(),
            }
            .into()),
        }
    }

    fn holding(
        &self,
        actor: &ActorRow,
        known: &DocumentRow,
    ) -> Result<Option<HoldingRow>, StoreError> {
        let select = "SELECT id, actor, is_copy, is_original, is_own FROM registration
             WHERE document = ?1 AND actor = ?2";
        self.0.first(select, params![known.row, actor.row], held)
    }

    /// The registration that is not a copy.
    fn holder(&self, known: &DocumentRow) -> Result<Option<HoldingRow>, StoreError> {
        let select = "SELECT id, actor, is_copy, is_original, is_own FROM registration
             WHERE document = ?1 AND is_copy = 0";
        self.0.first(select, params![known.row], held)
    }

    fn holder_id(&self, known: &DocumentRow) -> Result<String, VerbError> {
        let holder = self.holder(known)?;
        let broken =
            || RegistryError::Broken(message!("no copies of {document}", document = known.id));
        self.actor_id(holder.ok_or_else(broken)?.actor)
    }

    /// The actors that have a copy, the oldest first.
    fn copies(&self, known: &DocumentRow) -> Result<Vec<String>, StoreError> {
        let select = "SELECT rep FROM registration JOIN actor ON actor.id = registration.actor
             WHERE document = ?1 AND is_copy = 1 ORDER BY registration.id";
        self.0
            .each(select, params![known.row], |row| row.get("rep"))
    }

    fn put(
        &self,
        actor: &ActorRow,
        known: &DocumentRow,
        is_copy: bool,
        request: &DocumentRequest<'_>,
        now: &Timestamp,
    ) -> Result<(), StoreError> {
        let document = request.document;
        let content = document.content.as_ref();
        let row: i64 = self.0.value(
            "INSERT INTO registration (id, document, actor, is_copy, is_original, url, updated,
                                       fingerprint, previous_url, next_url, registered_at, is_own)
             VALUES ((SELECT coalesce(max(id), 0) + 1 FROM registration),
                     ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
             ON CONFLICT (document, actor) DO UPDATE SET
                 is_original = excluded.is_original, url = excluded.url, updated = excluded.updated,
                 fingerprint = excluded.fingerprint, previous_url = excluded.previous_url,
                 next_url = excluded.next_url, registered_at = excluded.registered_at,
                 is_own = excluded.is_own
             RETURNING id",
            params![
                known.row,
                actor.row,
                is_copy,
                document.is_original,
                content.map(|content| content.url.as_str()),
                content.map(|content| content.updated.as_str()),
                document
                    .fingerprint
                    .as_ref()
                    .map(DocumentFingerprint::as_str),
                document.previous.as_ref().map(WebUrl::as_str),
                document.next.as_ref().map(WebUrl::as_str),
                now.to_rfc3339(),
                request.is_own,
            ],
        )?;
        let delete = "DELETE FROM metadata WHERE registration = ?1";
        self.0.execute(delete, params![row])?;
        for (position, metadata) in (0i64..).zip(&document.metadata) {
            self.0.execute(
                "INSERT INTO metadata (registration, position, url, updated, format, language)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![
                    row,
                    position,
                    metadata.url.as_str(),
                    metadata.updated.as_str(),
                    metadata.format.as_ref().map(MetadataFormat::as_str),
                    metadata.language.as_ref().map(Language::to_string),
                ],
            )?;
        }
        Ok(())
    }

    fn record(&self, id: &Ibi) -> Result<Option<DocumentRecord>, StoreError> {
        let Some(known) = self.document(id)? else {
            return Ok(None);
        };
        let select = "SELECT registration.id, rep, is_copy, is_original, is_own, url, updated,
                    fingerprint, previous_url, next_url
             FROM registration JOIN actor ON actor.id = registration.actor
             WHERE document = ?1 ORDER BY is_copy, registration.id";
        let found = self.0.each(select, params![known.row], |row| {
            let holding = Holding {
                actor: row.get("rep")?,
                is_copy: row.get("is_copy")?,
                is_own: row.get("is_own")?,
                document: described(row)?,
            };
            Ok((row.get::<i64>("id")?, holding))
        })?;
        let mut holdings = Vec::new();
        for (row, mut holding) in found {
            holding.document.metadata = self.metadata(row)?;
            holdings.push(holding);
        }
        let document = known.id;
        Ok(Some(DocumentRecord { document, holdings }))
    }

    fn metadata(&self, registration: i64) -> Result<Vec<Metadata>, StoreError> {
        let select = "SELECT url, updated, format, language FROM metadata WHERE registration = ?1
             ORDER BY position";
        self.0.each(select, params![registration], |row| {
            let text = |column: &str| row.get::<Option<String>>(column);
            Ok(Metadata {
                url: read("url", row.get("url")?, |text| WebUrl::parse("url", text))?,
                updated: read("updated", row.get("updated")?, |text| {
                    LastUpdate::parse("updated", text)
                })?,
                format: optional("format", text("format")?, MetadataFormat::parse)?,
                language: optional("language", text("language")?, Language::parse)?,
            })
        })
    }
}

fn known(row: &Row<'_>) -> Result<DocumentRow, StoreError> {
    Ok(DocumentRow {
        row: row.get("id")?,
        id: row.get("spelling")?,
    })
}

fn held(row: &Row<'_>) -> Result<HoldingRow, StoreError> {
    Ok(HoldingRow {
        row: row.get("id")?,
        actor: row.get("actor")?,
        is_copy: row.get("is_copy")?,
        is_original: row.get("is_original")?,
        is_own: row.get("is_own")?,
    })
}

/// A document without its metadata.
fn described(row: &Row<'_>) -> Result<Document, StoreError> {
    let text = |column: &str| row.get::<Option<String>>(column);
    let url = |text: &str| WebUrl::parse("url", text);
    let content = match (text("url")?, text("updated")?) {
        (Some(found), Some(updated)) => Some(DocumentContent {
            url: read("url", found, url)?,
            updated: read("updated", updated, |text| {
                LastUpdate::parse("updated", text)
            })?,
        }),
        _ => None,
    };
    Ok(Document {
        is_original: row.get("is_original")?,
        content,
        fingerprint: optional(
            "fingerprint",
            text("fingerprint")?,
            DocumentFingerprint::parse,
        )?,
        metadata: Vec::new(),
        previous: optional("previous_url", text("previous_url")?, url)?,
        next: optional("next_url", text("next_url")?, url)?,
    })
}

fn read<T, E>(
    what: &str,
    text: String,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, StoreError> {
    let broken = |_| StoreError::Broken {
        what: message!("{what} of a document", what),
    };
    parse(&text).map_err(broken)
}

fn optional<T, E>(
    what: &str,
    text: Option<String>,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, StoreError> {
    text.map(|text| read(what, text, parse)).transpose()
}
