//! Names with modifiers in a spelling that every filesystem can carry.
//!
//! Windows, and so SMB, has no `:`, `?`, `*`, `"`, `<`, `>` or `|` in a name. The portable spelling is that of
//! the verbs with `=` in place of `?`: `34PGRBS=GetMetadata(oai_dc)`. No identifier has a `=`. Clients that
//! can carry the other signs as characters of the private use area are understood as well.

use super::Request;

/// The sign between an identifier and its verbs in the portable spelling.
const SIGN: char = '=';

/// The distance of the private use characters of Cygwin, WSL and the Linux client of SMB from ASCII.
const OFFSET: u32 = 0xf000;

/// The name of a request behind an identifier, in the portable spelling.
#[must_use]
pub fn portable_name(identifier: &str, request: &Request) -> String {
    format!("{identifier}{SIGN}{}", request.verbs())
}

/// A name in the portable spelling as it is written otherwise; None if it is not one.
///
/// ```
/// use ibi::relation::from_portable;
///
/// let plain = from_portable("34PGRBS=GetLastEdition+GetMetadata");
/// assert_eq!(plain.as_deref(), Some("34PGRBS?GetLastEdition+GetMetadata"));
/// assert_eq!(from_portable("34PGRBS\u{f03a}").as_deref(), Some("34PGRBS:"));
/// assert_eq!(from_portable("notes=old"), None);
/// ```
#[must_use]
pub fn from_portable(name: &str) -> Option<String> {
    if let Some(plain) = from_private_use(name) {
        return from_portable(&plain).or(Some(plain));
    }
    let (identifier, verbs) = name.split_once(SIGN)?;
    let is_plain = |sign: char| "!+:?".contains(sign);
    if identifier.is_empty() || identifier.contains(is_plain) {
        return None;
    }
    Request::parse_verbs(verbs).ok()?;
    Some(format!("{identifier}?{verbs}"))
}

/// A name whose private use characters stand for ASCII; None without such characters. Two are those of macOS,
/// which stand for signs that no name with a modifier has in the other scheme.
fn from_private_use(name: &str) -> Option<String> {
    let plain = |character: char| match character {
        '\u{f022}' => Some(':'),
        '\u{f025}' => Some('?'),
        '\u{f020}'..='\u{f07e}' => char::from_u32(u32::from(character) - OFFSET),
        _ => None,
    };
    if !name.chars().any(|character| plain(character).is_some()) {
        return None;
    }
    Some(
        name.chars()
            .map(|character| plain(character).unwrap_or(character))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relation::{Modifier, split_name};

    #[test]
    fn every_modifier_has_a_portable_name_and_is_read_from_it() {
        for modifier in Modifier::compositions() {
            let request = Request::Modifier(modifier.clone());
            let name = portable_name("34PGRBS", &request);
            assert!(
                !name.contains(['\\', ':', '*', '?', '"', '<', '>', '|', '/']),
                "{name}"
            );
            assert!(!name.ends_with(['.', ' ']), "{name}");
            let plain = from_portable(&name).expect("a portable name");
            let (identifier, tail) = split_name(&plain).expect("a modifier");
            assert_eq!(identifier, "34PGRBS");
            assert_eq!(Request::parse_tail(tail), Ok(request));
        }
    }

    #[test]
    fn private_use_characters_stand_for_ascii() {
        for (name, plain) in [
            ("34PGRBS\u{f03a}", Some("34PGRBS:")),
            ("34PGRBS!\u{f03a}(oai_dc)", Some("34PGRBS!:(oai_dc)")),
            ("34PGRBS\u{f03f}GetFileList", Some("34PGRBS?GetFileList")),
            ("34PGRBS\u{f022}", Some("34PGRBS:")),
            ("34PGRBS\u{f025}GetMetadata", Some("34PGRBS?GetMetadata")),
            ("34PGRBS", None),
            ("34PGRBS:", None),
            ("34PGRBS=", None),
            ("=GetMetadata", None),
            ("34PGRBS?a=GetMetadata", None),
            ("34PGRBS=GetMetadata=", None),
            ("34PGRBS=getmetadata", None),
            ("\u{e000}", None),
        ] {
            assert_eq!(from_portable(name).as_deref(), plain, "{name}");
        }
    }
}
