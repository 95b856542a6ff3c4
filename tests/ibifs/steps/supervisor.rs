//! A supervisor that lets a command of ours run one durable step after the other, and stops or
//! refuses the n-th.
//!
//! The command runs under a seccomp filter that asks us at each system call that can change a disk.
//! Those on a file of the store are its durable steps, counted over all threads in the order in which
//! they come; all others go on at once. At the chosen step the process is killed before the call is
//! made, or the call is answered with an errno and never made.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use crate::support::switch;

/// The event at the chosen step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Nothing: the steps are counted.
    Count,
    /// The process is killed before it.
    Kill,
    /// It fails once.
    Fail(i32),
    /// It fails, and every step after it.
    FailOn(i32),
}

#[derive(Debug)]
struct State {
    store: PathBuf,
    armed: bool,
    what: What,
    at: usize,
    each_write: bool,
    steps: Vec<String>,
}

/// A command under supervision, and all that it starts.
#[derive(Debug)]
pub struct Supervised {
    state: Arc<Mutex<State>>,
    watching: Option<JoinHandle<()>>,
}

impl Supervised {
    /// Starts a command; the files of its steps lie below `store`. Nothing is counted until
    /// [`Supervised::arm`], unless it is armed from the beginning.
    #[track_caller]
    pub fn start(
        command: &mut Command,
        store: &Path,
        arm: Option<(usize, What)>,
    ) -> (Supervised, Child) {
        let (ours, theirs) = sockets();
        let sender = theirs.as_raw_fd();
        let mut program = program();
        // SAFETY: between fork and exec the child makes system calls alone and allocates nothing.
        unsafe {
            command.pre_exec(move || send_descriptor(sender, install_filter(&mut program)?));
        }
        let child = command.spawn().expect("the command starts");
        drop(theirs);
        let listener = receive_descriptor(ours.as_raw_fd());
        let (at, what) = arm.unwrap_or((0, What::Count));
        let state = Arc::new(Mutex::new(State {
            store: std::fs::canonicalize(store).unwrap_or_else(|_| store.to_owned()),
            armed: arm.is_some(),
            what,
            at,
            each_write: switch("IBIFS_TEST_STEPS").is_some(),
            steps: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        let watching = std::thread::spawn(move || watch(&listener, &shared));
        let supervised = Supervised {
            state,
            watching: Some(watching),
        };
        (supervised, child)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while watching")
    }

    /// Counts from now on, and does something at the `at`-th step, the first being 1.
    pub fn arm(&self, at: usize, what: What) {
        let mut state = self.state();
        state.armed = true;
        state.what = what;
        state.at = at;
        state.steps.clear();
    }

    /// Lets everything go on again.
    pub fn disarm(&self) {
        self.state().armed = false;
    }

    /// Whether the chosen step was reached.
    pub fn reached(&self) -> bool {
        let state = self.state();
        state.at > 0 && state.steps.len() >= state.at
    }

    /// The steps counted since it was armed, a line each.
    pub fn steps(&self) -> Vec<String> {
        self.state().steps.clone()
    }

    /// The chosen step, or the last one counted.
    pub fn step(&self) -> String {
        let state = self.state();
        let index = state.at.min(state.steps.len());
        let step = index
            .checked_sub(1)
            .and_then(|index| state.steps.get(index));
        format!("step {index}: {}", step.map_or("none", String::as_str))
    }

    /// Waits until all that was supervised has ended.
    pub fn wait(mut self) {
        if let Some(watching) = self.watching.take() {
            watching.join().expect("no panic while watching");
        }
    }
}

/// The arguments of a system call that name the file that it changes.
#[derive(Clone, Copy, Debug)]
enum Subject {
    /// A descriptor.
    Descriptor(usize),
    /// A path, relative to the current directory.
    Path(usize),
    /// A path, relative to a directory.
    At(usize, usize),
    /// A path, relative to a directory, if the flags make or cut a file.
    OpenAt,
    /// The same with the flags in memory.
    OpenAt2,
    /// Two paths, each relative to a directory; the second one counts too.
    TwoAt(usize, usize, usize, usize),
}

use Subject::{At, Descriptor, OpenAt, OpenAt2, TwoAt};

const CALLS: &[(&str, libc::c_long, Subject)] = &[
    ("write", libc::SYS_write, Descriptor(0)),
    ("writev", libc::SYS_writev, Descriptor(0)),
    ("pwrite64", libc::SYS_pwrite64, Descriptor(0)),
    ("pwritev", libc::SYS_pwritev, Descriptor(0)),
    ("pwritev2", libc::SYS_pwritev2, Descriptor(0)),
    ("copy_file_range", libc::SYS_copy_file_range, Descriptor(2)),
    ("sendfile", libc::SYS_sendfile, Descriptor(0)),
    ("splice", libc::SYS_splice, Descriptor(2)),
    ("fsync", libc::SYS_fsync, Descriptor(0)),
    ("fdatasync", libc::SYS_fdatasync, Descriptor(0)),
    ("syncfs", libc::SYS_syncfs, Descriptor(0)),
    ("sync_file_range", libc::SYS_sync_file_range, Descriptor(0)),
    ("ftruncate", libc::SYS_ftruncate, Descriptor(0)),
    ("fallocate", libc::SYS_fallocate, Descriptor(0)),
    ("fchmod", libc::SYS_fchmod, Descriptor(0)),
    ("fchown", libc::SYS_fchown, Descriptor(0)),
    ("fsetxattr", libc::SYS_fsetxattr, Descriptor(0)),
    ("fremovexattr", libc::SYS_fremovexattr, Descriptor(0)),
    ("setxattr", libc::SYS_setxattr, Subject::Path(0)),
    ("lsetxattr", libc::SYS_lsetxattr, Subject::Path(0)),
    ("removexattr", libc::SYS_removexattr, Subject::Path(0)),
    ("lremovexattr", libc::SYS_lremovexattr, Subject::Path(0)),
    ("truncate", libc::SYS_truncate, Subject::Path(0)),
    ("fchmodat", libc::SYS_fchmodat, At(0, 1)),
    ("fchownat", libc::SYS_fchownat, At(0, 1)),
    ("utimensat", libc::SYS_utimensat, At(0, 1)),
    ("mkdirat", libc::SYS_mkdirat, At(0, 1)),
    ("mknodat", libc::SYS_mknodat, At(0, 1)),
    ("unlinkat", libc::SYS_unlinkat, At(0, 1)),
    ("symlinkat", libc::SYS_symlinkat, At(1, 2)),
    ("linkat", libc::SYS_linkat, TwoAt(0, 1, 2, 3)),
    ("renameat", libc::SYS_renameat, TwoAt(0, 1, 2, 3)),
    ("renameat2", libc::SYS_renameat2, TwoAt(0, 1, 2, 3)),
    ("openat", libc::SYS_openat, OpenAt),
    ("openat2", libc::SYS_openat2, OpenAt2),
    #[cfg(target_arch = "x86_64")]
    ("mkdir", libc::SYS_mkdir, Subject::Path(0)),
    #[cfg(target_arch = "x86_64")]
    ("rmdir", libc::SYS_rmdir, Subject::Path(0)),
    #[cfg(target_arch = "x86_64")]
    ("unlink", libc::SYS_unlink, Subject::Path(0)),
    #[cfg(target_arch = "x86_64")]
    ("rename", libc::SYS_rename, Subject::Path(1)),
    #[cfg(target_arch = "x86_64")]
    ("link", libc::SYS_link, Subject::Path(1)),
    #[cfg(target_arch = "x86_64")]
    ("symlink", libc::SYS_symlink, Subject::Path(1)),
    #[cfg(target_arch = "x86_64")]
    ("chmod", libc::SYS_chmod, Subject::Path(0)),
    #[cfg(target_arch = "x86_64")]
    ("chown", libc::SYS_chown, Subject::Path(0)),
    #[cfg(target_arch = "x86_64")]
    ("lchown", libc::SYS_lchown, Subject::Path(0)),
];

/// Flags of an open that changes what is on the disk.
const MAKES_OR_CUTS: u32 = (libc::O_CREAT | libc::O_TRUNC) as u32;

/// The filter asks at each of [`CALLS`], but not at an open that neither makes nor cuts a file.
fn program() -> Vec<libc::sock_filter> {
    let code = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let any_bit = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    // The offsets of the call's number and of the lower half of its third argument.
    let (number, flags) = (0, 32);
    let mut program = vec![code(load, 0, 0, number)];
    for (_, call, subject) in CALLS {
        match subject {
            OpenAt => program.extend([
                code(equal, 0, 4, *call as u32),
                code(load, 0, 0, flags),
                code(any_bit, 0, 1, MAKES_OR_CUTS),
                code(answer, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
                code(answer, 0, 0, libc::SECCOMP_RET_ALLOW),
            ]),
            _ => program.extend([
                code(equal, 0, 1, *call as u32),
                code(answer, 0, 0, libc::SECCOMP_RET_USER_NOTIF),
            ]),
        }
    }
    program.push(code(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    program
}

/// Puts the calling process under the filter and gives the descriptor by which it asks.
fn install_filter(program: &mut [libc::sock_filter]) -> std::io::Result<RawFd> {
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: plain system calls; the program lives until they return.
    unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        let listener = libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const filter,
        );
        match listener {
            -1 => Err(std::io::Error::last_os_error()),
            listener => Ok(listener as RawFd),
        }
    }
}

const CONTROL: usize = 64;

fn sockets() -> (OwnedFd, OwnedFd) {
    let mut pair = [0; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: the array has room for two descriptors, which are ours.
    unsafe {
        assert_eq!(
            libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()),
            0
        );
        (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1]))
    }
}

fn message(
    byte: &mut [u8; 1],
    part: &mut libc::iovec,
    control: &mut [u64; CONTROL / 8],
) -> libc::msghdr {
    part.iov_base = byte.as_mut_ptr().cast();
    part.iov_len = 1;
    // SAFETY: all zeroes is a valid message header.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    message
}

fn send_descriptor(socket: RawFd, descriptor: RawFd) -> std::io::Result<()> {
    let (mut byte, mut control) = ([0], [0; CONTROL / 8]);
    // SAFETY: as for the message; the control buffer has room for one descriptor.
    unsafe {
        let mut part: libc::iovec = std::mem::zeroed();
        let mut message = message(&mut byte, &mut part, &mut control);
        message.msg_controllen = libc::CMSG_SPACE(4) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as _;
        libc::CMSG_DATA(header)
            .cast::<RawFd>()
            .write_unaligned(descriptor);
        match libc::sendmsg(socket, &raw const message, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

fn receive_descriptor(socket: RawFd) -> OwnedFd {
    let (mut byte, mut control) = ([0], [0; CONTROL / 8]);
    // SAFETY: as above; the descriptor received is ours.
    unsafe {
        let mut part: libc::iovec = std::mem::zeroed();
        let mut message = message(&mut byte, &mut part, &mut control);
        let received = libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC);
        assert_eq!(received, 1, "{}", std::io::Error::last_os_error());
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        assert!(!header.is_null(), "a descriptor came");
        OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned())
    }
}

use libc::{SECCOMP_IOCTL_NOTIF_RECV as RECEIVE, SECCOMP_IOCTL_NOTIF_SEND as SEND};

fn watch(listener: &OwnedFd, state: &Mutex<State>) {
    let mut poll = libc::pollfd {
        fd: listener.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    loop {
        // SAFETY: one entry, which lives until the call returns.
        let ready = unsafe { libc::poll(&raw mut poll, 1, -1) };
        if ready < 0 {
            continue;
        }
        if poll.revents & libc::POLLIN == 0 {
            // No process is left under the filter.
            return;
        }
        // SAFETY: all zeroes is what the kernel wants to be given, and plain data.
        let mut asked: libc::seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the request writes one such structure.
        let received = unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE, &raw mut asked) };
        if received != 0 {
            // It was killed meanwhile.
            continue;
        }
        let Some(errno) = decide(&asked, state) else {
            continue;
        };
        let answer = libc::seccomp_notif_resp {
            id: asked.id,
            val: 0,
            error: -errno,
            flags: match errno {
                0 => libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
                _ => 0,
            },
        };
        // SAFETY: the request reads one such structure. An error means that it was killed meanwhile.
        unsafe { libc::ioctl(listener.as_raw_fd(), SEND, &raw const answer) };
    }
}

/// The errno of an answer, 0 to go on; None where no process waits for an answer any more.
fn decide(asked: &libc::seccomp_notif, state: &Mutex<State>) -> Option<i32> {
    let mut state = state.lock().expect("no panic while watching");
    if !state.armed {
        return Some(0);
    }
    let Some(step) = step(asked, &state.store) else {
        return Some(0);
    };
    // Of several writes in a row to one file any may be the last before a crash; unless asked for
    // each, they are one step.
    let goes_on =
        !state.each_write && step.starts_with("pwrite") && state.steps.last() == Some(&step);
    let number = match goes_on {
        true if state.what != What::Kill => state.steps.len(),
        true => return Some(0),
        false => {
            state.steps.push(step.clone());
            state.steps.len()
        }
    };
    let errno = match state.what {
        What::Kill if number == state.at => {
            kill(asked.pid);
            return None;
        }
        What::Fail(errno) if number == state.at && !goes_on => errno,
        What::FailOn(errno) if number >= state.at && state.at > 0 => errno,
        _ => 0,
    };
    Some(errno)
}

fn kill(thread: u32) {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
    let process = status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:")?.trim().parse::<i32>().ok())
        .expect("the process of a thread");
    // SAFETY: the thread waits for us, so that its process is still the one we started.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Returns the change of a system call in the store, as a line; None if it changes nothing there.
fn step(asked: &libc::seccomp_notif, store: &Path) -> Option<String> {
    let (name, _, subject) = CALLS
        .iter()
        .find(|(_, call, _)| *call == libc::c_long::from(asked.data.nr))?;
    let process = Process(asked.pid);
    let argument = |index: usize| asked.data.args[index];
    let paths = match *subject {
        Descriptor(index) => vec![process.open_file(argument(index) as i32)],
        Subject::Path(index) => vec![process.path(libc::AT_FDCWD, argument(index))],
        At(directory, path) => vec![process.path(argument(directory) as i32, argument(path))],
        OpenAt => vec![process.path(argument(0) as i32, argument(1))],
        OpenAt2 => {
            let flags = process.memory(argument(2), 8)?;
            let flags = u64::from_ne_bytes(flags.try_into().ok()?) as u32;
            if flags & MAKES_OR_CUTS == 0 {
                return None;
            }
            vec![process.path(argument(0) as i32, argument(1))]
        }
        TwoAt(from, path, to, new_path) => vec![
            process.path(argument(from) as i32, argument(path)),
            process.path(argument(to) as i32, argument(new_path)),
        ],
    };
    let below: Vec<String> = paths
        .iter()
        .flatten()
        .filter_map(|path| Some(path.strip_prefix(store).ok()?.display().to_string()))
        .collect();
    if below.is_empty() {
        None
    } else {
        Some(format!("{name} {}", below.join(" -> ")))
    }
}

/// A process or thread that waits for our answer.
struct Process(u32);

impl Process {
    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        use std::os::unix::fs::FileExt;
        let memory = std::fs::File::open(format!("/proc/{}/mem", self.0)).ok()?;
        let mut bytes = vec![0; length];
        let read = memory.read_at(&mut bytes, address).ok()?;
        bytes.truncate(read);
        Some(bytes)
    }

    fn text(&self, address: u64) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        let mut bytes = Vec::new();
        while bytes.len() < 4096 {
            // Not over the end of a page, behind which there may be nothing.
            let at = address + bytes.len() as u64;
            let more = self.memory(at, 4096 - (at % 4096) as usize)?;
            let end = more.iter().position(|byte| *byte == 0);
            bytes.extend_from_slice(&more[..end.unwrap_or(more.len())]);
            if end.is_some() || more.is_empty() {
                break;
            }
        }
        Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
    }

    fn open_file(&self, descriptor: i32) -> Option<PathBuf> {
        let link = match descriptor {
            libc::AT_FDCWD => format!("/proc/{}/cwd", self.0),
            descriptor => format!("/proc/{}/fd/{descriptor}", self.0),
        };
        std::fs::read_link(link).ok()
    }

    fn path(&self, directory: i32, address: u64) -> Option<PathBuf> {
        let path = match address {
            0 => PathBuf::new(),
            address => self.text(address)?,
        };
        if let Ok(rest) = path.strip_prefix("/proc/self/fd") {
            let mut parts = rest.components();
            if let Some(Component::Normal(number)) = parts.next() {
                let open = self.open_file(number.to_str()?.parse().ok()?)?;
                return Some(open.join(parts.as_path()));
            }
        }
        if path.is_absolute() {
            Some(path)
        } else {
            Some(self.open_file(directory)?.join(path))
        }
    }
}
