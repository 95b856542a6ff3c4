//! The words of a step: paths, numbers, flags, users, texts.

use std::ffi::CString;

use super::Bench;
use crate::posix::row::{ALICE, BOB, STAFF, Step};

pub struct Words<'a> {
    pub step: &'a Step,
}

impl<'a> Words<'a> {
    pub fn new(step: &'a Step) -> Words<'a> {
        Words { step }
    }

    pub fn name(&self) -> &'a str {
        &self.step.words[0]
    }

    /// An argument, counted from 1.
    pub fn word(&self, at: usize) -> &'a str {
        self.get(at)
            .unwrap_or_else(|| panic!("argument {at} is missing: {}", self.step.text))
    }

    pub fn get(&self, at: usize) -> Option<&'a str> {
        self.step.words.get(at).map(String::as_str)
    }

    /// A path: `fd:a` and `fd:a/b` go by an open descriptor, `~N/rest` is `rest` behind so many
    /// `./` that it has N bytes, and the rest is as with `bytes`.
    pub fn path(&self, bench: &Bench, at: usize) -> CString {
        let word = self.word(at);
        if let Some(rest) = word.strip_prefix("fd:") {
            let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
            let descriptor = bench.files.get(name).copied().unwrap_or(-1);
            let slash = if below.is_empty() { "" } else { "/" };
            let path = format!("/proc/thread-self/fd/{descriptor}{slash}{below}");
            return CString::new(path).expect("no NUL");
        }
        if let Some((length, rest)) = word.strip_prefix('~').and_then(|word| word.split_once('/')) {
            let length: usize = length.parse().expect("a length");
            let mut path = "./".repeat((length - rest.len()) / 2);
            path.push_str(&"/".repeat(length - rest.len() - path.len()));
            path.push_str(rest);
            return CString::new(path).expect("no NUL");
        }
        CString::new(self.bytes(at)).expect("no NUL")
    }

    /// Bytes: `''` is none, `~N` N times `n`, `%HH` any byte.
    pub fn bytes(&self, at: usize) -> Vec<u8> {
        bytes(self.word(at))
    }

    /// A number: octal with a leading 0, with `K` or `M` behind it times 2^10 or 2^20.
    pub fn number(&self, at: usize) -> i64 {
        number(self.word(at))
    }

    /// The number of a user or group; `-` is -1.
    pub fn user(&self, at: usize) -> u32 {
        match self.word(at) {
            "-" => u32::MAX,
            "root" => 0,
            "alice" => ALICE,
            "bob" => BOB,
            "staff" => STAFF,
            other => other.parse().expect("a user"),
        }
    }

    /// Names of flags with `|` between them.
    pub fn flags(&self, at: usize, known: &[(&str, i64)]) -> i64 {
        flags(self.word(at), known)
    }
}

pub fn bytes(word: &str) -> Vec<u8> {
    if word == "''" {
        return Vec::new();
    }
    if let Some(count) = word.strip_prefix('~') {
        return vec![b'n'; number(count) as usize];
    }
    let mut found = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        match (first, behind) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                let digits = std::str::from_utf8(&digits).expect("digits");
                found.push(u8::from_str_radix(digits, 16).expect("two digits"));
                rest = after;
            }
            _ => {
                found.push(*first);
                rest = behind;
            }
        }
    }
    found
}

pub fn number(word: &str) -> i64 {
    let (digits, unit) = match word.as_bytes().last() {
        Some(b'K') => (&word[..word.len() - 1], 1 << 10),
        Some(b'M') => (&word[..word.len() - 1], 1 << 20),
        _ => (word, 1),
    };
    let parsed = match digits.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => i64::from_str_radix(octal, 8),
        _ => digits.parse(),
    };
    unit * parsed.unwrap_or_else(|_| panic!("no number: {word}"))
}

pub fn flags(word: &str, known: &[(&str, i64)]) -> i64 {
    word.split('|').fold(0, |sum, name| {
        let found = known.iter().find(|(known, _)| *known == name);
        sum | found.unwrap_or_else(|| panic!("no flag {name}")).1
    })
}
