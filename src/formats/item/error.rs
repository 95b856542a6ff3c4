//! Why a value is not the names of an item, a state or a sidecar.
//!
//! Sentences are asserted where the values are read, in the rooms beside this one.

use std::error::Error;
use std::fmt;

use ibi::pairs::PairsError;
use ibi::relation::ModifierError;
use ibi::{ParseError, Quoted};

/// A value is not the names of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamesError {
    /// The words are others than those of `{rep R}`, `{ibip P}` or `{rep R ibip P}`.
    Shape(String),
    /// An identifier in it is not good.
    Ibi(ParseError),
}

impl fmt::Display for NamesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NamesError::Shape(found) => {
                let found = Quoted(found);
                write!(
                    f,
                    "{found} is not of the shape {{rep R}}, {{ibip P}} or {{rep R ibip P}}"
                )
            }
            NamesError::Ibi(error) => error.fmt(f),
        }
    }
}

impl Error for NamesError {}

/// A text is no state.
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

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "state {} is none of Original, Copy and Deleted",
            Quoted(&self.text)
        )
    }
}

impl Error for StateError {}

/// A document is not the sidecar of an item; the cause is in `source`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SidecarError {
    /// It is no list of pairs.
    Pairs(PairsError),
    /// The pair `ibi` is not there.
    Nameless,
    /// A pair that may be there once is there twice.
    Twice {
        /// The name of the pair.
        name: String,
    },
    /// A pair that we know has a name or a value that is not good.
    Pair {
        /// The name of the pair.
        name: String,
        /// What is wrong with it.
        cause: PairCause,
    },
}

/// What is wrong with one pair of a sidecar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairCause {
    /// The value is not the names of an item.
    Names(NamesError),
    /// The name of a relation, or a language, is not good.
    Modifier(ModifierError),
    /// An alias or a date is not good.
    Parse(ParseError),
    /// The state is none.
    State(StateError),
    /// A list where one word belongs.
    NotOneWord(String),
}

impl fmt::Display for SidecarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SidecarError::Pairs(_) => f.write_str("sidecar is no list of pairs"),
            SidecarError::Nameless => f.write_str("sidecar has no pair 'ibi', so it names no item"),
            SidecarError::Twice { name } => {
                write!(f, "pair {} of the sidecar is there twice", Quoted(name))
            }
            SidecarError::Pair { name, .. } => {
                write!(f, "pair {} of the sidecar is not good", Quoted(name))
            }
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

impl fmt::Display for PairCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PairCause::Names(error) => error.fmt(f),
            PairCause::Modifier(error) => error.fmt(f),
            PairCause::Parse(error) => error.fmt(f),
            PairCause::State(error) => error.fmt(f),
            PairCause::NotOneWord(value) => write!(f, "value {} is not one word", Quoted(value)),
        }
    }
}

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
