//! The protocol of 2009 from end to end: parameters in, XML out (ibi-resolution(7), "Registration protocol of
//! 2009").
//!
//! A request that changes something is checked and executed in one transaction. Two slow steps run before it:
//! the password hash, and the lookup of host addresses. The transaction therefore checks again that the
//! password is still the one that was verified.
//!
//! Where the protocol is silent or cannot be enforced, these rules apply:
//!
//! - An actor that is registered again with its own password gets its identifier again, and nothing is
//!   overwritten: [`Verb::ChangeEMailAddress`] changes the address. With another password it is refused.
//!   Otherwise anyone who knows the name of a host could take over its actor.
//! - A registration "takes effect with its first document". Until then it excludes others for 30 days. After
//!   that, another registration gets the same identifier with a password of its own. So an unused
//!   registration does not block a host for ever.
//! - A registration "lapses after two years with all URLs dead": see [`lapse`].
//! - All URLs, including those of other editions, must belong to the actor's own host and port ("if one URL
//!   does not belong, the registration is not done"). A URL belongs to the host if it has the same name, or
//!   if the two names share an address. The port is that of the URL's scheme if none is written. At most two
//!   other hosts are looked up, since each lookup may take long.
//! - A document without `documentID` whose `documentURL` the actor has registered is that document: an actor
//!   never has two documents with one URL. The same URL with another `documentID` is refused.
//! - A repeated registration replaces the earlier one: what is omitted is removed, and an omitted
//!   `originalDocument` means `no`.
//! - Any actor may query the registrations of a document; the answer contains no e-mail address.
//! - The numbers of actors and documents are limited: overall, for one client address, and for one domain. At
//!   the overall limit, actors without documents that no longer exclude others are removed to make room.
//! - What a registered Archive makes is not registered: no actor has its host, no document an identifier of
//!   its prefix. A document registered before the Archive stays in the database but is not resolved.
//! - A registration is an original if the identifier is the actor's own: of its host, or of the address from
//!   which it was registered, with URLs on the actor's host by name; or if an actor whose own it was has
//!   transferred it. The actor whose own it is holds the document, even if another registered it first.

mod actors;
mod bounds;
mod documents;
mod lapse;
mod lists;
mod refusal;
mod requester;
mod verbs;

use std::net::IpAddr;
use std::time::Duration;

use super::Registry;
use actors::ActorRow;
pub(super) use bounds::Bounds;
use bounds::MOST_HOSTS;
use ibi::{Ibi, Timestamp};
use ibifs_formats::query::FormFields;
use ibifs_formats::registration::{
    Document, RegistrationAnswer, RegistrationRequest, Verb, verb_of,
};
use ibifs_sql::error::DiskFault;
pub use lapse::{LAPSE_DAYS, ToTry};
pub use lists::{ListedActor, ListedDocument};
use refusal::{RuleViolation, VerbError};
use requester::HostLookup;
pub use requester::{LookupError, Requester};
use verbs::DocumentRequest;

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStatus {
    /// The request is executed.
    Done,
    /// The request is refused. The same request would be refused again.
    Refused,
    /// The server of the database does not answer. The same request may succeed later.
    Away,
    /// The disk of the database does not take it. The log has the error.
    Disk(DiskFault),
    /// The resolver failed. The log has the reason.
    Failed,
}

/// The reply to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationReply {
    /// The outcome of the request.
    pub status: ReplyStatus,
    /// The answer, in UTF-8.
    pub xml: String,
    /// The time that the reply must be delayed: an identifier in it has a date that lies in the future.
    pub wait: Duration,
    /// Whether the actor is unknown or the password wrong.
    pub is_unproven: bool,
}

impl Registry {
    /// Computes in advance what the first request of the protocol of 2009 would otherwise wait for.
    pub fn prepare(&self) {
        super::secret::prepare();
    }

    /// Executes the request that the parameters make up. Slow, and blocks the thread.
    #[must_use]
    pub fn answer(
        &self,
        fields: &FormFields,
        requester: Requester<'_>,
        now: &Timestamp,
    ) -> RegistrationReply {
        let verb = verb_of(fields);
        let known = verb.as_ref().ok().copied();
        let done = match verb {
            Ok(verb) => self.done(verb, fields, requester, now),
            Err(error) => Err(error.into()),
        };
        let is_unproven = matches!(done, Err(VerbError::Refused(RuleViolation::Credentials(_))));
        let (status, answer, wait) = match done {
            Ok((answer, wait)) => (ReplyStatus::Done, answer, wait),
            Err(VerbError::Request(error)) => refused(&error),
            Err(VerbError::Refused(refusal)) => refused(&refusal),
            Err(VerbError::Failed(error)) => {
                let (status, level) = match error.disk_fault() {
                    _ if error.is_temporary() => (ReplyStatus::Away, log::Level::Debug),
                    Some(fault) => (ReplyStatus::Disk(fault), log::Level::Error),
                    None => (ReplyStatus::Failed, log::Level::Error),
                };
                log::log!(level, "{}: {error}", known.map_or("no verb", Verb::name));
                let sentence = "the resolver cannot do this now; try again later";
                let answer = RegistrationAnswer::Refused(sentence.to_owned());
                (status, answer, Duration::ZERO)
            }
        };
        RegistrationReply {
            status,
            xml: answer.to_xml(known),
            wait,
            is_unproven,
        }
    }

    fn done(
        &self,
        verb: Verb,
        fields: &FormFields,
        requester: Requester<'_>,
        now: &Timestamp,
    ) -> Result<(RegistrationAnswer, Duration), VerbError> {
        let answer = match RegistrationRequest::of(verb, fields)? {
            RegistrationRequest::RegisterActor {
                provider,
                email,
                password,
            } => return self.register_actor(&provider, &email, &password, requester.client, now),
            RegistrationRequest::RegisterDocument(who, id, document) => {
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
            RegistrationRequest::ChangePassword(who, password) => {
                self.change_password(&who, &password)?
            }
            RegistrationRequest::ChangeEMailAddress(who, email) => {
                self.change_email(&who, &email)?
            }
            RegistrationRequest::ChangeActor { from, document, to } => {
                let actor = self.proven(&from)?;
                self.change(&actor, |transaction| {
                    transaction.change_actor(&actor, &document, &to)
                })?
            }
            RegistrationRequest::DeleteDocumentRegistration(who, document) => {
                let actor = self.proven(&who)?;
                self.change(&actor, |transaction| {
                    transaction.delete_registration(&actor, &document)
                })?
            }
            RegistrationRequest::DisplayIDRegistration(who, document) => {
                self.proven(&who)?;
                let record = self.registered_document(&document)?;
                let record = record.ok_or(RuleViolation::UnknownDocument(document.to_string()))?;
                RegistrationAnswer::Registered(Box::new(record))
            }
        };
        Ok((answer, Duration::ZERO))
    }
}

fn refused(why: &dyn std::fmt::Display) -> (ReplyStatus, RegistrationAnswer, Duration) {
    let answer = RegistrationAnswer::Refused(why.to_string());
    (ReplyStatus::Refused, answer, Duration::ZERO)
}

fn found(lookup: HostLookup<'_>, host: &str) -> Result<Vec<IpAddr>, RuleViolation> {
    lookup(host).map_err(|why| RuleViolation::Lookup(host.to_owned(), why))
}

/// Whether an identifier is of an actor's own making, and all URLs are on its host by name: the identifier is
/// of the actor's host and port, or of the address from which the request comes. The addresses of host names
/// prove nothing here, since they may change at any time after the lookup.
fn is_own(actor: &ActorRow, id: Option<&Ibi>, document: &Document, address: IpAddr) -> bool {
    let is_made = match id {
        None => true,
        Some(Ibi::Rep(rep)) => rep.host() == actor.host && rep.port() == actor.port,
        Some(Ibi::Ibip(ibip)) => ibip
            .maker()
            .is_some_and(|maker| maker.address().to_canonical() == address.to_canonical()),
    };
    is_made && document.urls().all(|(_, url)| url.host() == actor.host)
}

/// Refuses URLs that do not belong to the actor's own host and port.
fn check_urls(
    actor: &ActorRow,
    document: &Document,
    lookup: HostLookup<'_>,
) -> Result<(), RuleViolation> {
    let mut own: Option<Vec<IpAddr>> = None;
    let mut others: Vec<&str> = Vec::new();
    for (name, url) in document.urls() {
        if url.port() != actor.port {
            return Err(RuleViolation::OtherPort {
                name,
                url: url.as_str().to_owned(),
                port: actor.port,
            });
        }
        if url.host() == actor.host || others.contains(&url.host()) {
            continue;
        }
        if others.len() == MOST_HOSTS {
            return Err(RuleViolation::TooManyHosts);
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
            return Err(RuleViolation::OtherHost {
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
