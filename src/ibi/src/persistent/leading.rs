//! The identifier at the beginning of a path, in each form in which it is found.

use super::{Identifier, Reader};
use crate::relation::split_tail;
use crate::rep::check_component;
use crate::{AliasPair, Ibi, ParseError, Rep};

/// An identifier at the start of a path.
pub(super) struct LeadingIdentifier {
    pub(super) identifier: Identifier,
    /// The signs after it.
    pub(super) tail: String,
    pub(super) citation_key: Option<String>,
    /// The number of its components.
    pub(super) below: usize,
}

/// Reads the identifier at the start of a path. Where four components are a rep they are that, although
/// the first two may be an alias. The error is that of the form that the text has the shape of.
pub(super) fn identifier(
    path: &[Vec<u8>],
    reader: Reader,
) -> Result<LeadingIdentifier, Option<ParseError>> {
    let text = |count: usize| -> Option<String> {
        let components = path.get(..count)?;
        let components = components.iter().map(|it| std::str::from_utf8(it).ok());
        Some(components.collect::<Option<Vec<&str>>>()?.join("/"))
    };
    let mut reason = None;
    if let Some(joined) = text(1)
        && let Some((rep, tail, citation_key)) = rep_with_colons(&joined)
    {
        return Ok(LeadingIdentifier {
            identifier: Identifier::Ibi(Ibi::Rep(rep)),
            tail,
            citation_key,
            below: 1,
        });
    }
    if let Some(joined) = text(4) {
        let (rep, tail) = split_tail(&joined);
        let (rep, citation_key) = split_citation_key(rep);
        match Rep::parse(rep) {
            Ok(rep) => {
                return Ok(LeadingIdentifier {
                    identifier: Identifier::Ibi(Ibi::Rep(rep)),
                    tail: tail.to_owned(),
                    citation_key: citation_key.map(str::to_owned),
                    below: 4,
                });
            }
            Err(error) => reason = Some(error),
        }
    }
    if let Some(joined) = text(2) {
        let (pair, tail) = split_tail(&joined);
        let found = match Ibi::parse(pair) {
            Ok(ibi) => Ok(Identifier::Ibi(ibi)),
            Err(error) => {
                let takes = reader.takes_aliases;
                let alias = takes.then(|| AliasPair::parse(pair).ok()).flatten();
                alias.map(Identifier::Alias).ok_or(error)
            }
        };
        match found {
            Ok(identifier) => {
                return Ok(LeadingIdentifier {
                    identifier,
                    tail: tail.to_owned(),
                    citation_key: None,
                    below: 2,
                });
            }
            // Two components are looked at as an IBIp only where they are all there is.
            Err(error) if path.len() < 4 => reason = Some(error),
            Err(_) => {}
        }
    }
    Err(reason)
}

/// `dpi.inpe.br:banon:1997:08.28.18.55`
fn rep_with_colons(text: &str) -> Option<(Rep, String, Option<String>)> {
    let fields: Vec<&str> = text.splitn(4, ':').collect();
    let [subdomain, word, year, last] = fields[..] else {
        return None;
    };
    let (date, tail) = split_tail(last);
    let (date, citation_key) = split_citation_key(date);
    let rep = Rep::parse(&format!("{subdomain}/{word}/{year}/{date}")).ok()?;
    Some((rep, tail.to_owned(), citation_key.map(str::to_owned)))
}

/// A citation key ends with a hyphen and the kind of document, in upper case.
pub(super) fn split_citation_key(text: &str) -> (&str, Option<&str>) {
    let last = text.rsplit('/').next().unwrap_or(text);
    let is_key = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_uppercase());
    match last.split_once('-') {
        Some((_, key)) if is_key(key) => {
            let (rep, _) = text.split_at(text.len() - key.len() - 1);
            (rep, Some(key))
        }
        _ => (text, None),
    }
}

/// The first components of reps; the last may be the beginning of a date.
pub(super) fn level(path: &[Vec<u8>]) -> Option<String> {
    let components = path.iter().map(|it| std::str::from_utf8(it).ok());
    let components = components.collect::<Option<Vec<&str>>>()?;
    let is_date = |text: &str| {
        let parts: Vec<&str> = text.split('.').collect();
        let is_number = |it: &&str| it.len() == 2 && it.bytes().all(|byte| byte.is_ascii_digit());
        parts.len() < 4 && parts.iter().all(is_number)
    };
    let is_good = components.iter().zip(1..).all(|(component, level)| {
        check_component(level, component).is_ok() || level == 4 && is_date(component)
    });
    (is_good && !components.is_empty() && components.len() <= 4).then(|| components.join("/"))
}
