//! Why a text is not a persistent name.

use std::fmt;

use crate::relation::ModifierError;
use crate::{ParseError, Quoted};

/// A text is not a persistent name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersistentError {
    /// Nothing is written.
    Empty,
    /// Another scheme than those of persistent names.
    Scheme(String),
    /// What stands for a host and a port is not one.
    Authority(String),
    /// The name of a name space is not six letters and digits.
    NameSpace(String),
    /// A component of the identifier is not percent-encoded UTF-8.
    Encoding(String),
    /// There is no identifier where one belongs; with the reason where the text has the shape of one.
    NoIdentifier {
        /// The text in which it was looked for.
        found: String,
        /// Why that is not an identifier.
        reason: Option<ParseError>,
    },
    /// What follows the identifier is not a modifier, or a verb is not known.
    Modifier(ModifierError),
    /// Another state than the one that can be required.
    Status(String),
}

impl fmt::Display for PersistentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PersistentError::Empty => f.write_str("empty persistent name"),
            PersistentError::Scheme(scheme) => write!(
                f,
                "scheme {} is not one of persistent names; they begin with http, https, ibi or upn",
                Quoted(scheme)
            ),
            PersistentError::Authority(found) => {
                write!(f, "{} is not a host and a port", Quoted(found))
            }
            PersistentError::NameSpace(found) => write!(
                f,
                "name space {} of a upn name is not six letters and digits",
                Quoted(found)
            ),
            PersistentError::Encoding(found) => {
                write!(f, "{} is not percent-encoded UTF-8", Quoted(found))
            }
            PersistentError::NoIdentifier {
                found,
                reason: Some(reason),
            } => write!(f, "no identifier in {}: {reason}", Quoted(found)),
            PersistentError::NoIdentifier {
                found,
                reason: None,
            } => write!(
                f,
                "no identifier in {}; write four components, as in \
                 sid.inpe.br/mtc-m18@80/2009/02.16.17.46, or two, as in 8JMKD3MGP8W/34PGRBS",
                Quoted(found)
            ),
            PersistentError::Modifier(error) => error.fmt(f),
            PersistentError::Status(status) => write!(
                f,
                "ibiurl.requireditemstatus is {}; it can be Original",
                Quoted(status)
            ),
        }
    }
}

impl std::error::Error for PersistentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PersistentError::NoIdentifier {
                reason: Some(reason),
                ..
            } => Some(reason),
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
