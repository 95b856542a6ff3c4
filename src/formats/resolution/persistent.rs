//! Reads a persistent URL, see ibi-resolution(7): `ibi [mdf] [path-absolute] ["?" query]`.

use std::fmt;

use super::Question;
use crate::formats::item::Names;
use crate::formats::query::{Query, QueryError, percent_decoded};
use ibi::relation::{ModifierError, Request, split_tail};
use ibi::{AliasPair, Ibi, Quoted};

/// What a persistent URL asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistent {
    /// The identifier, the path and what is asked for.
    pub question: Question,
    /// Whether the original alone will do.
    pub is_original_required: bool,
}

/// Why a URL is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersistentError {
    /// The path is not percent-encoded UTF-8.
    Encoding,
    /// It begins with no identifier.
    NoIdentifier(String),
    /// What follows the identifier is no modifier, or a verb is none.
    Modifier(ModifierError),
    /// The query is none.
    Query(QueryError),
    /// Another state than the one that can be required.
    Status(String),
}

impl fmt::Display for PersistentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PersistentError::Encoding => {
                f.write_str("the path is not percent-encoded UTF-8; write % as %25")
            }
            PersistentError::NoIdentifier(path) => write!(
                f,
                "{} begins with no identifier; write four parts, as in \
                 sid.inpe.br/mtc-m18@80/2009/02.16.17.46, or two, as in 8JMKD3MGP8W/34PGRBS",
                Quoted(path)
            ),
            PersistentError::Modifier(error) => error.fmt(f),
            PersistentError::Query(error) => error.fmt(f),
            PersistentError::Status(status) => write!(
                f,
                "ibiurl.requireditemstatus is {}; it can be Original",
                Quoted(status)
            ),
        }
    }
}

impl std::error::Error for PersistentError {}

impl Persistent {
    /// Reads the path, without its first slash, and the query, without its question mark.
    ///
    /// # Errors
    /// What begins with no identifier, or asks in a way that there is not.
    pub fn parse(path: &str, query: &str) -> Result<Persistent, PersistentError> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        let parts = parts.map(percent_decoded).collect::<Option<Vec<String>>>();
        let parts = parts.ok_or(PersistentError::Encoding)?;
        let (ibi, tail, below) =
            identifier(&parts).ok_or_else(|| PersistentError::NoIdentifier(parts.join("/")))?;
        let (request, is_original_required) = asked(&tail, query)?;
        Ok(Persistent {
            question: Question {
                ibi,
                filepath: (!below.is_empty()).then(|| below.join("/")),
                request,
            },
            is_original_required,
        })
    }
}

/// What the signs after an identifier and a query ask for together, and whether the original alone will
/// do.
///
/// # Errors
/// What asks in a way that there is not.
pub fn asked(tail: &str, query: &str) -> Result<(Option<Request>, bool), PersistentError> {
    let query = Query::parse(query).map_err(PersistentError::Query)?;
    let verbs = query.get("ibiurl.verblist").unwrap_or_default();
    let request = Request::union(tail, verbs).map_err(PersistentError::Modifier)?;
    match query.get("ibiurl.requireditemstatus") {
        None | Some("") => Ok((request, false)),
        Some("Original") => Ok((request, true)),
        Some(other) => Err(PersistentError::Status(other.to_owned())),
    }
}

/// The identifier at the start of a path, the signs after it, and what lies below. Where four parts are a
/// rep, they are that, although the first two may be a recorded alias.
fn identifier(parts: &[String]) -> Option<(String, String, &[String])> {
    let read = |count: usize| {
        let (first, below) = parts.split_at_checked(count)?;
        let text = first.join("/");
        let (ibi, tail) = split_tail(&text);
        let canonical = match Ibi::parse(ibi) {
            Ok(ibi) => Names::from(ibi).preferred(),
            Err(_) if count == 2 => AliasPair::parse(ibi).ok()?.to_string(),
            Err(_) => return None,
        };
        Some((canonical, tail.to_owned(), below))
    };
    read(4).or_else(|| read(2))
}
