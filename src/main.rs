//! The `ibifs` command.

use std::process::ExitCode;

use clap::Parser;
use ibifs::cli::Cli;

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"))
        .format_target(false)
        .init();
    match ibifs::commands::run(Cli::parse().command) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            eprintln!("ibifs: {failure}");
            failure.exit.into()
        }
    }
}
