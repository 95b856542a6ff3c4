//! Reads the grammar of a list of pairs, byte by byte, and says where it cannot go on.

use std::error::Error;

use super::Value;
use crate::message::{Localize, Message};
use crate::{display_message, message};

/// A text is not a list of pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PairsError {
    line: usize,
    column: usize,
    expected: Expected,
    found: Option<u8>,
}

/// The thing that can stand at a place of a list of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Name,
    Value,
    SpaceAndValue,
    SpaceBeforeName,
    WordOrEnd,
}

impl Localize for Expected {
    fn message(&self) -> Message {
        match self {
            Expected::Name => message!("a name"),
            Expected::Value => message!("a word or '{{'"),
            Expected::SpaceAndValue => message!("a space and the value of the pair"),
            Expected::SpaceBeforeName => message!("a space before the next name"),
            Expected::WordOrEnd => message!("a word or '}}'"),
        }
    }
}

impl Localize for PairsError {
    fn message(&self) -> Message {
        let PairsError {
            line,
            column,
            expected,
            found,
        } = self;
        let found = match found {
            None => message!("the end"),
            Some(byte) if byte.is_ascii() => {
                message!("'{byte}'", byte = byte.escape_ascii().to_string())
            }
            Some(byte) => message!(
                "byte 0x{byte} (outside ASCII it is written %{escaped})",
                byte = format!("{byte:02x}"),
                escaped = format!("{byte:02X}")
            ),
        };
        message!(
            "line {line}, column {column} of the list of pairs: expected {expected}, found {found}",
            line,
            column,
            expected,
            found
        )
    }
}

display_message!(PairsError);

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

    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a str {
        let start = self.at;
        while self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
        text(self.since(start))
    }

    /// Any space, perhaps none.
    pub(super) fn space(&mut self) -> &'a str {
        self.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
    }

    /// A word, one character at least.
    pub(super) fn word(&mut self, expected: Expected) -> Result<&'a str, PairsError> {
        let word = self.take_while(|byte| byte.is_ascii_graphic() && !matches!(byte, b'{' | b'}'));
        if word.is_empty() {
            Err(self.expected(expected))
        } else {
            Ok(word)
        }
    }

    /// A word or a list, and how it is written.
    pub(super) fn value(&mut self) -> Result<(Value, &'a str), PairsError> {
        let start = self.at;
        let value = if self.peek() == Some(b'{') {
            self.list()
        } else {
            self.single()
        };
        value.map(|value| (value, text(self.since(start))))
    }

    fn single(&mut self) -> Result<Value, PairsError> {
        let word = self.word(Expected::Value)?;
        Ok(Value::Word(word.to_owned()))
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
            words.push(self.word(Expected::WordOrEnd)?.to_owned());
        }
    }

    /// The error that something else was expected here.
    pub(super) fn expected(&self, expected: Expected) -> PairsError {
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
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
