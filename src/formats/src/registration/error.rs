//! Errors in requests, as sentences with the remedy.

use std::fmt;

use super::Verb;
use ibi::relation::ModifierError;
use ibi::{ParseError, Quoted};

/// The most metadata of a document.
pub(super) const MOST_METADATA: usize = 50;

/// An error in the parameters of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The verb is missing.
    NoVerb,
    /// The verb is not one of the seven.
    UnknownVerb(String),
    /// The verb does not have this parameter.
    UnknownParameter(Verb, String),
    /// The verb requires this parameter.
    Missing(Verb, &'static str),
    /// The parameter occurs twice.
    Twice(&'static str),
    /// The parameter is longer than this many bytes.
    TooLong(&'static str, usize),
    /// The parameter belongs to a group, and no group has begun.
    NoGroup(&'static str),
    /// There are too many groups.
    TooManyMetadata,
    /// The value is not an identifier.
    Identifier(&'static str, ParseError),
    /// The value is not a format or language.
    Word(&'static str, ModifierError),
    /// The value does not have the required form.
    Form {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// The required form.
        wanted: &'static str,
    },
    /// The password does not have the required form; its value must not be repeated.
    Password(&'static str, &'static str),
    /// The computer and its domain do not make the prefix of an identifier.
    Prefix(ParseError),
    /// Neither the document nor any of its metadata has a URL.
    NoUrl,
    /// The first parameter requires the second.
    Alone(&'static str, &'static str),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::NoVerb => {
                f.write_str("verb= is missing; use ")?;
                verbs(f)
            }
            RequestError::UnknownVerb(name) => {
                write!(f, "{} is not a verb; use ", Quoted(name))?;
                verbs(f)
            }
            RequestError::UnknownParameter(verb, name) => {
                write!(
                    f,
                    "{} has no parameter {}; it has ",
                    verb.name(),
                    Quoted(name)
                )?;
                list(
                    f,
                    verb.parameters().iter().chain(verb.group()).copied(),
                    "and",
                )?;
                f.write_str(", and in a value & is written %26")
            }
            RequestError::Missing(verb, name) => {
                write!(f, "{} needs {name}, which is not given", verb.name())
            }
            RequestError::Twice(name) => write!(f, "{name} is given twice; give it once"),
            RequestError::TooLong(name, most) => {
                write!(f, "{name} is longer than {most} bytes; give a shorter one")
            }
            RequestError::NoGroup(name) => write!(
                f,
                "{name} stands before any metadataURL; give it after the metadataURL that it is about"
            ),
            RequestError::TooManyMetadata => write!(
                f,
                "there are more than {MOST_METADATA} metadataURL; give those that matter most"
            ),
            RequestError::Identifier(name, error) => write!(f, "{name}: {error}"),
            RequestError::Word(name, error) => write!(f, "{name}: {error}"),
            RequestError::Form {
                name,
                value,
                wanted,
            } => {
                write!(f, "{name} {} is not {wanted}", Quoted(value))
            }
            RequestError::Password(name, wanted) => write!(f, "{name} is not {wanted}"),
            RequestError::Prefix(error) => {
                write!(f, "computerName and domainName make no identifier: {error}")
            }
            RequestError::NoUrl => f.write_str(
                "there is neither documentURL nor metadataURL; give one of them at least",
            ),
            RequestError::Alone(name, other) => {
                write!(f, "{name} is given without {other}; give both")
            }
        }
    }
}

impl std::error::Error for RequestError {}

fn verbs(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    list(f, Verb::ALL.into_iter().map(Verb::name), "or")
}

fn list<'a>(
    f: &mut fmt::Formatter<'_>,
    names: impl Iterator<Item = &'a str>,
    last: &str,
) -> fmt::Result {
    let mut names = names.peekable();
    let mut is_first = true;
    while let Some(name) = names.next() {
        match (is_first, names.peek()) {
            (true, _) => f.write_str(name)?,
            (false, Some(_)) => write!(f, ", {name}")?,
            (false, None) => write!(f, " {last} {name}")?,
        }
        is_first = false;
    }
    Ok(())
}
