//! The reasons why a text is not a persistent name.

use crate::message::{Localize, Message};
use crate::relation::ModifierError;
use crate::{ParseError, Quoted, display_message, message};

/// A text is not a persistent name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersistentError {
    /// Nothing is written.
    Empty,
    /// Another scheme than those of persistent names.
    Scheme(String),
    /// The text in the place of a host and a port is not one.
    Authority(String),
    /// The name of a name space is not six letters and digits.
    NameSpace(String),
    /// A component of the identifier is not percent-encoded UTF-8.
    Encoding(String),
    /// There is no identifier where one belongs; with the reason where the text has the shape of one.
    NoIdentifier {
        /// The text in which it was looked for.
        found: String,
        /// The reason why that is not an identifier.
        reason: Option<ParseError>,
    },
    /// The text after the name space of a `upn:` name is not an identifier. It may be the end of one.
    Suffix {
        /// The name space.
        name_space: String,
        /// The reason why it is not an identifier.
        cause: Box<PersistentError>,
    },
    /// The text after the identifier is not a modifier, or a verb is not known.
    Modifier(ModifierError),
    /// Another state than the one that can be required.
    Status(String),
}

impl PersistentError {
    /// Whether the text holds no identifier; otherwise it has one, and what is around it is wrong.
    #[must_use]
    pub fn holds_no_identifier(&self) -> bool {
        matches!(
            self,
            PersistentError::Empty
                | PersistentError::Scheme(_)
                | PersistentError::NameSpace(_)
                | PersistentError::NoIdentifier { .. }
                | PersistentError::Suffix { .. }
        )
    }
}

impl Localize for PersistentError {
    fn message(&self) -> Message {
        match self {
            PersistentError::Empty => message!("empty persistent name"),
            PersistentError::Scheme(scheme) => message!(
                "scheme {scheme} is not one of persistent names; they begin with http, https, ibi, upn or oai",
                scheme = Quoted(scheme)
            ),
            PersistentError::Authority(found) => {
                message!("{found} is not a host and a port", found = Quoted(found))
            }
            PersistentError::NameSpace(found) => message!(
                "name space {found} of a upn name is not six letters and digits",
                found = Quoted(found)
            ),
            PersistentError::Encoding(found) => {
                message!(
                    "{found} is not percent-encoded UTF-8",
                    found = Quoted(found)
                )
            }
            PersistentError::NoIdentifier {
                found,
                reason: Some(reason),
            } => message!(
                "no identifier in {found}: {reason}",
                found = Quoted(found),
                reason
            ),
            PersistentError::NoIdentifier {
                found,
                reason: None,
            } => message!(
                "no identifier in {found}; write four components, as in \
                 sid.inpe.br/mtc-m18@80/2009/02.16.17.46, or two, as in 8JMKD3MGP8W/34PGRBS",
                found = Quoted(found)
            ),
            PersistentError::Suffix { name_space, cause } => message!(
                "{error}; a prefix for name space {name} may be registered with 'ibifs upn'",
                error = cause,
                name = name_space
            ),
            PersistentError::Modifier(error) => error.message(),
            PersistentError::Status(status) => message!(
                "ibiurl.requireditemstatus is {status}; it can be Original",
                status = Quoted(status)
            ),
        }
    }
}

display_message!(PersistentError);

impl std::error::Error for PersistentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PersistentError::NoIdentifier {
                reason: Some(reason),
                ..
            } => Some(reason),
            PersistentError::Suffix { cause, .. } => Some(cause.as_ref()),
            PersistentError::Modifier(error) => Some(error),
            _ => None,
        }
    }
}

impl From<ModifierError> for PersistentError {
    fn from(error: ModifierError) -> PersistentError {
        PersistentError::Modifier(error)
    }
}
