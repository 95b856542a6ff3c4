//! Tables of findings: what a check, a scrub, a backup, a package or a transfer can report.
//!
//! A row of a table is a variant of an enum, with a stable word for scripts, a severity, and a sentence for
//! people: what is wrong and, after a semicolon, what can be done.

use ibi::message::{Localize, Message};
use ibi::{display_message, message};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Answers are wrong or missing, or something may be lost.
    Error,
    /// Something is not as it should be; the answers are right, or a decision is needed.
    Warning,
    /// Information only: nothing is wrong.
    Notice,
}

impl Localize for Severity {
    fn message(&self) -> Message {
        match self {
            Severity::Error => message!("error"),
            Severity::Warning => message!("warning"),
            Severity::Notice => message!("notice"),
        }
    }
}

display_message!(Severity);

/// Receives each finding as it is found.
pub type Reporter<'a, F> = dyn FnMut(&F) -> std::io::Result<()> + 'a;

/// A sentence, followed by the detail of this case, if there is one.
pub fn with_detail(what: impl Localize, detail: Option<&Message>) -> Message {
    match detail {
        Some(detail) => message!("{what}: {detail}", what, detail),
        None => what.message(),
    }
}

/// Makes an enum from a table. A row is `Variant "word" Severity "sentence"`. A variant with a value is
/// `Variant(name: Type)`, and its sentence names the value, or the arguments in parentheses.
///
/// With `const ALL:` before the attributes a row also states whether a repair corrects it (`repaired` or
/// `reported`) and, after the sentence, the remedy separately; the enum then has a list of its variants.
macro_rules! findings {
    (const ALL: $(#[$attribute:meta])* pub enum $name:ident {
        $($code:ident $word:literal $severity:ident $repair:ident $what:literal $remedy:literal)*
    }) => {
        $crate::archive::finding::findings! {
            $(#[$attribute])*
            pub enum $name { $($code $word $severity $what)* }
        }

        impl $name {
            /// All codes.
            pub const ALL: &[$name] = &[$($name::$code),*];

            /// Whether a repair corrects it, if the store has the data for that.
            #[must_use]
            pub fn is_repairable(&self) -> bool {
                match self {
                    $($name::$code => $crate::archive::finding::findings!($repair),)*
                }
            }

            /// Returns what is wrong, as a sentence without a full stop.
            #[must_use]
            pub fn what(&self) -> ::ibi::message::Message {
                match self {
                    $($name::$code => ::ibi::message!($what),)*
                }
            }

            /// Returns what can be done.
            #[must_use]
            pub fn remedy(&self) -> ::ibi::message::Message {
                match self {
                    $($name::$code => ::ibi::message!($remedy),)*
                }
            }
        }
    };
    ($(#[$attribute:meta])* pub enum $name:ident {
        $($code:ident $(($value:ident: $type:ty))? $word:literal $severity:ident
            $what:literal $(($argument:ident = $given:expr))?)*
    }) => {
        $(#[$attribute])*
        pub enum $name {
            $(#[doc = $what] $code $(($type))?,)*
        }

        #[allow(dead_code, reason = "a table need not be printed with all its columns")]
        impl $name {
            /// The word for this finding, in print and in JSON; it never changes.
            #[must_use]
            pub fn word(&self) -> &'static str {
                match self {
                    $($name::$code { .. } => $word,)*
                }
            }

            /// The severity.
            #[must_use]
            pub fn severity(&self) -> $crate::archive::finding::Severity {
                match self {
                    $($name::$code { .. } => $crate::archive::finding::Severity::$severity,)*
                }
            }
        }

        impl ::ibi::message::Localize for $name {
            fn message(&self) -> ::ibi::message::Message {
                match self {
                    $($name::$code $(($value))? => $crate::archive::finding::findings!(
                        @ $what $(, $value)? $(; $argument = $given)?
                    ),)*
                }
            }
        }

        ::ibi::display_message!($name);
    };
    (@ $what:literal $(, $value:ident)?; $argument:ident = $given:expr) => {
        ::ibi::message!($what, $argument = $given)
    };
    (@ $what:literal $(, $value:ident)?) => {
        ::ibi::message!($what $(, $value)?)
    };
    (repaired) => { true };
    (reported) => { false };
}
pub(crate) use findings;

#[cfg(test)]
mod tests {
    use super::*;

    findings! {
        const ALL:
        /// Rows without values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Plain {
            First "first" Error repaired "it is gone" "put it back"
            Second "second" Notice reported "it is old" "wait"
        }
    }

    findings! {
        /// Rows with values.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Rich {
            Empty "empty" Notice "it is empty"
            Held(by: String) "held" Warning "it is held by {by}; ask there"
            Late(days: u32) "late" Error "it is {hours} hours late" (hours = days * 24)
        }
    }

    #[test]
    fn a_table_gives_words_severities_and_sentences() {
        let row = |it: &Plain| {
            (
                it.word(),
                it.severity(),
                it.is_repairable(),
                it.what().to_string(),
                it.remedy().to_string(),
            )
        };
        assert_eq!(
            Plain::ALL.iter().map(row).collect::<Vec<_>>(),
            [
                (
                    "first",
                    Severity::Error,
                    true,
                    "it is gone".to_owned(),
                    "put it back".to_owned()
                ),
                (
                    "second",
                    Severity::Notice,
                    false,
                    "it is old".to_owned(),
                    "wait".to_owned()
                ),
            ]
        );
        for (rich, word, severity, sentence) in [
            (Rich::Empty, "empty", "notice", "it is empty"),
            (
                Rich::Held("A".into()),
                "held",
                "warning",
                "it is held by A; ask there",
            ),
            (Rich::Late(2), "late", "error", "it is 48 hours late"),
        ] {
            assert_eq!(rich.word(), word);
            assert_eq!(rich.severity().to_string(), severity);
            assert_eq!(rich.to_string(), sentence);
        }
        assert_eq!(
            with_detail(Rich::Empty, Some(&message!("all of it"))).to_string(),
            "it is empty: all of it"
        );
        assert_eq!(with_detail(Rich::Empty, None).to_string(), "it is empty");
    }
}
