//! The words that may come next on a command line, for completion. Reads and writes nothing.

use clap::builder::ValueHint;
use clap::{Arg, ArgAction, Command, CommandFactory};

use super::Cli;

/// A completion word, and its description.
pub type Word = (String, String);

/// The candidates for the incomplete word.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// Whole commands and options.
    pub words: Vec<Word>,
    /// The part before a value, such as `--store=`.
    pub before: String,
    /// The kind of value.
    pub value: Option<ValueKind>,
    /// The store or mount point that an earlier word names.
    pub store: Option<String>,
}

/// A kind of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// An item: a path or an identifier, with or without a modifier.
    Item,
    /// An identifier only.
    Identifier,
    /// The beginning of an identifier.
    Prefix,
    /// Options of a mount, joined by commas.
    MountOptions,
    /// A file.
    File,
    /// A directory.
    Directory,
}

/// The candidates for the word after these words, which do not include the name of the program.
pub fn next(words: &[String], typed: &str) -> Candidates {
    let mut root = Cli::command();
    root.build();
    let reached = CommandPosition::after(&root, words);
    let mut next = Candidates {
        store: reached.store.clone(),
        ..Candidates::default()
    };
    if let Some(option) = reached.open {
        next.offer(option);
        return next;
    }
    if typed.starts_with('-') && !reached.is_past_options {
        match typed.split_once('=') {
            Some((name, _)) => {
                if let Some(option) = option_named(reached.command, name) {
                    next.offer(option);
                    next.before = format!("{name}=");
                }
            }
            None => next.words = options(reached.command),
        }
        return next;
    }
    if reached.position == 0 {
        let below = reached.command.get_subcommands();
        let shown = below.filter(|command| !command.is_hide_set());
        let word = |command: &Command| (command.get_name().to_owned(), first(command.get_about()));
        next.words = shown.map(word).collect();
    }
    if let Some(argument) = positional(reached.command, reached.position) {
        next.offer(argument);
    }
    next
}

impl Candidates {
    fn offer(&mut self, argument: &Arg) {
        let values = argument.get_possible_values();
        if values.is_empty() {
            self.value = wanted(argument);
        } else {
            let word = |name: &str| (name.to_owned(), String::new());
            self.words
                .extend(values.iter().map(|value| word(value.get_name())));
        }
    }
}

/// The command and the arguments that the previous words lead to.
struct CommandPosition<'a> {
    command: &'a Command,
    /// The number of positional arguments so far.
    position: usize,
    /// An option whose value comes next.
    open: Option<&'a Arg>,
    is_past_options: bool,
    store: Option<String>,
}

impl<'a> CommandPosition<'a> {
    fn after(root: &'a Command, words: &[String]) -> CommandPosition<'a> {
        let mut reached = CommandPosition {
            command: root,
            position: 0,
            open: None,
            is_past_options: false,
            store: None,
        };
        for word in words {
            reached.take(word);
        }
        reached
    }

    fn take(&mut self, word: &str) {
        if let Some(option) = self.open.take() {
            return self.note(option, word);
        }
        if !self.is_past_options && word.starts_with('-') && word.len() > 1 {
            if word == "--" {
                self.is_past_options = true;
            } else if let Some((name, value)) = word.split_once('=') {
                if let Some(option) = option_named(self.command, name) {
                    self.note(option, value);
                }
            } else {
                self.open = option_named(self.command, word).filter(|option| takes_value(option));
            }
            return;
        }
        if self.position == 0
            && let Some(below) = self.command.find_subcommand(word)
        {
            self.command = below;
            return;
        }
        if let Some(argument) = positional(self.command, self.position) {
            self.note(argument, word);
        }
        self.position += 1;
    }

    fn note(&mut self, argument: &Arg, value: &str) {
        if argument.get_id() == "store" || value_name(argument) == "STORE-OR-MNT" {
            self.store = Some(value.to_owned());
        }
    }
}

fn takes_value(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Set | ArgAction::Append)
}

fn option_named<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|argument| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        long.as_deref() == Some(name) || short.as_deref() == Some(name)
    })
}

/// The options of a command, in their long form where they have one.
fn options(command: &Command) -> Vec<Word> {
    let shown = command
        .get_arguments()
        .filter(|argument| !argument.is_positional() && !argument.is_hide_set());
    let word = |argument: &Arg| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let name = long.or_else(|| argument.get_short().map(|short| format!("-{short}")))?;
        Some((name, first(argument.get_help())))
    };
    shown.filter_map(word).collect()
}

/// The positional argument at this position; the last one may be repeated.
fn positional(command: &Command, position: usize) -> Option<&Arg> {
    let all: Vec<&Arg> = command.get_positionals().collect();
    let last = all.last().filter(|last| {
        let count = last.get_num_args();
        count.is_some_and(|count| count.max_values() > 1)
    });
    all.get(position).or(last).copied()
}

fn value_name(argument: &Arg) -> &str {
    let names = argument.get_value_names().unwrap_or_default();
    names.first().map_or("", |name| name.as_str())
}

/// The kind of a value, by its name in the help.
fn wanted(argument: &Arg) -> Option<ValueKind> {
    match (value_name(argument), argument.get_id().as_str()) {
        ("ITEM" | "PATH-OR-IBI", _) => Some(ValueKind::Item),
        (_, "prefix" | "prefixes") => Some(ValueKind::Prefix),
        (_, "ibi") => Some(ValueKind::Identifier),
        ("OPTIONS", _) => Some(ValueKind::MountOptions),
        ("FILE", _) => Some(ValueKind::File),
        _ => match argument.get_value_hint() {
            ValueHint::FilePath => Some(ValueKind::File),
            ValueHint::AnyPath | ValueHint::DirPath => Some(ValueKind::Directory),
            _ => None,
        },
    }
}

fn first(text: Option<&clap::builder::StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn after(line: &str) -> Candidates {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let typed = words.pop().unwrap_or_default();
        next(&words, &typed)
    }

    #[track_caller]
    fn wants(line: &str, value: Option<ValueKind>, store: Option<&str>) {
        let next = after(line);
        assert_eq!(next.value, value, "{line}");
        assert_eq!(next.store.as_deref(), store, "{line}");
    }

    #[test]
    fn values_are_known_by_what_stands_before() {
        wants("show ", Some(ValueKind::Item), None);
        wants("show --store A ", Some(ValueKind::Item), Some("A"));
        wants("show --store=A ", Some(ValueKind::Item), Some("A"));
        wants("show --json --store ", Some(ValueKind::Directory), None);
        wants("mint A --edition-of ", Some(ValueKind::Item), Some("A"));
        wants("mint ", Some(ValueKind::Directory), None);
        wants("scrub A x y ", Some(ValueKind::Item), Some("A"));
        wants("ls A ", Some(ValueKind::Prefix), Some("A"));
        wants("upn A ", None, Some("A"));
        wants("upn A ABCDEF x ", Some(ValueKind::Prefix), Some("A"));
        wants("id explain ", Some(ValueKind::Identifier), None);
        wants(
            "serve --registration-key-file ",
            Some(ValueKind::File),
            None,
        );
        let list = "resolver --db r.db --federated-archives ";
        wants(list, Some(ValueKind::File), None);
        wants(
            "mount A.store A -o ",
            Some(ValueKind::MountOptions),
            Some("A.store"),
        );
        wants("show -- ", Some(ValueKind::Item), None);
        wants("show x ", None, None);
        wants("init --host ", None, None);
        assert_eq!(after("show --store=").before, "--store=");
    }

    #[test]
    fn words_are_commands_options_and_what_can_be_chosen() {
        let words = |line: &str| -> Vec<String> {
            let words = after(line).words.into_iter();
            words.map(|(word, _)| word).collect()
        };
        assert!(words("").contains(&"quickstart".to_owned()));
        assert!(!words("").contains(&"complete".to_owned()));
        assert_eq!(words("id "), ["explain", "check"]);
        assert_eq!(words("ls A --state "), ["original", "copy", "deleted"]);
        assert_eq!(words("completions "), ["bash", "zsh", "fish"]);
        assert_eq!(words("umount --"), ["--json", "--help"]);
        assert_eq!(words("show -- -"), [""; 0]);
        assert_eq!(words("nothing "), [""; 0]);
    }
}
