//! The `ibifs` command.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use ibifs::cli::Cli;
use ibifs::terminal::{Lines, OneLine};

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"))
        .format(|out, record| {
            let (time, level) = (out.timestamp(), record.level());
            writeln!(out, "[{time} {level:<5}] {}", OneLine(record.args()))
        })
        .init();
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    match ibifs::commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("ibifs: {failure}");
            failure.exit.into()
        }
    }
}

/// Says what was not understood, or the help that was asked for, in colour where there is one; an
/// argument that could give orders to the terminal is shown without.
fn refuse(error: &clap::Error) -> ! {
    let is_plain = |argument: OsString| !argument.to_string_lossy().contains(char::is_control);
    if std::env::args_os().all(is_plain) {
        error.exit();
    }
    eprint!("{}", Lines(error.render()));
    std::process::exit(error.exit_code())
}
