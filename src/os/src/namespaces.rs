//! Runs a command in a mount namespace of its own, in which some directories are mounted over others.
//!
//! Root makes the namespace as it is; another user makes a user namespace as well, in which only this user and
//! group exist, and which gives no right that the user lacks outside. See mount_namespaces(7).

use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::thread::{CapabilitySet, UnshareFlags};

use crate::opening;

/// A directory, and the one over which the command finds it.
#[derive(Clone, Debug)]
pub struct Bound {
    directory: Known,
    over: Known,
    limits: MountFlags,
}

/// A directory that was opened by this path. Another user may have put another one there since.
#[derive(Clone, Debug)]
struct Known {
    path: CString,
    file: (u64, u64),
}

impl Known {
    fn new(path: &Path, opened: BorrowedFd<'_>) -> std::io::Result<Known> {
        let stat = rustix::fs::fstat(opened)?;
        Ok(Known {
            path: text(path)?,
            file: (stat.st_dev, stat.st_ino),
        })
    }

    /// Opens the same directory in this mount namespace. ESTALE if it is another one.
    fn again(&self) -> Result<OwnedFd, Errno> {
        let found = opening::found(self.path.as_c_str(), OFlags::DIRECTORY)?;
        let stat = rustix::fs::fstat(&found)?;
        if (stat.st_dev, stat.st_ino) == self.file {
            Ok(found)
        } else {
            Err(Errno::STALE)
        }
    }
}

impl Bound {
    /// A directory over another one, each with its path and open.
    ///
    /// # Errors
    /// Those of fstat(2) and fstatvfs(2).
    pub fn new(
        (directory, opened): (&Path, BorrowedFd<'_>),
        (over, hidden): (&Path, BorrowedFd<'_>),
    ) -> std::io::Result<Bound> {
        Ok(Bound {
            limits: limits_of(opened)? | limits_of(hidden)?,
            directory: Known::new(directory, opened)?,
            over: Known::new(over, hidden)?,
        })
    }

    /// Mounts the directory over the other one, in a child before its command.
    fn mount(&self) -> Result<(), Errno> {
        let (directory, over) = (self.directory.again()?, self.over.again()?);
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH;
        let tree = rustix::mount::open_tree(directory, c"", flags)?;
        let flags =
            MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
        rustix::mount::move_mount(tree, c"", over, c"", flags)?;
        if self.limits.is_empty() {
            return Ok(());
        }
        let path = self.over.path.as_c_str();
        rustix::mount::mount_remount(path, MountFlags::BIND | self.limits, c"")
    }
}

/// All that the child needs after the fork, in which it allocates nothing.
struct Plan {
    binds: Vec<Bound>,
    user: Option<(CString, CString)>,
    working: Option<CString>,
}

fn text(path: &Path) -> std::io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

impl Plan {
    fn of(binds: Vec<Bound>) -> std::io::Result<Plan> {
        let sets = rustix::thread::capabilities(None);
        let is_root = sets.is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
        let map = |id: u32| CString::new(format!("{id} {id} 1\n"));
        let user = if is_root {
            None
        } else {
            let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
            Some((map(uid.as_raw())?, map(gid.as_raw())?))
        };
        // The working directory may be one that is hidden.
        let working = std::env::current_dir().ok();
        let working = working.as_deref().map(text).transpose()?;
        Ok(Plan {
            binds,
            user,
            working,
        })
    }

    /// In the child, before the command.
    fn enter(&self) -> Result<(), Errno> {
        let flags = UnshareFlags::NEWNS;
        match &self.user {
            None => unshare(flags)?,
            Some((uid, gid)) => {
                unshare(flags | UnshareFlags::NEWUSER)?;
                write(c"/proc/self/setgroups", c"deny")?;
                write(c"/proc/self/uid_map", uid)?;
                write(c"/proc/self/gid_map", gid)?;
            }
        }
        // A filesystem that is unmounted outside is unmounted here, and nothing of this is seen outside.
        let private = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        rustix::mount::mount_change(c"/", private)?;
        for bound in &self.binds {
            bound.mount()?;
        }
        match &self.working {
            Some(working) => rustix::process::chdir(working),
            None => Ok(()),
        }
    }
}

fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: only this process, a child that was just forked and has one thread, is concerned; its descriptors
    // stay shared with no process.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

#[expect(clippy::disallowed_methods, reason = "files of the kernel")]
fn write(path: &CStr, value: &CStr) -> Result<(), Errno> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, value.to_bytes()).map(drop)
}

/// Returns what the mount of a file does not allow.
fn limits_of(file: BorrowedFd<'_>) -> std::io::Result<MountFlags> {
    let found = rustix::fs::fstatvfs(file)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
    ];
    let set = pairs.into_iter().filter(|(flag, _)| found.contains(*flag));
    Ok(set.fold(MountFlags::empty(), |all, (_, flag)| all | flag))
}

/// Closes a file, and returns the error of close(2), which a filesystem may return for what was written.
pub fn closed(file: File) -> std::io::Result<()> {
    // SAFETY: the descriptor is owned here, and is not used again.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The process to which signals are passed on.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// The signals that are passed on.
const PASSED: [i32; 6] = [
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

extern "C" fn pass_on(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid pointer to a handler with SA_SIGINFO, and kill(2) may be called in one.
    unsafe {
        // A terminal sends to the command as well.
        let child = CHILD.load(Ordering::SeqCst);
        if child > 0 && (*info).si_code != libc::SI_KERNEL {
            libc::kill(child, signal);
        }
    }
}

fn pass_signals_on() {
    for signal in PASSED {
        // SAFETY: the structures are valid, and the handler calls nothing that a handler may not.
        unsafe {
            let mut known: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &mut known);
            // A signal that the caller ignores, as nohup does, stays ignored.
            if known.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = pass_on as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// The reason why a command was not run.
#[derive(Debug)]
pub enum RunError {
    /// There is no namespace to be had.
    Namespace(Errno),
    /// The command cannot be executed.
    Command(std::io::Error),
}

/// Runs a command in a mount namespace of its own until it ends. Signals are passed on to it. Returns its exit
/// status, 128 and the number of the signal for one that a signal has ended.
pub fn run(mut command: Command, bound: Vec<Bound>) -> Result<u8, RunError> {
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
    let plan = Plan::of(bound).map_err(|error| RunError::Namespace(errno(error)))?;
    // Tells whether the child came as far as the command.
    let (came, sent) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(RunError::Namespace)?;
    let enter = move || {
        plan.enter()?;
        rustix::io::write(&sent, b"+")?;
        Ok(())
    };
    // SAFETY: the closure only makes system calls, with memory that was allocated before the fork.
    unsafe { command.pre_exec(enter) };
    pass_signals_on();
    let spawned = command.spawn();
    // The closure has the writing end.
    drop(command);
    let mut child = spawned.map_err(|error| {
        let has_come = rustix::io::read(&came, &mut [0; 1]).is_ok_and(|count| count == 1);
        if has_come {
            RunError::Command(error)
        } else {
            RunError::Namespace(errno(error))
        }
    })?;
    CHILD.store(i32::try_from(child.id()).unwrap_or(0), Ordering::SeqCst);
    let ended = child.wait();
    CHILD.store(0, Ordering::SeqCst);
    let ended = ended.map_err(RunError::Command)?;
    let status = ended
        .code()
        .or_else(|| Some(128 + ended.signal()?))
        .unwrap_or(1);
    Ok(u8::try_from(status).unwrap_or(u8::MAX))
}
