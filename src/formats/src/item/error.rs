//! Errors in the state of an item, or in a sidecar.
//!
//! The tests of the sentences are in the modules that parse these values.

use std::error::Error;

use ibi::message::{Localize, Message};
use ibi::names::NamesError;
use ibi::pairs::PairsError;
use ibi::relation::ModifierError;
use ibi::{ParseError, Quoted};
use ibi::{display_message, message};

/// A text is not a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateError {
    text: String,
}

impl StateError {
    pub(super) fn new(text: &str) -> StateError {
        StateError {
            text: text.to_owned(),
        }
    }
}

impl Localize for StateError {
    fn message(&self) -> Message {
        message!(
            "state {text} is not Original, Copy or Deleted",
            text = Quoted(&self.text)
        )
    }
}

display_message!(StateError);

impl Error for StateError {}

/// A document is not the sidecar of an item; the cause is in `source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SidecarError {
    /// It is not a list of pairs.
    Pairs(PairsError),
    /// The pair `ibi` is missing.
    Nameless,
    /// A pair that may occur once occurs twice.
    Twice {
        /// The name of the pair.
        name: String,
    },
    /// The name or the value of a known pair is not valid.
    Pair {
        /// The name of the pair.
        name: String,
        /// The error in it.
        cause: PairCause,
    },
}

/// The error in one pair of a sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairCause {
    /// The value is not the names of an item.
    Names(NamesError),
    /// The name of a relation, or a language, is not valid.
    Modifier(ModifierError),
    /// An alias or a date is not valid.
    Parse(ParseError),
    /// The state is not valid.
    State(StateError),
    /// A list in place of a single word.
    NotOneWord(String),
    /// A decision about the item without its date, or with words that it has not.
    Decision(String),
}

impl Localize for SidecarError {
    fn message(&self) -> Message {
        match self {
            SidecarError::Pairs(_) => message!("sidecar is not a list of pairs"),
            SidecarError::Nameless => message!("sidecar has no pair 'ibi', so it names no item"),
            SidecarError::Twice { name } => {
                message!(
                    "pair {name} of the sidecar occurs twice",
                    name = Quoted(name)
                )
            }
            SidecarError::Pair { name, .. } => {
                message!(
                    "pair {name} of the sidecar is not valid",
                    name = Quoted(name)
                )
            }
        }
    }
}

display_message!(SidecarError);

impl SidecarError {
    /// The sentence, followed by that of its cause.
    #[must_use]
    pub fn with_cause(&self) -> Message {
        let error = self.message();
        match self {
            SidecarError::Pairs(cause) => message!("{error}: {cause}", error, cause),
            SidecarError::Pair { cause, .. } => message!("{error}: {cause}", error, cause),
            SidecarError::Nameless | SidecarError::Twice { .. } => error,
        }
    }
}

impl Error for SidecarError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SidecarError::Pairs(error) => Some(error),
            SidecarError::Pair { cause, .. } => Some(cause),
            SidecarError::Nameless | SidecarError::Twice { .. } => None,
        }
    }
}

impl Localize for PairCause {
    fn message(&self) -> Message {
        match self {
            PairCause::Names(error) => error.message(),
            PairCause::Modifier(error) => error.message(),
            PairCause::Parse(error) => error.message(),
            PairCause::State(error) => error.message(),
            PairCause::NotOneWord(value) => {
                message!("value {value} is not one word", value = Quoted(value))
            }
            PairCause::Decision(value) => message!(
                "value {value} is not in the form that ibifs-tree(7) has for it",
                value = Quoted(value)
            ),
        }
    }
}

display_message!(PairCause);

impl Error for PairCause {}

impl From<NamesError> for PairCause {
    fn from(error: NamesError) -> PairCause {
        PairCause::Names(error)
    }
}

impl From<ModifierError> for PairCause {
    fn from(error: ModifierError) -> PairCause {
        PairCause::Modifier(error)
    }
}

impl From<ParseError> for PairCause {
    fn from(error: ParseError) -> PairCause {
        PairCause::Parse(error)
    }
}

impl From<StateError> for PairCause {
    fn from(error: StateError) -> PairCause {
        PairCause::State(error)
    }
}
