//! Why a text is not a modifier, a list of verbs, a language, a format or the name of a relation.

use std::error::Error;
use std::fmt;

use crate::Quoted;

/// A text is not what may follow an identifier, or the name of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifierError {
    found: String,
    cause: Cause,
    place: Option<Place>,
}

/// The causes, each with the part it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Sign,
    Unclosed,
    Composition,
    Verb,
    NoParameter,
    FileListTwice,
    Language,
    LanguageMissing,
    Format,
}

/// Where in a longer text the part stands: what that text is, its bytes before the part, itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    form: &'static str,
    before: usize,
    text: String,
}

impl ModifierError {
    pub(super) fn new(found: &str, cause: Cause) -> ModifierError {
        ModifierError {
            found: found.to_owned(),
            cause,
            place: None,
        }
    }

    /// The same error, met after the first `before` bytes of a longer text.
    pub(super) fn within(mut self, form: &'static str, text: &str, before: usize) -> ModifierError {
        self.place = Some(Place {
            form,
            before,
            text: text.to_owned(),
        });
        self
    }
}

impl Cause {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Cause::Sign => ("character", "is none of !, + and :"),
            Cause::Unclosed => ("parenthesis", "is not closed"),
            Cause::Composition => (
                "modifier",
                "is none of the fourteen compositions of last edition, translation and metadata",
            ),
            Cause::Verb => (
                "verb",
                "is none of GetLastEdition, GetTranslation, GetMetadata and GetFileList",
            ),
            Cause::NoParameter => ("verb", "takes no parameter"),
            Cause::FileListTwice => ("verb", "was there before"),
            Cause::Language => (
                "language",
                "is not two lower-case letters, or these with a hyphen and two upper-case ones, as pt or pt-BR",
            ),
            Cause::LanguageMissing => ("relation", "needs a language, as in ibi.translation(pt)"),
            Cause::Format => ("format", "is not a word of letters, digits, _ and -"),
        }
    }
}

impl fmt::Display for ModifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, predicate) = self.cause.words();
        let found = Quoted(&self.found);
        match &self.place {
            None => write!(f, "{part} {found} {predicate}"),
            Some(Place { form, before, text }) => {
                let (at, text) = (before + 1, Quoted(text));
                write!(
                    f,
                    "{part} {found} at byte {at} of {form} {text} {predicate}"
                )
            }
        }
    }
}

impl Error for ModifierError {}
