//! Reads the grammar of a list of pairs, byte by byte, and says where it cannot go on.

use std::error::Error;
use std::fmt;

use super::Value;

/// A text is not a list of pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairsError {
    line: usize,
    column: usize,
    expected: &'static str,
    found: Option<u8>,
}

impl fmt::Display for PairsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PairsError {
            line,
            column,
            expected,
            found,
        } = self;
        let found = match found {
            None => "the end".to_owned(),
            Some(byte) if byte.is_ascii() => format!("'{}'", byte.escape_ascii()),
            Some(byte) => {
                format!("byte {byte:#04x} (outside ASCII it is written %{byte:02X})")
            }
        };
        write!(
            f,
            "line {line}, column {column} of the list of pairs: expected {expected}, found {found}"
        )
    }
}

impl Error for PairsError {}

/// A place in the document, and what can be read from there.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// The next byte, not yet read.
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
        text(self.since(start))
    }

    /// Any space, perhaps none.
    pub(super) fn space(&mut self) -> String {
        self.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
    }

    /// A word, one character at least.
    pub(super) fn word(&mut self, expected: &'static str) -> Result<String, PairsError> {
        let word = self.take_while(|byte| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}'));
        if word.is_empty() {
            Err(self.expected(expected))
        } else {
            Ok(word)
        }
    }

    /// A word or a list, and how it is written.
    pub(super) fn value(&mut self) -> Result<(Value, String), PairsError> {
        let start = self.at;
        let value = if self.peek() == Some(b'{') {
            self.list()
        } else {
            self.single()
        };
        value.map(|value| (value, text(self.since(start))))
    }

    fn single(&mut self) -> Result<Value, PairsError> {
        self.word("a word or '{'").map(Value::Word)
    }

    fn list(&mut self) -> Result<Value, PairsError> {
        self.at += 1; // the brace
        let mut words = Vec::new();
        loop {
            // After a word come space, the end of the list, or an error: no word follows directly.
            self.space();
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(Value::List(words));
            }
            words.push(self.word("a word or '}'")?);
        }
    }

    /// The error that something else was expected here.
    pub(super) fn expected(&self, expected: &'static str) -> PairsError {
        let before = self.bytes.get(..self.at).unwrap_or(self.bytes);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before
            .iter()
            .rev()
            .take_while(|byte| **byte != b'\n')
            .count()
            + 1;
        PairsError {
            line,
            column,
            expected,
            found: self.peek(),
        }
    }
}

/// The bytes were all seen to be ASCII.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
