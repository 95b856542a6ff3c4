//! `ibifs completions`, and the completions for its scripts: words, paths, identifiers and modifiers that may
//! stand at the cursor. Quoting is done here for bash, and by the other shells themselves.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::access::{self, StoreAccess};
use super::{daemon, put_out, say};
use crate::archive::{Archive, Related};
use crate::command::cli::{Candidates, Complete, Completions, Shell, ValueKind, next};
use crate::command::exit::{Exit, Failure};
use crate::command::language::help;
use crate::fuse::mount::{MOST_COMPLETED, option_stems, option_words};
use rustix::fs::FileType;

use crate::os::directory::Directory;
use ibi::Ibi;
use ibi::persistent::IncompleteLink;
use ibi::relation::{Modifier, split_name};

/// The levels from a store to an item, both included.
const LEVELS: usize = 6;

pub(super) fn print(options: &Completions) -> Result<Exit, Failure> {
    say(match options.shell {
        Shell::Bash => include_str!("completions/ibifs.bash"),
        Shell::Zsh => include_str!("completions/ibifs.zsh"),
        Shell::Fish => include_str!("completions/ibifs.fish"),
    })?;
    Ok(Exit::Done)
}

/// Prints the words that may come next. Errors are not printed while a person is typing.
///
/// clap_complete has a dynamic engine with its feature `unstable-dynamic`. It does not quote characters that
/// bash expands, such as the `!` and `(` of modifiers, and does not descend through levels of identifiers
/// that have one entry.
pub(super) fn run(options: &Complete) -> Result<Exit, Failure> {
    let (words, typed, cut) = match (options.shell, &options.words[..]) {
        (Shell::Bash, [line, tail]) => of_bash(line, tail),
        (Shell::Fish, [words @ .., raw]) => (words.to_vec(), unquoted(raw), String::new()),
        (_, [words @ .., typed]) => (words.to_vec(), typed.clone(), String::new()),
        (_, []) => return Ok(Exit::Done),
    };
    let next = next(&words, &typed);
    let mut candidates: Vec<(String, String)> = next.words.clone();
    candidates.extend(
        values(&next, &typed)
            .into_iter()
            .map(|value| (format!("{}{value}", next.before), String::new())),
    );
    // A line end would split a word, and a terminal interprets other control characters.
    candidates.retain(|(word, _)| word.starts_with(&typed) && !word.contains(char::is_control));
    let text: String = match options.shell {
        Shell::Bash => {
            let line = options.words.first().map_or("", String::as_str);
            for_bash(&candidates, &cut, split(line).1)
        }
        _ => candidates
            .iter()
            .map(|(word, about)| described(word, about))
            .collect(),
    };
    put_out(&text).map_err(|error| Failure::new(Exit::Failed, error))?;
    Ok(Exit::Done)
}

fn described(word: &str, about: &str) -> String {
    match about {
        "" => format!("{word}\n"),
        about => format!("{word}\t{}\n", help(about)),
    }
}

/// The output for bash, which shows several words or inserts a single one. Several words are shown and quoted
/// by bash as file names. A single one is quoted here, because bash would end it with a slash, and a modifier
/// often follows.
fn for_bash(candidates: &[(String, String)], cut: &str, raw: &str) -> String {
    let rest = |word: &str| word.strip_prefix(cut).unwrap_or(word).to_owned();
    match candidates {
        [(word, _)] if !(word.ends_with('/') && open_quote(raw).is_some()) => {
            let begins_at_home = cut.is_empty() && word.starts_with("~/");
            let rest = rest(word);
            let (home, rest) = rest.split_at(if begins_at_home { 2 } else { 0 });
            format!("quoted\n{home}{}\n", quoted(rest, open_quote(raw)))
        }
        _ => {
            let words = candidates
                .iter()
                .map(|(word, _)| format!("{}\n", rest(word)));
            format!("names\n{}", words.collect::<String>())
        }
    }
}

/// A text quoted for bash, after an opening quote or without one.
fn quoted(text: &str, quote: Option<char>) -> String {
    let is_plain = |sign: char| sign.is_alphanumeric() || "/._-+=,@:%^".contains(sign);
    let mut written = String::new();
    for sign in text.chars() {
        match (quote, sign) {
            (Some('\''), '\'') => written.push_str("'\\''"),
            // Within double quotes, a backslash before `!` would remain in the word.
            (Some('"'), '!') => written.push_str("\"'!'\""),
            (Some('"'), '"' | '$' | '`' | '\\') => written.extend(['\\', sign]),
            (None, sign) if !is_plain(sign) => written.extend(['\\', sign]),
            _ => written.push(sign),
        }
    }
    written
}

/// The quote that is open at the end of a word.
fn open_quote(word: &str) -> Option<char> {
    let mut open = None;
    let mut is_escaped = false;
    for sign in word.chars() {
        match (open, sign) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '\'' | '"') => open = Some(sign),
            (Some(quote), _) if quote == sign => open = None,
            _ => {}
        }
    }
    open
}

/// The words of a line up to the cursor, the incomplete word, and the part of that in front of what bash will
/// replace.
fn of_bash(line: &str, tail: &str) -> (Vec<String>, String, String) {
    let (mut words, raw) = split(line);
    let typed = words.pop().unwrap_or_default();
    let cut = raw.strip_suffix(tail).map(unquoted).unwrap_or_default();
    // The name of the program.
    let words = words.into_iter().skip(1).collect();
    (words, typed, cut)
}

/// The words of a command line as bash splits them, and the last one as typed.
fn split(line: &str) -> (Vec<String>, &str) {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    loop {
        let end = end_of_word(rest);
        let (word, after) = rest.split_at(end);
        words.push(unquoted(word));
        if after.is_empty() {
            return (words, word);
        }
        rest = after.trim_start();
    }
}

/// The end of a word: a blank that is not quoted.
fn end_of_word(text: &str) -> usize {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, sign) in text.char_indices() {
        match (quote, sign) {
            _ if is_escaped => is_escaped = false,
            (None | Some('"'), '\\') => is_escaped = true,
            (None, '\'' | '"') => quote = Some(sign),
            (Some(open), _) if open == sign => quote = None,
            (None, ' ' | '\t') => return at,
            _ => {}
        }
    }
    text.len()
}

/// A word without its quotes, which may be incomplete.
fn unquoted(word: &str) -> String {
    let mut meant = String::new();
    let mut quote = None;
    let mut signs = word.chars();
    while let Some(sign) = signs.next() {
        match (quote, sign) {
            (None | Some('"'), '\\') => meant.extend(signs.next()),
            (None, '\'' | '"') => quote = Some(sign),
            (Some(open), _) if open == sign => quote = None,
            _ => meant.push(sign),
        }
    }
    meant
}

fn values(next: &Candidates, typed: &str) -> Vec<String> {
    let typed = typed.strip_prefix(&next.before).unwrap_or(typed);
    let from_environment = || std::env::var_os("IBIFS_STORE").map(PathBuf::from);
    let store = next
        .store
        .as_deref()
        .map(expanded)
        .or_else(from_environment);
    let mut found = match next.value {
        None => Vec::new(),
        Some(ValueKind::File) => entries(typed, Entries::All),
        Some(ValueKind::Directory) => entries(typed, Entries::Directories),
        Some(ValueKind::Prefix) => further(typed, |typed| identifiers(typed, store.as_deref())),
        Some(ValueKind::Identifier) => {
            let found = further(typed, |typed| identifiers(typed, store.as_deref()));
            or_in_link(found, typed, store.as_deref())
        }
        Some(ValueKind::MountOptions) => mount_options(typed),
        Some(ValueKind::Item) => items(typed, store.as_deref()),
    };
    found.sort();
    found.dedup();
    found
}

/// The options of a mount that are not there yet, with their values, behind those that are. Files and directories are
/// completed in the last one.
fn mount_options(typed: &str) -> Vec<String> {
    let start = typed.rfind(',').map_or(0, |at| at + 1);
    let (head, last) = typed.split_at(start);
    let name = |word: &str| {
        word.split_once('=')
            .map_or(word, |(name, _)| name)
            .to_owned()
    };
    let given: Vec<String> = head.split(',').map(name).collect();
    let words = option_words().chain(option_stems().map(str::to_owned));
    let mut found: Vec<String> = words.filter(|word| !given.contains(&name(word))).collect();
    if let Some((name, value)) = last.split_once('=') {
        let paths = match name {
            "world-cache" => entries(value, Entries::Directories),
            "world-ca-file" => entries(value, Entries::All),
            _ => Vec::new(),
        };
        // The option without a value is there.
        found.retain(|word| word != last);
        found.extend(paths.into_iter().map(|path| format!("{name}={path}")));
    }
    found.into_iter().map(|it| format!("{head}{it}")).collect()
}

/// Items by path and by identifier, and the modifiers of a named item. A single item is offered with its
/// modifiers, because a shell would end the word after a single result.
fn items(typed: &str, store: Option<&Path>) -> Vec<String> {
    let mut found = further(typed, |typed| {
        let mut found = entries(typed, Entries::All);
        found.extend(identifiers(typed, store));
        found
    });
    let named = match &found[..] {
        [one] if !one.ends_with('/') => one,
        _ => typed,
    };
    found.extend(modifiers(named, store).unwrap_or_default());
    or_in_link(found, typed, store)
}

/// Returns what has been found, else the identifiers that go on in a link, behind what is in front of them there.
fn or_in_link(found: Vec<String>, typed: &str, store: Option<&Path>) -> Vec<String> {
    if !found.is_empty() {
        return found;
    }
    let colons = || {
        // SUBDOMAIN:WORD:YEAR:DATE
        let slashes = typed.replace(':', "/");
        let found = further(&slashes, |typed| identifiers(typed, store)).into_iter();
        found.map(|it| it.replace('/', ":")).collect()
    };
    let Some(link) = IncompleteLink::parse(typed) else {
        return if typed.contains('/') { found } else { colons() };
    };
    let found = match &link.name_space {
        Some(name) => in_name_space(name, link.identifier, store),
        None => Vec::new(),
    };
    let found = if found.is_empty() {
        of_store(link.identifier, store)
    } else {
        found
    };
    let found = found.into_iter();
    found.map(|it| format!("{}{it}", link.head)).collect()
}

/// Items of a store by identifier alone, with their modifiers.
fn of_store(typed: &str, store: Option<&Path>) -> Vec<String> {
    let mut found = further(typed, |typed| identifiers(typed, store));
    let named = match &found[..] {
        [one] if !one.ends_with('/') => one,
        _ => typed,
    };
    found.extend(modifiers(named, store).unwrap_or_default());
    found
}

/// The ends of identifiers that begin as those of a name space do.
fn in_name_space(name: &str, typed: &str, store: Option<&Path>) -> Vec<String> {
    let access = StoreAccess::for_identifier(store, typed);
    let table = access.ok().and_then(|it| it.name_spaces().ok());
    let Some(entry) = table.as_ref().and_then(|table| table.get(name)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for prefix in entry.prefixes() {
        let before = format!("{prefix}/");
        let whole = of_store(&format!("{before}{typed}"), store).into_iter();
        found.extend(whole.filter_map(|it| it.get(before.len()..).map(str::to_owned)));
    }
    found
}

/// Descends through levels of identifiers that have one entry.
fn further(typed: &str, find: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut found = find(typed);
    for _ in 0..LEVELS {
        match &found[..] {
            [one] if one.ends_with('/') && is_level(one) => {
                let below = find(one);
                if below.is_empty() {
                    break;
                }
                found = below;
            }
            _ => break,
        }
    }
    found
}

/// Whether a directory is a level of identifiers. Without a directory, it is the start of an identifier.
fn is_level(typed: &str) -> bool {
    match std::fs::canonicalize(expanded(typed)) {
        Ok(path) => access::level_of(&path).is_some(),
        Err(_) => true,
    }
}

/// Expands `~/` as the shells do.
fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(below), Some(home)) => Path::new(&home).join(below),
        _ => PathBuf::from(path),
    }
}

/// The entries of a directory that are completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entries {
    All,
    Directories,
}

/// The entries of a directory with the typed prefix; directories end with a slash, unless they are items.
fn entries(typed: &str, wanted: Entries) -> Vec<String> {
    let (directory, begun) = typed
        .rsplit_once('/')
        .map_or(("", typed), |(above, begun)| {
            (&typed[..=above.len()], begun)
        });
    let path = match directory {
        "" => PathBuf::from("."),
        directory => expanded(directory),
    };
    let level = std::fs::canonicalize(&path)
        .ok()
        .and_then(|path| access::level_of(&path));
    let is_item = |name: &str| {
        let ibi = level.as_ref().map(|level| level.join(name));
        ibi.as_deref()
            .and_then(Path::to_str)
            .is_some_and(|ibi| Ibi::parse(ibi).is_ok())
    };
    let entries = Directory::open(&path).and_then(|directory| directory.entries());
    let named = entries
        .unwrap_or_default()
        .into_iter()
        .filter_map(|(name, kind)| {
            let name = String::from_utf8(name).ok()?;
            let is_hidden = name.starts_with('.') && !begun.starts_with('.');
            if !name.starts_with(begun) || is_hidden {
                return None;
            }
            let is_directory = match kind {
                FileType::Symlink => path.join(&name).is_dir(),
                kind => kind.is_dir(),
            };
            match is_directory {
                true if is_item(&name) => Some(format!("{directory}{name}")),
                true => Some(format!("{directory}{name}/")),
                false => (!(wanted == Entries::Directories)).then(|| format!("{directory}{name}")),
            }
        });
    named.collect()
}

/// The identifiers of the items in a store, one level beyond the typed text.
fn identifiers(typed: &str, store: Option<&Path>) -> Vec<String> {
    let Ok(access) = StoreAccess::for_identifier(store, typed) else {
        return Vec::new();
    };
    if let Some(mounted) = access.asked() {
        return daemon::completions(&mounted, typed).unwrap_or_default();
    }
    let found = access.read().ok();
    let found = found.and_then(|archive| archive.store().completions(typed, MOST_COMPLETED).ok());
    found.unwrap_or_default()
}

/// The modifiers of an item that lead to another local item, one step beyond the typed text.
fn modifiers(typed: &str, store: Option<&Path>) -> Option<Vec<String>> {
    let start = typed.rfind('/').map_or(0, |at| at + 1);
    let (above, last) = typed.split_at(start);
    let base = split_name(last).map_or(last, |(base, _)| base);
    let base = format!("{above}{base}");
    let path = expanded(&base);
    let named = access::find(path.to_str()?, store).ok()?;
    // A file in an item has no modifiers.
    let is_item = |path: &Path| {
        path.file_name()
            .and_then(OsStr::to_str)
            .is_some_and(|name| {
                let forms = [
                    named.names.rep().map(ToString::to_string),
                    named.names.ibip().map(ToString::to_string),
                ];
                let mut forms = forms.iter().flatten();
                forms.any(|form| {
                    form.rsplit('/')
                        .next()
                        .is_some_and(|end| end.eq_ignore_ascii_case(name))
                })
            })
    };
    if !is_item(&path) {
        return None;
    }
    let archive = named.archive().ok()?;
    let signs = |text: &str| text.matches(['!', '+', ':']).count();
    let steps = signs(typed.strip_prefix(&base).unwrap_or_default()) + 1;
    let mut found = Vec::new();
    for modifier in with_languages(archive) {
        let text = modifier.to_string();
        let leads = || {
            matches!(
                archive.resolve(&named.names, &modifier, &[]),
                Ok(Some(Related::Item(_)))
            )
        };
        if modifier.steps().len() <= steps && format!("{base}{text}").starts_with(typed) && leads()
        {
            found.push(format!("{base}{text}"));
        }
    }
    Some(found)
}

/// The compositions; those with a translation once for each language of a relation in this Archive.
fn with_languages(archive: &Archive) -> Vec<Modifier> {
    let languages = archive.store().languages().unwrap_or_default();
    let mut modifiers = Vec::new();
    for modifier in Modifier::compositions() {
        let text = modifier.to_string();
        if !text.contains('+') {
            modifiers.push(modifier);
        } else {
            modifiers.extend(languages.iter().filter_map(|language| {
                Modifier::parse(&text.replace('+', &format!("+({language})"))).ok()
            }));
        }
    }
    modifiers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_bash_reads_it() {
        let (words, typed, cut) = of_bash("ibifs show --store 'a b' A/x\\!+\\(p", "p");
        assert_eq!(words, ["show", "--store", "a b"]);
        assert_eq!((typed.as_str(), cut.as_str()), ("A/x!+(p", "A/x!+("));
        let (words, typed, cut) = of_bash("ibifs show \"A/it's ", "A/it's ");
        assert_eq!(words, ["show"]);
        assert_eq!((typed.as_str(), cut.as_str()), ("A/it's ", ""));
        let (words, typed, cut) = of_bash("  ibifs ", "");
        assert_eq!(words, [""; 0]);
        assert_eq!((typed.as_str(), cut.as_str()), ("", ""));
        let (_, typed, cut) = of_bash("ibifs show --store=A/x", "A/x");
        assert_eq!((typed.as_str(), cut.as_str()), ("--store=A/x", "--store="));
    }
}
