//! The messages between `ibifs work` and the daemon of a mount, over a socket: lines of words, percent-encoded.
//!
//! The command sends its question, and the daemon answers [`Answer::Ready`] once the level may change. When the program has
//! ended, the command sends [`END`], or closes the connection by ending itself; the daemon answers with what it took in.

use ibi::pairs::{percent_decode, percent_encode};

/// The form of the messages.
const FORM: &str = "ibifs-work 1";
/// The line after which the daemon takes in what has changed.
pub const END: &str = "end\n";
/// The longest question, in bytes.
pub const LONGEST: usize = 8192;

/// The question for a level of the tree, such as `col/example.org`.
#[must_use]
pub fn question(level: &str) -> String {
    format!("{FORM} {}\n", percent_encode(level))
}

/// The level of a question; None for a text that is not a question of this form.
#[must_use]
pub fn parse_question(line: &str) -> Option<String> {
    let level = line.strip_suffix('\n')?.strip_prefix(FORM)?;
    text(level.strip_prefix(' ')?)
}

/// An answer of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The level may change.
    Ready,
    /// So many directories of items have been read.
    Read(u64),
    /// A directory was refused: its path below the store, and the reason.
    Refused(String, String),
    /// All has been taken in.
    Done,
    /// It was not done, for this reason.
    Failed(String),
}

impl Answer {
    /// The line of an answer.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Answer::Ready => "ready\n".to_owned(),
            Answer::Read(count) => format!("read {count}\n"),
            Answer::Refused(path, why) => {
                format!("refused {} {}\n", percent_encode(path), percent_encode(why))
            }
            Answer::Done => "done\n".to_owned(),
            Answer::Failed(why) => format!("failed {}\n", percent_encode(why)),
        }
    }

    /// Parses the line of an answer; None for other texts.
    #[must_use]
    pub fn parse(line: &str) -> Option<Answer> {
        let words: Vec<&str> = line.strip_suffix('\n')?.split(' ').collect();
        Some(match words[..] {
            ["ready"] => Answer::Ready,
            ["read", count] => Answer::Read(count.parse().ok()?),
            ["refused", path, why] => Answer::Refused(text(path)?, text(why)?),
            ["done"] => Answer::Done,
            ["failed", why] => Answer::Failed(text(why)?),
            _ => return None,
        })
    }
}

fn text(word: &str) -> Option<String> {
    String::from_utf8(percent_decode(word)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_are_read_as_written() {
        for level in ["col", "col/a.example/b@80", "col/with space\n%"] {
            assert_eq!(parse_question(&question(level)).as_deref(), Some(level));
        }
        for answer in [
            Answer::Ready,
            Answer::Read(6000),
            Answer::Refused("col/a b\n".to_owned(), "not here\u{e9}".to_owned()),
            Answer::Done,
            Answer::Failed(String::new()),
        ] {
            assert_eq!(Answer::parse(&answer.line()), Some(answer));
        }
    }

    #[test]
    fn other_texts_are_none() {
        for line in [
            "",
            "ibifs-work 2 col\n",
            "ibifs-work 1 col",
            "ibifs-work 1 %ff\n",
        ] {
            assert_eq!(parse_question(line), None, "{line:?}");
        }
        for line in ["", "ready", "read x\n", "refused a\n", "done now\n"] {
            assert_eq!(Answer::parse(line), None, "{line:?}");
        }
    }
}
