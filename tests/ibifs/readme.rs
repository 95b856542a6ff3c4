//! The README's session is typed as it stands and prints what it says, but for what no two runs
//! can share: identifiers and dates.

use std::path::Path;

use crate::support::World;

const LETTERS: &[u8] = b"23456789ABCDEFGHJKLMNPQRSTUWX";

/// The lines between a fence of this kind and its end.
fn block<'a>(text: &'a str, fence: &str) -> Vec<&'a str> {
    let mut lines = text.lines().skip_while(|line| *line != fence);
    lines.next().unwrap_or_else(|| panic!("no {fence}"));
    lines.take_while(|line| *line != "```").collect()
}

fn readme() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"))
        .expect("README.md")
}

/// Each text between the characters that can stand around an identifier or a date.
fn normal(line: &str) -> String {
    let is_edge = |c: char| " \t<>{}\"'".contains(c);
    line.split_inclusive(is_edge)
        .map(|piece| {
            let word = piece.trim_end_matches(is_edge);
            format!("{}{}", normal_word(word), &piece[word.len()..])
        })
        .collect()
}

/// A date of a rep, an IBIp or a time, each by its shape; everything else as it stands.
fn normal_word(word: &str) -> String {
    if is_shaped(word, "0000-00-00T00:00:00") && word.ends_with('Z') {
        return "TIME".to_owned();
    }
    let mut parts: Vec<&str> = word.split('/').collect();
    for at in 1..parts.len() {
        let (before, this) = (parts[at - 1], parts[at]);
        if is_shaped(before, "0000") && before.len() == 4 && is_shaped(this, "00.00.00.00") {
            (parts[at - 1], parts[at]) = ("YEAR", "DATE");
        } else if is_of_letters(before) && is_of_letters(this) {
            (parts[at - 1], parts[at]) = ("PREFIX", "SUFFIX");
        }
    }
    parts.join("/")
}

/// Whether a text begins with this shape, `0` standing for a digit, and goes on as a date does.
fn is_shaped(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text
            .bytes()
            .zip(shape.bytes())
            .all(|(byte, shape)| byte == shape || (shape == b'0' && byte.is_ascii_digit()))
        && text[shape.len()..]
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'Z')
}

fn is_of_letters(text: &str) -> bool {
    text.len() > 5 && text.bytes().all(|byte| LETTERS.contains(&byte))
}

#[test]
fn identifiers_and_dates_are_told_from_the_rest() {
    for (line, expected) in [
        (
            "../example.org/demo/2026/11.21.12.45.18.8",
            "../example.org/demo/YEAR/DATE",
        ),
        (
            "ibi {rep a.b/c/2026/11.21.12.45 ibip 92C5TR5AE386GKPX/4GR658LWA}",
            "ibi {rep a.b/c/YEAR/DATE ibip PREFIX/SUFFIX}",
        ),
        (
            "<dc:date>2026-11-21T12:45:18.8Z</dc:date>",
            "<dc:date>TIME</dc:date>",
        ),
        (
            "http://urlib.net/92C5TR5AE386GKPX/4GR658LWA",
            "http://urlib.net/PREFIX/SUFFIX",
        ),
        ("Rainfall, 1995-2025", "Rainfall, 1995-2025"),
        (
            "http://www.openarchives.org/OAI/2.0/oai_dc/",
            "http://www.openarchives.org/OAI/2.0/oai_dc/",
        ),
        ("mnt/demo 2026/11.21", "mnt/demo 2026/11.21"),
    ] {
        assert_eq!(normal(line), expected);
    }
}

/// The session of the README, from the quick start to the unmount.
#[test]
fn the_session_of_the_readme_is_true() {
    let readme = readme();
    let told = block(&readme, "```console");
    let mut script = String::new();
    for line in told.iter().filter_map(|line| line.strip_prefix("$ ")) {
        let quoted = line.replace('\'', "'\\''");
        script.push_str(&format!("printf '$ %s\\n' '{quoted}'\n{line}\n"));
    }
    let world = World::new();
    world.sh("mkdir -p mnt/demo && touch mnt/demo/.keep && ibifs quickstart");
    let printed = world.run(&script);
    let complaint = String::from_utf8_lossy(&printed.stderr);
    assert!(
        printed.status.success() && complaint.is_empty(),
        "{complaint}"
    );
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let printed: Vec<String> = printed.lines().map(normal).collect();
    let told: Vec<String> = told.into_iter().map(normal).collect();
    assert_eq!(printed.join("\n"), told.join("\n"));
}

/// What the quick start says to try can be tried.
#[test]
fn what_the_quick_start_says_can_be_tried() {
    let world = World::new();
    let said = world.sh("mkdir -p mnt/demo && touch mnt/demo/.keep && ibifs quickstart");
    let commands: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .collect();
    assert!(commands.len() > 5, "{said}");
    let printed = world.sh(&commands.join("\n"));
    for text in [
        "First edition",
        "Second edition",
        "Tradução",
        "<dc:creator>Souza, Ana</dc:creator>",
    ] {
        assert!(printed.contains(text), "{text} in {printed}");
    }
}

/// The README sets up with two commands, and its table has every folder of src/.
#[test]
fn the_readme_has_two_commands_and_every_folder() {
    let readme = readme();
    let commands = block(&readme, "```sh");
    assert_eq!(commands, ["cargo run --release -- quickstart", "tests/run"]);
    let library = include_str!("../../src/lib.rs");
    let folders = library
        .lines()
        .filter_map(|line| line.split_once("mod ")?.1.strip_suffix(';'));
    let (_, layout) = readme.split_once("\n## Layout\n").expect("a layout");
    let table: Vec<&str> = layout
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once(" |"))
        .map(|(names, _)| names)
        .collect();
    let told: Vec<&str> = table
        .iter()
        .flat_map(|names| names.split(", "))
        .map(|name| name.trim_matches('`'))
        .collect();
    for folder in folders {
        assert!(told.contains(&folder), "folder {folder}");
    }
    for name in told {
        assert!(
            library.contains(&format!("mod {name};"))
                || library.contains(&format!("pub use ::{name};")),
            "no folder {name}"
        );
    }
}

/// What the README says that one meets is what one meets.
#[test]
fn troubles_are_told_as_the_readme_tells_them() {
    let readme = readme();
    let world = World::new();
    let told = |script: &str| {
        let output = world.run(script);
        assert!(!output.status.success(), "{script}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = told.replace(&format!("{}/", world.root().display()), "");
        told.trim_start_matches("ibifs: ").trim_end().to_owned()
    };
    let in_readme = |message: &str| {
        assert!(readme.contains(&format!("| `{message}`")), "{message}");
    };
    in_readme(&told("mkdir STORE; ibifs mount STORE MNT"));
    world.sh("rmdir STORE; ibifs init STORE --host archive-a.example.org");
    in_readme(&told("ibifs mount STORE MNT"));
    world.sh("mkdir MNT; ibifs mount STORE MNT");
    in_readme(&told("ibifs mount STORE MNT"));
    let busy = told("mkdir other; ibifs mount STORE other");
    let pid = world.sh("daemon STORE");
    in_readme(&busy.replace(&pid, "PID"));
    let item = world.sh("mint MNT x");
    let refused = told(&format!("mv MNT/{item} MNT/{item}0"));
    assert!(refused.ends_with("Operation not permitted"), "{refused}");
    in_readme("mv: cannot move ...: Operation not permitted");
    world.sh(
        "mkdir -p MNT/sid.inpe.br/mtc-m18@80/2009/07.21.14.43 MNT/sid.inpe.br/mtc-m18@80/2009/07.21.14.44",
    );
    let refused = told("cd MNT/sid.inpe.br/mtc-m18@80/2009; ln -sfn 07.21.14.43 '07.21.14.44!'");
    assert!(refused.ends_with("Operation not permitted"), "{refused}");
    in_readme("ln: failed to create symbolic link ...: Operation not permitted");
    let event = told("bash --norc -i <<< $'cat MNT/x!/doc\\nexit 1'");
    assert!(event.contains("!/doc: event not found"), "{event}");
    in_readme("bash: !/doc: event not found");
    world.sh("daemon=$(daemon STORE); kill -9 $daemon; tail --pid=$daemon -f /dev/null");
    let dead = told("ls MNT");
    assert!(
        dead.contains("Transport endpoint is not connected"),
        "{dead}"
    );
    in_readme("Transport endpoint is not connected");
    world.sh("ibifs mount STORE MNT; ls MNT; ibifs umount MNT; ibifs mount -o ro STORE MNT");
    in_readme(&told("mkdir MNT/.mint/x").replace(['\u{2018}', '\u{2019}'], "'"));
    world.sh("ibifs umount MNT");
}
