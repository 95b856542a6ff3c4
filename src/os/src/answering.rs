//! System calls that the daemon of a filesystem may never answer: they are made in a process of its own, for which
//! this one waits for a while. A thread would keep its process from ending.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;

/// The most bytes that a call returns.
const MOST: usize = 4096;

/// Runs a call that fills a buffer and returns how many bytes of it. None if it takes longer than `limit`, or cannot
/// be run. It may allocate nothing that it does not free, print nothing, and use no descriptor that is open.
pub fn within(
    limit: Duration,
    call: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
) -> Option<Result<Vec<u8>, Errno>> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
    // SAFETY: the new process makes system calls, allocates at most, which the C library keeps usable, and ends
    // without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        answer(write.as_raw_fd(), call);
    }
    drop(write);
    if child < 0 {
        return None;
    }
    let answered = is_readable(&read, limit);
    let mut bytes = Vec::new();
    if answered {
        // All was written at once.
        let _ = std::fs::File::from(read).read_to_end(&mut bytes);
    }
    // One that hangs in the kernel ends when its call does; it is not waited for.
    let flags = if answered { 0 } else { libc::WNOHANG };
    // SAFETY: the process is a child of this one and was not waited for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), flags);
    }
    let (errno, content) = bytes.split_first_chunk()?;
    Some(match i32::from_ne_bytes(*errno) {
        0 => Ok(content.to_vec()),
        errno => Err(Errno::from_raw_os_error(errno)),
    })
}

/// Closes all that this process has open but one descriptor, and returns the number of that. A lock or a connection to
/// FUSE would stay in use while the call waits, also after the process that has started this one is gone.
fn keep_only(kept: i32) -> i32 {
    // SAFETY: they are used by nothing in this process. An older kernel lacks the second call.
    unsafe {
        let kept = libc::dup2(kept, 3);
        libc::syscall(libc::SYS_close_range, 4_u32, u32::MAX, 0_u32);
        kept
    }
}

/// Runs the call in the new process, writes its result and ends.
fn answer(to: i32, call: impl FnOnce(&mut [u8]) -> Result<usize, Errno>) -> ! {
    let to = keep_only(to);
    let mut buffer = [0; 4 + MOST];
    let (head, content) = buffer.split_at_mut(4);
    let length = match call(content) {
        Ok(length) => length.min(MOST),
        Err(errno) => {
            head.copy_from_slice(&errno.raw_os_error().to_ne_bytes());
            0
        }
    };
    // SAFETY: the buffer is longer than what is written of it; the process ends.
    unsafe {
        libc::write(to, buffer.as_ptr().cast(), 4 + length);
        libc::_exit(0)
    }
}

fn is_readable(read: &rustix::fd::OwnedFd, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(left) = left.try_into() else {
            return false;
        };
        let mut polled = [PollFd::new(read, PollFlags::IN)];
        match rustix::event::poll(&mut polled, Some(&left)) {
            Err(Errno::INTR) => {}
            found => return found.is_ok_and(|count| count > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_answered_refused_or_given_up() {
        let long = Duration::from_secs(60);
        let filled = |buffer: &mut [u8]| {
            buffer[..3].copy_from_slice(b"abc");
            Ok(3)
        };
        assert_eq!(within(long, filled), Some(Ok(b"abc".to_vec())));
        assert_eq!(
            within(long, |_| Err(Errno::NOTCONN)),
            Some(Err(Errno::NOTCONN))
        );
        assert_eq!(within(long, |_| Ok(0)), Some(Ok(Vec::new())));
        let began = Instant::now();
        let silent = |_: &mut [u8]| loop {
            // SAFETY: takes no pointer.
            unsafe { libc::pause() };
        };
        assert_eq!(within(Duration::from_millis(50), silent), None);
        assert!(began.elapsed() < long);
    }
}
