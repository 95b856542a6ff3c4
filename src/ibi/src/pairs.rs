//! The list of pairs, as a document that preserves every byte that is not changed.
//!
//! Sidecars, the Archive's own facts and the answers of its services are written in it. A document
//! holds its pairs with the space before each, so that unchanged parts print as they were read.
//! The names that there are, and the meanings of their values, are known elsewhere.

mod percent;
mod reader;

use std::fmt;

pub use percent::{percent_decode, percent_encode};
pub use reader::PairsError;
use reader::{Expected, Reader};

/// The value of a pair: in braces if, and only if, it is a list.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Value {
    /// One word.
    Word(String),
    /// Words in braces; none at all is the empty value `{}`.
    List(Vec<String>),
}

impl Value {
    /// The words, one or many.
    #[must_use]
    pub fn words(&self) -> &[String] {
        match self {
            Value::Word(word) => std::slice::from_ref(word),
            Value::List(words) => words,
        }
    }

    /// The value with every word such that it can be read back: what the grammar has no place for
    /// is percent-encoded, and an empty word is left out.
    fn readable(self) -> Value {
        match self {
            Value::Word(word) if word.is_empty() => Value::List(Vec::new()),
            Value::Word(word) => Value::Word(readable(&word)),
            Value::List(words) => {
                let kept = words.iter().filter(|word| !word.is_empty());
                Value::List(kept.map(|word| readable(word)).collect())
            }
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Word(word) => f.write_str(word),
            Value::List(words) => write!(f, "{{{}}}", words.join(" ")),
        }
    }
}

/// Like [`percent_encode`], but a `%` stays: the caller may have encoded already.
fn readable(word: &str) -> String {
    let encoded = word.split('%').map(percent_encode);
    encoded.collect::<Vec<String>>().join("%")
}

/// A list of pairs that prints byte for byte as it was read, except where it was changed.
///
/// ```
/// use ibi::pairs::{Pairs, Value};
///
/// let mut pairs = Pairs::parse(b"state Original\r\nibi {ibip 8JMKD3MGP8W/35MMLL8}\r\n")?;
/// assert_eq!(pairs.get("state"), Some(&Value::Word("Original".to_owned())));
/// pairs.set("state", Value::Word("Copy".to_owned()));
/// assert_eq!(pairs.to_bytes(), b"state Copy\r\nibi {ibip 8JMKD3MGP8W/35MMLL8}\r\n");
/// # Ok::<(), ibi::pairs::PairsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    pairs: Vec<Pair>,
    tail: String, // the space after the last pair
}

/// A pair as it stands in the document, in one piece: a megabyte may hold a quarter of a million of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    text: Box<str>, // the space before the name, the name, the space after it, and the value
    name: (u32, u32),
    written: u32, // where the value begins
    value: Value,
}

impl Pair {
    fn new(before: &str, name: &str, between: &str, written: &str, value: Value) -> Pair {
        let position = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        let (begin, end) = (before.len(), before.len() + name.len());
        Pair {
            text: [before, name, between, written].concat().into_boxed_str(),
            name: (position(begin), position(end)),
            written: position(end + between.len()),
            value,
        }
    }

    fn part(&self, begin: u32, end: u32) -> &str {
        let part = self.text.get(begin as usize..end as usize);
        part.unwrap_or_default()
    }

    fn before(&self) -> &str {
        self.part(0, self.name.0)
    }

    fn name(&self) -> &str {
        self.part(self.name.0, self.name.1)
    }

    fn between(&self) -> &str {
        self.part(self.name.1, self.written)
    }

    fn written(&self) -> &str {
        self.text.get(self.written as usize..).unwrap_or_default()
    }
}

impl Pairs {
    /// Reads a document; space between words is any run of SP, TAB, CR and LF.
    ///
    /// # Errors
    /// The first byte at which the grammar cannot go on: line, column, and what was expected there.
    pub fn parse(bytes: &[u8]) -> Result<Pairs, PairsError> {
        let mut reader = Reader::new(bytes);
        let mut pairs = Vec::new();
        loop {
            let before = reader.space();
            if reader.peek().is_none() {
                return Ok(Pairs {
                    pairs,
                    tail: before.to_owned(),
                });
            }
            if before.is_empty() && !pairs.is_empty() {
                return Err(reader.expected(Expected::SpaceBeforeName));
            }
            let name = reader.word(Expected::Name)?;
            let between = reader.space();
            if between.is_empty() {
                return Err(reader.expected(Expected::SpaceAndValue));
            }
            let (value, written) = reader.value()?;
            pairs.push(Pair::new(before, name, between, written, value));
        }
    }

    /// The value of the first pair of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }

    /// All pairs in the order in which they stand.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.pairs.iter().map(|pair| (pair.name(), &pair.value))
    }

    /// Replaces the value of the first pair of that name where it stands, or adds the pair at the
    /// end on a line of its own. Bytes for which the grammar has no place are percent-encoded, and an empty
    /// name sets nothing, so that the document can always be read back.
    pub fn set(&mut self, name: &str, value: Value) {
        let (name, value) = (readable(name), value.readable());
        if name.is_empty() {
            return;
        }
        let written = value.to_string();
        if let Some(pair) = self.pairs.iter_mut().find(|pair| pair.name() == name) {
            *pair = Pair::new(pair.before(), &name, pair.between(), &written, value);
            return;
        }
        let mut before = std::mem::take(&mut self.tail);
        let end = self.line_end();
        if !self.pairs.is_empty() && !before.ends_with('\n') {
            before.push_str(end);
        }
        self.tail = end.to_owned();
        self.pairs
            .push(Pair::new(&before, &name, " ", &written, value));
    }

    /// Removes all pairs of that name, with the space before each; returns whether there were any.
    pub fn remove(&mut self, name: &str) -> bool {
        let begins = self.pairs.first().filter(|pair| pair.name() == name);
        let begins = begins.map(|pair| pair.before().to_owned());
        let count = self.pairs.len();
        self.pairs.retain(|pair| pair.name() != name);
        if let Some(before) = begins {
            // The next pair becomes the beginning of the document, and of its line.
            match self.pairs.first_mut() {
                Some(next) => {
                    let value = next.value.clone();
                    *next = Pair::new(&before, next.name(), next.between(), next.written(), value);
                }
                None => self.tail = before,
            }
        }
        self.pairs.len() < count
    }

    /// The document as it is written.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.to_string().into_bytes()
    }

    /// The bytes as they go over HTTP: pairs are separated by CRLF.
    #[must_use]
    pub fn to_http_bytes(&self) -> Vec<u8> {
        let text = self.to_string();
        let lines = text
            .split('\n')
            .map(|line| line.strip_suffix('\r').unwrap_or(line));
        lines.collect::<Vec<_>>().join("\r\n").into_bytes()
    }

    /// The document's own end of line, so that an added line looks like the others.
    fn line_end(&self) -> &'static str {
        let has_return = self
            .pairs
            .iter()
            .any(|pair| pair.before().ends_with("\r\n"));
        if has_return { "\r\n" } else { "\n" }
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pair in &self.pairs {
            f.write_str(&pair.text)?;
        }
        f.write_str(&self.tail)
    }
}

crate::text_arguments!(Value);

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "archiveaddress mtc-m16c.sid.inpe.br
contenttype Data
ibi {rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8}
ibi.archiveservice {rep sid.inpe.br/mtc-m18@80/2008/03.17.15.17}
ibi.platformsoftware {rep dpi.inpe.br/banon/1998/08.02.08.56}
state Original
timestamp 2009-07-21T14:43:31Z
url http://mtc-m16c.sid.inpe.br/col/sid.inpe.br/mtc-m18@80/2009/07.21.14.43/doc/CCSDS%20650.0-B-1.pdf
urlkey 1427244889-5349022633744855
";

    fn pairs(text: &str) -> Pairs {
        Pairs::parse(text.as_bytes()).expect(text)
    }

    fn word(text: &str) -> Value {
        Value::Word(text.to_owned())
    }

    fn list(text: &str) -> Value {
        Value::List(text.split_whitespace().map(str::to_owned).collect())
    }

    #[track_caller]
    fn reads(text: &str, expected: &[(&str, Value)]) {
        let pairs = pairs(text);
        let found: Vec<(&str, Value)> = pairs
            .iter()
            .map(|(name, value)| (name, value.clone()))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(pairs.to_string(), text);
        assert_eq!(pairs.to_bytes(), text.as_bytes());
    }

    #[track_caller]
    fn sets(text: &str, name: &str, value: Value, expected: &str) {
        let mut pairs = pairs(text);
        pairs.set(name, value);
        assert_eq!(pairs.to_string(), expected);
        assert_eq!(Pairs::parse(expected.as_bytes()), Ok(pairs));
    }

    #[track_caller]
    fn removes(text: &str, name: &str, expected: &str) {
        let mut pairs = pairs(text);
        assert_eq!(pairs.remove(name), text != expected);
        assert_eq!(pairs.to_string(), expected);
        assert_eq!(Pairs::parse(expected.as_bytes()), Ok(pairs));
    }

    #[track_caller]
    fn bad(text: &[u8], sentence: &str) {
        assert_eq!(
            Pairs::parse(text).expect_err(sentence).to_string(),
            sentence
        );
    }

    #[test]
    fn the_example_answer_of_the_document() {
        let answer = pairs(ANSWER);
        assert_eq!(answer.to_string(), ANSWER);
        assert_eq!(answer.iter().count(), 9);
        assert_eq!(answer.get("state"), Some(&word("Original")));
        assert_eq!(
            answer.get("ibi"),
            Some(&list(
                "rep sid.inpe.br/mtc-m18@80/2009/07.21.14.43 ibip 8JMKD3MGP8W/35MMLL8"
            ))
        );
        assert_eq!(answer.get("State"), None);
        let one_line = ANSWER.trim_end().replace('\n', " ");
        assert_eq!(
            pairs(&one_line).iter().collect::<Vec<_>>(),
            answer.iter().collect::<Vec<_>>()
        );
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn documents() {
        reads("", &[]);
        reads("\r\n \t", &[]);
        reads("confirmation yes", &[("confirmation", word("yes"))]);
        reads("notice {acknowledgment received}", &[("notice", list("acknowledgment received"))]);
        reads("a {}\r\nb  {\tx }\r\n", &[("a", list("")), ("b", list("x"))]);
        reads("a 1 a 2", &[("a", word("1")), ("a", word("2"))]);
        reads("status.archive included status.confirmation successful", &[("status.archive", word("included")), ("status.confirmation", word("successful"))]);
    }

    #[test]
    fn the_words_of_a_value() {
        assert_eq!(word("x").words(), ["x"]);
        assert_eq!(list("x y").words(), ["x", "y"]);
        assert!(list("").words().is_empty());
    }

    #[test]
    fn changes_keep_the_rest() {
        sets(
            "a  1\r\nb {x}\r\n",
            "a",
            list("y  z"),
            "a  {y z}\r\nb {x}\r\n",
        );
        sets("a 1 a 2", "a", word("3"), "a 3 a 2");
        sets("", "a", word("1"), "a 1\n");
        sets("a 1", "b", list(""), "a 1\nb {}\n");
        sets("a 1\n", "b", word("2"), "a 1\nb 2\n");
        sets("a 1\r\nb 2\r\n", "c", word("3"), "a 1\r\nb 2\r\nc 3\r\n");
        sets(
            "a 1\n",
            "b",
            word("é {x}%20"),
            "a 1\nb %C3%A9%20%7Bx%7D%20\n",
        );
        sets("a 1\n", "b", word(""), "a 1\nb {}\n");
        sets("a 1\n", "", word("x"), "a 1\n");
        removes("a 1\nb 2\nc 3\n", "b", "a 1\nc 3\n");
        removes("a 1\nb 2\nc 3\n", "a", "b 2\nc 3\n");
        removes("a 1\nb 2\nc 3\n", "c", "a 1\nb 2\n");
        removes("a 1 b 2\na 3\n", "a", "b 2\n");
        removes(" a 1 a 2\n a 3\tb 4 a 5\n", "a", " b 4\n");
        removes(" a 1 a 2\n", "a", " ");
        removes("a 1\n", "a", "");
        removes("a 1\n", "b", "a 1\n");
    }

    #[test]
    fn pairs_are_separated_by_crlf_over_http() {
        for (text, sent) in [
            ("", ""),
            ("a 1\nb {2 3}\n", "a 1\r\nb {2 3}\r\n"),
            ("a 1\r\nb 2\n", "a 1\r\nb 2\r\n"),
            ("a 1 b 2", "a 1 b 2"),
        ] {
            assert_eq!(pairs(text).to_http_bytes(), sent.as_bytes(), "{text:?}");
        }
    }

    #[test]
    #[rustfmt::skip] // one case, one line
    fn what_is_no_list_of_pairs() {
        bad(b"a", "line 1, column 2 of the list of pairs: expected a space and the value of the pair, found the end");
        bad(b"a \n", "line 2, column 1 of the list of pairs: expected a word or '{', found the end");
        bad(b"a 1\nb{2}", "line 2, column 2 of the list of pairs: expected a space and the value of the pair, found '{'");
        bad(b"a {b {c}}", "line 1, column 6 of the list of pairs: expected a word or '}', found '{'");
        bad(b"a {b\nc", "line 2, column 2 of the list of pairs: expected a word or '}', found the end");
        bad(b"a {b}c d", "line 1, column 6 of the list of pairs: expected a space before the next name, found 'c'");
        bad(b"{a} b", "line 1, column 1 of the list of pairs: expected a name, found '{'");
        bad(b"a }", "line 1, column 3 of the list of pairs: expected a word or '{', found '}'");
        bad(b"a \x07", "line 1, column 3 of the list of pairs: expected a word or '{', found '\\x07'");
        bad(b"a b\xe9", "line 1, column 4 of the list of pairs: expected a space before the next name, found byte 0xe9 (outside ASCII it is written %E9)");
    }

    #[test]
    fn many_pairs_of_one_name_take_no_quadratic_time() {
        let mut document = pairs(&"a 1 ".repeat(300_000));
        document.set("b", word("2"));
        assert!(document.remove("a"));
        assert_eq!(document.to_string(), "b 2\n");
    }

    #[test]
    fn whatever_is_read_prints_as_it_was() {
        let mut state = 3u64;
        let mut read = 0;
        for _ in 0..100_000 {
            let mut text = Vec::new();
            for _ in 0..state >> 59 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text.push(b"ab1 \n\r\t{} "[(state >> 33) as usize % 10]);
            }
            state = state.wrapping_add(0x1234_5678_9abc_def1);
            if let Ok(mut pairs) = Pairs::parse(&text) {
                read += 1;
                assert_eq!(pairs.to_bytes(), text);
                pairs.set("a", word("x"));
                pairs.remove("b");
                pairs.set("c", list("y z"));
                assert_eq!(Pairs::parse(&pairs.to_bytes()).as_ref(), Ok(&pairs));
            }
        }
        assert!(read > 1000, "{read}");
    }
}
