//! Text for a terminal, without control characters.
//!
//! File names, targets and arguments may have control characters, and a terminal interprets them: it moves
//! the cursor, changes its title, and on some systems types text. They are shown as `\u{1b}`. JSON has every
//! text exactly.

use std::fmt::{self, Display, Write};

/// A text on one line, with all control characters escaped.
#[derive(Debug)]
pub struct OneLine<T>(pub T);

/// A text on several lines, with control characters other than line ends escaped.
#[derive(Debug)]
pub struct ManyLines<T>(pub T);

impl<T: Display> Display for OneLine<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { f, ends: false }, "{}", self.0)
    }
}

impl<T: Display> Display for ManyLines<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping { f, ends: true }, "{}", self.0)
    }
}

/// Writes a text in parts; with `ends`, line ends are not escaped.
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
    fn control_characters_do_not_reach_a_terminal() {
        let hostile = "a\u{1b}[2J\r\n\u{9b}b\u{7f}\t\0é";
        assert_eq!(
            OneLine(hostile).to_string(),
            "a\\u{1b}[2J\\r\\n\\u{9b}b\\u{7f}\\t\\u{0}é"
        );
        assert_eq!(
            ManyLines(hostile).to_string(),
            "a\\u{1b}[2J\\r\n\\u{9b}b\\u{7f}\\t\\u{0}é"
        );
        assert_eq!(OneLine("").to_string(), "");
        assert_eq!(
            ManyLines(format_args!("{}\n{}", 1, "x")).to_string(),
            "1\nx"
        );
    }
}
