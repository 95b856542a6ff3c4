//! A command that is stopped at durable steps, one after the other.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::stride;
use super::supervisor::{Supervised, What};
use crate::support::TestEnv;

/// No command has so many steps.
pub const MANY: usize = 1000;

/// The end of a command that was to be stopped at a step.
pub struct Ended {
    /// Whether it came to the step.
    pub reached: bool,
    /// The step, for messages.
    pub step: String,
    /// What it has printed, and its status.
    pub output: Output,
}

/// Our command with these arguments, in the directory of an environment.
pub fn command(env: &TestEnv, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ibifs"));
    command
        .args(arguments)
        .current_dir(env.root())
        .env_remove("IBIFS_STORE")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a command and stops it at one of the steps in a directory. It succeeds if it does not come to that.
#[track_caller]
pub fn stop_at(
    env: &TestEnv,
    arguments: &[&str],
    watched: &Path,
    (at, what): (usize, What),
) -> Ended {
    stop(&mut command(env, arguments), watched, (at, what))
}

/// The same of a command that is made.
#[track_caller]
pub fn stop(command: &mut Command, watched: &Path, (at, what): (usize, What)) -> Ended {
    let (supervised, child) = Supervised::start(command, watched, Some((at, what)));
    let output: Output = child.wait_with_output().expect("it ends");
    let reached = supervised.reached();
    let step = format!("{what:?} at {}", supervised.step());
    supervised.wait();
    assert!(reached || output.status.success(), "{step}: {output:?}");
    Ended {
        reached,
        step,
        output,
    }
}

/// Calls `stops_at` with one step after the other, [`stride`] apart, until it returns that the command ended before.
#[track_caller]
pub fn at_steps(half: usize, least: usize, stops_at: impl Fn(usize) -> bool) {
    let steps = (1..MANY).step_by(stride(half));
    let count = steps.take_while(|at| stops_at(*at)).count();
    println!("stopped at {count} steps");
    assert!(count > least, "it has steps");
}
