//! The command `ibifs`.
//!
//! - [`terminal`]: text for a terminal, with no control character in it.
//! - [`language`]: messages in the user's language.
//! - [`progress`]: the progress of a long command, on the terminal.
//! - [`logging`]: standard error, the journal or the system's log.
//! - [`cli`]: the command line and its help. Touches nothing.
//! - [`json`]: what is printed for programs.
//! - [`exit`]: exit codes, and failures that carry one.
//! - [`commands`]: what each command does. On a mounted store it works through the mount.

pub mod cli;
pub mod commands;
pub(crate) mod exit;
pub mod json;
pub mod language;
pub mod logging;
pub(crate) mod progress;
pub mod terminal;
