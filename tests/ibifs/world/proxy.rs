//! A proxy of TCP that does to answers what a test wants.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The behaviour of the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It passes everything on.
    Pass,
    /// It closes each connection at once.
    Refuse,
    /// It takes requests and answers nothing.
    Stall,
    /// It closes the connection after so many bytes of an answer.
    Cut(usize),
    /// It passes on some 3 MB a second.
    Slow,
    /// It changes this byte of each connection's answers.
    Corrupt(usize),
}

/// A running proxy. It ends with the test's process.
pub struct Proxy {
    /// The URL of the proxy: `http://127.0.0.1:port`.
    pub url: String,
    mode: Arc<Mutex<Mode>>,
    sent: Arc<AtomicU64>,
}

impl Proxy {
    /// A proxy before this address.
    pub fn start(address: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (mode, address) = (Arc::new(Mutex::new(Mode::Pass)), address.to_owned());
        let (shared, sent) = (Arc::clone(&mode), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&sent);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (mode, address) = (Arc::clone(&shared), address.clone());
                let count = Arc::clone(&count);
                std::thread::spawn(move || {
                    let _ = between(client, &address, &mode, &count);
                });
            }
        });
        Proxy { url, mode, sent }
    }

    /// Returns the number of bytes of answers that it has passed on.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Sets what it does from now on, also to connections that are open.
    pub fn set(&self, mode: Mode) {
        *self.mode.lock().expect("a mode") = mode;
    }
}

/// A server that answers every request with these bytes, and returns its URL.
pub fn answering(bytes: String) -> String {
    serving(move |_| bytes.clone())
}

/// A server that answers a request for a path with what the function returns, and returns its URL.
pub fn serving(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let length = client.read(&mut request).unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..length]);
                let path = request.split(' ').nth(1).unwrap_or_default();
                let _ = client.write_all(answer(path).as_bytes());
            });
        }
    });
    url
}

fn between(
    client: TcpStream,
    address: &str,
    mode: &Mutex<Mode>,
    count: &AtomicU64,
) -> std::io::Result<()> {
    let now = |mode: &Mutex<Mode>| *mode.lock().expect("a mode");
    if now(mode) == Mode::Refuse {
        return client.shutdown(Shutdown::Both);
    }
    let server = TcpStream::connect(address)?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    let (mut from, mut to, mut sent) = (server, client, 0);
    let mut piece = vec![0; 16 << 10];
    loop {
        let length = from.read(&mut piece)?;
        if length == 0 {
            return to.shutdown(Shutdown::Both);
        }
        let piece = &mut piece[..length];
        match now(mode) {
            Mode::Pass => {}
            Mode::Slow => std::thread::sleep(Duration::from_millis(5)),
            Mode::Refuse => return to.shutdown(Shutdown::Both),
            Mode::Stall => loop {
                std::thread::sleep(Duration::from_millis(20));
                if now(mode) != Mode::Stall {
                    break;
                }
            },
            Mode::Cut(after) if sent + length > after => {
                to.write_all(&piece[..after.saturating_sub(sent)])?;
                return to.shutdown(Shutdown::Both);
            }
            Mode::Cut(_) => {}
            Mode::Corrupt(at) => {
                if let Some(byte) = at.checked_sub(sent).and_then(|at| piece.get_mut(at)) {
                    *byte ^= 1;
                }
            }
        }
        to.write_all(piece)?;
        count.fetch_add(length as u64, Ordering::Relaxed);
        sent += length;
    }
}
