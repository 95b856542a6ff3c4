//! The protocol of 2009 from end to end: parameters in, XML out (SPEC 9).
//!
//! A request that changes something is checked and done in one transaction, so that nothing comes
//! between. Two things take a while and are done before it: to hash a password, and to ask for the
//! addresses of a host. So the transaction looks again whether the password is still the one that
//! was checked.
//!
//! Where the text is silent, or says what nobody can see to:
//!
//! - An actor that is registered again gets its identifier again if the password is its own, and
//!   nothing is overwritten: the address has [`Verb::ChangeEMailAddress`]. With another password it is
//!   refused. Else whoever knew the name of a host could take its actor over.
//! - A registration "takes effect with its first document". Before that it holds the place against
//!   others for 30 days; then whoever registers it anew gets the same identifier, with a password of
//!   its own. So nobody can keep a place that he never uses.
//! - A registration "lapses after two years with all URLs dead": see [`super::lapse`].
//! - All URLs, those of other editions too, must be of the actor's own host and port ("if one URL does
//!   not belong, the registration is not done"). Of its host is what has its name, or else an address
//!   in common with it, as `nslookup` would tell. The port is that of the URL's scheme if none is
//!   written. No more than two other hosts are looked up, since each may take a while.
//! - A document without `documentID` whose `documentURL` the actor has registered is that document: an
//!   actor never has two that are the same. One with another `documentID` is refused.
//! - To register again overwrites all that was said before: what is left out is gone, and
//!   `originalDocument` left out is `no`.
//! - Any actor may ask what is registered of a document; no e-mail address is told.
//! - How many actors and documents are registered is bounded, of all, from one client address and in one
//!   domain. An actor that nobody need wait for any more, since no document followed, makes room for
//!   another where there is none.
//! - What a registered Archive makes is not registered: no actor has its host, no document an identifier
//!   of its prefix. What was registered before the Archive came stays in the record and leads nowhere.
//! - An original is one where its identifier is the actor's own: of its host, or of the address from which
//!   it was registered, with URLs on the actor's host by name; or handed over by an actor whose own it was.
//!   Whose own it is holds it, whoever was first.

use std::net::IpAddr;
use std::time::Duration;

use rusqlite::Transaction;

use super::actors::Actor;
use super::refusal::{Refusal, VerbError};
use super::{Registry, secret};
use crate::archive::database;
use crate::formats::query::Fields;
use crate::formats::registration::{Answer, Credentials, Document, Request, Verb, verb_of};
use ibi::{Ibi, Timestamp};

/// The URLs of one document are of so many hosts at most, beside the actor's own.
pub(super) const MOST_HOSTS: usize = 2;
/// How much is registered at most: anybody may register, and nothing lapses that took effect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Actors.
    pub(super) actors: u64,
    /// Documents and copies of one actor.
    pub(super) of_one_actor: u64,
    /// Documents and copies of all actors.
    pub(super) in_all: u64,
    /// Actors that were registered from one client address.
    pub(super) actors_of_client: u64,
    /// Actors of one domain.
    pub(super) actors_of_domain: u64,
    /// Documents and copies of all actors that were registered from one client address, or are of one
    /// domain.
    pub(super) of_one_origin: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            actors: 10_000,
            of_one_actor: 10_000,
            in_all: 100_000,
            actors_of_client: 20,
            actors_of_domain: 200,
            of_one_origin: 20_000,
        }
    }
}

/// So many days nobody else gets the place of an actor that has registered no document.
pub(super) const DAYS_TO_TAKE_EFFECT: i64 = 30;

/// Why the addresses of a host are not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfound {
    /// It takes too long.
    InTime,
    /// Too many others are looked for, or the client has too many looked for.
    Busy,
}

/// How the addresses of a host are found; none for one that has none.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Result<Vec<IpAddr>, Unfound>;

/// Who asks, as far as that can be seen, and how the addresses of hosts are found for him.
#[allow(missing_debug_implementations, reason = "it borrows a closure")]
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The client's address.
    pub address: IpAddr,
    /// What that shares with those that count as the same client.
    pub client: IpAddr,
    /// The addresses of hosts.
    pub lookup: Lookup<'a>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It is refused; who asks again in the same way is refused again.
    Refused,
    /// The resolver could not do it. The log says why.
    Failed,
}

/// What is sent back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// How it ended.
    pub outcome: Outcome,
    /// The answer, in UTF-8.
    pub xml: String,
    /// It must not be sent before so long: an identifier in it has a date that is still to come.
    pub wait: Duration,
    /// Whether it is refused for an actor that is unknown or has another password.
    pub is_unproven: bool,
}

impl Registry {
    /// Does what the parameters ask. It takes a while, and blocks.
    #[must_use]
    pub fn answer(&self, fields: &Fields, asker: Asker<'_>, now: &Timestamp) -> Reply {
        let verb = verb_of(fields);
        let known = verb.as_ref().ok().copied();
        let done = match verb {
            Ok(verb) => self.done(verb, fields, asker, now),
            Err(error) => Err(error.into()),
        };
        let is_unproven = matches!(done, Err(VerbError::Refused(Refusal::Credentials(_))));
        let (outcome, answer, wait) = match done {
            Ok((answer, wait)) => (Outcome::Done, answer, wait),
            Err(VerbError::Request(error)) => refused(&error),
            Err(VerbError::Refused(refusal)) => refused(&refusal),
            Err(VerbError::Failed(error)) => {
                log::error!("{}: {error}", known.map_or("no verb", Verb::name));
                let sentence = "the resolver cannot do this now; ask again later";
                let answer = Answer::Refused(sentence.to_owned());
                (Outcome::Failed, answer, Duration::ZERO)
            }
        };
        Reply {
            outcome,
            xml: answer.to_xml(known),
            wait,
            is_unproven,
        }
    }

    fn done(
        &self,
        verb: Verb,
        fields: &Fields,
        asker: Asker<'_>,
        now: &Timestamp,
    ) -> Result<(Answer, Duration), VerbError> {
        let answer = match Request::of(verb, fields)? {
            Request::RegisterActor {
                provider,
                email,
                password,
            } => return self.register_actor(&provider, &email, &password, asker.client, now),
            Request::RegisterDocument(who, id, document) => {
                let actor = self.proven(&who)?;
                check_urls(&actor, &document, asker.lookup)?;
                let asked = Asked {
                    is_own: is_own(&actor, id.as_ref(), &document, asker.address),
                    id: id.as_ref(),
                    document: &document,
                };
                return self.change(&actor, |transaction| {
                    transaction.register_document(&actor, &asked, self.bounds, now)
                });
            }
            Request::ChangePassword(who, password) => self.change_password(&who, &password)?,
            Request::ChangeEMailAddress(who, email) => self.change_email(&who, &email)?,
            Request::ChangeActor { from, document, to } => {
                let actor = self.proven(&from)?;
                self.change(&actor, |transaction| {
                    transaction.change_actor(&actor, &document, &to)
                })?
            }
            Request::DeleteDocumentRegistration(who, document) => {
                let actor = self.proven(&who)?;
                self.change(&actor, |transaction| {
                    transaction.delete_registration(&actor, &document)
                })?
            }
            Request::DisplayIDRegistration(who, document) => {
                self.proven(&who)?;
                let record = self.registered_document(&document)?;
                let record = record.ok_or(Refusal::UnknownDocument(document.to_string()))?;
                Answer::Registered(Box::new(record))
            }
        };
        Ok((answer, Duration::ZERO))
    }

    /// The actor, if the password is its own.
    pub(super) fn proven(&self, who: &Credentials) -> Result<Actor, VerbError> {
        let known = Verbs(&self.lock()).actor(&who.actor)?;
        match known {
            Some(actor) if secret::is_of(who.password.as_str(), &actor.secret) => return Ok(actor),
            Some(_) => {}
            // As long as for a password that is another one.
            None => secret::is_of_nothing(who.password.as_str()),
        }
        Err(Refusal::Credentials(who.actor.to_string()).into())
    }

    /// Changes something for an actor that was proven: all of it, or nothing.
    pub(super) fn change<T>(
        &self,
        actor: &Actor,
        work: impl FnOnce(&Verbs<'_>) -> Result<T, VerbError>,
    ) -> Result<T, VerbError> {
        let mut connection = self.lock();
        let transaction: Transaction<'_> = database::writing(&mut connection)?;
        let verbs = Verbs(&transaction);
        verbs.check_secret(actor)?;
        let done = work(&verbs)?;
        transaction.commit()?;
        Ok(done)
    }
}

fn refused(why: &dyn std::fmt::Display) -> (Outcome, Answer, Duration) {
    let answer = Answer::Refused(why.to_string());
    (Outcome::Refused, answer, Duration::ZERO)
}

/// What the verbs do, on a connection that is held.
pub(super) struct Verbs<'a>(pub(super) &'a rusqlite::Connection);

/// What is asked to be registered of a document.
pub(super) struct Asked<'a> {
    /// Its identifier; None for a new one.
    pub(super) id: Option<&'a Ibi>,
    pub(super) document: &'a Document,
    /// Whether the identifier is of the actor's own making.
    pub(super) is_own: bool,
}

fn found(lookup: Lookup<'_>, host: &str) -> Result<Vec<IpAddr>, Refusal> {
    lookup(host).map_err(|why| Refusal::Unfound(host.to_owned(), why))
}

/// Whether an identifier is of an actor's own making, and leads to its own host by name: of its host, or of
/// the address from which it asks. Names of hosts prove nothing here: to whom one leads may change as soon
/// as it has been looked for.
fn is_own(actor: &Actor, id: Option<&Ibi>, document: &Document, address: IpAddr) -> bool {
    let is_made = match id {
        None => true,
        Some(Ibi::Rep(rep)) => rep.host() == actor.host && rep.port() == actor.port,
        Some(Ibi::Ibip(ibip)) => ibip.address().to_canonical() == address.to_canonical(),
    };
    is_made && document.urls().all(|(_, url)| url.host() == actor.host)
}

/// Whether all URLs are of the actor's own host and port.
fn check_urls(actor: &Actor, document: &Document, lookup: Lookup<'_>) -> Result<(), Refusal> {
    let mut own: Option<Vec<IpAddr>> = None;
    let mut others: Vec<&str> = Vec::new();
    for (name, url) in document.urls() {
        if url.port() != actor.port {
            return Err(Refusal::OtherPort {
                name,
                url: url.as_str().to_owned(),
                port: actor.port,
            });
        }
        if url.host() == actor.host || others.contains(&url.host()) {
            continue;
        }
        if others.len() == MOST_HOSTS {
            return Err(Refusal::TooManyHosts);
        }
        others.push(url.host());
        let own: &Vec<IpAddr> = match &own {
            Some(own) => own,
            None => own.insert(found(lookup, &actor.host)?),
        };
        let is_own = !own.is_empty()
            && found(lookup, url.host())?
                .iter()
                .any(|found| own.contains(found));
        if !is_own {
            return Err(Refusal::OtherHost {
                name,
                url: url.as_str().to_owned(),
                host: actor.host.clone(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
