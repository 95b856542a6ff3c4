//! `-h` is short and `--help` complete; colours are for terminals.

use clap::CommandFactory;
use ibifs::command::cli::Cli;

use crate::support::TestEnv;

/// The names of the commands that are shown.
fn commands() -> Vec<String> {
    let command = Cli::command();
    let shown = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set());
    shown.map(|below| below.get_name().to_owned()).collect()
}

/// `-h` describes a command in a few lines; `--help` has all of them, an explanation and examples.
#[test]
fn short_help_is_short_and_long_help_has_examples() {
    let env = TestEnv::new();
    for command in std::iter::once(String::new()).chain(commands()) {
        let short = env.sh(&format!("COLUMNS=100 ibifs {command} -h"));
        let long = env.sh(&format!("COLUMNS=100 ibifs {command} --help"));
        // The list of all commands has seven groups.
        let most = if command.is_empty() { 67 } else { 34 };
        assert!(short.lines().count() <= most, "{command}: {short}");
        assert!(!short.contains("Example"), "{command}: {short}");
        let (help, examples) = long.split_once("\nExample").expect(&command);
        assert!(
            examples.contains("\n  ibifs ") || examples.contains("(ibifs "),
            "{long}"
        );
        assert!(help.lines().count() > 2, "{long}");
        // The long form explains each option that the short form explains.
        for option in short
            .split_whitespace()
            .filter(|word| word.starts_with("--"))
        {
            let option =
                option.trim_matches(|sign: char| !sign.is_ascii_alphanumeric() && sign != '-');
            assert!(long.contains(option), "{command}: {option}");
        }
    }
}

/// The examples of `--help` are commands that there are, with options that they have.
#[test]
fn examples_of_the_help_are_understood() {
    let env = TestEnv::new();
    let mut count = 0;
    for command in std::iter::once(String::new()).chain(commands()) {
        let long = env.sh(&format!("COLUMNS=100 ibifs {command} --help"));
        let examples = long.split_once("\nExample").map_or("", |(_, after)| after);
        for line in examples
            .lines()
            .filter_map(|line| line.strip_prefix("  ibifs "))
        {
            // An explanation stands further right, or a pipe.
            let line = line.split("   ").next().unwrap_or_default();
            let line = line.split(" | ").next().unwrap_or_default();
            let words = line.split(' ').map(|word| word.trim_matches('\''));
            let parsed = Cli::command().try_get_matches_from(std::iter::once("ibifs").chain(words));
            let is_good = match &parsed {
                Ok(_) => true,
                Err(error) => error.kind() == clap::error::ErrorKind::DisplayHelp,
            };
            assert!(is_good, "{line}: {parsed:?}");
            count += 1;
        }
    }
    assert!(count > 30, "{count}");
}

/// Help and complaints have colours on a terminal, and only there; NO_COLOR turns them off.
#[test]
fn colours_are_for_terminals() {
    let env = TestEnv::new();
    let escape = "grep -c $'\\x1b' || true";
    env.prints(&format!("ibifs --help | {escape}"), "0");
    env.prints(&format!("ibifs nothing 2>&1 | {escape}"), "0");
    let on_terminal = |set: &str, command: &str| {
        let script = format!(
            "env -u NO_COLOR TERM=xterm {set} script -qec 'ibifs {command}' /dev/null | {escape}"
        );
        env.sh(&script).parse::<u32>().expect("a number") > 0
    };
    for command in ["--help", "-h", "fsck --help", "nothing"] {
        assert!(on_terminal("", command), "{command}");
        assert!(!on_terminal("NO_COLOR=1", command), "{command}");
        assert!(!on_terminal("TERM=dumb", command), "{command}");
    }
    // The output of a command is the same on a terminal.
    assert!(!on_terminal("", "id explain 8JMKD3MGP8W/34PGRBS"));
}
