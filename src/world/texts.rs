//! The results of private parsers of this folder for texts that others sent, for the fuzz targets in `tests/fuzz`,
//! which are outside of this crate. Nothing else uses it.

use super::mount::messages::{Answer, Question};
use super::remote::items::{read_written, written};
use super::remote::requests::{digest_in, next_of};
use crate::formats::fixity::Digest;

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
