//! The reasons why a well-formed request of the registration protocol is refused, each with its remedy.

use std::fmt;

use super::bounds::{DAYS_TO_TAKE_EFFECT, MOST_HOSTS};
use super::requester::LookupError;
use crate::registry::RegistryError;
use ibi::distributor::WaitTooLong;
use ibifs_formats::registration::RequestError;
use ibifs_sql::engine::TransactionError;
use ibifs_sql::error::StoreError;

/// The reason why a request fails.
#[derive(Debug)]
pub(super) enum VerbError {
    /// The request cannot be parsed.
    Request(RequestError),
    /// The rules forbid it.
    Refused(RuleViolation),
    /// The database failed.
    Failed(RegistryError),
}

impl From<RequestError> for VerbError {
    fn from(error: RequestError) -> VerbError {
        VerbError::Request(error)
    }
}

impl From<RuleViolation> for VerbError {
    fn from(refusal: RuleViolation) -> VerbError {
        VerbError::Refused(refusal)
    }
}

impl From<RegistryError> for VerbError {
    fn from(error: RegistryError) -> VerbError {
        VerbError::Failed(error)
    }
}

impl From<StoreError> for VerbError {
    fn from(error: StoreError) -> VerbError {
        VerbError::Failed(error.into())
    }
}

impl TransactionError for VerbError {
    fn of_engine(self) -> Result<StoreError, VerbError> {
        match self {
            VerbError::Failed(error) => error.of_engine().map_err(VerbError::Failed),
            other => Err(other),
        }
    }
}

/// The rules that requests violate. Actors and documents are named as they were registered.
#[derive(Debug)]
pub(super) enum RuleViolation {
    /// The actor does not exist, or has another password. The message does not say which.
    Credentials(String),
    /// The actor is registered with another password.
    OtherPassword { host: String, port: u16 },
    /// The URL has another port than the actor.
    OtherPort {
        name: &'static str,
        url: String,
        port: u16,
    },
    /// The URL has another host than the actor.
    OtherHost {
        name: &'static str,
        url: String,
        host: String,
    },
    /// The URLs name too many hosts.
    TooManyHosts,
    /// The limit on actors is reached.
    TooManyActors(u64),
    /// The limit on the actors of one client address or domain is reached.
    TooManyActorsOf(&'static str, u64),
    /// The limit on the documents and copies of one client address or domain is reached.
    TooManyDocumentsOf(&'static str, u64),
    /// The host, or the prefix of the identifier, belongs to an Archive.
    OfAnArchive(String),
    /// The addresses of a host are not found.
    Lookup(String, LookupError),
    /// The limit on the registrations of one actor is reached.
    TooManyOfOne { actor: String, most: u64 },
    /// The limit on the registrations of all actors is reached.
    TooManyInAll(u64),
    /// The date of the identifier lies in the future.
    NotYet { document: String, date: String },
    /// The identifier belongs to an actor.
    IsAnActor(String),
    /// The actor has registered another document with this URL.
    SameUrl { url: String, document: String },
    /// The actor has registered another document with this fingerprint.
    SameFingerprint { document: String },
    /// The actor has a copy, and a copy cannot be an original.
    CopyNoOriginal { document: String, holder: String },
    /// The document is not registered.
    UnknownDocument(String),
    /// This actor has not registered the document.
    NotHeld { document: String, actor: String },
    /// The actor has a copy, and only the holder can transfer the document.
    CopyNotHandedOver { document: String, holder: String },
    /// The new actor is not registered.
    UnknownNewActor(String),
    /// The new actor is the old one.
    SameActor(String),
    /// The new actor has no copy.
    NewActorHasNone { document: String, actor: String },
    /// Other actors have copies.
    HasCopies {
        document: String,
        actors: Vec<String>,
    },
    /// No date is free for a new identifier.
    NoDate(WaitTooLong),
    /// All dates that were tried are taken.
    Taken,
}

impl fmt::Display for RuleViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleViolation::Credentials(actor) => write!(
                f,
                "no actor {actor} is registered with this password; give the actorID that \
                 RegisterActor answered, and the password given there or changed since"
            ),
            RuleViolation::OtherPassword { host, port } => write!(
                f,
                "{host} with port {port} is registered already, with another password; use that one. \
                 Nothing is changed, and ChangePassword changes it. A registration that no document has \
                 followed for {DAYS_TO_TAKE_EFFECT} days has no effect"
            ),
            RuleViolation::OtherPort { name, url, port } => write!(
                f,
                "{name} '{url}' is not of port {port}, which is the actor's; give a URL there, or \
                 register an actor with the other port"
            ),
            RuleViolation::OtherHost { name, url, host } => write!(
                f,
                "{name} '{url}' is not of {host}, the actor's host, nor of one with an address of it; \
                 give a URL there"
            ),
            RuleViolation::TooManyHosts => write!(
                f,
                "the URLs are of more than {MOST_HOSTS} hosts beside the actor's own; write its own name \
                 in them"
            ),
            RuleViolation::TooManyActors(most) => write!(
                f,
                "{most} actors are registered here, and no more can be; ask again later, when those make \
                 room that no document follows for {DAYS_TO_TAKE_EFFECT} days, or ask who runs this \
                 resolver"
            ),
            RuleViolation::TooManyActorsOf(what, most) => write!(
                f,
                "{most} actors of this {what} are registered here, and no more can be; ask the \
                 administrator of this resolver to remove those that are not used"
            ),
            RuleViolation::TooManyDocumentsOf(what, most) => write!(
                f,
                "{most} documents and copies of this {what} are registered here, and no more can be; delete the registrations of those that no longer exist (DeleteDocumentRegistration)"
            ),
            RuleViolation::OfAnArchive(what) => write!(
                f,
                "{what} belongs to an Archive that is registered with this resolver, which answers for it \
                 itself; give a host or an identifier of your own"
            ),
            RuleViolation::Lookup(host, LookupError::TimedOut) => write!(
                f,
                "the addresses of {host} are not found in time; check its name server, or give URLs on the \
                 actor's own host"
            ),
            RuleViolation::Lookup(host, LookupError::Busy) => write!(
                f,
                "the addresses of {host} cannot be looked up now, because too many others are; try again later, or \
                 give URLs on the actor's own host"
            ),
            RuleViolation::TooManyOfOne { actor, most } => write!(
                f,
                "{actor} has registered {most} documents and copies, and can register no more; delete the registrations of those that no longer exist (DeleteDocumentRegistration)"
            ),
            RuleViolation::TooManyInAll(most) => write!(
                f,
                "{most} documents and copies are registered here, and no more can be; ask who runs this \
                 resolver"
            ),
            RuleViolation::NotYet { document, date } => write!(
                f,
                "documentID {document} has the date {date}, which is yet to come; give an identifier \
                 made when the document was deposited, or none"
            ),
            RuleViolation::IsAnActor(id) => write!(
                f,
                "{id} is the identifier of an actor; give the document one of its own, or none"
            ),
            RuleViolation::SameUrl { url, document } => write!(
                f,
                "documentURL '{url}' is registered by this actor as document {document}; give that \
                 documentID, or delete that registration first"
            ),
            RuleViolation::SameFingerprint { document } => write!(
                f,
                "a document with this fingerprint is registered by this actor as document {document}, and no actor has \
                 two that are equal; give that documentID, or delete that registration first"
            ),
            RuleViolation::CopyNoOriginal { document, holder } => write!(
                f,
                "document {document} was first registered by {holder}, so here it is a copy, and a copy cannot be an original; leave out originalDocument, or have {holder} transfer it (ChangeActor)"
            ),
            RuleViolation::UnknownDocument(document) => {
                write!(f, "no document {document} is registered; check documentID")
            }
            RuleViolation::NotHeld { document, actor } => write!(
                f,
                "document {document} is not registered by {actor}; only an actor who has registered it \
                 can do that"
            ),
            RuleViolation::CopyNotHandedOver { document, holder } => write!(
                f,
                "what this actor has of document {document} is a copy; only {holder} can hand the \
                 document over"
            ),
            RuleViolation::UnknownNewActor(actor) => {
                write!(f, "no actor {actor} is registered; check newActorID")
            }
            RuleViolation::SameActor(actor) => {
                write!(
                    f,
                    "newActorID {actor} is the actor itself; give another one"
                )
            }
            RuleViolation::NewActorHasNone { document, actor } => write!(
                f,
                "document {document} is not registered by the new actor {actor}; first it registers its \
                 copy (RegisterDocument)"
            ),
            RuleViolation::HasCopies { document, actors } => write!(
                f,
                "document {document} has copies, registered by {}; their registrations are deleted \
                 first, each by its actor, or the document is transferred (ChangeActor)",
                actors.join(", ")
            ),
            RuleViolation::NoDate(error) => write!(f, "no identifier can be made now: {error}"),
            RuleViolation::Taken => f.write_str(
                "no identifier can be made now: those of this moment are taken; ask again",
            ),
        }
    }
}
