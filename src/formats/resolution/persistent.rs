//! Parses a persistent URL, see ibi-resolution(7): `ibi [mdf] [path-absolute] ["?" query]`.

use std::fmt;

use super::Question;
use crate::formats::item::Names;
use crate::formats::query::{Query, QueryError, percent_decoded};
use ibi::relation::{ModifierError, Request, split_tail};
use ibi::{AliasPair, Ibi, Quoted};

/// The request of a persistent URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persistent {
    /// The identifier, the path and the requested related item.
    pub question: Question,
    /// Whether only the original is acceptable.
    pub is_original_required: bool,
}

/// Why a URL is not a persistent URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PersistentError {
    /// The path is not percent-encoded UTF-8.
    Encoding,
    /// It does not begin with an identifier.
    NoIdentifier(String),
    /// The text after the identifier is not a modifier, or a verb is not valid.
    Modifier(ModifierError),
    /// The query is not valid.
    Query(QueryError),
    /// The required state is not one that can be required.
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
    /// Parses the path, without its first slash, and the query, without its question mark.
    ///
    /// # Errors
    /// The path does not begin with an identifier, or the request is not valid.
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

/// The request of the text after an identifier and a query together, and whether only the original is
/// acceptable.
///
/// # Errors
/// The request is not valid.
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

/// The identifier at the start of a path, the modifier after it, and the rest of the path. Four parts that
/// form a rep are a rep, even if the first two may be a recorded alias.
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
