//! The commands of `ibifs -h` in groups, as git and restic list theirs. clap has one list of
//! subcommands only, so the groups are a part of the help template.

use clap::Command;
use ibi::message;
use ibi::message::Message;

/// The heading of a group.
type Title = fn() -> Message;

/// The groups, and their commands in the order of the help.
const GROUPS: &[(Title, &[&str])] = &[
    (
        || message!("Stores"),
        &["init", "mount", "umount", "status", "quickstart"],
    ),
    (
        || message!("Items"),
        &[
            "mint", "publish", "seal", "unseal", "withdraw", "restore", "remove", "work", "show",
            "cite", "find", "history", "watch", "ls", "id", "upn",
        ],
    ),
    (|| message!("Relations"), &["relate", "unrelate"]),
    (
        || message!("Care"),
        &[
            "fsck", "reindex", "scrub", "repair", "audit", "backup", "copies", "report", "prove",
            "cosign", "verify",
        ],
    ),
    (
        || message!("Exchange"),
        &["copy", "transfer", "claim", "export", "import"],
    ),
    (|| message!("Services"), &["serve", "resolver", "world"]),
    (|| message!("Shell"), &["completions"]),
];

/// The command with its subcommands in groups, below headings that `word` translates.
#[must_use]
pub fn grouped(mut command: Command, word: impl Fn(&Message) -> String) -> Command {
    // Built first: a usage line then has the names of all arguments.
    command.build();
    let list = list(&command, &word);
    let heading = *command.get_styles().get_header();
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{heading}{}{heading:#} {{usage}}\n{list}\n\
         {heading}{}{heading:#}\n{{options}}{{after-help}}",
        word(&message!("Usage:")),
        word(&message!("Options:"))
    );
    command.help_template(template)
}

/// The groups, each a heading and a line for each of its commands.
pub(super) fn list(command: &Command, word: &impl Fn(&Message) -> String) -> String {
    let heading = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{heading}{}:{heading:#}\n", word(&title())));
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            text.push_str(&format!("  {literal}{name:width$}{literal:#}  {about}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let shown = command
            .get_subcommands()
            .filter(|below| !below.is_hide_set());
        let mut known: Vec<&str> = shown.map(Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        known.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn lines_fit_a_terminal() {
        let text = grouped(Cli::command(), Message::to_string)
            .render_help()
            .to_string();
        let list = text.split("\nOptions:").next().unwrap_or_default();
        assert!(
            list.contains("\nRelations:\n  relate       Declare a relation of an item\n"),
            "{list}"
        );
        assert!(
            list.lines().all(|line| line.chars().count() <= 80),
            "{list}"
        );
    }
}
