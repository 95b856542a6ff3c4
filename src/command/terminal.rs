//! Text for a terminal, with no control character in it.
//!
//! Names of files, targets and arguments may hold control characters, and a terminal obeys them: it
//! draws elsewhere, changes its title, on some systems types. They are shown as `\u{1b}`. JSON has
//! every text exactly.

use std::fmt::{self, Display, Write};

/// A text on one line: all its control characters are escaped.
#[derive(Debug)]
pub struct OneLine<T>(pub T);

/// Texts on lines: control characters other than the end of a line are escaped.
#[derive(Debug)]
pub struct Lines<T>(pub T);

impl<T: Display> Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { f, ends: false }, "{}", self.0)
    }
}

impl<T: Display> Display for Lines<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { f, ends: true }, "{}", self.0)
    }
}

/// Writes a text piece by piece; `ends` keeps line ends as they are.
struct Escaping<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    ends: bool,
}

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let stays = |c: char| !c.is_control() || self.ends && c == '\n';
        let mut rest = text;
        while let Some(at) = rest.find(|c| !stays(c)) {
            let (before, after) = rest.split_at(at);
            self.f.write_str(before)?;
            let mut characters = after.chars();
            if let Some(character) = characters.next() {
                write!(self.f, "{}", character.escape_default())?;
            }
            rest = characters.as_str();
        }
        self.f.write_str(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing() {
        let hostile = "a\u{1b}[2J\r\n\u{9b}b\u{7f}\t\0é";
        assert_eq!(
            OneLine(hostile).to_string(),
            "a\\u{1b}[2J\\r\\n\\u{9b}b\\u{7f}\\t\\u{0}é"
        );
        assert_eq!(
            Lines(hostile).to_string(),
            "a\\u{1b}[2J\\r\n\\u{9b}b\\u{7f}\\t\\u{0}é"
        );
        assert_eq!(OneLine("").to_string(), "");
        assert_eq!(Lines(format_args!("{}\n{}", 1, "x")).to_string(), "1\nx");
    }
}
