//! The facts about a process in `/proc`: its groups, capabilities, pending signals and threads, see
//! proc_pid_status(5).

use rustix::process::{Pid, PidfdFlags};
use rustix::thread::CapabilitySet;

use crate::system_files;

/// The threads of one process: one of them may continue what another one has made.
///
/// The default is a group of no process, for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadGroup {
    number: i32,
    /// Its start time in clock ticks since boot: process numbers are reused.
    started: u64,
    /// Its pidfd inode number, which is unique since boot (Linux 6.9); 0 on older kernels.
    unique: u64,
}

/// The field of the start time in `/proc/PID/stat`, counted from after the program's name.
const STARTED: usize = 19;

/// The status of a process; None where it has ended.
pub(super) fn read(pid: u32) -> Option<String> {
    system_files::read_text(format!("/proc/{pid}/status")).ok()
}

/// The value of a field in a process's status, see proc_pid_status(5).
fn line_of<'a>(status: &'a str, field: &str) -> &'a str {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    line.unwrap_or_default()
}

/// The supplementary groups in a process's status.
pub(super) fn groups(status: &str) -> Vec<u32> {
    let words = line_of(status, "Groups:").split_whitespace();
    words.filter_map(|word| word.parse().ok()).collect()
}

/// The effective capabilities in a process's status. Those of a process in another user namespace have no
/// meaning here.
pub(super) fn capabilities(pid: u32, status: &str) -> CapabilitySet {
    let effective = u64::from_str_radix(line_of(status, "CapEff:").trim(), 16).unwrap_or(0);
    let namespace = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/user")).ok();
    match effective {
        0 => CapabilitySet::empty(),
        _ if namespace(&pid.to_string()) != namespace("self") => CapabilitySet::empty(),
        _ => CapabilitySet::from_bits_retain(effective),
    }
}

/// Whether a signal is pending that the process neither blocks nor ignores, or the process has ended.
pub(super) fn is_interrupted(pid: u32) -> bool {
    if pid == 0 {
        return false;
    }
    let Some(status) = read(pid) else {
        return true;
    };
    let mask = |name: &str| u64::from_str_radix(line_of(&status, name).trim(), 16).unwrap_or(0);
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    let held_back = mask("SigBlk:") | mask("SigIgn:");
    // SIGCHLD, SIGURG, SIGWINCH and SIGCONT do nothing unless they are caught.
    let idle = 1 << (17 - 1) | 1 << (23 - 1) | 1 << (28 - 1) | 1 << (18 - 1);
    pending & !held_back & !(idle & !mask("SigCgt:")) != 0
}

/// The thread group of a thread, as `/proc` shows it; None where it does not, as for a process of another PID
/// namespace.
pub(super) fn thread_group(pid: u32) -> Option<ThreadGroup> {
    if pid == 0 {
        return None;
    }
    let status = read(pid)?;
    let number = line_of(&status, "Tgid:").trim().parse().ok()?;
    let stat = system_files::read_text(format!("/proc/{number}/stat")).ok()?;
    // The program's name may hold any byte; it ends at the last bracket.
    let (_, after_name) = stat.rsplit_once(')')?;
    let started = after_name.split_whitespace().nth(STARTED)?.parse().ok()?;
    let process = Pid::from_raw(number)?;
    let opened = rustix::process::pidfd_open(process, PidfdFlags::empty()).ok();
    let unique = opened.and_then(|process| rustix::fs::fstat(process).ok());
    Some(ThreadGroup {
        number,
        started,
        unique: unique.map_or(0, |stat| stat.st_ino),
    })
}

#[cfg(test)]
mod tests {
    use super::line_of;

    #[test]
    fn a_field_of_a_status_is_found_by_its_name() {
        let status = "Name:\tcat\nTgid:\t7\nGroups:\t4 20 \nSigPnd:\t0\n";
        for (field, expected) in [("Tgid:", "\t7"), ("Groups:", "\t4 20 "), ("CapEff:", "")] {
            assert_eq!(line_of(status, field), expected);
        }
    }
}
