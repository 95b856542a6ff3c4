//! A TCP proxy before a port on this machine that is as far away as another host, and can be cut off. It does not know
//! what is said over it.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::free_port;

/// By how much a thread wakes up too late: it is woken earlier by this, and waits for the rest without sleeping.
const LATE: Duration = Duration::from_micros(50);

/// A running proxy. Dropped, it ends with its connections.
#[derive(Debug)]
pub struct TcpProxy {
    port: u16,
    shared: Arc<Shared>,
    /// The listening socket and who accepts; neither while it is cut.
    accepting: Mutex<Option<(TcpListener, JoinHandle<()>)>>,
}

#[derive(Debug)]
struct Shared {
    to: u16,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// The times that a byte takes to the server, and back.
    delays: [Duration; 2],
    is_frozen: bool,
    /// Of how many cuts a connection knows that is good still.
    cuts: u64,
    open: Vec<TcpStream>,
}

impl TcpProxy {
    /// A proxy before this port on 127.0.0.1, without a delay.
    #[track_caller]
    pub fn start(to: u16) -> TcpProxy {
        let state = State {
            delays: [Duration::ZERO; 2],
            is_frozen: false,
            cuts: 0,
            open: Vec::new(),
        };
        let shared = Shared {
            to,
            state: Mutex::new(state),
            changed: Condvar::new(),
        };
        let proxy = TcpProxy {
            port: free_port(),
            shared: Arc::new(shared),
            accepting: Mutex::new(None),
        };
        proxy.accept();
        proxy
    }

    /// Its own port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Sets how long a byte takes to the server and back, half of it each way. What is on its way is not changed.
    pub fn set_round_trip(&self, round_trip: Duration) {
        self.set_delays(round_trip / 2, round_trip - round_trip / 2);
    }

    /// The same for each direction: to the server, and back.
    pub fn set_delays(&self, there: Duration, back: Duration) {
        self.shared.state().delays = [there, back];
    }

    /// Closes all connections and refuses new ones, as when the server has died.
    #[track_caller]
    pub fn cut(&self) {
        let mut accepting = self
            .accepting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((listener, thread)) = accepting.take() {
            // SAFETY: takes no pointer; the descriptor is open as long as the listener lives.
            unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) };
            thread.join().expect("who accepted");
        }
        let mut state = self.shared.state();
        state.cuts += 1;
        for stream in state.open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.shared.changed.notify_all();
    }

    /// Accepts connections and forwards nothing, as when a cable is pulled: neither side is told.
    pub fn freeze(&self) {
        self.shared.state().is_frozen = true;
    }

    /// Ends [`TcpProxy::cut`] and [`TcpProxy::freeze`]. What a frozen connection holds is forwarded now.
    #[track_caller]
    pub fn mend(&self) {
        self.shared.state().is_frozen = false;
        self.shared.changed.notify_all();
        self.accept();
    }

    #[track_caller]
    fn accept(&self) {
        let mut accepting = self
            .accepting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if accepting.is_some() {
            return;
        }
        let listener = TcpListener::bind(("127.0.0.1", self.port)).expect("the proxy's port");
        let incoming = listener.try_clone().expect("a listener");
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::spawn(move || {
            while let Ok((client, _)) = incoming.accept() {
                // Known before the next is accepted, so that a cut meets all that were.
                let Ok(cuts) = shared.accepted(&client) else {
                    continue;
                };
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || {
                    // A fault of a connection is seen at its ends.
                    let _ = shared.connect(client, cuts);
                });
            }
        });
        *accepting = Some((listener, thread));
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while it is frozen. Returns whether a connection that began after so many cuts is still good.
    fn is_good(&self, cuts: u64) -> bool {
        let mut state = self.state();
        while state.is_frozen && state.cuts == cuts {
            let waited = self.changed.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.cuts == cuts
    }

    /// Keeps a client for the next cut. Returns how many cuts there were before it.
    fn accepted(&self, client: &TcpStream) -> std::io::Result<u64> {
        let mut state = self.state();
        state.open.push(client.try_clone()?);
        Ok(state.cuts)
    }

    /// Connects a client to the server until one of them closes.
    fn connect(self: Arc<Shared>, client: TcpStream, cuts: u64) -> std::io::Result<()> {
        if !self.is_good(cuts) {
            return client.shutdown(Shutdown::Both);
        }
        let server = TcpStream::connect(("127.0.0.1", self.to))?;
        {
            let mut state = self.state();
            if state.cuts != cuts {
                return client.shutdown(Shutdown::Both);
            }
            state.open.push(server.try_clone()?);
        }
        for stream in [&client, &server] {
            stream.set_nodelay(true)?;
        }
        let (from, to) = (client.try_clone()?, server.try_clone()?);
        let other = Arc::clone(&self);
        let there = std::thread::spawn(move || other.forward(from, to, 0, cuts));
        let back = self.forward(server, client, 1, cuts);
        there.join().expect("the other direction").and(back)
    }

    /// Forwards one direction until its sender closes it. One thread reads and writes, since to wake another would
    /// take a good part of a short delay.
    fn forward(
        &self,
        mut from: TcpStream,
        mut to: TcpStream,
        direction: usize,
        cuts: u64,
    ) -> std::io::Result<()> {
        // Linux lets a thread sleep 50 us too long, unless it asks for less.
        // SAFETY: takes no pointer.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
        let mut pieces: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
        let mut buffer = vec![0; 64 << 10];
        let mut is_open = true;
        while is_open || !pieces.is_empty() {
            let due = pieces.front().map(|(due, _)| *due);
            // Beyond this the sender waits, as it does for a full network.
            let may_read = is_open && pieces.len() < 64;
            let is_readable = wait(may_read.then_some(&from), due)?;
            if !self.is_good(cuts) {
                break;
            }
            if is_readable {
                let length = from.read(&mut buffer)?;
                is_open = length > 0;
                let due = Instant::now() + self.state().delays[direction];
                // The end of the connection takes as long as a byte.
                pieces.push_back((due, buffer[..length].to_vec()));
            }
            while let Some((due, _)) = pieces.front() {
                // A piece that is due soon is not waited for: a sleep takes longer by about this much.
                if due.saturating_duration_since(Instant::now()) > LATE {
                    break;
                }
                while Instant::now() < *due {
                    std::hint::spin_loop();
                }
                let Some((_, piece)) = pieces.pop_front() else {
                    break;
                };
                if piece.is_empty() {
                    to.shutdown(Shutdown::Write)?;
                } else {
                    to.write_all(&piece)?;
                }
            }
        }
        Ok(())
    }
}

/// Waits until a stream can be read, or a time has come. Returns whether it can be read.
fn wait(stream: Option<&TcpStream>, due: Option<Instant>) -> std::io::Result<bool> {
    let mut polled = libc::pollfd {
        fd: stream.map_or(-1, AsRawFd::as_raw_fd),
        events: libc::POLLIN,
        revents: 0,
    };
    let left = due.map(|due| due.saturating_duration_since(Instant::now() + LATE));
    let left = left.map(|left| libc::timespec {
        tv_sec: left.as_secs() as libc::time_t,
        tv_nsec: left.subsec_nanos().into(),
    });
    let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the pointers are to one structure each that lives until the call returns, or null.
    match unsafe { libc::ppoll(&raw mut polled, 1, left, std::ptr::null()) } {
        -1 => Err(std::io::Error::last_os_error()),
        ready => Ok(ready > 0),
    }
}

/// A server that answers each byte with the same byte.
#[cfg(test)]
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut answers = client.try_clone()?;
                client.set_nodelay(true)?;
                std::io::copy(&mut client, &mut answers)
            });
        }
    });
    port
}

/// Measures the time that one byte takes to a server and back.
#[cfg(test)]
fn asked(client: &mut TcpStream) -> std::io::Result<Duration> {
    let begun = Instant::now();
    client.write_all(b"?")?;
    client.read_exact(&mut [0])?;
    Ok(begun.elapsed())
}

#[cfg(test)]
fn client(port: u16) -> TcpStream {
    let client = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    client.set_nodelay(true).expect("an option");
    let limit = Some(Duration::from_secs(20));
    client.set_read_timeout(limit).expect("a limit");
    client
}

#[test]
fn a_round_trip_takes_as_long_as_was_said() {
    let server = echo();
    let proxy = TcpProxy::start(server);
    let (mut through, mut direct) = (client(proxy.port()), client(server));
    let times = |client: &mut TcpStream| {
        let mut took: Vec<_> = (0..300)
            .map(|_| asked(client).expect("an answer"))
            .collect();
        took.sort();
        took
    };
    for micros in [0, 200, 2_000] {
        let wanted = Duration::from_micros(micros);
        proxy.set_round_trip(wanted);
        let took = times(&mut through);
        println!("{wanted:?}: least {:?}, median {:?}", took[0], took[150]);
        assert!(took[0] >= wanted, "{wanted:?}: {:?}", took[0]);
        // Other tests take the processors most of the time, not always: the fastest hundredth is the proxy's own, beside
        // what the same takes without it.
        let own = took[3] - wanted;
        let most = Duration::from_micros(250) + 4 * times(&mut direct)[3];
        assert!(own < most, "{wanted:?} and {own:?}, not {most:?}");
    }
    proxy.set_delays(Duration::from_millis(20), Duration::from_millis(1));
    let took = asked(&mut through).expect("an answer");
    assert!(took >= Duration::from_millis(21), "{took:?}");
}

#[test]
fn much_goes_through_unchanged_and_ends() {
    let proxy = TcpProxy::start(echo());
    proxy.set_round_trip(Duration::from_micros(500));
    let mut client = client(proxy.port());
    let sent: Vec<u8> = (0..4_000_000_u32)
        .map(|number| ((number * 7) >> 3) as u8)
        .collect();
    let mut writer = client.try_clone().expect("a stream");
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&sent).expect("a reader");
            writer.shutdown(Shutdown::Write).expect("an open stream");
        });
        let mut received = Vec::new();
        client.read_to_end(&mut received).expect("an end");
        received
    });
    assert!(
        received == sent,
        "{} bytes of {}",
        received.len(),
        sent.len()
    );
}

#[test]
fn a_cut_closes_and_refuses_until_it_is_mended() {
    let proxy = TcpProxy::start(echo());
    let mut before = client(proxy.port());
    asked(&mut before).expect("an answer");
    proxy.cut();
    let begun = Instant::now();
    assert!(asked(&mut before).is_err());
    assert!(TcpStream::connect(("127.0.0.1", proxy.port())).is_err());
    assert!(begun.elapsed() < Duration::from_secs(10), "both at once");
    proxy.mend();
    assert!(asked(&mut before).is_err(), "a closed connection stays so");
    asked(&mut client(proxy.port())).expect("an answer");
}

#[test]
fn a_frozen_proxy_accepts_and_answers_only_when_mended() {
    let proxy = TcpProxy::start(echo());
    let mut before = client(proxy.port());
    asked(&mut before).expect("an answer");
    proxy.freeze();
    let mut during = client(proxy.port());
    let limit_of = |client: &TcpStream, limit| {
        client.set_read_timeout(Some(limit)).expect("a limit");
    };
    for frozen in [&mut before, &mut during] {
        limit_of(frozen, Duration::from_millis(300));
        let refused = asked(frozen).map_err(|error| error.kind());
        assert_eq!(refused, Err(std::io::ErrorKind::WouldBlock));
    }
    proxy.mend();
    for mut mended in [before, during] {
        limit_of(&mended, Duration::from_secs(20));
        let mut answer = [0];
        mended
            .read_exact(&mut answer)
            .expect("the answer that was due");
        assert_eq!(&answer, b"?");
        asked(&mut mended).expect("an answer");
    }
    // A cut goes through to a frozen connection.
    proxy.freeze();
    let mut frozen = client(proxy.port());
    proxy.cut();
    assert!(asked(&mut frozen).is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock));
}
