//! Another program, run for what it writes, within a time.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// The reason why there is no result.
#[derive(Debug)]
pub enum NoResult {
    /// The process could not be started, for reasons that have nothing to do with what it was to read.
    NotStarted(std::io::Error),
    /// It failed, or was ended at one of its limits.
    Failed(String),
}

/// Starts a command in the root directory, and returns what it writes to its standard output. It is ended after a time.
///
/// # Errors
/// See [`NoResult`].
pub fn output(mut command: Command, timeout: Duration) -> Result<Vec<u8>, NoResult> {
    let not_started = |error: std::io::Error| NoResult::NotStarted(error);
    // In memory: it needs no directory, and the process can write it without waiting for us.
    let output = rustix::fs::memfd_create("result", MemfdFlags::CLOEXEC)
        .map_err(|errno| not_started(errno.into()))?;
    let mut output = File::from(output);
    let written = output.try_clone().map_err(not_started)?;
    let mut child = command
        .current_dir("/")
        .stdout(written)
        .stderr(Stdio::null())
        .spawn()
        .map_err(not_started)?;
    let has_ended = wait(&child, timeout);
    if !has_ended.unwrap_or(false) {
        let _ = child.kill();
    }
    let status = child.wait().map_err(not_started)?;
    if !status.success() {
        return Err(NoResult::Failed(status.to_string()));
    }
    let mut result = Vec::new();
    let read = output
        .seek(SeekFrom::Start(0))
        .and_then(|_| output.read_to_end(&mut result));
    read.map_err(not_started)?;
    Ok(result)
}

/// Whether a process ends within a time.
fn wait(child: &Child, timeout: Duration) -> Result<bool, Errno> {
    let until = Instant::now() + timeout;
    let descriptor = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        let mut waiting = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut waiting, Some(&left)) {
            Err(Errno::INTR) => {}
            ended => return Ok(ended? > 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_writes_is_returned() {
        let printed = |program: &str, argument: &str, seconds| {
            let mut command = Command::new(program);
            command.arg(argument).stdin(Stdio::null());
            output(command, Duration::from_secs(seconds))
        };
        assert_eq!(printed("echo", "text", 60).expect("printed"), b"text\n");
        let started = Instant::now();
        assert!(matches!(
            printed("sleep", "600", 0),
            Err(NoResult::Failed(_))
        ));
        assert!(started.elapsed() < Duration::from_secs(60));
        assert!(matches!(printed("false", "", 60), Err(NoResult::Failed(_))));
        assert!(matches!(
            printed("/nonexistent", "", 60),
            Err(NoResult::NotStarted(_))
        ));
    }
}
