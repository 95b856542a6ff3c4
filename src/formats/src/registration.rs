//! The registration protocol of 2009, see ibi-resolution(7): requests, read from the parameters of a verb,
//! and answers, as XML. The registry decides about rights.
//!
//! An actor is a provider of documents: a computer, its domain and a port. Names of parameters are
//! case-sensitive. These rules apply where the protocol leaves a choice:
//!
//! - An empty parameter counts as missing, so that the fields of a form may stay blank.
//! - A parameter that the verb does not have is rejected, and so is one that occurs twice: either could be a
//!   value cut at an `&`, the rest of which would be lost silently.
//! - `metadataURL` begins a group; the other three of the group follow it in any order.
//! - An example in the protocol has a second date of another form after a last update
//!   (`2009-03-12T16:20:53-03:00 2009:03.12.16.20.53`); it is accepted and ignored.
//! - URLs have the scheme `http` or `https`. A URL without a port has the default port of its scheme.
//!   Characters that may not occur in a URL, such as a space, are percent-encoded.
//!
//! The modules, each of which uses only those above it:
//!
//! - [`verb`]: the verbs and their parameters.
//! - [`error`]: why a request is rejected.
//! - [`values`]: the values of parameters.
//! - [`parameters`]: the parameters of one request.
//! - [`document`]: a document as an actor describes it.
//! - [`request`]: a request.
//! - [`answer`]: an answer, as XML.

mod answer;
mod document;
mod error;
mod parameters;
mod request;
mod values;
mod verb;

pub use answer::{DocumentRecord, Holding, RegistrationAnswer};
pub use document::{Document, DocumentContent, Metadata};
pub use error::RequestError;
pub use request::{RegistrationRequest, verb_of};
pub use values::{Credentials, DocumentFingerprint, Email, LastUpdate, Password, Provider, WebUrl};
pub use verb::Verb;

/// The longest request, in bytes, with all parameters of its verb.
pub const LONGEST_REQUEST: usize = 512 * 1024;

#[cfg(test)]
mod tests;
