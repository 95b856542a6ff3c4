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

use super::Registry;
use super::actors::Actor;
use super::bounds::MOST_HOSTS;
use super::refusal::{Refusal, VerbError};
use super::requester::{Lookup, Requester};
use super::verbs::DocumentRequest;
use crate::formats::query::Fields;
use crate::formats::registration::{Answer, Document, Request, Verb, verb_of};
use ibi::{Ibi, Timestamp};

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStatus {
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
    pub status: ReplyStatus,
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
    pub fn answer(&self, fields: &Fields, requester: Requester<'_>, now: &Timestamp) -> Reply {
        let verb = verb_of(fields);
        let known = verb.as_ref().ok().copied();
        let done = match verb {
            Ok(verb) => self.done(verb, fields, requester, now),
            Err(error) => Err(error.into()),
        };
        let is_unproven = matches!(done, Err(VerbError::Refused(Refusal::Credentials(_))));
        let (status, answer, wait) = match done {
            Ok((answer, wait)) => (ReplyStatus::Done, answer, wait),
            Err(VerbError::Request(error)) => refused(&error),
            Err(VerbError::Refused(refusal)) => refused(&refusal),
            Err(VerbError::Failed(error)) => {
                log::error!("{}: {error}", known.map_or("no verb", Verb::name));
                let sentence = "the resolver cannot do this now; ask again later";
                let answer = Answer::Refused(sentence.to_owned());
                (ReplyStatus::Failed, answer, Duration::ZERO)
            }
        };
        Reply {
            status,
            xml: answer.to_xml(known),
            wait,
            is_unproven,
        }
    }

    fn done(
        &self,
        verb: Verb,
        fields: &Fields,
        requester: Requester<'_>,
        now: &Timestamp,
    ) -> Result<(Answer, Duration), VerbError> {
        let answer = match Request::of(verb, fields)? {
            Request::RegisterActor {
                provider,
                email,
                password,
            } => return self.register_actor(&provider, &email, &password, requester.client, now),
            Request::RegisterDocument(who, id, document) => {
                let actor = self.proven(&who)?;
                check_urls(&actor, &document, requester.lookup)?;
                let request = DocumentRequest {
                    is_own: is_own(&actor, id.as_ref(), &document, requester.address),
                    id: id.as_ref(),
                    document: &document,
                };
                return self.change(&actor, |transaction| {
                    transaction.register_document(&actor, &request, self.bounds, now)
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
}

fn refused(why: &dyn std::fmt::Display) -> (ReplyStatus, Answer, Duration) {
    let answer = Answer::Refused(why.to_string());
    (ReplyStatus::Refused, answer, Duration::ZERO)
}

fn found(lookup: Lookup<'_>, host: &str) -> Result<Vec<IpAddr>, Refusal> {
    lookup(host).map_err(|why| Refusal::Lookup(host.to_owned(), why))
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
