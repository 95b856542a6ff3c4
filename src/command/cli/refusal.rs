//! Usage errors in another language: translations of clap's own sentences.

use std::error::Error;
use std::fmt::Write;

use clap::builder::StyledStr;
use clap::builder::styling::{Style, Styles};
use clap::error::{ContextKind, ContextValue, ErrorFormatter, ErrorKind};
use ibi::message;
use ibi::message::{Localize, Message};

use super::value::Invalid;
use crate::command::language::{Catalogue, chosen};

/// Formats an error of clap in the chosen language.
#[derive(Debug)]
pub struct LocalizedErrors;

impl ErrorFormatter for LocalizedErrors {
    fn format_error(error: &clap::error::Error<Self>) -> StyledStr {
        let mut text = String::new();
        // This formatter is used only with a catalogue.
        if let Some(catalogue) = chosen() {
            let refusal = RefusalText {
                error,
                catalogue,
                styles: Styles::styled(),
            };
            refusal.write(&mut text);
        }
        StyledStr::from(text)
    }
}

struct RefusalText<'a> {
    error: &'a clap::error::Error<LocalizedErrors>,
    catalogue: &'static Catalogue,
    styles: Styles,
}

impl RefusalText<'_> {
    fn write(&self, text: &mut String) {
        text.push_str(&painted(
            self.styles.get_error(),
            &self.translate(&message!("error:")),
        ));
        text.push(' ');
        text.push_str(&self.sentence());
        for tip in self.tips() {
            let mark = painted(self.styles.get_valid(), &self.translate(&message!("tip:")));
            // Writing to a String does not fail.
            let _ = write!(text, "\n\n  {mark} {tip}");
        }
        if let Some(ContextValue::StyledStr(usage)) = self.error.get(ContextKind::Usage) {
            let usage = usage.ansi().to_string();
            let usage = usage.replacen("Usage:", &self.translate(&message!("Usage:")), 1);
            let _ = write!(text, "\n\n{usage}");
        }
        let help = painted(self.styles.get_literal(), "--help");
        let more = self.translate(&message!("For more information, try '{help}'.", help));
        let _ = write!(text, "\n\n{more}\n");
    }

    fn translate(&self, message: &Message) -> String {
        self.catalogue.translate(message)
    }

    /// The cause of an error: a message, or a text of clap or the standard library.
    fn cause(&self, cause: &(dyn Error + 'static)) -> String {
        match cause.downcast_ref::<Invalid>() {
            Some(invalid) => self.translate(&invalid.message()),
            None => self.translate(&Message::foreign(cause.to_string())),
        }
    }

    /// A text that the error refers to.
    fn context(&self, kind: ContextKind) -> Option<String> {
        match self.error.get(kind)? {
            ContextValue::String(text) => Some(text.clone()),
            ContextValue::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    fn wrong(&self, kind: ContextKind) -> String {
        let text = self.context(kind).unwrap_or_default();
        painted(self.styles.get_invalid(), &text)
    }

    fn literal(&self, kind: ContextKind) -> String {
        let text = self.context(kind).unwrap_or_default();
        painted(self.styles.get_literal(), &text)
    }

    /// Texts that the error refers to.
    fn several(&self, kind: ContextKind) -> Vec<String> {
        let texts = match self.error.get(kind) {
            Some(ContextValue::Strings(texts)) => texts.clone(),
            Some(ContextValue::String(text)) => vec![text.clone()],
            _ => Vec::new(),
        };
        let paint = |text: &String| painted(self.styles.get_valid(), text);
        texts.iter().map(paint).collect()
    }

    fn sentence(&self) -> String {
        let argument = self.wrong(ContextKind::InvalidArg);
        let of = self.literal(ContextKind::InvalidArg);
        let value = self.wrong(ContextKind::InvalidValue);
        match self.error.kind() {
            ErrorKind::ArgumentConflict => self.conflict(&argument),
            ErrorKind::NoEquals => self.translate(&message!(
                "equal sign is needed when assigning values to '{argument}'",
                argument
            )),
            ErrorKind::InvalidValue => {
                let is_none = self.context(ContextKind::InvalidValue).unwrap_or_default();
                let sentence = if is_none.is_empty() {
                    self.translate(&message!(
                        "a value is required for '{argument}' but none was supplied",
                        argument
                    ))
                } else {
                    self.translate(&message!(
                        "invalid value '{value}' for '{option}'",
                        value,
                        option = of
                    ))
                };
                sentence
                    + &self.listed(ContextKind::ValidValue, |values| {
                        message!("[possible values: {values}]", values)
                    })
            }
            ErrorKind::InvalidSubcommand => {
                let given = self.wrong(ContextKind::InvalidSubcommand);
                self.translate(&message!(
                    "unrecognized subcommand '{command}'",
                    command = given
                ))
            }
            ErrorKind::MissingRequiredArgument => {
                let missing = self.several(ContextKind::InvalidArg).join("\n  ");
                let sentence = self.translate(&message!(
                    "the following required arguments were not provided:"
                ));
                format!("{sentence}\n  {missing}")
            }
            ErrorKind::MissingSubcommand => {
                let given = self.wrong(ContextKind::InvalidSubcommand);
                let sentence = self.translate(&message!(
                    "'{command}' requires a subcommand but one was not provided",
                    command = given
                ));
                sentence
                    + &self.listed(ContextKind::ValidSubcommand, |values| {
                        message!("[subcommands: {values}]", values)
                    })
            }
            ErrorKind::TooManyValues => self.translate(&message!(
                "unexpected value '{value}' for '{option}' found; no more were expected",
                value,
                option = of
            )),
            ErrorKind::TooFewValues => self.translate(&message!(
                "{wanted} values required by '{option}'; only {found} provided",
                wanted = self.literal(ContextKind::MinValues),
                option = of,
                found = self.wrong(ContextKind::ActualNumValues)
            )),
            ErrorKind::WrongNumberOfValues => self.translate(&message!(
                "{wanted} values required for '{option}' but {found} provided",
                wanted = self.literal(ContextKind::ExpectedNumValues),
                option = of,
                found = self.wrong(ContextKind::ActualNumValues)
            )),
            ErrorKind::ValueValidation => {
                let sentence = self.translate(&message!(
                    "invalid value '{value}' for '{option}'",
                    value,
                    option = of
                ));
                match self.error.source() {
                    Some(cause) => {
                        format!("{sentence}: {}", self.cause(cause))
                    }
                    None => sentence,
                }
            }
            ErrorKind::UnknownArgument => self.translate(&message!(
                "unexpected argument '{argument}' found",
                argument
            )),
            ErrorKind::InvalidUtf8 => self.translate(&message!(
                "invalid UTF-8 was detected in one or more arguments"
            )),
            other => match self.error.source() {
                Some(cause) => self.cause(cause),
                None => other.to_string(),
            },
        }
    }

    fn conflict(&self, argument: &str) -> String {
        let given = self.context(ContextKind::InvalidArg);
        let others = self.several(ContextKind::PriorArg);
        let is_itself = given.is_some() && given == self.context(ContextKind::PriorArg);
        match &others[..] {
            _ if is_itself => {
                self.translate(&message!("the argument '{argument}' cannot be used multiple times", argument))
            }
            [] => self.translate(&message!("the argument '{argument}' cannot be used with one or more of the other specified arguments", argument)),
            [other] => self.translate(&message!("the argument '{argument}' cannot be used with '{other}'", argument, other)),
            others => {
                let sentence = self.translate(&message!("the argument '{argument}' cannot be used with:", argument));
                format!("{sentence}\n  {}", others.join("\n  "))
            }
        }
    }

    /// The valid values, on a separate line.
    fn listed(&self, kind: ContextKind, message: fn(String) -> Message) -> String {
        match &self.several(kind)[..] {
            [] => String::new(),
            valid => format!("\n  {}", self.translate(&message(valid.join(", ")))),
        }
    }

    fn tips(&self) -> Vec<String> {
        let similar = [
            ContextKind::SuggestedSubcommand,
            ContextKind::SuggestedArg,
            ContextKind::SuggestedValue,
        ];
        let found = similar.into_iter().map(|kind| self.several(kind));
        let found = found.filter(|texts| !texts.is_empty());
        let mut tips: Vec<String> = found
            .map(|texts| {
                let texts = texts.join("', '");
                self.translate(&message!("there is something similar: '{texts}'", texts))
            })
            .collect();
        if let Some(ContextValue::StyledStrs(others)) = self.error.get(ContextKind::Suggested) {
            tips.extend(others.iter().map(|tip| self.tip(tip)));
        }
        tips
    }

    /// A tip of clap, which is a finished sentence.
    fn tip(&self, tip: &StyledStr) -> String {
        let argument = self.context(ContextKind::InvalidArg).unwrap_or_default();
        let known = as_value(&argument);
        if tip.to_string() == known.to_string() {
            self.translate(&known)
        } else {
            self.translate(&Message::foreign(tip.to_string()))
        }
    }
}

/// The tip of clap for an argument that looks like an option.
fn as_value(argument: &str) -> Message {
    message!(
        "to pass '{argument}' as a value, use '-- {argument}'",
        argument
    )
}

fn painted(style: &Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
