//! Files that are programs.

use std::ffi::CString;

use super::words::Words;
use super::{Bench, Outcome};
use crate::posix::system::{room, sys};

pub fn call(bench: &mut Bench, words: &Words<'_>) -> Option<Outcome> {
    Some(match words.name() {
        // A program of the system, copied: `program f MODE`.
        "program" => {
            std::fs::copy("/usr/bin/sleep", words.word(1)).expect("a copy of sleep");
            let path = words.path(bench, 1);
            sys!(SYS_fchmodat, libc::AT_FDCWD, path, words.number(2)).map(|_| String::new())
        }
        "run" => start(bench, words, "0").and_then(|child| {
            let mut status = 0i32;
            sys!(SYS_wait4, child, room(&mut status), 0, 0)?;
            Ok(format!("status {}", libc::WEXITSTATUS(status)))
        }),
        "start" => start(bench, words, "1000").map(|child| {
            let name = words.step.bound.clone().expect("a name");
            bench.children.insert(name, child);
            String::new()
        }),
        "end" => {
            let child = bench.children.remove(words.word(1)).unwrap_or(-1);
            sys!(SYS_kill, child, libc::SIGKILL)
                .and_then(|_| sys!(SYS_wait4, child, 0, 0, 0))
                .map(|_| String::new())
        }
        _ => return None,
    })
}

/// Starts a program, and waits until it runs or is refused: the pipe closes by itself then.
fn start(bench: &Bench, words: &Words<'_>, seconds: &str) -> Result<i32, i32> {
    let path = words.path(bench, 1);
    let seconds = CString::new(seconds).expect("no NUL");
    let arguments = [path.as_ptr(), seconds.as_ptr(), std::ptr::null()];
    let nothing = [std::ptr::null::<libc::c_char>()];
    let mut pipe = [0i32; 2];
    sys!(SYS_pipe2, room(&mut pipe), libc::O_CLOEXEC)?;
    let mut refused = 0i32;
    // SAFETY: the child makes system calls only, allocates nothing, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        if let Err(mut errno) = sys!(SYS_execve, path, arguments[..], nothing[..]) {
            let _ = sys!(SYS_write, pipe[1], room(&mut errno), 4);
        }
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(127) };
    }
    sys!(SYS_close, pipe[1])?;
    let printed = sys!(SYS_read, pipe[0], room(&mut refused), 4);
    sys!(SYS_close, pipe[0])?;
    match printed? {
        0 => Ok(child),
        _ => {
            sys!(SYS_wait4, child, 0, 0, 0)?;
            Err(refused)
        }
    }
}
