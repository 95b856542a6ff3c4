//! The table of name spaces: how the identifiers of `upn:NAME:SUFFIX` begin.
//!
//! A line has the name of a name space and its prefixes, with blanks between them. Empty lines and those that
//! begin with `#` say nothing, and stay where a line is changed.

use ibi::message;
use ibi::message::{Localize, Message};
use ibi::persistent::PersistentError;
use ibi::{ParseError, Quoted, ibip, rep};

/// The length of the name of a name space.
const LENGTH: usize = 6;
/// The components of a rep before its date.
const LEVELS: usize = 3;

/// A name space, and the beginnings of its identifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameSpace {
    name: String,
    prefixes: Vec<String>,
}

impl NameSpace {
    /// A name, in upper case afterwards, and at least one prefix.
    ///
    /// # Errors
    /// A name that is not six letters and digits, no prefix, a prefix that no identifier begins with.
    pub fn new<'a>(
        name: &str,
        prefixes: impl IntoIterator<Item = &'a str>,
    ) -> Result<NameSpace, Message> {
        let name = name_of(name)?;
        let mut kept: Vec<String> = Vec::new();
        for prefix in prefixes {
            check_prefix(prefix).map_err(|error| {
                message!(
                    "no identifier begins with {prefix}: {error}",
                    prefix = Quoted(prefix),
                    error
                )
            })?;
            if !kept.iter().any(|it| it == prefix) {
                kept.push(prefix.to_owned());
            }
        }
        if kept.is_empty() {
            return Err(message!("name space {name} has no prefix", name));
        }
        Ok(NameSpace {
            name,
            prefixes: kept,
        })
    }

    /// The name, in upper case.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The prefixes, in the order in which they are tried.
    #[must_use]
    pub fn prefixes(&self) -> &[String] {
        &self.prefixes
    }

    /// Its line in the table.
    #[must_use]
    pub fn line(&self) -> String {
        format!("{} {}\n", self.name, self.prefixes.join(" "))
    }
}

/// The name of a name space in upper case.
///
/// # Errors
/// It is not six letters and digits.
pub fn name_of(text: &str) -> Result<String, Message> {
    if text.len() == LENGTH && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        Ok(text.to_ascii_uppercase())
    } else {
        Err(PersistentError::NameSpace(text.to_owned()).message())
    }
}

/// Checks that identifiers begin with a text: the prefix of an IBIp, or the first components of a rep.
fn check_prefix(text: &str) -> Result<(), ParseError> {
    let components: Vec<&str> = text.split('/').collect();
    if components.len() == 1 && ibip::check_prefix(text).is_ok() {
        return Ok(());
    }
    for (component, level) in components.into_iter().zip(1..) {
        // A fourth component is a date, behind which no identifier goes on.
        let level = if level > LEVELS { LEVELS + 2 } else { level };
        rep::check_component(level, component)?;
    }
    Ok(())
}

/// A line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    NameSpace(NameSpace),
    Other(String),
}

/// The table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameSpaces(Vec<Line>);

impl NameSpaces {
    /// Reads the table.
    ///
    /// # Errors
    /// The number of a line, and why it is not valid. A name that is there twice is an error as well.
    pub fn parse(bytes: &[u8]) -> Result<NameSpaces, Message> {
        let mut table = NameSpaces::default();
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if bytes.is_empty() {
            return Ok(table);
        }
        for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1_u64..) {
            let at = |what: Message| message!("line {line}: {what}", line = number, what);
            let text =
                std::str::from_utf8(line).map_err(|_| at(message!("the text is not UTF-8")))?;
            let mut words = text.split_ascii_whitespace();
            let Some(name) = words.next().filter(|word| !word.starts_with('#')) else {
                table.0.push(Line::Other(text.to_owned()));
                continue;
            };
            let entry = NameSpace::new(name, words).map_err(at)?;
            if table.get(entry.name()).is_some() {
                let name = entry.name;
                return Err(at(message!("name space {name} is there already", name)));
            }
            table.0.push(Line::NameSpace(entry));
        }
        Ok(table)
    }

    /// The name spaces, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = &NameSpace> {
        self.0.iter().filter_map(|line| match line {
            Line::NameSpace(entry) => Some(entry),
            Line::Other(_) => None,
        })
    }

    /// The name space of a name in upper case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&NameSpace> {
        self.iter().find(|entry| entry.name == name)
    }

    /// Sets a name space in place of the one of its name, or at the end.
    pub fn set(&mut self, entry: NameSpace) {
        let is_same =
            |line: &&mut Line| matches!(line, Line::NameSpace(it) if it.name == entry.name);
        match self.0.iter_mut().find(is_same) {
            Some(line) => *line = Line::NameSpace(entry),
            None => self.0.push(Line::NameSpace(entry)),
        }
    }

    /// Removes the name space of a name in upper case. Returns whether the table had it.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0
            .retain(|line| !matches!(line, Line::NameSpace(it) if it.name == name));
        self.0.len() < before
    }

    /// The text of the table.
    #[must_use]
    pub fn to_text(&self) -> String {
        let line = |line: &Line| match line {
            Line::NameSpace(entry) => entry.line(),
            Line::Other(text) => format!("{text}\n"),
        };
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "# of the institute\nLCETB2 dpi.inpe.br/sbsr@80 8JMKD3MGPCW\n\n9HFNHE CBnmVX32PXQZeBBx\n";

    #[test]
    fn a_change_keeps_the_other_lines() {
        let mut table = NameSpaces::parse(TABLE.as_bytes()).expect("a table");
        assert_eq!(table.to_text(), TABLE);
        let lcetb2 = table.get("LCETB2").expect("registered");
        assert_eq!(lcetb2.prefixes(), ["dpi.inpe.br/sbsr@80", "8JMKD3MGPCW"]);
        table.set(NameSpace::new("9hfnhe", ["a.b/c", "a.b/c"]).expect("valid"));
        table.set(NameSpace::new("ABCDEF", ["a.b/c/2009"]).expect("valid"));
        assert!(table.remove("LCETB2") && !table.remove("LCETB2"));
        let expected = "# of the institute\n\n9HFNHE a.b/c\nABCDEF a.b/c/2009\n";
        assert_eq!(table.to_text(), expected);
        assert_eq!(NameSpaces::parse(b""), Ok(NameSpaces::default()));
    }

    #[test]
    fn a_line_that_is_not_valid_is_named() {
        for (text, expected) in [
            (
                "#\nabc a.b\n",
                "line 2: name space 'abc' of a upn name is not six letters and digits",
            ),
            ("ABCDEF\n", "line 1: name space ABCDEF has no prefix"),
            (
                "ABCDEF a.b\nabcdef c.d\n",
                "line 2: name space ABCDEF is there already",
            ),
        ] {
            let error = NameSpaces::parse(text.as_bytes()).expect_err(text);
            assert_eq!(error.to_string(), expected);
        }
        let begins = |text: &str| NameSpaces::parse(format!("ABCDEF {text}").as_bytes());
        for bad in [
            "a_b",
            "a.b/",
            "/a.b",
            "a.b/c/x",
            "a.b/c/2009/01.02.03.04",
            "a.b/c/2009/",
            "8JMKD3MGP8W/34PGRBS",
        ] {
            let error = begins(bad).expect_err(bad).to_string();
            let start = format!("line 1: no identifier begins with '{bad}': ");
            assert!(error.starts_with(&start), "{error}");
        }
        for good in [
            "a.b",
            "a.b/c@80",
            "a.b/c/2009",
            "8JMKD3MGP8W",
            "CBnmVX32PXQZeBBx",
        ] {
            assert!(begins(good).is_ok(), "{good}");
        }
        let error = NameSpaces::parse(b"ABCDEF a.b\n\xff").expect_err("Latin-1");
        assert_eq!(error.to_string(), "line 2: the text is not UTF-8");
    }
}
