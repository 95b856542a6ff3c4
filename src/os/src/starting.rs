//! A command that goes on after this process, and inherits nothing of it that it does not need.

use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Besides the standard streams the command inherits one descriptor alone: a connection to FUSE that stayed open there
/// would keep the requests of a mount waiting after its daemon is gone.
pub fn inherit_only(command: &mut Command, inherited: RawFd) {
    // SAFETY: between fork and exec the child makes two system calls, which are async-signal-safe. An older kernel
    // lacks the first.
    unsafe {
        command.pre_exec(move || {
            let (first, last, flags) = (3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
            libc::syscall(libc::SYS_close_range, first, last, flags);
            libc::fcntl(inherited, libc::F_SETFD, 0);
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn one_descriptor_is_inherited() {
        let files = [1, 2].map(|_| std::fs::File::open("/dev/null").expect("a file"));
        for file in &files {
            rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty()).expect("inherited");
        }
        let mut command = Command::new("readlink");
        for file in &files {
            command.arg(format!("/proc/self/fd/{}", file.as_raw_fd()));
        }
        inherit_only(&mut command, files[1].as_raw_fd());
        let output = command.output().expect("it runs");
        assert_eq!(output.stdout, b"/dev/null\n");
    }
}
