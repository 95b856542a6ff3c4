//! The manual describes what the program has: neither can name what the other does not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::CommandFactory;
use ibifs::command::cli::Cli;
use ibifs::outside::archive::CheckCode;
use ibifs::outside::fuse::mount::Settings;

use crate::language::report_untranslated;
use crate::support::TestEnv;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[track_caller]
fn read(name: &str) -> String {
    std::fs::read_to_string(file(name)).expect(name)
}

/// The lines of a page below each heading, `.Sh` or `.Ss`, by its title.
fn sections(page: &str) -> BTreeMap<String, Vec<&str>> {
    let mut sections: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut title = String::new();
    for line in page.lines() {
        match line.strip_prefix(".Sh ").or(line.strip_prefix(".Ss ")) {
            Some(found) => title = found.to_owned(),
            None => sections.entry(title.clone()).or_default().push(line),
        }
    }
    sections
}

/// The words that follow a macro, anywhere in a macro line.
fn marked<'a>(lines: &[&'a str], name: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for line in lines.iter().filter(|line| line.starts_with('.')) {
        let words: Vec<&str> = line[1..].split(' ').collect();
        for pair in words.windows(2).filter(|pair| pair[0] == name) {
            found.insert(pair[1]);
        }
    }
    found
}

/// The words of the `.It` lines that stand behind a macro, commas between them left out: the
/// things that a list explains.
fn explained<'a>(lines: &[&'a str], name: &str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    for line in lines {
        let Some(rest) = line.strip_prefix(&format!(".It {name} ")) else {
            continue;
        };
        let words = rest.split(' ').take_while(|word| *word != "Ns");
        found.extend(words.filter(|word| *word != ","));
        // `Cm list Ns = Ns ...`: only the word before `Ns` is the name.
    }
    found
}

/// Returns the pages of a directory of the manual, by name; the pictures next to them are the README's.
#[track_caller]
fn pages(directory: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(file(directory)).expect(directory);
    entries
        .map(|entry| entry.expect(directory))
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.ends_with(".svg"))
        .collect()
}

/// The parts of a page in its order: what stands above the first heading, with an empty title, and
/// then each heading, `.Sh` or `.Ss`, with the lines below it.
fn parts(page: &str) -> Vec<(&str, Vec<&str>)> {
    let mut parts = vec![("", Vec::new())];
    for line in page.lines() {
        if line.starts_with(".Sh ") || line.starts_with(".Ss ") {
            parts.push((line, Vec::new()));
        } else if let Some((_, lines)) = parts.last_mut() {
            lines.push(line);
        }
    }
    parts
}

/// Returns the arguments of each macro of a macro line, as `Fl` and `-json`; punctuation parts them.
fn arguments(line: &str) -> Vec<(&str, String)> {
    let mut found: Vec<(&str, String)> = Vec::new();
    let mut name = "";
    let mut is_new = true;
    let words = line.strip_prefix('.').unwrap_or_default().split(' ');
    for word in words {
        if let [b'A'..=b'Z', b'a'..=b'z'] = word.as_bytes() {
            name = word;
            is_new = true;
        } else if matches!(word, "" | "," | "." | ":" | ";" | "|" | "(" | ")") {
            is_new = true;
        } else {
            match found.last_mut() {
                Some((_, text)) if !is_new => {
                    text.push(' ');
                    text.push_str(word);
                }
                _ => found.push((name, word.to_owned())),
            }
            is_new = false;
        }
    }
    found
}

/// Returns the words of a `.It` line that are the same in every language: commands, options, codes, errors,
/// paths, numbers and whatever else a shell or a program reads or prints.
fn item(line: &str) -> Vec<(&str, String)> {
    let same = [
        "Cm", "Er", "Ev", "Fl", "Li", "Pa", "Pq", "Ql", "So", "Sy", "Xr",
    ];
    let rest = line.strip_prefix(".It ").unwrap_or_default();
    if rest.starts_with("Sy ") && rest.contains(" Ta Sy ") {
        // The head of a table.
        return Vec::new();
    }
    if rest.starts_with(|sign: char| sign.is_ascii_digit()) {
        // A status and its name.
        let cells = rest.split(" Ta ").take(2);
        return cells.map(|cell| ("It", cell.to_owned())).collect();
    }
    arguments(line)
        .into_iter()
        .filter(|(name, _)| same.contains(name))
        .map(|(name, text)| (name, in_english(name, &text)))
        .collect()
}

/// Translates the severity of a finding, and what is done about it, into English.
fn in_english(name: &str, text: &str) -> String {
    let bad = ["erro", "error", "aviso", "warning", "observação", "notice"];
    let (word, rest) = text
        .split_once(',')
        .map_or((text, ""), |(word, rest)| (word, rest));
    let known = bad.chunks(2).find(|pair| name == "Pq" && pair[0] == word);
    let word = known.map_or(word, |pair| pair[1]);
    match rest {
        "" => word.to_owned(),
        " reparado" => format!("{word}, repaired"),
        rest => format!("{word},{rest}"),
    }
}

/// Returns what each item of the lists of a part says, as `item` has it.
fn items<'a>(lines: &[&'a str]) -> Vec<Vec<(&'a str, String)>> {
    let items = lines.iter().filter(|line| line.starts_with(".It"));
    items.map(|line| item(line)).collect()
}

/// The options, commands, paths, errors, other pages and so on that a part of a page mentions, and
/// those parameters whose names have a capital letter; the others are words for the reader.
fn mentioned<'a>(lines: &[&'a str]) -> BTreeSet<(&'a str, String)> {
    let same = ["Cm", "Dv", "Er", "Ev", "Fl", "Li", "Pa", "Va", "Xr"];
    let all = lines.iter().flat_map(|line| arguments(line));
    all.filter(|(name, text)| {
        let is_parameter = *name == "Ar" && text.bytes().any(|byte| byte.is_ascii_uppercase());
        same.contains(name) || is_parameter
    })
    .collect()
}

/// The lists, blocks of literal text and paragraphs of a part, and the date and name of the page.
fn layout<'a>(lines: &[&'a str]) -> Vec<Vec<&'a str>> {
    let mut found = Vec::new();
    for line in lines {
        match line.get(..3) {
            Some(".Dd" | ".Dt" | ".Os") => found.push(vec![*line]),
            // A column is as wide as its text.
            Some(".Bl" | ".El" | ".Bd" | ".Ed" | ".Pp") => {
                found.push(line.split(' ').take(2).collect());
            }
            _ => {}
        }
    }
    found
}

/// Literal text, but for what explains it further right.
fn literals<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in lines {
        if line.starts_with(".Bd") {
            inside = true;
        } else if line.starts_with(".Ed") {
            inside = false;
        } else if inside {
            let text = line.trim_start();
            found.push(text.split_once("   ").map_or(text, |(before, _)| before));
        }
    }
    found
}

/// The options of a command as the manual writes them: `-json` for `--json`, `f` for `-f`.
fn options(command: &clap::Command) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for argument in command.get_arguments() {
        if argument.is_hide_set() || matches!(argument.get_id().as_str(), "help" | "version") {
            continue;
        }
        found.extend(argument.get_long().map(|long| format!("-{long}")));
        found.extend(argument.get_short().map(String::from));
    }
    for below in command.get_subcommands() {
        found.extend(options(below));
    }
    found
}

fn owned(words: BTreeSet<&str>) -> BTreeSet<String> {
    words.into_iter().map(str::to_owned).collect()
}

/// The lines of a page.
fn lines(page: &str) -> Vec<&str> {
    page.lines().collect()
}

/// Each command has a page, whose synopsis and lists have its options, all of them and no others;
/// ibifs(1) names each page.
#[test]
fn the_manual_has_every_command_and_option_and_no_other() {
    let mut command = Cli::command();
    command.build();
    let mut everywhere = options(&command);
    everywhere.extend(["-help", "-version", "h", "V"].map(str::to_owned));
    let shown = || {
        command
            .get_subcommands()
            .filter(|below| !below.is_hide_set())
    };
    for below in shown() {
        let name = below.get_name();
        let page = read(&format!("man/ibifs-{name}.1"));
        let expected = options(below);
        let listed: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with(".It Fl "))
            .collect();
        assert_eq!(owned(marked(&listed, "Fl")), expected, "lists of {name}");
        let sections = sections(&page);
        let synopsis = &sections["SYNOPSIS"];
        let forms = synopsis.iter().zip(&synopsis[1..]);
        let forms = forms.filter(|(line, _)| **line == ".Nm ibifs");
        let mut count = 0;
        for (_, command) in forms {
            assert_eq!(*command, format!(".Cm {name}"), "synopsis of {name}");
            count += 1;
        }
        assert!(count > 0, "synopsis of {name}");
        // `-f` is the short form of --foreground; the synopsis has one of the two.
        let mut shown = owned(marked(synopsis, "Fl"));
        if shown.contains("f") {
            shown.insert("-foreground".to_owned());
        }
        assert_eq!(shown, expected, "synopsis of {name}");
        for deeper in below.get_subcommands() {
            let words = marked(&lines(&page), "Cm");
            assert!(words.contains(deeper.get_name()), "{}", deeper.get_name());
        }
        for flag in marked(&lines(&page), "Fl") {
            assert!(everywhere.contains(flag), "{name}: no option -{flag}");
        }
    }
    let page = read("man/ibifs.1");
    let known: BTreeSet<String> = shown()
        .map(|below| format!("ibifs-{}", below.get_name()))
        .collect();
    assert_eq!(owned(explained(&lines(&page), "Xr")), with_section(&known));
    for flag in marked(&lines(&page), "Fl") {
        assert!(everywhere.contains(flag), "there is no option -{flag}");
    }
}

/// The words of `.It Xr NAME 1` lines.
fn with_section(names: &BTreeSet<String>) -> BTreeSet<String> {
    let section = std::iter::once("1".to_owned());
    names.iter().cloned().chain(section).collect()
}

/// The page of each command has examples, which clap understands, before its options.
#[test]
fn the_examples_of_each_page_are_understood() {
    for command in Cli::command()
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
    {
        let name = command.get_name();
        let page = read(&format!("man/ibifs-{name}.1"));
        let mut count = 0;
        let text = literals(&lines(&page)).join("\n").replace("\\e\n", "");
        for line in text.lines() {
            let line = line.trim_start_matches("$ ");
            let Some(line) = line.strip_prefix("ibifs ") else {
                continue;
            };
            let end = [" | ", " > ", " &"]
                .iter()
                .filter_map(|end| line.find(end))
                .min();
            let line = line.get(..end.unwrap_or(line.len())).unwrap_or(line);
            let words = line.split(' ').map(|word| word.trim_matches('\''));
            let parsed = Cli::command().try_get_matches_from(std::iter::once("ibifs").chain(words));
            assert!(parsed.is_ok(), "{name}: {line}: {parsed:?}");
            count += 1;
        }
        // Commands whose output a shell must source stand in the list of shells.
        assert!(count > 0 || name == "completions", "{name} has no example");
    }
}

/// Neither mandoc nor groff says that ibifs belongs to BSD.
#[test]
fn no_page_says_bsd() {
    for directory in ["man", "man/pt_BR"] {
        for page in pages(directory) {
            for (program, arguments) in [
                ("mandoc", &["-Tutf8"][..]),
                ("groff", &["-Kutf8", "-mdoc", "-Tutf8"]),
            ] {
                let output = Command::new(program)
                    .args(arguments)
                    .arg(file(directory).join(&page))
                    .output()
                    .expect(program);
                let text = String::from_utf8_lossy(&output.stdout);
                let ends = [text.lines().next(), text.lines().last()];
                assert!(
                    ends.iter().flatten().all(|line| !line.contains("BSD")),
                    "{program} {page}: {ends:?}"
                );
            }
        }
    }
}

/// EXIT STATUS has every value of `Exit`, and no other.
#[test]
fn the_manual_has_every_exit_status() {
    let source = read("src/command/exit.rs");
    let known: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_suffix(',')?.split_once(" = "))
        .map(|(_, number)| number)
        .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    assert!(known.contains("0") && known.contains("6"), "{known:?}");
    let page = read("man/ibifs.1");
    let messages: BTreeSet<&str> = sections(&page)["EXIT STATUS"]
        .iter()
        .filter_map(|line| line.strip_prefix(".It "))
        .collect();
    assert_eq!(messages, known);
}

/// MOUNT OPTIONS has every option of `-o`, and no other.
#[test]
fn the_manual_has_every_mount_option() {
    let refusal = Settings::parse(&["no such option".to_owned()], |_| None)
        .expect_err("it does not exist")
        .to_string();
    let (_, list) = refusal.split_once("the options are ").expect("a list");
    let known: BTreeSet<&str> = list
        .split(", ")
        .map(|name| name.trim_end_matches('='))
        .collect();
    let page = read("man/ibifs-mount.1");
    assert_eq!(explained(&sections(&page)["MOUNT OPTIONS"], "Cm"), known);
}

/// DIAGNOSTICS has every code that `ibifs fsck` prints, and no other: how bad it is, whether it is
/// repaired, what is wrong and what can be done, in the very words.
#[test]
fn the_manual_has_every_finding_of_fsck() {
    let sentence = |text: &str| {
        let mut letters = text.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        // A name stays as it is written.
        match text.split(' ').next() {
            Some(word) if word.contains('.') || word.starts_with('-') => format!("{text}."),
            _ => format!("{}{}.", first.unwrap_or_default(), letters.as_str()),
        }
    };
    let expected: String = CheckCode::ALL
        .iter()
        .map(|code| {
            let repaired = if code.is_repairable() {
                ", repaired"
            } else {
                ""
            };
            format!(
                ".It Sy {} Pq {}{repaired}\n{}\n{}\n",
                code.word(),
                code.severity(),
                sentence(&code.what().to_string()),
                sentence(&code.remedy().to_string())
            )
        })
        .collect();
    let page = read("man/ibifs-fsck.1");
    let (_, messages) = page
        .split_once(
            ".\\\" The codes, as src/archive/operations/check/finding.rs has them.\n.Bl -tag -width Ds\n",
        )
        .expect("a list of codes");
    let (messages, _) = messages.split_once(".El\n").expect("its end");
    assert_eq!(messages, expected);
}

/// The pages of scrub, backup and copy have every code that these print, and no other.
#[test]
fn the_manual_has_every_code_of_scrub_backup_and_copy() {
    for (commands, file, count) in [
        (&["scrub"][..], "src/archive/scrub/finding.rs", 10),
        (&["backup"], "src/archive/backup/finding.rs", 5),
        (&["copy", "claim"], "src/archive/transfer/skip.rs", 25),
        (&["repair"], "src/archive/repair/finding.rs", 6),
        (&["audit"], "src/archive/audit/finding.rs", 9),
    ] {
        let source = read(file);
        let known: BTreeSet<&str> = source
            .lines()
            .filter_map(|line| {
                // A row of a table of findings: `Changed "changed" Notice`.
                let (row, severity) = line.trim().rsplit_once(' ')?;
                let (_, word) = row.strip_suffix('"')?.split_once('"')?;
                ["Error", "Warning", "Notice"]
                    .contains(&severity)
                    .then_some(word)
            })
            .collect();
        assert_eq!(known.len(), count, "{known:?}");
        let pages: Vec<String> = commands
            .iter()
            .map(|command| read(&format!("man/ibifs-{command}.1")))
            .collect();
        let explained = pages.iter().flat_map(|page| explained(&lines(page), "Sy"));
        assert_eq!(explained.collect::<BTreeSet<_>>(), known);
    }
}

/// ENVIRONMENT and FILES have what the program reads and keeps.
#[test]
fn the_manual_has_the_environment_and_the_files() {
    let page = read("man/ibifs.1");
    let sections = sections(&page);
    let variables = explained(&sections["ENVIRONMENT"], "Ev");
    for name in [
        "IBIFS_STORE",
        "LANGUAGE",
        "LC_ALL",
        "LC_MESSAGES",
        "LANG",
        "RUST_LOG",
    ] {
        assert!(variables.contains(name), "{name}");
    }
    let env = TestEnv::new();
    env.sh("ibifs init store --host archive.example.org");
    let files = explained(&sections["FILES"], "Pa");
    let kept = std::fs::read_dir(env.root().join("store")).expect("a store");
    for entry in kept.flatten() {
        let mut name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            name.push('/');
        }
        let is_known = files.contains(&*name) || page.contains(&format!(".Pa {name}\n"));
        assert!(is_known, "the store holds {name}");
    }
    for name in [".ibi", ".ibi.metadata"] {
        assert!(files.contains(name), "{name}");
    }
}

/// ibifs-tree(7) has all fourteen modifiers, as ibifs reads them.
#[test]
fn the_manual_has_the_fourteen_modifiers() {
    let page = read("man/ibifs-tree.7");
    let listed: BTreeSet<String> = sections(&page)["MODIFIERS"]
        .iter()
        .filter_map(|line| line.strip_prefix(".It Ql ")?.split_once(" Ta "))
        .map(|(signs, _)| signs.trim_start_matches("\\&").to_owned())
        .collect();
    let compositions = ibi::relation::Modifier::compositions();
    let compositions: BTreeSet<String> = compositions.map(|it| it.to_string()).collect();
    assert_eq!(listed, compositions, "man/ibifs-tree.7, MODIFIERS");
}

/// The tests to which the manual ties promises exist.
#[test]
fn the_manual_names_tests_that_there_are() {
    let mut count = 0;
    for name in pages("man") {
        let page = read(&format!("man/{name}"));
        for test in page
            .lines()
            .filter_map(|line| line.strip_prefix(".It Li "))
            .filter(|test| {
                let is_word =
                    |word: &str| word.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
                test.contains("::") && test.split("::").all(is_word)
            })
        {
            count += 1;
            let (module, function) = test.rsplit_once("::").expect("a module");
            let source = read(&format!("tests/ibifs/{}.rs", module.replace("::", "/")));
            let definition = format!("#[test]\nfn {function}() {{");
            assert!(source.contains(&definition), "{name}: {test}");
        }
    }
    assert!(count > 0, "no page names a test");
}

/// Every page is good mdoc, in both languages: mandoc has nothing to say.
#[test]
fn mandoc_is_silent() {
    for directory in ["man", "man/pt_BR"] {
        for page in pages(directory) {
            let output = Command::new("mandoc")
                .args(["-Tlint", "-Wwarning"])
                .arg(file(directory).join(page))
                .output()
                .expect("mandoc is installed (package mandoc)");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(said.is_empty() && output.status.success(), "{said}");
        }
    }
}

/// Each page is there in Portuguese, and explains there what it explains in English, part by part
/// and in the same order; a heading is translated in one way.
#[test]
fn the_manual_says_the_same_in_portuguese() {
    let mut titles = BTreeMap::new();
    for name in pages("man") {
        if let Err(difference) = compare_with_portuguese(&name, &mut titles) {
            report_untranslated(&difference);
        }
    }
    assert!(pages("man/pt_BR").is_subset(&pages("man")));
}

/// Compares a page with the Portuguese one. `titles` are the headings of the pages before.
fn compare_with_portuguese(
    name: &str,
    titles: &mut BTreeMap<String, String>,
) -> Result<(), String> {
    fn same<T: PartialEq + std::fmt::Debug>(found: T, wanted: T, of: &str) -> Result<(), String> {
        let text = || format!("{of}: {found:?}, in English {wanted:?}");
        if found == wanted { Ok(()) } else { Err(text()) }
    }
    same(pages("man/pt_BR").contains(name), true, name)?;
    let english = read(&format!("man/{name}"));
    let portuguese = read(&format!("man/pt_BR/{name}"));
    let (english, portuguese) = (parts(&english), parts(&portuguese));
    same(portuguese.len(), english.len(), &format!("parts of {name}"))?;
    for ((title, lines), (translated, others)) in english.iter().zip(&portuguese) {
        let part = format!("{name}, '{title}' and '{translated}'");
        same(translated.get(..3), title.get(..3), &part)?;
        match title.strip_prefix(".Ss ") {
            Some(command) if command.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                same(translated, title, &part)?;
            }
            Some(_) => {}
            None => {
                let known = titles.entry((*title).to_owned());
                let known = known.or_insert((*translated).to_owned());
                same(*translated, known.as_str(), &part)?;
            }
        }
        same(items(others), items(lines), &format!("lists of {part}"))?;
        same(
            mentioned(others),
            mentioned(lines),
            &format!("words of {part}"),
        )?;
        same(layout(others), layout(lines), &format!("layout of {part}"))?;
        same(
            literals(others),
            literals(lines),
            &format!("literal text of {part}"),
        )?;
    }
    // A reference to a part leads to one that is there.
    for (_, lines) in &portuguese {
        for line in lines.iter().filter(|line| line.starts_with(".Sx ")) {
            let (_, wanted) = arguments(line).remove(0);
            let mut headings = portuguese.iter().map(|(title, _)| title.get(4..));
            let is_there = headings.any(|title| title == Some(wanted.as_str()));
            same(is_there, true, &format!("'{wanted}' in {name}"))?;
        }
    }
    Ok(())
}

/// The session of ibifs(1) can be typed as it stands.
#[test]
fn the_examples_of_the_manual_work() {
    let page = read("man/ibifs.1");
    let mut script = String::new();
    let mut inside = false;
    for line in &sections(&page)["A FIRST SESSION"] {
        match *line {
            ".Ed" => inside = false,
            line if line.starts_with(".Bd") => inside = true,
            line if inside => script.push_str(&format!("{line}\n")),
            _ => {}
        }
    }
    assert!(script.contains("ibifs fsck store"), "{script}");
    let env = TestEnv::new();
    let printed = env.sh(&script);
    assert!(printed.contains("\nSecond edition\n"), "{printed}");
    assert!(
        printed.contains("<dc:title>Rainfall</dc:title>"),
        "{printed}"
    );
    assert!(printed.ends_with(" items, 0 findings"), "{printed}");
}

/// Each exit status is what EXIT STATUS says; 6 needs a machine without FUSE.
#[test]
fn a_command_ends_with_the_status_that_the_manual_says() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one; mint A two > two");
    env.exits("ibifs id check 8JMKD3MGP8W/34PGRBS", 0);
    env.exits("ibifs id check 8JMKD3MGP8W/O", 1);
    env.exits("ibifs nothing", 2);
    env.exits("ibifs relate A/$(cat one) --metadata no/identifier", 2);
    env.exits("ibifs show 8JMKD3MGP8W/34PGRBS --store A", 3);
    env.exits("ibifs unrelate A/$(cat one) --metadata", 3);
    env.exits("ibifs umount A.store", 3);
    env.exits("ibifs relate A/$(cat one) --next-edition A/$(cat one)", 4);
    env.exits("ibifs fsck --repair A.store", 5);
    env.exits("ibifs mount A.store A", 5);
    env.sh("ibifs umount A && mkdir A.store/col/no-item A.store/col/no-item/x A.store/col/no-item/x/y A.store/col/no-item/x/y/z");
    env.exits("ibifs fsck A.store", 1);
}

/// The changelog of the package is signed by the maintainer that Cargo.toml names.
/// No file of the project has a mark that a merge has left.
#[test]
fn no_file_has_the_marks_of_a_merge() {
    let mut read = 0;
    let mut left = vec![file("")];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).expect("listed").flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if entry.file_type().expect("a kind").is_dir() {
                if name != "target" && name != ".git" {
                    left.push(path);
                }
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                read += 1;
                let is_mark =
                    |line: &str| line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ");
                assert!(!text.lines().any(is_mark), "{}", path.display());
            }
        }
    }
    assert!(read > 1_000, "{read} files");
}

#[test]
fn the_package_has_one_maintainer() {
    let manifest = read("Cargo.toml");
    let maintainer = manifest
        .lines()
        .find_map(|line| line.strip_prefix("maintainer = \"")?.strip_suffix('"'))
        .expect("a maintainer");
    let changelog = read("mnt/debian/changelog");
    let signed = changelog.lines().filter(|line| line.starts_with(" -- "));
    for line in signed {
        assert!(line.starts_with(&format!(" -- {maintainer}  ")), "{line}");
    }
}

/// Everything is copied to another Archive with one rsync, and a second one moves nothing.
#[test]
fn a_second_rsync_moves_nothing() {
    let env = TestEnv::new().with_a().with_b();
    env.sh("mint A one > one; ln -sfn ../../../$(mint A two) \"A/$(cat one)!\"");
    env.sh("echo text > A/$(cat one)/doc/text; rsync -a A/ B/");
    env.prints("rsync -ai A/ B/", "");
    env.prints(
        "readlink \"B/$(cat one)!\" > b; readlink \"A/$(cat one)!\" | diff - b",
        "",
    );
    env.prints("state B/$(cat one)", "Copy");
}
