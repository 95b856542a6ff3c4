//! The `ibifs` command.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorFormatter;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use clap::{CommandFactory, FromArgMatches};
use ibifs::command::cli::{Cli, LocalizedErrors, MountHelper, grouped, translated};
use ibifs::command::json;
use ibifs::command::language;
use ibifs::command::logging;
use ibifs::command::terminal::ManyLines;

/// The exit status that mount(8) expects of its helpers for a usage error.
const USAGE_OF_MOUNT: i32 = 1;

fn main() -> ExitCode {
    logging::start();
    language::choose(|name| std::env::var(name).ok());
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(helper) = MountHelper::called(&arguments) {
        let helper = helper.unwrap_or_else(|error| {
            refuse_in_language(error, MountHelper::command(), USAGE_OF_MOUNT)
        });
        return ExitCode::from(ibifs::command::commands::mount_as_helper(&helper));
    }
    let options = arguments.iter().take_while(|argument| *argument != "--");
    let is_json = options.into_iter().any(|argument| argument == "--json");
    let parsed = command()
        .try_get_matches_from(&arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = parsed.unwrap_or_else(|error| {
        let status = error.exit_code();
        if is_json && error.use_stderr() {
            eprint!("{}", json::error("usage", status, &sentence_of(&error)));
            std::process::exit(status);
        }
        refuse_in_language(error, command(), status)
    });
    match ibifs::command::commands::run(cli.command) {
        Ok(exit) => exit.into(),
        Err(failure) if is_json => {
            eprint!("{}", failure.json());
            failure.exit.into()
        }
        Err(failure) => {
            eprintln!("{}ibifs: {failure}", logging::mark_of_failure());
            failure.exit.into()
        }
    }
}

/// Returns what was not understood, as one sentence: the paragraph above the tips and the usage.
fn sentence_of(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().take_while(|line| !line.trim().is_empty());
    let sentence = lines.map(str::trim).collect::<Vec<_>>().join(" ");
    sentence.trim_start_matches("error: ").to_owned()
}

/// The commands, in groups.
fn command() -> clap::Command {
    grouped(Cli::command(), |word| word.to_string())
}

/// Refuses in the language that was chosen: what was typed is read once more, by the same commands
/// with their help in that language.
fn refuse_in_language(error: clap::Error, command: clap::Command, status: i32) -> ! {
    let Some(catalogue) = language::chosen() else {
        refuse(&error, status)
    };
    let again = translated(command, catalogue).try_get_matches();
    let error = again.err().unwrap_or(error);
    if !error.use_stderr() || error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        refuse(&error, status)
    }
    refuse(&error.apply::<LocalizedErrors>(), status)
}

/// Says what was not understood, or the help that was asked for, in colour where there is one; an
/// argument that could give orders to the terminal is shown without.
fn refuse<F: ErrorFormatter>(error: &clap::error::Error<F>, status: i32) -> ! {
    let is_plain = |argument: OsString| !argument.to_string_lossy().contains(char::is_control);
    if std::env::args_os().all(is_plain) {
        drop(error.print());
    } else {
        eprint!("{}", ManyLines(error.render()));
    }
    std::process::exit(if error.use_stderr() { status } else { 0 })
}
