//! Problems of a metadata text: what its author should correct, each with its line.
//!
//! A text is read even if it has problems, as far as it goes; see [`super::read_metadata_text`]. [`check`] is for
//! the moment in which a text is written, and for `ibifs fsck`.

use ibi::message::{Localize, Message};
use ibi::{display_message, message};

use super::decode::decode;
use super::error::{beginning, quote};
use super::names::nearest;
use super::text::scan;
use super::{
    BibliographicRecord, Element, GivenDate, MetadataError, RecordFormat, bibtex, is_undated,
    oai_dc, orcid, read_metadata_text, sniff_text,
};

/// The most problems of one text that are returned.
const MOST_PROBLEMS: usize = 100;

/// A fault of a metadata text that should be corrected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataProblem {
    /// The line, from 1.
    pub line: usize,
    /// The kind of fault.
    pub kind: MetadataProblemKind,
}

/// The kinds of faults of a metadata text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataProblemKind {
    /// A field has a name that is neither an element of Dublin Core nor an alias of one.
    UnknownName {
        /// The beginning of the name.
        name: String,
        /// The known name that is most similar to it, if one is.
        nearest: Option<&'static str>,
    },
    /// The text, or a line of it, cannot be read; the sentence of the [`MetadataError`].
    Unreadable(String),
    /// A date is not understood, or its day and month cannot be told apart.
    UnknownDate(String),
    /// An ORCID iD is none: its check does not fit.
    WrongOrcid(String),
    /// A command of TeX is not known; the beginning of its name.
    UnknownCommand(String),
    /// The record has no title. A record without one is accepted.
    NoTitle,
}

impl MetadataProblem {
    /// Whether a text with this problem is refused when it is written.
    #[must_use]
    pub fn is_error(&self) -> bool {
        match self.kind {
            MetadataProblemKind::UnknownName { .. } | MetadataProblemKind::Unreadable(_) => true,
            MetadataProblemKind::NoTitle
            | MetadataProblemKind::UnknownDate(_)
            | MetadataProblemKind::WrongOrcid(_)
            | MetadataProblemKind::UnknownCommand(_) => false,
        }
    }

    fn unreadable(error: &MetadataError) -> MetadataProblem {
        MetadataProblem {
            line: error.line().unwrap_or(1),
            kind: MetadataProblemKind::Unreadable(error.to_string()),
        }
    }

    pub(super) fn of(line: usize, error: &MetadataError) -> MetadataProblem {
        match error {
            MetadataError::UnknownElement { name, .. } => MetadataProblem {
                line,
                kind: MetadataProblemKind::UnknownName {
                    name: beginning(name),
                    nearest: nearest(name),
                },
            },
            error => MetadataProblem::unreadable(error),
        }
    }
}

impl Localize for MetadataProblem {
    fn message(&self) -> Message {
        let line = self.line;
        match &self.kind {
            MetadataProblemKind::UnknownName {
                name,
                nearest: Some(nearest),
            } => {
                let name = quote(name);
                message!(
                    "line {line} has the unknown field {name}; the nearest known name is '{nearest}'",
                    line,
                    name,
                    nearest
                )
            }
            MetadataProblemKind::UnknownName {
                name,
                nearest: None,
            } => {
                let name = quote(name);
                message!(
                    "line {line} has the unknown field {name}; see ibifs-tree(7)",
                    line,
                    name
                )
            }
            MetadataProblemKind::Unreadable(sentence) => Message::verbatim(sentence.clone()),
            MetadataProblemKind::UnknownDate(text) => {
                let text = quote(text);
                message!(
                    "line {line} has the date {text}, which is not understood and stays as it is; write it as 2010-03-15, or as EDTF has it",
                    line,
                    text
                )
            }
            MetadataProblemKind::WrongOrcid(text) => {
                let text = quote(text);
                message!(
                    "line {line} has {text}, which is no ORCID iD; a digit may be wrong",
                    line,
                    text
                )
            }
            MetadataProblemKind::UnknownCommand(name) => {
                let name = quote(&format!("\\{name}"));
                message!(
                    "line {line} has the TeX command {name}, which is not known and stays as it is",
                    line,
                    name
                )
            }
            MetadataProblemKind::NoTitle => message!("the record has no title"),
        }
    }
}

display_message!(MetadataProblem);

/// The problems of a metadata text, `<ibi>:` of an item whose metadata are not an item: names of fields that
/// are not known, what cannot be read, and a missing title. The format is recognized by the content. An empty
/// text has no problem that is an error.
///
/// BibTeX and refer allow fields of any name, so there these are no problem.
#[must_use]
pub fn check(bytes: &[u8]) -> Vec<MetadataProblem> {
    let mut problems = Vec::new();
    let record =
        match sniff_text(bytes) {
            RecordFormat::Text => scan(bytes, MOST_PROBLEMS).map(|(record, found)| {
                let found = found.iter();
                problems.extend(found.map(|(line, error)| MetadataProblem::of(*line, error)));
                record
            }),
            format => {
                if format == RecordFormat::OaiDc {
                    let unknown = oai_dc::unknown_elements(bytes).into_iter();
                    problems.extend(unknown.take(MOST_PROBLEMS).map(|(line, name)| {
                        MetadataProblem {
                            line,
                            kind: MetadataProblemKind::UnknownName {
                                nearest: nearest(&name),
                                name: beginning(&name),
                            },
                        }
                    }));
                }
                if format == RecordFormat::Bibtex {
                    let unknown = bibtex::unknown_commands(bytes).into_iter();
                    problems.extend(unknown.map(|name| MetadataProblem {
                        line: line_of(bytes, &format!("\\{name}")),
                        kind: MetadataProblemKind::UnknownCommand(beginning(&name)),
                    }));
                }
                read_metadata_text(bytes)
            }
        };
    match record {
        Ok(record) => problems.extend(of_values(bytes, &record)),
        Err(error) => problems.push(MetadataProblem::unreadable(&error)),
    }
    problems
}

/// The doubtful values of a record that can be read.
fn of_values(bytes: &[u8], record: &BibliographicRecord) -> Vec<MetadataProblem> {
    let mut problems = Vec::new();
    for date in record.core.values(Element::Date).take(MOST_PROBLEMS) {
        let is_understood = match GivenDate::read(date) {
            Some(date) => !date.is_ambiguous(),
            None => is_undated(date),
        };
        if !is_understood {
            problems.push(MetadataProblem {
                line: line_of(bytes, date),
                kind: MetadataProblemKind::UnknownDate(beginning(date)),
            });
        }
    }
    for value in record.values("orcid").take(MOST_PROBLEMS) {
        let id = value.split(' ').next().unwrap_or_default();
        if orcid(id).is_none() {
            problems.push(MetadataProblem {
                line: line_of(bytes, id),
                kind: MetadataProblemKind::WrongOrcid(beginning(id)),
            });
        }
    }
    if record.core.first(Element::Title).is_none() {
        problems.push(MetadataProblem {
            line: 1,
            kind: MetadataProblemKind::NoTitle,
        });
    }
    problems
}

/// The line that has a text; the first one if none has it as it is.
fn line_of(bytes: &[u8], text: &str) -> usize {
    let decoded = decode(bytes);
    let at = decoded.lines().position(|line| line.contains(text));
    at.map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(text: impl AsRef<[u8]>, expected: &[(usize, bool, &str)]) {
        let found = check(text.as_ref());
        let shown: Vec<(usize, bool, String)> = found
            .iter()
            .map(|problem| (problem.line, problem.is_error(), problem.to_string()))
            .collect();
        let shown: Vec<(usize, bool, &str)> = shown
            .iter()
            .map(|(line, is_error, text)| (*line, *is_error, text.as_str()))
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn lines_are_checked() {
        finds("title: A\nauthor: B\nAno: 1999\n", &[]);
        finds("", &[(1, false, "the record has no title")]);
        finds("creator: B\n", &[(1, false, "the record has no title")]);
        finds(
            "# remark\ntitel: A\ncreator: B\nx: y\n",
            &[
                (
                    2,
                    true,
                    "line 2 has the unknown field 'titel'; the nearest known name is 'title'",
                ),
                (
                    4,
                    true,
                    "line 4 has the unknown field 'x'; see ibifs-tree(7)",
                ),
                (1, false, "the record has no title"),
            ],
        );
        let many = "nothing: x\n".repeat(50_000);
        let found = check(many.as_bytes());
        assert_eq!(found.len(), MOST_PROBLEMS + 1);
        let long = format!("{}: x\ntitle: a\n", "é".repeat(300_000));
        assert_eq!(check(long.as_bytes()).len(), 1);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        for (text, line) in [
            (&b"title: A\nS\xe3o"[..], 2),
            (b"title: A\nno colon\n", 2),
            (b"  lost\ntitle: A\n", 1),
            (b"@misc{k, title = {A}\n@\n", 2),
            (b"<dc>\n<title>", 2),
            (b"<html/>", 1),
        ] {
            let found = check(text);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found.iter().all(MetadataProblem::is_error));
            assert_eq!(found[0].line, line, "{found:?}");
        }
        assert!(check(&vec![b'a'; super::super::MAX_BYTES + 1])[0].is_error());
    }

    #[test]
    fn other_formats_are_checked() {
        finds("@misc{k, titel = {A}, title = {B}, anything = 1}", &[]);
        finds("%0 Book\n%T A\n%@anything b\n", &[]);
        finds("%A B\n", &[(1, false, "the record has no title")]);
        finds(
            "<dc xmlns='http://purl.org/dc/elements/1.1/'>\n<title>A</title>\n<creater/></dc>",
            &[(
                3,
                true,
                "line 3 has the unknown field 'creater'; the nearest known name is 'creator'",
            )],
        );
    }
}
