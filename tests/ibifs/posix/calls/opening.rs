//! Opening, closing, and what a descriptor knows.

use libc::AT_FDCWD;

use super::words::Words;
use super::{Bench, Outcome, done};
use crate::posix::system::sys;

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    Some(match words.name() {
        "open" => open(bench, words, words.flags(2, OPEN), 3),
        "creat" => {
            let flags = libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC;
            open(bench, words, i64::from(flags), 2)
        }
        "close" => {
            let file = bench.file(words, 1);
            bench.files.remove(words.word(1));
            done(sys!(SYS_close, file))
        }
        "getfl" => sys!(SYS_fcntl, bench.file(words, 1), libc::F_GETFL).map(|flags| {
            let shown = OPEN[3..].iter().filter(|(name, bit)| {
                flags & bit == *bit && matches!(*name, "O_APPEND" | "O_DIRECT" | "O_NONBLOCK")
            });
            let mut names: Vec<&str> = shown.map(|(name, _)| *name).collect();
            names.extend(names.is_empty().then_some("none"));
            format!("{} {}", flags & 3, names.join("|"))
        }),
        "setfl" => {
            let flags = words.flags(2, OPEN);
            done(sys!(SYS_fcntl, bench.file(words, 1), libc::F_SETFL, flags))
        }
        "access" => {
            let path = words.path(bench, 1);
            done(sys!(SYS_faccessat, AT_FDCWD, path, words.flags(2, ACCESS)))
        }
        // By the effective user, and without following a link where asked.
        "eaccess" => {
            let flags = libc::AT_EACCESS;
            faccessat2(bench, words, flags)
        }
        "laccess" => faccessat2(bench, words, libc::AT_SYMLINK_NOFOLLOW),
        _ => return None,
    })
}

fn faccessat2(bench: &Bench, words: &Words<'_>, flags: i32) -> Outcome {
    let path = words.path(bench, 1);
    let mode = words.flags(2, ACCESS);
    done(sys!(SYS_faccessat2, AT_FDCWD, path, mode, flags))
}

fn open(bench: &mut Bench, words: &Words<'_>, flags: i64, mode: usize) -> Outcome {
    let mode = words.get(mode).map_or(0o644, |_| words.number(mode));
    let flags = flags | i64::from(libc::O_CLOEXEC);
    let path = words.path(bench, 1);
    let descriptor = sys!(SYS_openat, AT_FDCWD, path, flags, mode)?;
    bench.keep(words, descriptor);
    Ok(String::new())
}

const ACCESS: &[(&str, i64)] = &[("F", 0), ("R", 4), ("W", 2), ("X", 1)];

const OPEN: &[(&str, i64)] = &[
    ("O_RDONLY", libc::O_RDONLY as i64),
    ("O_WRONLY", libc::O_WRONLY as i64),
    ("O_RDWR", libc::O_RDWR as i64),
    ("O_ACCMODE", libc::O_ACCMODE as i64),
    ("O_CREAT", libc::O_CREAT as i64),
    ("O_EXCL", libc::O_EXCL as i64),
    ("O_TRUNC", libc::O_TRUNC as i64),
    ("O_APPEND", libc::O_APPEND as i64),
    ("O_DIRECTORY", libc::O_DIRECTORY as i64),
    ("O_NOFOLLOW", libc::O_NOFOLLOW as i64),
    ("O_PATH", libc::O_PATH as i64),
    ("O_DIRECT", libc::O_DIRECT as i64),
    ("O_TMPFILE", libc::O_TMPFILE as i64),
    ("O_NOATIME", libc::O_NOATIME as i64),
    ("O_NONBLOCK", libc::O_NONBLOCK as i64),
    ("O_SYNC", libc::O_SYNC as i64),
    ("O_DSYNC", libc::O_DSYNC as i64),
];
