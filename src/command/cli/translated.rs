//! The help in another language: the tree of commands with all texts replaced, including those of clap.

use clap::builder::{Resettable, StyledStr};
use clap::{Arg, Command};

use super::grouped;
use crate::command::language::Catalogue;
use ibi::message;
use ibi::message::Message;

/// The same commands with their help in the language of a catalogue. Texts that it lacks stay English.
#[must_use]
pub fn translated(mut command: Command, catalogue: &'static Catalogue) -> Command {
    // Built first: this adds clap's own options and the names of subcommands in usage lines.
    command.build();
    let command = of_command(command, catalogue);
    if command.get_name() == "ibifs" {
        grouped(command, |word| catalogue.translate(word))
    } else {
        command
    }
}

fn of_command(command: Command, catalogue: &'static Catalogue) -> Command {
    let text = |text: Option<&StyledStr>| -> Resettable<StyledStr> {
        text.map(|text| of_text(text, &[], catalogue)).into()
    };
    let about = text(command.get_about());
    let long_about = text(command.get_long_about());
    let before = text(command.get_before_help());
    let before_long = text(command.get_before_long_help());
    let after = text(command.get_after_help());
    let after_long = text(command.get_after_long_help());
    let command = command
        .about(about)
        .long_about(long_about)
        .before_help(before)
        .before_long_help(before_long)
        .after_help(after)
        .after_long_help(after_long)
        .subcommand_value_name(catalogue.text(&message!("COMMAND")))
        .mut_args(|argument| of_argument(argument, catalogue))
        .mut_subcommands(|below| of_command(below, catalogue));
    of_layout(command, catalogue)
}

fn of_text(text: &StyledStr, notes: &[String], catalogue: &Catalogue) -> StyledStr {
    let text = text.ansi().to_string();
    let said = match catalogue.help(&text) {
        Some(whole) => whole.to_owned(),
        None => by_columns(&text, catalogue),
    };
    let words = std::iter::once(said.as_str()).chain(notes.iter().map(String::as_str));
    StyledStr::from(words.collect::<Vec<_>>().join(" "))
}

/// A longer text, such as the examples: each column, between wide gaps, is looked up separately.
fn by_columns(text: &str, catalogue: &Catalogue) -> String {
    let mut said = String::new();
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while !rest.is_empty() {
            let (gap, after) = rest.split_at(rest.len() - rest.trim_start().len());
            let end = after.find("  ").unwrap_or(after.trim_end().len());
            let (column, behind) = after.split_at(end);
            said.push_str(gap);
            said.push_str(catalogue.help(column).unwrap_or(column));
            rest = behind;
        }
    }
    said
}

fn of_argument(argument: Arg, catalogue: &'static Catalogue) -> Arg {
    let notes = notes(&argument, catalogue);
    let text = |text: Option<&StyledStr>| -> Resettable<StyledStr> {
        text.map(|text| of_text(text, &notes, catalogue)).into()
    };
    let (help, long_help) = (text(argument.get_help()), text(argument.get_long_help()));
    let argument = argument.help(help).long_help(long_help);
    let argument = argument
        .hide_env(true)
        .hide_default_value(true)
        .hide_possible_values(true);
    let names = argument.get_value_names().unwrap_or_default().to_vec();
    // A value name would make a flag take a value.
    if names.is_empty() {
        return argument;
    }
    argument.value_names(names.into_iter().map(|name| {
        let said = catalogue.help(name.as_str());
        said.map_or(name, Into::into)
    }))
}

/// The notes in square brackets that clap adds to the help of an argument.
fn notes(argument: &Arg, catalogue: &Catalogue) -> Vec<String> {
    let mut notes = Vec::new();
    if !argument.get_action().takes_values() {
        return notes;
    }
    if let Some(name) = argument.get_env().filter(|_| !argument.is_hide_env_set()) {
        let value = std::env::var_os(name).unwrap_or_default();
        let variable = format!("{}={}", name.display(), value.display());
        notes.push(catalogue.translate(&message!("[env: {variable}]", variable)));
    }
    let defaults = argument.get_default_values().iter();
    let defaults: Vec<String> = defaults.map(|it| it.display().to_string()).collect();
    if !defaults.is_empty() && !argument.is_hide_default_value_set() {
        notes.push(catalogue.translate(&message!(
            "[default: {values}]",
            values = defaults.join(" ")
        )));
    }
    let possible = argument.get_possible_values();
    let possible = possible.iter().filter(|value| !value.is_hide_set());
    let possible: Vec<&str> = possible.map(|value| value.get_name()).collect();
    if !possible.is_empty() && !argument.is_hide_possible_values_set() {
        notes.push(catalogue.translate(&message!(
            "[possible values: {values}]",
            values = possible.join(", ")
        )));
    }
    notes
}

/// The usage line and the headings, as in clap, except for words that have no other setting.
fn of_layout(mut command: Command, catalogue: &'static Catalogue) -> Command {
    let heading_of = |title: &Message| catalogue.translate(title);
    let usage_heading = heading_of(&message!("Usage:"));
    let usage = command.render_usage().ansi().to_string();
    let usage = match usage.split_once("Usage:") {
        // The end of the heading's style remains in front.
        Some((_, usage)) => usage.trim_start_matches("\u{1b}[0m").trim_start(),
        None => &usage,
    };
    let usage = usage.replace("[OPTIONS]", &heading_of(&message!("[OPTIONS]")));
    // A second line is aligned with the first.
    let margin = |heading: &str| format!("\n{}", " ".repeat(heading.chars().count() + 1));
    let usage = usage.replace(&margin("Usage:"), &margin(&usage_heading));
    let heading = *command.get_styles().get_header();
    let mut template = format!(
        "{{before-help}}{{about-with-newline}}\n{heading}{usage_heading}{heading:#} {{usage}}"
    );
    let sections = [
        (
            command.has_subcommands(),
            message!("Commands:"),
            "{subcommands}",
        ),
        (
            has(command.get_positionals()),
            message!("Arguments:"),
            "{positionals}",
        ),
        (
            has(command.get_opts().chain(flags(&command))),
            message!("Options:"),
            "{options}",
        ),
    ];
    for (_, title, tag) in sections.iter().filter(|(is_there, ..)| *is_there) {
        template.push_str(&format!(
            "\n\n{heading}{}{heading:#}\n{tag}",
            heading_of(title)
        ));
    }
    template.push_str("{after-help}");
    command.override_usage(usage).help_template(template)
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let arguments = command.get_arguments();
    arguments.filter(|argument| !argument.is_positional())
}

fn has<'a>(mut arguments: impl Iterator<Item = &'a Arg>) -> bool {
    arguments.any(|argument| !argument.is_hide_set())
}
