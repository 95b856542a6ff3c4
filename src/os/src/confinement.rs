//! A process that computes for another one: it reads and writes the three descriptors that it was given, within
//! limits, and can open, connect, start or signal nothing.
//!
//! [`confine`] is what the process does to itself before it reads anything; [`run`] starts this program as such a
//! process and waits for its result. The result is as doubtful as what was read: who starts it checks it.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

use crate::caller::{Caller, set_no_new_privileges};
use crate::running::{NoResult, output};

/// The bounds of a confined process.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Its address space, in bytes.
    pub memory: u64,
    /// Its processor time, in seconds.
    pub seconds: u64,
    /// The length of its result, in bytes.
    pub written: u64,
}

/// The system calls of a program that computes: reading and writing what is open, memory, random numbers, the end.
const CALLS: &[libc::c_long] = &[
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_futex,
    libc::SYS_getrandom,
    libc::SYS_clock_gettime,
    libc::SYS_sched_yield,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The calls that map memory, which must not be executable. Their third argument is the protection.
const MAPPING_CALLS: &[libc::c_long] = &[libc::SYS_mmap, libc::SYS_mprotect];
const PROTECTION: u8 = 2;

/// Confines this process for good. It must have one thread.
///
/// # Errors
/// The system refuses a part of it, and nothing may be read.
pub fn confine(bounds: &Bounds) -> std::io::Result<()> {
    const FIRST_OF_OTHERS: libc::c_uint = 3;
    // SAFETY: no pointer is followed. No object of this process owns a descriptor yet.
    let closed =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST_OF_OTHERS, libc::c_uint::MAX, 0) };
    if closed != 0 {
        return Err(std::io::Error::last_os_error());
    }
    for (resource, limit) in [
        (Resource::As, bounds.memory),
        (Resource::Cpu, bounds.seconds),
        (Resource::Fsize, bounds.written),
        (Resource::Core, 0),
        (Resource::Nofile, 0),
        (Resource::Nproc, 0),
    ] {
        let limit = Some(limit);
        setrlimit(
            resource,
            Rlimit {
                current: limit,
                maximum: limit,
            },
        )?;
    }
    set_no_new_privileges();
    Caller::NOBODY.become_for_good()?;
    let filter = filter().map_err(std::io::Error::other)?;
    seccompiler::apply_filter_all_threads(&filter).map_err(std::io::Error::other)
}

/// A program of the kernel that answers every other system call with EPERM.
fn filter() -> Result<BpfProgram, seccompiler::BackendError> {
    let executable = u64::from(libc::PROT_EXEC.unsigned_abs());
    let is_not_executable = SeccompCondition::new(
        PROTECTION,
        SeccompCmpArgLen::Dword,
        SeccompCmpOp::MaskedEq(executable),
        0,
    )?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for call in CALLS {
        rules.insert(*call, Vec::new());
    }
    for call in MAPPING_CALLS {
        let rule = SeccompRule::new(vec![is_not_executable.clone()])?;
        rules.insert(*call, vec![rule]);
    }
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, machine)?.try_into()
}

/// Starts this program with some arguments, `input` as its standard input and no environment, and returns what it
/// writes to its standard output. It is ended after a time.
///
/// # Errors
/// See [`NoResult`].
pub fn run(arguments: &[&str], input: File, timeout: Duration) -> Result<Vec<u8>, NoResult> {
    // Not by its name: it may have been replaced by another version, in a directory that user 65534 cannot search.
    let mut command = Command::new("/proc/self/exe");
    command.args(arguments).env_clear().stdin(input);
    output(command, timeout)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what each attempt of a confined process returns: 0, or the number of its error.
    fn attempts() -> Vec<i32> {
        let error = |returned: i64| match returned {
            -1 => std::io::Error::last_os_error().raw_os_error().unwrap_or(-1),
            _ => 0,
        };
        let name = c"/etc/passwd".as_ptr();
        // SAFETY: the names end with a NUL, and no other pointer is followed.
        unsafe {
            vec![
                error(libc::write(1, [0_u8; 0].as_ptr().cast(), 0) as i64),
                error(libc::syscall(libc::SYS_openat, libc::AT_FDCWD, name, 0)),
                error(libc::syscall(
                    libc::SYS_socket,
                    libc::AF_INET,
                    libc::SOCK_STREAM,
                    0,
                )),
                error(libc::syscall(
                    libc::SYS_socket,
                    libc::AF_UNIX,
                    libc::SOCK_STREAM,
                    0,
                )),
                error(libc::syscall(libc::SYS_kill, libc::getppid(), 0)),
                error(libc::syscall(libc::SYS_execve, name, 0, 0)),
                error(libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0)),
                error(libc::syscall(
                    libc::SYS_ptrace,
                    libc::PTRACE_TRACEME,
                    0,
                    0,
                    0,
                )),
                error(libc::syscall(libc::SYS_memfd_create, name, 0)),
                error(libc::syscall(libc::SYS_setuid, 0)),
                error(libc::syscall(
                    libc::SYS_mmap,
                    0,
                    4096,
                    libc::PROT_READ | libc::PROT_EXEC,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                    -1,
                    0,
                )),
                // The output is bounded, and so is memory.
                i32::from(libc::write(1, [0_u8; 65].as_ptr().cast(), 65) != 64),
                i32::from(!libc::malloc(1 << 30).is_null()),
            ]
        }
    }

    /// In a process of its own, which ends afterwards.
    fn confined(output: &File) -> i32 {
        use std::os::fd::AsRawFd;
        // SAFETY: the new process calls nothing that other threads may have locked but the allocator, which the C
        // library keeps usable, and ends without unwinding.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::dup2(output.as_raw_fd(), 1);
                libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
                let bounds = Bounds {
                    memory: 1 << 30,
                    seconds: 5,
                    written: 64,
                };
                let expected = [
                    &[0][..],
                    &[libc::EPERM; 10],
                    // 64 of 65 bytes are written.
                    &[0, 0],
                ];
                libc::_exit(match confine(&bounds) {
                    Err(_) => 100,
                    Ok(()) => {
                        let tried = attempts();
                        let strange = tried
                            .iter()
                            .zip(expected.concat())
                            .position(|(found, expected)| *found != expected);
                        strange.map_or(0, |at| i32::try_from(at).unwrap_or(99) + 1)
                    }
                });
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            assert!(libc::WIFEXITED(status), "ended by {status}");
            libc::WEXITSTATUS(status)
        }
    }

    #[test]
    fn a_confined_process_can_only_compute() {
        let output =
            rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
        let output = File::from(output);
        assert_eq!(confined(&output), 0, "the number of the strange attempt");
        assert_eq!(output.metadata().expect("a length").len(), 64);
    }
}
