//! Errors of metadata records.
//!
//! Most variants have a line number, from 1, and quote the offending text, shortened and with control
//! characters escaped, so that a hostile record cannot control the terminal. The file name is not known here:
//! the caller puts it before the sentence.

use std::error::Error;
use std::fmt;

use super::{Element, MAX_BYTES};

/// Why a metadata record cannot be read.
#[derive(Debug)]
pub enum MetadataError {
    /// The record is larger than [`MAX_BYTES`].
    TooLarge {
        /// The size of the record, in bytes.
        bytes: usize,
    },
    /// A text that has to be UTF-8 is not.
    NotUtf8 {
        /// The line of the first wrong byte.
        line: usize,
        /// The beginning of the line, with the wrong byte replaced.
        text: String,
    },
    /// A line of text has no colon after a name.
    NoColon {
        /// The line.
        line: usize,
        /// The content of the line.
        text: String,
    },
    /// A line of text names none of the fifteen elements.
    UnknownElement {
        /// The line.
        line: usize,
        /// The unknown name.
        name: String,
    },
    /// A line begins with white space, but no value precedes it.
    NothingToContinue {
        /// The line.
        line: usize,
        /// The content of the line.
        text: String,
    },
    /// An XML declaration names an encoding that is not supported.
    UnknownEncoding {
        /// The encoding's name.
        name: String,
    },
    /// The XML is not well formed.
    BadXml {
        /// The line of the mistake.
        line: usize,
        /// The text at that position.
        text: String,
    },
    /// The XML refers to an entity that is not one of the five standard ones.
    UnknownEntity {
        /// The line of the reference.
        line: usize,
        /// The entity's name.
        name: String,
    },
    /// The prefix of an element is not bound to a namespace.
    UnknownPrefix {
        /// The line of the element.
        line: usize,
        /// The prefix.
        prefix: String,
    },
    /// XML elements are nested more deeply than any record needs.
    TooDeep {
        /// The line of the first element that is too deep.
        line: usize,
        /// The deepest level that is accepted.
        limit: usize,
    },
    /// The XML ends inside an element.
    NotClosed {
        /// The line on which the element begins.
        line: usize,
        /// The element's name.
        name: String,
    },
    /// The XML has no Dublin Core record.
    NoDublinCore,
    /// The BibTeX file has no entry.
    NoEntry,
    /// A syntax error in BibTeX.
    Unexpected {
        /// The line of the mistake.
        line: usize,
        /// The text that the grammar requires there.
        wanted: &'static str,
        /// The text found instead, empty at the end of the file.
        found: String,
    },
    /// A BibTeX value has no end.
    Unterminated {
        /// The line on which the value begins.
        line: usize,
        /// The beginning of the value.
        text: String,
    },
    /// The strings of a BibTeX file expand to more than [`MAX_BYTES`].
    TooMuchExpansion {
        /// The line of the string that exceeded the limit.
        line: usize,
    },
    /// The RIS record has no line that begins with a tag.
    NoRisTag {
        /// The file's first line that is not blank.
        text: String,
    },
    /// The JSON is not well formed.
    BadJson {
        /// The line of the mistake.
        line: usize,
        /// The beginning of the line.
        text: String,
    },
    /// The JSON is well formed and has no record.
    NoJsonRecord,
    /// The CITATION.cff file cannot be read.
    BadYaml {
        /// The line of the mistake.
        line: usize,
        /// The beginning of the line.
        text: String,
    },
    /// The XML has no record in the format that it should have.
    NoXmlRecord,
    /// The refer record has no line that begins with `%` and a tag.
    NoTag {
        /// The file's first line that is not blank.
        text: String,
    },
}

impl MetadataError {
    /// The line of the mistake, from 1, if it is in one line.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::NotUtf8 { line, .. }
            | Self::NoColon { line, .. }
            | Self::UnknownElement { line, .. }
            | Self::NothingToContinue { line, .. }
            | Self::BadXml { line, .. }
            | Self::UnknownEntity { line, .. }
            | Self::UnknownPrefix { line, .. }
            | Self::TooDeep { line, .. }
            | Self::NotClosed { line, .. }
            | Self::Unexpected { line, .. }
            | Self::Unterminated { line, .. }
            | Self::TooMuchExpansion { line }
            | Self::BadJson { line, .. }
            | Self::BadYaml { line, .. } => Some(*line),
            Self::TooLarge { .. }
            | Self::UnknownEncoding { .. }
            | Self::NoDublinCore
            | Self::NoEntry
            | Self::NoJsonRecord
            | Self::NoXmlRecord
            | Self::NoRisTag { .. }
            | Self::NoTag { .. } => None,
        }
    }
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { bytes } => {
                write!(
                    f,
                    "a metadata record of {bytes} bytes is too large, the most is {MAX_BYTES}"
                )
            }
            Self::NotUtf8 { line, text } => write!(
                f,
                "line {line} of the metadata is not UTF-8: {}",
                quote(text)
            ),
            Self::NoColon { line, text } => write!(
                f,
                "line {line} of the metadata is not 'name: value': {}; the names are {}",
                quote(text),
                names()
            ),
            Self::UnknownElement { line, name } => write!(
                f,
                "line {line} of the metadata names the unknown element {}; the names are {}",
                quote(name),
                names()
            ),
            Self::NothingToContinue { line, text } => write!(
                f,
                "line {line} of the metadata begins with white space and there is no value \
                 before it to continue: {}",
                quote(text)
            ),
            Self::UnknownEncoding { name } => {
                write!(
                    f,
                    "XML in the encoding {} is not read, only in UTF-8 and ISO-8859-1",
                    quote(name)
                )
            }
            Self::BadXml { line, text } => write!(
                f,
                "line {line} of the XML is not well formed near {}",
                quote(text)
            ),
            Self::UnknownEntity { line, name } => write!(
                f,
                "line {line} of the XML refers to the unknown entity {}; only amp, lt, gt, \
                 apos and quot are known",
                quote(name)
            ),
            Self::UnknownPrefix { line, prefix } => {
                write!(
                    f,
                    "line {line} of the XML has the prefix {} that is bound to no namespace",
                    quote(prefix)
                )
            }
            Self::TooDeep { line, limit } => {
                write!(f, "line {line} of the XML nests more than {limit} elements")
            }
            Self::NotClosed { line, name } => {
                write!(
                    f,
                    "the XML ends inside the element {} that begins on line {line}",
                    quote(name)
                )
            }
            Self::NoDublinCore => write!(f, "the XML has no Dublin Core record, no element 'dc'"),
            Self::NoEntry => write!(f, "the BibTeX file has no entry"),
            Self::Unexpected {
                line,
                wanted,
                found,
            } if found.is_empty() => {
                write!(
                    f,
                    "line {line} of the BibTeX file should have {wanted} where the file ends"
                )
            }
            Self::Unexpected {
                line,
                wanted,
                found,
            } => {
                write!(
                    f,
                    "line {line} of the BibTeX file should have {wanted} at {}",
                    quote(found)
                )
            }
            Self::Unterminated { line, text } => {
                write!(
                    f,
                    "the value that begins on line {line} of the BibTeX file has no end: {}",
                    quote(text)
                )
            }
            Self::TooMuchExpansion { line } => {
                write!(
                    f,
                    "the strings of the BibTeX file give more than {MAX_BYTES} bytes on line {line}"
                )
            }
            Self::NoRisTag { text } => write!(
                f,
                "the RIS record has no line that begins with a tag, as 'TY  - ': {}",
                quote(text)
            ),
            Self::BadJson { line, text } => write!(
                f,
                "line {line} of the JSON is not well formed: {}",
                quote(text)
            ),
            Self::NoJsonRecord => write!(
                f,
                "the JSON has no record in CSL-JSON, DataCite or schema.org"
            ),
            Self::BadYaml { line, text } => write!(
                f,
                "line {line} of the CITATION.cff file cannot be read: {}",
                quote(text)
            ),
            Self::NoXmlRecord => {
                write!(f, "the XML has no record in Dublin Core, DataCite or MODS")
            }
            Self::NoTag { text } => {
                write!(
                    f,
                    "the refer record has no line that begins with '%' and a tag: {}",
                    quote(text)
                )
            }
        }
    }
}

// The XML reader's error is not the source: it quotes the document unescaped, with line ends.
impl Error for MetadataError {}

/// The number of characters of an offending text that are quoted.
const SHOWN: usize = 40;

/// The beginning of an offending text: all that an error stores of it.
pub(super) fn beginning(text: &str) -> String {
    // One character more than is quoted, so that `quote` can see that there is more.
    text.trim().chars().take(SHOWN + 1).collect()
}

/// A text in quotes, shortened, with control characters escaped.
pub(super) fn quote(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars().take(SHOWN) {
        match character {
            '\'' | '"' | '\\' => shown.push(character),
            _ => shown.extend(character.escape_debug()),
        }
    }
    let more = if text.chars().nth(SHOWN).is_some() {
        "..."
    } else {
        ""
    };
    format!("'{shown}{more}'")
}

fn names() -> String {
    Element::ALL.map(Element::name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_short_and_tame() {
        let long = "x".repeat(1000);
        let cases = [
            ("title", "'title'".to_string()),
            ("  a\u{1b}[2J\n", "'a\\u{1b}[2J'".to_string()),
            (long.as_str(), format!("'{}...'", "x".repeat(SHOWN))),
            ("", "''".to_string()),
        ];
        for (text, expected) in cases {
            assert_eq!(quote(&beginning(text)), expected);
        }
    }

    #[test]
    fn sentences_read_well_after_the_program_name() {
        let cases = [
            (
                MetadataError::TooLarge { bytes: 2_000_000 },
                "a metadata record of 2000000 bytes is too large, the most is 1048576",
            ),
            (
                MetadataError::Unexpected {
                    line: 3,
                    wanted: "'='",
                    found: String::new(),
                },
                "line 3 of the BibTeX file should have '=' where the file ends",
            ),
            (
                MetadataError::Unexpected {
                    line: 3,
                    wanted: "'='",
                    found: "{x".to_string(),
                },
                "line 3 of the BibTeX file should have '=' at '{x'",
            ),
        ];
        for (error, expected) in cases {
            assert_eq!(error.to_string(), expected);
            assert!(!expected.ends_with('.'));
        }
    }
}
