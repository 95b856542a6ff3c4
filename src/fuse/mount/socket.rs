//! The socket by which commands ask the daemon of a mount: an abstract one (unix(7)), so that it needs no directory that all
//! users may enter, and is reached from other mount namespaces.
//!
//! Its address and a key are an attribute of the mount's root. Each connection has a thread of its own, apart from the workers
//! for requests of the kernel; their number is limited, in all and for each user.

use parking_lot::Mutex;
use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::{Shutdown, shutdown};

use super::answers;
use super::conversation::{Asked, Conversation};
use crate::formats::hex::Hex;
use crate::formats::question::{Address, LONGEST_QUESTION, Line};
use crate::os::caller::Peer;
use crate::os::random;
use ibi::message;

/// The time that a question may take to arrive, and a part of an answer to be read.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most connections at the same time, those of users other than root and the owner of the store, and those of one of them.
const MOST: usize = 64;
const MOST_OF_OTHERS: usize = 48;
const MOST_OF_ONE: usize = 8;

/// The listener and its connections.
#[derive(Debug)]
pub(super) struct DaemonSocket {
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    asked: Asked,
    key: String,
    listener: UnixListener,
    is_ending: AtomicBool,
    next: AtomicU64,
    connections: Mutex<Vec<Connection>>,
}

#[derive(Debug)]
struct Connection {
    number: u64,
    stream: UnixStream,
    uid: u32,
    thread: JoinHandle<()>,
}

fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

impl DaemonSocket {
    /// Listens, and writes the address to the root of the mount.
    ///
    /// # Errors
    /// Those of making the socket.
    pub(super) fn start(asked: Asked) -> std::io::Result<DaemonSocket> {
        let word = || Ok::<_, Error>(Hex(&random::draw::<16>()?).to_string());
        let address = Address {
            name: format!("ibifs.{}", word()?),
            key: word()?,
        };
        let name = SocketAddr::from_abstract_name(&address.name)?;
        let listener = UnixListener::bind_addr(&name)?;
        asked.changes.set_socket(&address);
        let shared = Arc::new(Shared {
            asked,
            key: address.key,
            listener,
            is_ending: AtomicBool::new(false),
            next: AtomicU64::new(0),
            connections: Mutex::default(),
        });
        let listening = Arc::clone(&shared);
        let listening = std::thread::Builder::new()
            .name("questions".to_owned())
            .spawn(move || listening.listen())?;
        Ok(DaemonSocket {
            shared,
            listening: Some(listening),
        })
    }
}

impl Drop for DaemonSocket {
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
    }
}

impl Shared {
    fn listen(self: Arc<Shared>) {
        while !self.is_ending.load(Ordering::SeqCst) {
            let accepted = self.listener.accept();
            if self.is_ending.load(Ordering::SeqCst) {
                return;
            }
            let begun = accepted.and_then(|(stream, _)| self.begin(stream));
            if let Err(error) = begun {
                log::warn!("the socket of commands: {error}");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }

    /// Answers a connection in a thread of its own.
    fn begin(self: &Arc<Shared>, stream: UnixStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let peer = Peer::of(&stream)?;
        let uid = peer.caller().uid;
        let mut connections = self.connections.lock();
        let others = connections.iter().filter(|it| !is_trusted(it.uid));
        let of_one = others.clone().filter(|it| it.uid == uid).count();
        let is_full = others.count() >= MOST_OF_OTHERS || of_one >= MOST_OF_ONE;
        if connections.len() >= MOST || !is_trusted(uid) && is_full {
            // The process may be gone.
            let _ = (&stream).write_all(Line::new("busy").to_text().as_bytes());
            return Ok(());
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (shared, ours) = (Arc::clone(self), stream.try_clone()?);
        let thread = std::thread::Builder::new()
            .name("question".to_owned())
            .spawn(move || {
                if let Err(error) = shared.answer(&ours, peer) {
                    log::debug!("a question of a command: {error}");
                }
                let _ = ours.shutdown(std::net::Shutdown::Both);
                let mut connections = shared.connections.lock();
                connections.retain(|other| other.number != number);
            })?;
        connections.push(Connection {
            number,
            stream,
            uid,
            thread,
        });
        Ok(())
    }

    fn answer(&self, stream: &UnixStream, peer: Peer) -> std::io::Result<()> {
        let mut line = String::new();
        let mut reader = BufReader::new(stream).take(LONGEST_QUESTION);
        let until = Instant::now() + TIMEOUT;
        // A byte now and then does not keep the thread.
        while !line.ends_with('\n') && Instant::now() < until {
            let part = reader.fill_buf()?;
            let end = part.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(part.len(), |end| end + 1);
            if count == 0 {
                break;
            }
            let text = std::str::from_utf8(part.get(..count).unwrap_or_default());
            line.push_str(text.map_err(|_| Error::from(ErrorKind::InvalidData))?);
            reader.consume(count);
        }
        let mut conversation = Conversation::new(stream, peer, &self.is_ending);
        let caller = *conversation.peer.caller();
        let is_its_own = caller.uid == rustix::process::geteuid().as_raw();
        match Line::parse_question(&line) {
            None => {
                let why = message!("the question is that of another version of ibifs");
                conversation.fail(&why)
            }
            // As the kernel lets no other user into such a mount.
            Some((key, _)) if key != self.key || !is_its_own && !self.asked.is_for_others => {
                conversation.fail(&message!("permission denied"))
            }
            Some((_, question)) => answers::answer(&self.asked, &question, &mut conversation),
        }
    }
}
