//! Converts names of persons and organizations in bibliographies to "Family, Given".
//!
//! The rules are those of BibTeX. "Family, Given" stays. "Family, Jr, Given" gets the Jr at the end. "Given
//! von Family" is inverted, with the particles before the family name. A name wholly in braces is an
//! organization and stays unchanged. Braces are interpreted, but no TeX: the caller supplies the conversion
//! to plain text, and the separator of a list.

/// A name as "Family, Given"; `plain` converts a part of it to plain text.
pub(super) fn family_first(name: &str, plain: impl Fn(&str) -> String) -> String {
    let parts: Vec<String> = split_outside_braces(name, |character| character == ',')
        .into_iter()
        .map(|part| plain(part.trim()))
        .filter(|part| !part.trim().is_empty())
        .collect();
    match &parts[..] {
        [] => String::new(),
        [_] if name.contains(',') => parts.concat(),
        [_] => turn_round(name, plain),
        [family, given] => format!("{family}, {given}"),
        [family, junior, given @ ..] => format!("{family}, {}, {junior}", given.join(", ")),
    }
}

/// Inverts a name without a comma.
fn turn_round(name: &str, plain: impl Fn(&str) -> String) -> String {
    let words: Vec<&str> = split_outside_braces(name, |character| {
        character.is_whitespace() || character == '~'
    })
    .into_iter()
    .filter(|word| !word.is_empty())
    .collect();
    let join = |words: &[&str]| plain(&words.join(" "));
    let Some(last) = words.len().checked_sub(1) else {
        return String::new();
    };
    let family = words
        .iter()
        .take(last)
        .position(|word| is_particle(word, &plain))
        .unwrap_or(last);
    let (given, family) = words.split_at(family);
    if given.is_empty() {
        join(family)
    } else {
        format!("{}, {}", join(family), join(given))
    }
}

/// Whether a word begins in lower case, as "da" and "von" do; a word in braces has no case.
fn is_particle(word: &str, plain: impl Fn(&str) -> String) -> bool {
    let braced = word.starts_with('{') && !word.starts_with("{\\");
    !braced
        && plain(word)
            .chars()
            .find(|character| character.is_alphabetic())
            .is_some_and(char::is_lowercase)
}

/// Splits a text at separators outside all braces.
pub(super) fn split_outside_braces(text: &str, is_separator: impl Fn(char) -> bool) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    for (position, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 && is_separator(character) => {
                pieces.push(&text[start..position]);
                start = position + character.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

/// A name of its parts as "Family, Given, Suffix".
pub(super) fn inverted(family: &str, given: &str, suffix: &str) -> String {
    let parts = [family, given, suffix].map(str::trim);
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_come_first() {
        let cases = [
            ("Banon, Gerald", "Banon, Gerald"),
            ("Gerald Jean Francis Banon", "Banon, Gerald Jean Francis"),
            ("Maria da Silva", "da Silva, Maria"),
            ("da Silva, Maria", "da Silva, Maria"),
            ("da Silva", "da Silva"),
            ("de la Cruz y Garcia", "de la Cruz y Garcia"),
            ("King, Jr, Martin Luther", "King, Martin Luther, Jr"),
            ("Plato", "Plato"),
            ("INPE,", "INPE"),
            (
                "{Instituto Nacional de Pesquisas Espaciais}",
                "{Instituto Nacional de Pesquisas Espaciais}",
            ),
            ("{Barnes, Inc.}", "{Barnes, Inc.}"),
            ("Jean {de Souza}", "{de Souza}, Jean"),
            ("D.~E. Knuth", "Knuth, D. E."),
            ("  ", ""),
            (",,,", ""),
            ("}}a, b{{", "}}a, b{{"),
        ];
        for (name, expected) in cases {
            assert_eq!(family_first(name, str::to_string), expected, "{name:?}");
        }
    }
}
