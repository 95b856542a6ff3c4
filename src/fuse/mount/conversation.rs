//! A question of a command to the daemon of a mount, while it is answered.

use std::io::{BufWriter, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::formats::question::Line;
use crate::fuse::fs::LevelChanges;
use crate::os::caller::Peer;
use ibi::message::Message;

/// The time that all of an answer may wait for its reader.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The mount for which questions are answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) changes: LevelChanges,
    /// Whether programs may work in its levels beside it.
    pub(super) takes_work: bool,
    /// Whether users other than that of this process see the mount.
    pub(super) is_for_others: bool,
}

/// A connection whose question was read.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    writer: BufWriter<&'a UnixStream>,
    stream: &'a UnixStream,
    pub(super) peer: Arc<Peer>,
    /// The time for which answers have waited for their reader.
    waited: Duration,
    is_ending: &'a AtomicBool,
}

impl<'a> Conversation<'a> {
    /// A conversation with a peer. `is_ending` is set when the mount ends.
    pub(super) fn new(
        stream: &'a UnixStream,
        peer: Peer,
        is_ending: &'a AtomicBool,
    ) -> Conversation<'a> {
        Conversation {
            writer: BufWriter::with_capacity(1 << 16, stream),
            stream,
            peer: Arc::new(peer),
            waited: Duration::ZERO,
            is_ending,
        }
    }
}

impl Conversation<'_> {
    /// Sends a line of the answer; lines are collected.
    ///
    /// # Errors
    /// The reader is gone or too slow.
    pub(super) fn send(&mut self, line: &Line) -> std::io::Result<()> {
        self.timed(|it| it.writer.write_all(line.to_text().as_bytes()))
    }

    /// Sends a line, and all that are collected.
    ///
    /// # Errors
    /// The reader is gone or too slow.
    pub(super) fn send_now(&mut self, line: &Line) -> std::io::Result<()> {
        self.send(line)?;
        self.timed(|it| it.writer.flush())
    }

    fn timed(
        &mut self,
        write: impl FnOnce(&mut Self) -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let began = Instant::now();
        let written = write(self);
        self.waited += began.elapsed();
        if self.waited > LONGEST_WAIT {
            return Err(ErrorKind::TimedOut.into());
        }
        written
    }

    /// Ends the answer with the reason why there is no other.
    ///
    /// # Errors
    /// The reader is gone or too slow.
    pub(super) fn fail(&mut self, why: &Message) -> std::io::Result<()> {
        self.send_now(&Line::new("failed").with("why", why))
    }

    /// Waits until the command says that it has ended, or ends.
    pub(super) fn wait_for_end(&self) -> std::io::Result<()> {
        self.stream.set_read_timeout(None)?;
        // The end of the connection says the same as a byte.
        let _ = { self.stream }.read(&mut [0]);
        Ok(())
    }

    /// Whether the mount ends.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }
}
