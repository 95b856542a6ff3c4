//! The results of private parsers of this folder for texts that others sent, for the fuzz targets in `tests/fuzz`,
//! which are outside of this crate. Nothing else uses it.

use std::ffi::OsStr;

use super::mount::messages::{Answer, Question};
use super::mount::namespace::{Asked, asked};
use super::mount::nodes::{Node, NodeKind, ROOT};
use super::remote::items::{read_written, written};
use super::remote::related::Wanted;
use super::remote::requests::{digest_in, next_of};
use crate::formats::fixity::Digest;

/// The path of the level, or of the item with its modifier, that a name below a level means. None if it is not part of
/// an identifier.
#[must_use]
pub fn meaning(level: &str, name: &str) -> Option<(String, bool)> {
    let root = Node {
        id: ROOT,
        kind: NodeKind::Root,
    };
    let kind = match level {
        "" => NodeKind::Root,
        level if level.contains('/') => NodeKind::Level(level.to_owned()),
        // A name in the root alone is a level of reps, with or without a dot, or a prefix of IBIps.
        level => match asked(&root, OsStr::new(level)).ok()? {
            Asked::Known(kind) => kind,
            Asked::Item(..) | Asked::Related(..) => return None,
        },
    };
    let parent = Node { id: ROOT, kind };
    match asked(&parent, OsStr::new(name)).ok()? {
        Asked::Known(NodeKind::Level(path) | NodeKind::Prefix(path)) => Some((path, true)),
        Asked::Known(_) => None,
        Asked::Item(ibi, _) => Some((ibi.to_string(), false)),
        Asked::Related(Wanted::Modifier(path), _) => Some((path, false)),
        Asked::Related(Wanted::Files(path), _) => Some((format!("{path}?GetFileList"), false)),
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
