//! The messages between a command and the daemon of a mount, over a socket: a question, and the lines of its answer.
//!
//! A line is a word and fields, percent-encoded. Both ends limit what they read: a question by [`LONGEST_QUESTION`], a line
//! of an answer by [`LONGEST_LINE`].

use crate::item::Names;
use ibi::Ibi;
use ibi::pairs::{percent_decode, percent_encode};

/// The form of the messages, before each question.
const FORM: &str = "ibifs-1";
/// The longest question, in bytes.
pub const LONGEST_QUESTION: u64 = 64 << 10;
/// The longest line of an answer, in bytes.
pub const LONGEST_LINE: u64 = 8 << 20;
/// The most fields of a line.
const MOST_FIELDS: usize = 4096;

/// The address of a socket, and the key that its users prove to have read there: who may not enter the mount does not know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The name of the socket, in the abstract name space of unix(7).
    pub name: String,
    /// The key, which a question begins with.
    pub key: String,
}

impl Address {
    /// The value of the attribute of a mount.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{FORM} {} {}", self.name, self.key)
    }

    /// Parses the value of the attribute; None for another text, as that of another version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Address> {
        let mut words = text.strip_prefix(FORM)?.strip_prefix(' ')?.split(' ');
        let mut word = || {
            let word = words.next().filter(|word| !word.is_empty())?;
            let is_plain = word.len() <= 64 && word.bytes().all(|byte| byte.is_ascii_graphic());
            is_plain.then(|| word.to_owned())
        };
        let address = Address {
            name: word()?,
            key: word()?,
        };
        words.next().is_none().then_some(address)
    }
}

/// A line of a conversation: a word, and fields with their names in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    word: String,
    fields: Vec<(String, String)>,
}

impl Line {
    /// A line without fields.
    #[must_use]
    pub fn new(word: &str) -> Line {
        Line {
            word: word.to_owned(),
            fields: Vec::new(),
        }
    }

    /// The same with a field more.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Line {
        self.fields.push((name.to_owned(), value.to_string()));
        self
    }

    /// The same with a field for each value.
    #[must_use]
    pub fn with_all<T: ToString>(self, name: &str, values: impl IntoIterator<Item = T>) -> Line {
        let mut values = values.into_iter();
        values
            .by_ref()
            .fold(self, |line, value| line.with(name, value))
    }

    /// The same with the names of an item.
    #[must_use]
    pub fn with_names(self, name: &str, names: &Names) -> Line {
        let line = self.with_all(name, names.rep());
        line.with_all(name, names.ibip())
    }

    /// Its word.
    #[must_use]
    pub fn word(&self) -> &str {
        &self.word
    }

    /// The value of the first field of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The values of all fields of a name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let meant = self.fields.iter().filter(move |(known, _)| known == name);
        meant.map(|(_, value)| value.as_str())
    }

    /// The names of an item.
    #[must_use]
    pub fn names(&self, name: &str) -> Option<Names> {
        let forms: Result<Vec<Ibi>, _> = self.all(name).map(Ibi::parse).collect();
        Names::collect(forms.ok()?)
    }

    /// The line of an answer.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = self.word.clone();
        for (name, value) in &self.fields {
            text.push_str(&format!(" {name}={}", percent_encode(value)));
        }
        text.push('\n');
        text
    }

    /// Parses the line of an answer; None for other texts.
    #[must_use]
    pub fn parse(text: &str) -> Option<Line> {
        let mut words = text.strip_suffix('\n')?.split(' ');
        let word = words.next().filter(|word| is_name(word))?.to_owned();
        let mut fields = Vec::new();
        for field in words {
            let (name, value) = field.split_once('=').filter(|(name, _)| is_name(name))?;
            if fields.len() >= MOST_FIELDS || !value.bytes().all(|byte| byte.is_ascii_graphic()) {
                return None;
            }
            let value = String::from_utf8(percent_decode(value)).ok()?;
            fields.push((name.to_owned(), value));
        }
        Some(Line { word, fields })
    }

    /// The text of a question.
    #[must_use]
    pub fn to_question(&self, key: &str) -> String {
        format!("{FORM} {key} {}", self.to_text())
    }

    /// Parses a question and its key; None for other texts, as that of another version.
    #[must_use]
    pub fn parse_question(text: &str) -> Option<(&str, Line)> {
        let text = text.strip_prefix(FORM)?.strip_prefix(' ')?;
        let (key, line) = text.split_once(' ')?;
        Some((key, Line::parse(line)?))
    }
}

fn is_name(word: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
    !word.is_empty() && word.len() <= 32 && word.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_written() {
        let names = Ibi::parse("8JMKD3MGP8W/34PGRBS").map(Names::from);
        let names = names.expect("an IBIp");
        let line = Line::new("find")
            .with("words", "a b=c%\n\u{e9}")
            .with("words", "")
            .with("limit", 7)
            .with_names("item", &names);
        assert_eq!(Line::parse(&line.to_text()), Some(line.clone()));
        assert_eq!(line.all("words").count(), 2);
        assert_eq!((line.get("limit"), line.get("none")), (Some("7"), None));
        assert_eq!(line.names("item"), Some(names));
        let question = line.to_question("key");
        assert_eq!(Line::parse_question(&question), Some(("key", line)));
        let address = Address {
            name: "ibifs.1".to_owned(),
            key: "2".to_owned(),
        };
        assert_eq!(Address::parse(&address.to_text()), Some(address));
    }

    #[test]
    fn other_texts_are_none() {
        for text in [
            "",
            "\n",
            "done",
            "Done\n",
            "done \n",
            "done a\n",
            "done =b\n",
            "done a=%ff\n",
            "done a=b  c=d\n",
            "done a=\u{e9}\n",
            "done a=b\nc=d\n",
        ] {
            assert_eq!(Line::parse(text), None, "{text:?}");
        }
        let many = format!("done{}\n", " a=b".repeat(MOST_FIELDS + 1));
        assert_eq!(Line::parse(&many), None);
        for text in [
            "",
            "ibifs-2 key done\n",
            "ibifs-1 done\n",
            "ibifs-1 key done",
        ] {
            assert_eq!(Line::parse_question(text), None, "{text:?}");
        }
        for text in [
            "",
            "ibifs-1 a",
            "ibifs-1 a b c",
            "ibifs-2 a b",
            "ibifs-1  b",
        ] {
            assert_eq!(Address::parse(text), None, "{text:?}");
        }
    }
}
