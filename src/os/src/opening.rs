//! Opening files that other users own, without waiting for these users.
//!
//! open(2) waits for the holder of a lease on a file (`fcntl` F_SETLEASE), up to
//! `/proc/sys/fs/lease-break-time` seconds, and for the other end of a FIFO. Any user may take a lease on
//! their own files. Therefore every file is opened with O_NONBLOCK: for a regular file EAGAIN then means a
//! lease, which the attempt has begun to break. truncate(2) by path waits in the same way; chmod, rename,
//! link and unlink do not.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, XattrFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// The error of an open that would have to wait for the holder of a lease.
pub const LEASED: Errno = Errno::AGAIN;

/// The error for what is not a regular file where one is needed: a link, a directory, a FIFO, a device.
pub const NOT_REGULAR: Errno = Errno::INVAL;

/// The longest text that is read of a file of another user, in bytes.
const LONGEST_TEXT: u64 = 64 << 20;

/// The number of times that a path is walked again when a rename raced the walk.
const TURNS: usize = 128;

/// The flags of an open file that F_SETFL keeps.
const KEPT: OFlags = OFlags::APPEND.union(OFlags::NOATIME);

/// Clears O_NONBLOCK of an open file unless the caller asked for it: it has a meaning on some network
/// filesystems.
pub fn settled(file: OwnedFd, asked: OFlags) -> Result<OwnedFd, Errno> {
    if !asked.intersects(OFlags::NONBLOCK | OFlags::PATH) {
        rustix::fs::fcntl_setfl(&file, asked & KEPT)?;
    }
    Ok(file)
}

/// A path that reaches an open file again, even one opened with O_PATH; valid while it is open. See
/// proc_pid_fd(5).
pub fn by_descriptor(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Opens a file that was found with O_PATH, without waiting.
#[expect(clippy::disallowed_methods, reason = "the path is a descriptor")]
pub fn again(found: impl AsFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = (flags - OFlags::NOFOLLOW) | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::open(by_descriptor(found.as_fd()), flags, Mode::empty())
}

/// Gives an open file another name, also one that was found with O_PATH: a name of its may lead to another file by now. False
/// where it can have none: on another filesystem, on one without links, or if it has too many.
pub fn link(file: BorrowedFd<'_>, directory: impl AsFd, name: impl Arg) -> Result<bool, Errno> {
    let (file, flags) = (by_descriptor(file), AtFlags::SYMLINK_FOLLOW);
    match rustix::fs::linkat(CWD, file, directory, name, flags) {
        Ok(()) => Ok(true),
        Err(
            Errno::XDEV
            | Errno::PERM
            | Errno::ACCESS
            | Errno::OPNOTSUPP
            | Errno::NOSYS
            | Errno::MLINK
            | Errno::NOENT,
        ) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Sets the permission bits of an open file, also of one that was found with O_PATH.
#[expect(clippy::disallowed_methods, reason = "the path is a descriptor")]
pub fn set_mode(file: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
    rustix::fs::chmod(by_descriptor(file), mode)
}

/// Sets an extended attribute of an open file, also of one that was found with O_PATH.
#[expect(clippy::disallowed_methods, reason = "the path is a descriptor")]
pub fn set_attribute(
    file: BorrowedFd<'_>,
    name: impl Arg,
    value: &[u8],
    flags: XattrFlags,
) -> Result<(), Errno> {
    rustix::fs::setxattr(by_descriptor(file), name, value, flags)
}

/// Removes an extended attribute of an open file, also of one that was found with O_PATH.
#[expect(clippy::disallowed_methods, reason = "the path is a descriptor")]
pub fn remove_attribute(file: BorrowedFd<'_>, name: impl Arg) -> Result<(), Errno> {
    rustix::fs::removexattr(by_descriptor(file), name)
}

/// Finds what is at a path with O_PATH, which neither waits nor has an effect. A link at the end of the path is followed
/// unless the flags say otherwise.
#[expect(clippy::disallowed_methods, reason = "nothing is opened by O_PATH")]
pub fn found(path: impl Arg, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, flags | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Opens a regular file for reading, at a path where another user may have put anything: a FIFO, a device, a link to one.
/// Nothing else is opened, and nothing waits. A link at the end of the path is followed unless the flags say otherwise.
///
/// # Errors
/// [`NOT_REGULAR`] for what is not a regular file, [`LEASED`] for one with a lease of another process.
pub fn regular(path: impl Arg, flags: OFlags) -> Result<File, Errno> {
    let found = found(path, flags)?;
    match FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode) {
        FileType::RegularFile => {
            settled(again(&found, OFlags::RDONLY)?, OFlags::RDONLY).map(File::from)
        }
        _ => Err(NOT_REGULAR),
    }
}

/// Reads what [`regular`] opens.
///
/// # Errors
/// Those of [`regular`]; FileTooLarge for a file of more than [`LONGEST_TEXT`] bytes.
pub fn read_regular(path: impl Arg, flags: OFlags) -> std::io::Result<Vec<u8>> {
    let (file, mut bytes) = (regular(path, flags)?, Vec::new());
    file.take(LONGEST_TEXT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_TEXT {
        return Err(ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Opens a path below a directory without waiting.
///
/// # Errors
/// [`LEASED`] if a lease prevents it; otherwise those of openat2(2).
pub fn beneath(
    directory: impl AsFd,
    path: impl Arg + Copy,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let walk = |flags: OFlags| loop {
        let flags = flags | OFlags::CLOEXEC;
        match rustix::fs::openat2(&directory, path, flags, Mode::empty(), resolve) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    // EAGAIN of a walk: a rename raced it, and the kernel cannot guarantee that it stayed below.
    let find = |flags: OFlags| {
        for _ in 0..TURNS {
            match walk(flags) {
                Err(Errno::AGAIN) => std::thread::yield_now(),
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    };
    if flags.contains(OFlags::PATH) {
        return find(flags);
    }
    match walk(flags | OFlags::NONBLOCK | OFlags::NOCTTY) {
        // A race and a lease give the same error; for a file found first, it can only be a lease.
        Err(Errno::AGAIN) => again(find((flags & OFlags::DIRECTORY) | OFlags::PATH)?, flags),
        other => other,
    }
}

/// The owner of a lease that is a thread, see fcntl(2).
#[repr(C)]
struct LeaseOwner {
    kind: libc::c_int,
    thread: libc::pid_t,
}

/// Whether a regular file is open for writing, or mapped so: a lease for reading is refused then. True if that cannot be
/// found out.
pub fn is_open_for_writing(file: BorrowedFd<'_>) -> bool {
    const SET_OWNER: libc::c_int = 15;
    const THREAD: libc::c_int = 0;
    let Ok(file) = again(file, OFlags::RDONLY) else {
        return true;
    };
    let owner = LeaseOwner {
        kind: THREAD,
        thread: crate::processors::own_thread().as_raw_nonzero().get(),
    };
    // SAFETY: the sets and the owner are valid for the calls, and the descriptor is open. A program that opens the file
    // between the two calls is reported to this thread alone, by a signal that is blocked and then discarded.
    unsafe {
        let (mut blocked, mut before): (libc::sigset_t, libc::sigset_t) =
            (std::mem::zeroed(), std::mem::zeroed());
        libc::sigemptyset(&mut blocked);
        libc::sigaddset(&mut blocked, libc::SIGIO);
        libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut before);
        let raw = file.as_raw_fd();
        let is_free = libc::fcntl(raw, SET_OWNER, &owner) == 0
            && libc::fcntl(raw, libc::F_SETLEASE, libc::F_RDLCK) == 0;
        if is_free {
            libc::fcntl(raw, libc::F_SETLEASE, libc::F_UNLCK);
            let none = libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            };
            libc::sigtimedwait(&blocked, std::ptr::null_mut(), &none);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        !is_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TemporaryDirectory;

    fn lease(file: &std::fs::File, kind: i32) -> i32 {
        // SAFETY: takes no pointer; the descriptor is open.
        unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) }
    }

    #[test]
    fn nothing_that_is_opened_waits() {
        // SAFETY: no handler of ours is set; the signal that reports a broken lease is ignored.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        let root = TemporaryDirectory::new();
        let directory = root.opened();
        let leased = std::fs::File::create(root.join("leased")).expect("a file");
        assert_eq!(lease(&leased, libc::F_WRLCK), 0);
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(&directory, "fifo", rustix::fs::FileType::Fifo, mode, 0).expect("made");
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let began = std::time::Instant::now();
        let open = |path, flags| beneath(&directory, path, flags, resolve);
        assert_eq!(open("leased", OFlags::RDONLY).err(), Some(LEASED));
        assert_eq!(open("leased", OFlags::RDWR).err(), Some(LEASED));
        assert!(open("leased", OFlags::PATH).is_ok());
        assert!(open("fifo", OFlags::RDONLY).is_ok());
        assert!(began.elapsed() < std::time::Duration::from_secs(5));
        assert_eq!(lease(&leased, libc::F_UNLCK), 0);
        let opened = open("leased", OFlags::RDWR | OFlags::APPEND).expect("opens");
        let opened = settled(opened, OFlags::RDWR | OFlags::APPEND).expect("set");
        let flags = rustix::fs::fcntl_getfl(&opened).expect("flags");
        assert!(flags.contains(OFlags::APPEND) && !flags.contains(OFlags::NONBLOCK));
    }
}
