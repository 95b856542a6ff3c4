//! The results of private parsers of this folder for texts that others sent, for the fuzz targets in `tests/fuzz`,
//! which are outside of this crate. Nothing else uses it.

use std::ffi::OsStr;

use super::mount::messages::{Answer, Question};
use super::mount::namespace::{NameMeaning, asked};
use super::mount::nodes::{ForeignNode, ForeignNodeKind, ROOT};
use super::remote::items::{read_written, written};
use super::remote::related::RelatedQuestion;
use super::remote::requests::{digest_in, next_of};
use crate::formats::fixity::Digest;

/// The path of the level, or of the item with its modifier, that a name below a level means. None if it is not part of
/// an identifier.
#[must_use]
pub fn meaning(level: &str, name: &str) -> Option<(String, bool)> {
    let root = ForeignNode {
        id: ROOT,
        kind: ForeignNodeKind::Root,
    };
    let kind = match level {
        "" => ForeignNodeKind::Root,
        level if level.contains('/') => ForeignNodeKind::Level(level.to_owned()),
        // A name in the root alone is a level of reps, with or without a dot, or a prefix of IBIps.
        level => match asked(&root, OsStr::new(level)).ok()? {
            NameMeaning::Known(kind) => kind,
            NameMeaning::Item(..) | NameMeaning::Related(..) => return None,
        },
    };
    let parent = ForeignNode { id: ROOT, kind };
    match asked(&parent, OsStr::new(name)).ok()? {
        NameMeaning::Known(ForeignNodeKind::Level(path) | ForeignNodeKind::Prefix(path)) => {
            Some((path, true))
        }
        NameMeaning::Known(_) => None,
        NameMeaning::Item(ibi, _) => Some((ibi.to_string(), false)),
        NameMeaning::Related(RelatedQuestion::Modifier(path), _) => Some((path, false)),
        NameMeaning::Related(RelatedQuestion::Files(path), _) => {
            Some((format!("{path}?GetFileList"), false))
        }
    }
}

/// A question to the process of a cache, as it is written. None if it has another form.
#[must_use]
pub fn question(text: &str) -> Option<String> {
    Some(Question::parse(text)?.written())
}

/// An answer of that process, as it is written. None if it has another form.
#[must_use]
pub fn answer(line: &str) -> Option<String> {
    Some(Answer::parse(line)?.written())
}

/// The record of an item in a cache, as it is written. None if it has another form.
#[must_use]
pub fn cached(text: &[u8]) -> Option<Vec<u8>> {
    let (confirmed, base, name, pages) = read_written(text)?;
    Some(written(&base, &name, confirmed, &pages))
}

/// The digest in a header of an Archive's answer.
#[must_use]
pub fn digest(header: &str) -> Option<Digest> {
    digest_in(header)
}

/// The path after which the page behind this one begins.
#[must_use]
pub fn next(page: &[u8]) -> Option<Vec<u8>> {
    next_of(page)
}
