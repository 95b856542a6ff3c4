//! The reasons why a text is not a modifier, a list of verbs, a language, a format or the name of a relation.

use crate::message::{Localize, Message};
use crate::{Quoted, display_message, message};
use std::error::Error;

/// A text is not what may follow an identifier, or the name of a relation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModifierError {
    found: String,
    cause: Cause,
    place: Option<EnclosingText>,
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

/// The place of the part in a longer text: what that text is, its bytes before the part, itself.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EnclosingText {
    form: Form,
    before: usize,
    text: String,
}

/// The kind of thing that a longer text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Modifier,
    Verbs,
    Relation,
}

impl Localize for Form {
    fn message(&self) -> Message {
        match self {
            Form::Modifier => message!("modifier"),
            Form::Verbs => message!("verbs"),
            Form::Relation => message!("relation"),
        }
    }
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
    pub(super) fn within(mut self, form: Form, text: &str, before: usize) -> ModifierError {
        self.place = Some(EnclosingText {
            form,
            before,
            text: text.to_owned(),
        });
        self
    }
}

impl Cause {
    /// Returns what the part is called, and what is wrong with it.
    fn parts(self) -> (Message, Message) {
        match self {
            Cause::Sign => (message!("character"), message!("is not one of !, + and :")),
            Cause::Unclosed => (message!("parenthesis"), message!("is not closed")),
            Cause::Composition => (
                message!("modifier"),
                message!(
                    "is not one of the fourteen compositions of last edition, translation and metadata"
                ),
            ),
            Cause::Verb => (
                message!("verb"),
                message!(
                    "is not one of GetLastEdition, GetTranslation, GetMetadata, GetFileList and GetFormats"
                ),
            ),
            Cause::NoParameter => (message!("verb"), message!("takes no parameter")),
            Cause::FileListTwice => (message!("verb"), message!("was there before")),
            Cause::Language => (
                message!("language"),
                message!(
                    "is not two lower-case letters, or these with a hyphen and two upper-case ones, as pt or pt-BR"
                ),
            ),
            Cause::LanguageMissing => (
                message!("relation"),
                message!("needs a language, as in ibi.translation(pt)"),
            ),
            Cause::Format => (
                message!("format"),
                message!("is not a word of letters, digits, _ and -"),
            ),
        }
    }
}

impl Localize for ModifierError {
    fn message(&self) -> Message {
        let (part, predicate) = self.cause.parts();
        let found = Quoted(&self.found);
        match &self.place {
            None => message!("{part} {found} {predicate}", part, found, predicate),
            Some(EnclosingText { form, before, text }) => message!(
                "{part} {found} at byte {at} of {form} {text} {predicate}",
                part,
                found,
                at = before + 1,
                form,
                text = Quoted(text),
                predicate
            ),
        }
    }
}

display_message!(ModifierError);

impl Error for ModifierError {}
