//! The data of an item: its names, its state in an Archive, and the sidecar that travels with it.
//!
//! Validated values, see ibi(7). This module knows neither disk nor database, and does not decide whether a
//! sidecar is true.

mod error;
mod life;
mod sidecar;

use std::fmt;
use std::str::FromStr;

pub use error::{PairCause, SidecarError, StateError};
pub use ibi::names::{Names, NamesError};
pub use life::{
    Life, MOST_CHARACTERS, Seal, Withdrawal, instant, moment, one_line, period, period_text,
};
pub use sidecar::Sidecar;

/// The part of an item that an Archive holds (see ibi(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// The original, which exactly one Archive holds.
    Original,
    /// A copy, which any number of Archives may hold.
    Copy,
    /// Only the record of its removal.
    Deleted,
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            State::Original => "Original",
            State::Copy => "Copy",
            State::Deleted => "Deleted",
        }
    }
}

ibi::text_arguments!(State);

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = StateError;

    /// Parses a state as it is printed.
    fn from_str(text: &str) -> Result<State, StateError> {
        let states = [State::Original, State::Copy, State::Deleted];
        let found = states.into_iter().find(|state| state.as_str() == text);
        found.ok_or_else(|| StateError::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states() {
        for state in [State::Original, State::Copy, State::Deleted] {
            assert_eq!(state.to_string().parse(), Ok(state));
        }
        let error = "original".parse::<State>().expect_err("case matters");
        assert_eq!(
            error.to_string(),
            "state 'original' is not Original, Copy or Deleted"
        );
    }
}
