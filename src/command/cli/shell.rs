//! Arguments of the command that prints completion scripts, and of the command that the scripts run.

use clap::{Args, ValueEnum};

/// `ibifs completions`
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: Shell,
}

/// `ibifs complete`
#[derive(Debug, Args)]
pub struct Complete {
    /// Which shell asks
    pub shell: Shell,
    /// The words before the cursor, the program left out; of bash, the line and its last word
    #[arg(last = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// A shell that completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}
