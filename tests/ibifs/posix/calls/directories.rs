//! Listing directories, also large ones and while they change.

use std::collections::BTreeSet;

use libc::AT_FDCWD;

use super::words::Words;
use super::{Bench, Outcome};
use crate::posix::listing::{is_dots, list, part};
use crate::posix::system::sys;
use std::ffi::CString;

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    Some(match words.name() {
        // `fill d 500 PREFIX` makes so many files.
        "fill" => fill(bench, words),
        "names" => open(bench, words).and_then(|file| {
            let listed = list(file, 32768);
            sys!(SYS_close, file)?;
            let mut names: Vec<String> = listed?.into_iter().map(|entry| entry.name).collect();
            names.sort();
            Ok(names.join(" "))
        }),
        "count" => open(bench, words).and_then(|file| {
            let listed = list(file, words.get(2).map_or(32768, |_| words.number(2)));
            sys!(SYS_close, file)?;
            let listed = listed?;
            let once: BTreeSet<&Vec<u8>> = listed.iter().map(|entry| &entry.bytes).collect();
            Ok(format!("{} {}", listed.len(), once.len()))
        }),
        // An open directory, from where it stands, and from its beginning.
        "listfd" => list(bench.file(words, 1), 32768).map(|listed| listed.len().to_string()),
        "rewind" => sys!(SYS_lseek, bench.file(words, 1), 0, libc::SEEK_SET).map(|_| String::new()),
        "types" => open(bench, words).and_then(|file| {
            let listed = list(file, 32768);
            sys!(SYS_close, file)?;
            let mut types: Vec<String> = listed?
                .into_iter()
                .map(|entry| format!("{}:{}", entry.name, entry.kind))
                .collect();
            types.sort();
            Ok(types.join(" "))
        }),
        "seeks" => seeks(bench, words),
        "remove-while-listing" => while_listing(bench, words, |file, name| {
            let name = CString::new(name).expect("no NUL");
            sys!(SYS_unlinkat, file, name, 0)
        }),
        "rename-while-listing" => while_listing(bench, words, |file, name| {
            let new = CString::new(format!("other-{name}")).expect("no NUL");
            let old = CString::new(name).expect("no NUL");
            if name.starts_with("other-") {
                Ok(0)
            } else {
                sys!(SYS_renameat2, file, old, file, new, 0)
            }
        }),
        "listed-inode" => listed_inode(bench, words),
        _ => return None,
    })
}

fn open(bench: &Bench, words: &Words<'_>) -> Result<i64, i32> {
    let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
    sys!(SYS_openat, AT_FDCWD, words.path(bench, 1), flags, 0)
}

fn fill(bench: &Bench, words: &Words<'_>) -> Outcome {
    let directory = open(bench, words)?;
    let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
    for number in 0..words.number(2) {
        let name = format!("{}{number:05}", words.get(3).unwrap_or("name-"));
        let name = CString::new(name).expect("no NUL");
        let file = sys!(SYS_openat, directory, name, flags, 0o644)?;
        sys!(SYS_close, file)?;
    }
    sys!(SYS_close, directory)?;
    Ok(String::new())
}

/// Goes back to where each entry ends, in an order of its own, and finds the next one there.
fn seeks(bench: &Bench, words: &Words<'_>) -> Outcome {
    let directory = open(bench, words)?;
    let mut all = Vec::new();
    loop {
        let entries = part(directory, 1024)?;
        if entries.is_empty() {
            break;
        }
        all.extend(entries);
    }
    let mut wrong = 0;
    for step in 0..all.len() - 1 {
        let at = step * 7 % (all.len() - 1);
        sys!(SYS_lseek, directory, all[at].next, libc::SEEK_SET)?;
        let found = part(directory, 1024)?;
        let expected = &all[at + 1].name;
        wrong += usize::from(found.first().is_none_or(|entry| entry.name != *expected));
    }
    sys!(SYS_close, directory)?;
    Ok(format!("{} entries, {wrong} wrong", all.len()))
}

/// Lists in small parts and does something with each name at once; every name is met, once.
fn while_listing(
    bench: &Bench,
    words: &Words<'_>,
    mut action: impl FnMut(i64, &str) -> Result<i64, i32>,
) -> Outcome {
    let directory = open(bench, words)?;
    let mut met = BTreeSet::new();
    let mut twice = 0;
    loop {
        let entries = part(directory, 1024)?;
        if entries.is_empty() {
            break;
        }
        for entry in entries.iter().filter(|entry| !is_dots(entry)) {
            if !entry.name.starts_with("other-") {
                twice += usize::from(!met.insert(entry.name.clone()));
                action(directory, &entry.name)?;
            }
        }
    }
    sys!(SYS_lseek, directory, 0, libc::SEEK_SET)?;
    let left = list(directory, 32768)?.len();
    sys!(SYS_close, directory)?;
    Ok(format!("{} met, {twice} twice, {left} left", met.len()))
}

/// Whether every entry has the inode number that stat says.
fn listed_inode(bench: &Bench, words: &Words<'_>) -> Outcome {
    let directory = open(bench, words)?;
    let mut wrong = 0;
    for entry in list(directory, 32768)? {
        let name = CString::new(entry.name).expect("no NUL");
        let seen =
            crate::posix::snapshot::look(directory as i32, &name, libc::AT_SYMLINK_NOFOLLOW)?;
        wrong += usize::from(seen.inode != entry.inode);
    }
    sys!(SYS_close, directory)?;
    Ok(format!("{wrong} wrong"))
}
