//! Usage errors in another language: translations of clap's own sentences.

use std::error::Error as _;
use std::fmt::Write;

use clap::builder::StyledStr;
use clap::builder::styling::{Style, Styles};
use clap::error::{ContextKind, ContextValue, Error, ErrorFormatter, ErrorKind};

use crate::command::language::{Catalogue, chosen};

/// Formats an error of clap in the chosen language.
#[derive(Debug)]
pub struct Refusal;

impl ErrorFormatter for Refusal {
    fn format_error(error: &Error<Self>) -> StyledStr {
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
    error: &'a Error<Refusal>,
    catalogue: &'static Catalogue,
    styles: Styles,
}

impl RefusalText<'_> {
    fn write(&self, text: &mut String) {
        text.push_str(&painted(self.styles.get_error(), &self.says("error:", &[])));
        text.push(' ');
        text.push_str(&self.sentence());
        for tip in self.tips() {
            let mark = painted(self.styles.get_valid(), &self.says("tip:", &[]));
            // Writing to a String does not fail.
            let _ = write!(text, "\n\n  {mark} {tip}");
        }
        if let Some(ContextValue::StyledStr(usage)) = self.error.get(ContextKind::Usage) {
            let usage = usage.ansi().to_string();
            let usage = usage.replacen("Usage:", &self.says("Usage:", &[]), 1);
            let _ = write!(text, "\n\n{usage}");
        }
        let help = painted(self.styles.get_literal(), "--help");
        let more = self.says("For more information, try '{}'.", &[&help]);
        let _ = write!(text, "\n\n{more}\n");
    }

    fn says(&self, english: &'static str, filling: &[&str]) -> String {
        self.catalogue.help_with(english, filling)
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
            ErrorKind::NoEquals => self.says(
                "equal sign is needed when assigning values to '{}'",
                &[&argument],
            ),
            ErrorKind::InvalidValue => {
                let is_none = self.context(ContextKind::InvalidValue).unwrap_or_default();
                let sentence = if is_none.is_empty() {
                    self.says(
                        "a value is required for '{}' but none was supplied",
                        &[&argument],
                    )
                } else {
                    self.says("invalid value '{}' for '{}'", &[&value, &of])
                };
                sentence + &self.listed("[possible values: {}]", ContextKind::ValidValue)
            }
            ErrorKind::InvalidSubcommand => {
                let given = self.wrong(ContextKind::InvalidSubcommand);
                self.says("unrecognized subcommand '{}'", &[&given])
            }
            ErrorKind::MissingRequiredArgument => {
                let missing = self.several(ContextKind::InvalidArg).join("\n  ");
                let sentence =
                    self.says("the following required arguments were not provided:", &[]);
                format!("{sentence}\n  {missing}")
            }
            ErrorKind::MissingSubcommand => {
                let given = self.wrong(ContextKind::InvalidSubcommand);
                let sentence = self.says(
                    "'{}' requires a subcommand but one was not provided",
                    &[&given],
                );
                sentence + &self.listed("[subcommands: {}]", ContextKind::ValidSubcommand)
            }
            ErrorKind::TooManyValues => self.says(
                "unexpected value '{}' for '{}' found; no more were expected",
                &[&value, &of],
            ),
            ErrorKind::TooFewValues => self.says(
                "{} values required by '{}'; only {} provided",
                &[
                    &self.literal(ContextKind::MinValues),
                    &of,
                    &self.wrong(ContextKind::ActualNumValues),
                ],
            ),
            ErrorKind::WrongNumberOfValues => self.says(
                "{} values required for '{}' but {} provided",
                &[
                    &self.literal(ContextKind::ExpectedNumValues),
                    &of,
                    &self.wrong(ContextKind::ActualNumValues),
                ],
            ),
            ErrorKind::ValueValidation => {
                let sentence = self.says("invalid value '{}' for '{}'", &[&value, &of]);
                match self.error.source() {
                    Some(cause) => {
                        format!("{sentence}: {}", self.catalogue.told(&cause.to_string()))
                    }
                    None => sentence,
                }
            }
            ErrorKind::UnknownArgument => self.says("unexpected argument '{}' found", &[&argument]),
            ErrorKind::InvalidUtf8 => {
                self.says("invalid UTF-8 was detected in one or more arguments", &[])
            }
            other => match self.error.source() {
                Some(cause) => self.catalogue.told(&cause.to_string()),
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
                self.says("the argument '{}' cannot be used multiple times", &[argument])
            }
            [] => self.says(
                "the argument '{}' cannot be used with one or more of the other specified arguments",
                &[argument],
            ),
            [other] => self.says("the argument '{}' cannot be used with '{}'", &[argument, other]),
            others => {
                let sentence = self.says("the argument '{}' cannot be used with:", &[argument]);
                format!("{sentence}\n  {}", others.join("\n  "))
            }
        }
    }

    /// The valid values, on a separate line.
    fn listed(&self, english: &'static str, kind: ContextKind) -> String {
        match &self.several(kind)[..] {
            [] => String::new(),
            right => format!("\n  {}", self.says(english, &[&right.join(", ")])),
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
            .map(|texts| self.says("there is something similar: '{}'", &[&texts.join("', '")]))
            .collect();
        if let Some(ContextValue::StyledStrs(others)) = self.error.get(ContextKind::Suggested) {
            tips.extend(
                others
                    .iter()
                    .map(|tip| self.catalogue.told(&tip.to_string())),
            );
        }
        tips
    }
}

fn painted(style: &Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
