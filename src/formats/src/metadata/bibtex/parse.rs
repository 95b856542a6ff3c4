//! The grammar of BibTeX: parses a file up to its first entry, with strings replaced and TeX unchanged.
//!
//! As in BibTeX, text outside entries is a comment, braces always count, a string's value is fixed where it
//! is defined, and a word that names no string is taken literally (which also makes months readable). Unlike
//! BibTeX it allows a missing key, extra commas, and comments inside an entry. It knows no field names or
//! entry types.

use std::collections::HashMap;

use crate::metadata::decode::line_at;
use crate::metadata::error::beginning;
use crate::metadata::{MAX_BYTES, MetadataError};

/// An entry: its type and its fields, with names in lower case and values in TeX.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: String,
    pub(super) key: String,
    pub(super) fields: Vec<(String, String)>,
}

/// Parses a file up to the end of the first entry, and the entry that this one refers to, whose fields it inherits.
pub(super) fn first_entry(text: &str) -> Result<Entry, MetadataError> {
    let mut parser = Parser {
        text,
        rest: text,
        strings: HashMap::new(),
        expanded: 0,
    };
    let mut entry = parser.entry()?;
    let parent = entry.fields.iter().find(|(name, _)| name == "crossref");
    if let Some(parent) = parent.map(|(_, key)| key.trim().to_owned()) {
        // BibTeX compares keys without their case, and one level is followed. What cannot be parsed has no parent.
        while let Ok(other) = parser.entry() {
            if other.key.eq_ignore_ascii_case(&parent) {
                inherit(&mut entry, other);
                break;
            }
        }
    }
    Ok(entry)
}

/// Fields of an entry that say nothing of those that refer to it.
const ITS_OWN: &[&str] = &[
    "abstract",
    "annote",
    "author",
    "crossref",
    "doi",
    "ibi",
    "ids",
    "keywords",
    "keyword",
    "note",
    "pages",
    "subtitle",
    "targetfile",
    "type",
    "url",
];

/// Adds the fields of the entry that another one refers to, as far as that lacks them. The title is that of the book.
fn inherit(entry: &mut Entry, parent: Entry) {
    let is_article = entry.kind == "article";
    let has_own_title = parent.fields.iter().any(|(name, _)| name == "booktitle");
    for (name, value) in parent.fields {
        let name = match &*name {
            "title" if has_own_title => continue,
            "title" if is_article => "journal".to_owned(),
            "title" => "booktitle".to_owned(),
            name if ITS_OWN.contains(&name) => continue,
            _ => name,
        };
        if !entry.fields.iter().any(|(known, _)| *known == name) {
            entry.fields.push((name, value));
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The unread rest, always a suffix of `text`.
    rest: &'a str,
    strings: HashMap<String, String>,
    /// Number of bytes inserted from strings so far.
    expanded: usize,
}

impl<'a> Parser<'a> {
    /// The next entry.
    fn entry(&mut self) -> Result<Entry, MetadataError> {
        loop {
            let Some((_, rest)) = self.rest.split_once('@') else {
                return Err(MetadataError::NoEntry);
            };
            self.rest = rest;
            let kind = self.word().to_lowercase();
            self.skip_spaces();
            let close = match self.rest.chars().next() {
                Some('{') => '}',
                Some('(') => ')',
                // An `@` in running text, such as that of an address, does not begin an entry.
                _ => continue,
            };
            match kind.as_str() {
                "comment" | "preamble" => {
                    self.group(close)?;
                }
                "string" => {
                    self.rest = &self.rest[1..];
                    for (name, value) in self.fields(close)? {
                        self.strings.insert(name, value);
                    }
                }
                _ => {
                    self.rest = &self.rest[1..];
                    let key = self.key(close)?.trim().to_owned();
                    let fields = self.fields(close)?;
                    return Ok(Entry { kind, key, fields });
                }
            }
        }
    }

    /// The key; empty if the entry has none and begins with a field.
    fn key(&mut self, close: char) -> Result<&'a str, MetadataError> {
        match self.rest.find([',', '=', close]) {
            None => Err(self.unexpected_end("','")),
            Some(end) if self.rest[end..].starts_with('=') => Ok(""),
            Some(end) => {
                let (key, rest) = self.rest.split_at(end);
                self.rest = rest;
                Ok(key)
            }
        }
    }

    /// The fields, up to and including the character that closes the entry.
    fn fields(&mut self, close: char) -> Result<Vec<(String, String)>, MetadataError> {
        let mut fields = Vec::new();
        loop {
            self.skip_spaces();
            while let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest;
                self.skip_spaces();
            }
            if self.eat(close) {
                return Ok(fields);
            }
            let name = self.word().to_lowercase();
            if name.is_empty() {
                return Err(self.unexpected(if close == '}' {
                    "a field or '}'"
                } else {
                    "a field or ')'"
                }));
            }
            self.skip_spaces();
            if !self.eat('=') {
                return Err(self.unexpected("'='"));
            }
            fields.push((name, self.value()?));
            self.skip_spaces();
            if !self.rest.starts_with([',', close]) {
                return Err(self.unexpected(if close == '}' {
                    "',' or '}'"
                } else {
                    "',' or ')'"
                }));
            }
        }
    }

    /// A value: parts joined by `#`.
    fn value(&mut self) -> Result<String, MetadataError> {
        let mut value = String::new();
        loop {
            self.skip_spaces();
            match self.rest.chars().next() {
                Some('{') => value.push_str(self.group('}')?),
                Some('"') => value.push_str(self.group('"')?),
                _ => {
                    let word = self.word();
                    if word.is_empty() {
                        return Err(self.unexpected("a value"));
                    }
                    match self.strings.get(&word.to_lowercase()) {
                        None => value.push_str(word),
                        Some(string) => {
                            self.expanded += string.len();
                            if self.expanded > MAX_BYTES {
                                return Err(MetadataError::TooMuchExpansion { line: self.line() });
                            }
                            value.push_str(string);
                        }
                    }
                }
            }
            self.skip_spaces();
            if !self.eat('#') {
                return Ok(value);
            }
        }
    }

    /// The text between the current character and the one that closes it outside all inner braces.
    fn group(&mut self, close: char) -> Result<&'a str, MetadataError> {
        let whole = self.rest;
        let mut depth = 0_usize;
        let mut escaped = false;
        for (position, character) in whole.char_indices().skip(1) {
            match character {
                _ if character == close && depth == 0 && !(escaped && close == '"') => {
                    self.rest = &whole[position + close.len_utf8()..];
                    return Ok(&whole[1..position]);
                }
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            // Quotes are often written \" where BibTeX requires {\"o}; a backslash escapes no other character
            // here.
            escaped = character == '\\' && !escaped;
        }
        Err(MetadataError::Unterminated {
            line: self.line(),
            text: beginning(whole),
        })
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest.trim_start();
        let end = rest
            .find(|character: char| character.is_whitespace() || "\"#%'(),={}@".contains(character))
            .unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Skips white space, and comments from `%` to the end of the line.
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start();
        while self.rest.starts_with('%') {
            self.rest = self
                .rest
                .find('\n')
                .map_or("", |end| self.rest[end..].trim_start());
        }
    }

    fn eat(&mut self, sign: char) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn line(&self) -> usize {
        line_at(self.text.as_bytes(), self.text.len() - self.rest.len())
    }

    fn unexpected(&self, wanted: &'static str) -> MetadataError {
        MetadataError::Unexpected {
            line: self.line(),
            wanted,
            found: beginning(self.rest),
        }
    }

    fn unexpected_end(&mut self, wanted: &'static str) -> MetadataError {
        self.rest = "";
        self.unexpected(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, expected: &str) {
        let shown = match first_entry(text) {
            Err(error) => error.to_string(),
            Ok(entry) => entry
                .fields
                .iter()
                .fold(entry.kind, |shown, (name, value)| {
                    format!("{shown} {name}=<{value}>")
                }),
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn entries_are_read() {
        let cases = [
            (
                "@Misc{k, Title = {a {b} c}, year=2009,}",
                "misc title=<a {b} c> year=<2009>",
            ),
            ("@misc(k, title = \"a {\"} b\")", "misc title=<a {\"} b>"),
            ("@misc{k, title = \"G\\\"odel\"}", "misc title=<G\\\"odel>"),
            (
                "mail a@b.c\n@comment{@misc{x}}\n@preamble{\"x\"}\n@misc{k, a={1}}@misc{l, a={2}}",
                "misc a=<1>",
            ),
            (
                "@string{J = {Journal}}@string(K = j # \" of \" # 1)\n@misc{k, journal = K # {.}}",
                "misc journal=<Journal of 1.>",
            ),
            (
                "@misc{k, month = \"10~\" # jan, journal = tse}",
                "misc month=<10~jan> journal=<tse>",
            ),
            ("@misc{title = {x}}", "misc title=<x>"),
            (
                "@misc{, title = {x},, % remark\n % more\n year = 1 }",
                "misc title=<x> year=<1>",
            ),
            ("@misc{k}", "misc"),
            ("@string{a = a # a}@misc{k, t = a}", "misc t=<aa>"),
        ];
        for (text, expected) in cases {
            reads(text, expected);
        }
    }

    #[test]
    fn mistakes_are_named() {
        let cases = [
            ("", "the BibTeX file has no entry"),
            ("no entry @ all, a@b.c", "the BibTeX file has no entry"),
            ("@misc", "the BibTeX file has no entry"),
            (
                "@misc{",
                "line 1 of the BibTeX file should have ',' where the file ends",
            ),
            (
                "@misc{k,\n title",
                "line 2 of the BibTeX file should have '=' where the file ends",
            ),
            (
                "@misc{k,\n title = ",
                "line 2 of the BibTeX file should have a value where the file ends",
            ),
            (
                "@misc{k,\n title = {x\n",
                "the value that begins on line 2 of the BibTeX file has no end: '{x'",
            ),
            (
                "@misc{k, title = {x}",
                "line 1 of the BibTeX file should have ',' or '}' where the file ends",
            ),
            (
                "@misc(k, title = {x}}",
                "line 1 of the BibTeX file should have ',' or ')' at '}'",
            ),
            (
                "@misc{k,\n = {x}}",
                "line 2 of the BibTeX file should have a field or '}' at '= {x}}'",
            ),
            (
                "@misc{k, a = {x} b = 1}",
                "line 1 of the BibTeX file should have ',' or '}' at 'b = 1}'",
            ),
            (
                "@comment{x",
                "the value that begins on line 1 of the BibTeX file has no end: '{x'",
            ),
        ];
        for (text, expected) in cases {
            reads(text, expected);
        }
    }

    #[test]
    fn strings_do_not_multiply() {
        let mut text = String::from("@string{a0 = {aaaaaaaaaa}}\n");
        for number in 1..40 {
            text.push_str(&format!("@string{{a{number} = a{0} # a{0}}}\n", number - 1));
        }
        reads(
            &(text + "@misc{k, title = a39}"),
            "the strings of the BibTeX file give more than 1048576 bytes on line 17",
        );
    }
}
