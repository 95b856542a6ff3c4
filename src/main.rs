//! The `ibifs` command.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use ibifs::cli::{Cli, MountHelper};
use ibifs::logging;
use ibifs::terminal::Lines;

/// What mount(8) expects of its helpers for a usage error.
const USAGE_OF_MOUNT: i32 = 1;

fn main() -> ExitCode {
    logging::start();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(helper) = MountHelper::called(&arguments) {
        let helper = helper.unwrap_or_else(|error| refuse(&error, USAGE_OF_MOUNT));
        return ExitCode::from(ibifs::commands::mount_as_helper(&helper));
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error, error.exit_code()));
    match ibifs::commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("{}ibifs: {failure}", logging::mark_of_failure());
            failure.exit.into()
        }
    }
}

/// Says what was not understood, or the help that was asked for, in colour where there is one; an
/// argument that could give orders to the terminal is shown without.
fn refuse(error: &clap::Error, status: i32) -> ! {
    let is_plain = |argument: OsString| !argument.to_string_lossy().contains(char::is_control);
    match std::env::args_os().all(is_plain) {
        true => drop(error.print()),
        false => eprint!("{}", Lines(error.render())),
    }
    std::process::exit(if error.use_stderr() { status } else { 0 })
}
