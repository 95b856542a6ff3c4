//! The socket in the store by which `ibifs work` asks the daemon: a program is about to change a level of the tree in the
//! store itself, or has ended.
//!
//! The daemon answers processes that can write in the level: they could change it as well without asking. It takes in what
//! they leave for the owners of the files (`archive/operations/work.rs`), also if the asking process is killed.

use parking_lot::Mutex;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::net::{Shutdown, shutdown, sockopt};

use crate::archive::{ArchiveError, LevelWork, Taken, WORK_SOCKET};
use crate::formats::level_work::{Answer, LONGEST, parse_question};
use crate::fuse::fs::LevelChanges;
use crate::os::caller::Caller;
use crate::os::directory::Directory;
use ibi::message;

/// The time that a question may take to arrive.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most connections at the same time, and the most of users other than root and the owner of the store.
const MOST: usize = 64;
const MOST_OF_OTHERS: usize = 8;

/// The listener and its connections.
#[derive(Debug)]
pub(super) struct LevelWorks {
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    changes: LevelChanges,
    /// The directory of the store.
    directory: Directory,
    listener: UnixListener,
    is_ending: AtomicBool,
    next: AtomicU64,
    connections: Mutex<Vec<Connection>>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    stream: UnixStream,
    /// Whether root or the user of this process has connected.
    is_trusted: bool,
    thread: JoinHandle<()>,
}

impl LevelWorks {
    /// Listens in the store's directory. One process at a time writes a store, so a socket that is there is left.
    ///
    /// # Errors
    /// Those of making the socket.
    pub(super) fn start(changes: LevelChanges) -> std::io::Result<LevelWorks> {
        let directory = Directory::reopened(changes.archive().tree().root())?;
        // The right to write in a level is checked for each question.
        let listener = directory.bind(WORK_SOCKET, 0o666)?;
        let shared = Arc::new(Shared {
            changes,
            directory,
            listener,
            is_ending: AtomicBool::new(false),
            next: AtomicU64::new(0),
            connections: Mutex::default(),
        });
        let listening = Arc::clone(&shared);
        let listening = std::thread::Builder::new()
            .name("works".to_owned())
            .spawn(move || listening.listen())?;
        Ok(LevelWorks {
            shared,
            listening: Some(listening),
        })
    }
}

impl Drop for LevelWorks {
    /// Ends the connections; what was not taken in stays in the recovery log.
    fn drop(&mut self) {
        self.shared.is_ending.store(true, Ordering::SeqCst);
        let _ = shutdown(&self.shared.listener, Shutdown::Both);
        self.listening.take().map(JoinHandle::join);
        let connections = std::mem::take(&mut *self.shared.connections.lock());
        for connection in connections {
            let _ = connection.stream.shutdown(std::net::Shutdown::Both);
            let _ = connection.thread.join();
        }
        let _ = self.shared.directory.remove_file(WORK_SOCKET);
    }
}

impl Shared {
    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    fn listen(self: Arc<Shared>) {
        while !self.is_ending() {
            let accepted = self.listener.accept();
            if self.is_ending() {
                return;
            }
            let begun = accepted.and_then(|(stream, _)| self.begin(stream));
            if let Err(error) = begun {
                log::warn!("the socket of 'ibifs work': {error}");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }

    /// Answers a connection in a thread of its own.
    fn begin(self: &Arc<Shared>, stream: UnixStream) -> std::io::Result<()> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let uid = sockopt::socket_peercred(&stream)?.uid;
        let is_trusted = uid.is_root() || uid == rustix::process::geteuid();
        let mut connections = self.connections.lock();
        let of_others = connections.iter().filter(|it| !it.is_trusted).count();
        if connections.len() >= MOST || !is_trusted && of_others >= MOST_OF_OTHERS {
            return send(
                &stream,
                &Answer::Failed(message!("too many at once; try again").to_string()),
            );
        }
        let (shared, ours) = (Arc::clone(self), stream.try_clone()?);
        let thread = std::thread::Builder::new()
            .name("work".to_owned())
            .spawn(move || {
                if let Err(error) = shared.answer(&ours) {
                    log::debug!("'ibifs work': {error}");
                }
                let mut connections = shared.connections.lock();
                connections.retain(|other| other.number != number);
            })?;
        connections.push(Connection {
            number,
            stream,
            is_trusted,
            thread,
        });
        Ok(())
    }

    fn answer(&self, stream: &UnixStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let mut reader = BufReader::new(stream).take(LONGEST as u64);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some(level) = parse_question(&line) else {
            let why = message!("the question is that of another version of ibifs");
            return send(stream, &Answer::Failed(why.to_string()));
        };
        let peer = sockopt::socket_peercred(stream)?;
        let peer = Caller {
            uid: peer.uid.as_raw(),
            gid: peer.gid.as_raw(),
            pid: peer.pid.as_raw_nonzero().get().unsigned_abs(),
        };
        let keeper = self.changes.archive().keeper();
        let work = match keeper.begin_work(&level, &peer) {
            Ok(work) => work,
            Err(error) => return send(stream, &Answer::Failed(error.to_string())),
        };
        log::info!("{level} is worked in beside the mount, by uid {}", peer.uid);
        let is_sent = send(stream, &Answer::Ready).is_ok();
        stream.set_read_timeout(None)?;
        if is_sent {
            // The end of the connection says the same.
            line.clear();
            let _ = reader.read_line(&mut line);
        }
        if self.is_ending() {
            return Ok(());
        }
        let ended = self.end_work(work, &peer, stream);
        if self.is_ending() {
            // It was stopped before its end.
            return Ok(());
        }
        let answer = match &ended {
            Ok(()) => Answer::Done,
            Err(error) => {
                log::error!("{level} is read again at the next start: {error}");
                Answer::Failed(error.to_string())
            }
        };
        // The process that asked may be gone.
        let _ = send(stream, &answer);
        Ok(())
    }

    fn end_work(
        &self,
        work: LevelWork,
        peer: &Caller,
        stream: &UnixStream,
    ) -> Result<(), ArchiveError> {
        let mut count = (0, 0, 0);
        self.changes
            .archive()
            .keeper()
            .end_work(work, peer, &mut |taken, read| {
                self.changes.took(taken);
                for outcome in taken {
                    match outcome {
                        Taken::Arrived(_) => count.0 += 1,
                        Taken::Changed(_) => count.1 += 1,
                        Taken::Removed(_) => count.2 += 1,
                        Taken::Refused(path, why) => {
                            log::warn!("{path} is refused: {why}");
                            let refused = Answer::Refused(path.clone(), why.to_string());
                            let _ = send(stream, &refused);
                        }
                    }
                }
                let _ = send(stream, &Answer::Read(read));
                !self.is_ending()
            })?;
        let (arrived, changed, removed) = count;
        log::info!("taken in: {arrived} items arrived, {changed} changed, {removed} removed");
        Ok(())
    }
}

fn send(mut stream: &UnixStream, answer: &Answer) -> std::io::Result<()> {
    stream.write_all(answer.line().as_bytes())
}
