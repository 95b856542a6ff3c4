//! Locks of the three kinds, and whether another process meets them.

use super::words::Words;
use super::{Bench, Outcome, done};
use crate::posix::system::{Answer, room, sys};

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    let file = || bench.file(words, 1);
    Some(match words.name() {
        "lock" | "oflock" => done(lock(file(), words)),
        "flock" => done(sys!(SYS_flock, file(), words.flags(2, FLOCK))),
        // `other CALL PATH ...`: what another process, that opens the path again, gets.
        "other" => other(bench, words),
        "getlock" => getlock(file(), words),
        _ => return None,
    })
}

const FLOCK: &[(&str, i64)] = &[
    ("shared", (libc::LOCK_SH | libc::LOCK_NB) as i64),
    ("exclusive", (libc::LOCK_EX | libc::LOCK_NB) as i64),
    ("none", libc::LOCK_UN as i64),
];

const KINDS: &[(&str, i64)] = &[
    ("read", libc::F_RDLCK as i64),
    ("write", libc::F_WRLCK as i64),
    ("none", libc::F_UNLCK as i64),
];

fn range(words: &Words<'_>) -> libc::flock {
    // SAFETY: a structure of numbers, for which zeros are values.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = words.flags(2, KINDS) as i16;
    range.l_whence = libc::SEEK_SET as i16;
    range.l_start = words.number(3);
    range.l_len = words.number(4);
    range
}

fn lock(file: i32, words: &Words<'_>) -> Answer {
    let mut range = range(words);
    let command = if words.step.words.iter().any(|word| word == "oflock") {
        libc::F_OFD_SETLK
    } else {
        libc::F_SETLK
    };
    sys!(SYS_fcntl, file, command, room(&mut range))
}

/// Prints the lock that is in the way: its kind and range.
fn getlock(file: i32, words: &Words<'_>) -> Outcome {
    let mut range = range(words);
    sys!(SYS_fcntl, file, libc::F_OFD_GETLK, room(&mut range))?;
    Ok(match i32::from(range.l_type) {
        libc::F_UNLCK => "free".to_owned(),
        libc::F_RDLCK => format!("read {} {}", range.l_start, range.l_len),
        _ => format!("write {} {}", range.l_start, range.l_len),
    })
}

fn other(bench: &Bench, words: &Words<'_>) -> Outcome {
    let path = words.path(bench, 2);
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    let shifted = crate::posix::row::Step {
        text: words.step.text.clone(),
        user: words.step.user,
        bound: None,
        words: words.step.words[1..].to_vec(),
        expected: crate::posix::row::Expected::Whatever,
    };
    let shifted = Words::new(&shifted);
    let range = match shifted.name() {
        "flock" => None,
        _ => Some(range(&shifted)),
    };
    let whole = match range {
        None => shifted.flags(2, FLOCK),
        Some(_) => 0,
    };
    let command = match shifted.name() {
        "oflock" => libc::F_OFD_SETLK,
        _ => libc::F_SETLK,
    };
    // SAFETY: the child makes system calls only, allocates nothing, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let outcome =
            sys!(SYS_openat, libc::AT_FDCWD, path, flags, 0).and_then(|file| match range {
                None => sys!(SYS_flock, file, whole),
                Some(mut range) => sys!(SYS_fcntl, file, command, room(&mut range)),
            });
        let status = outcome.err().unwrap_or(0);
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0i32;
    sys!(SYS_wait4, child, room(&mut status), 0, 0)?;
    match libc::WEXITSTATUS(status) {
        0 => Ok(String::new()),
        errno => Err(errno),
    }
}
