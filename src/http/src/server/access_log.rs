//! The access log: a line for each request that was answered, in the combined form of web servers or as JSON.
//!
//! The thread that answers only formats the line. Another thread writes, so that no request waits for the disk; what does
//! not fit into its queue is counted and reported as lost.

pub mod line;

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::http::{Request, Response};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};

use super::SHUTDOWN_TIMEOUT;
use super::share::Proxies;
pub use line::AccessLogFormat;
use line::Line;

/// The most lines that wait to be written.
const MOST_LINES: usize = 16_384;
/// The most bytes that are written at a time.
const MOST_BYTES: usize = 64 * 1024;

/// The place to which the lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLogTarget {
    /// To standard output.
    Output,
    /// To a file, which is opened again on request.
    File(PathBuf),
}

/// An access log whose file is open.
#[derive(Debug)]
pub struct AccessLog {
    target: AccessLogTarget,
    format: AccessLogFormat,
    file: File,
}

impl AccessLog {
    /// Opens the file, and creates it if necessary.
    ///
    /// # Errors The file cannot be opened.
    pub fn open(target: AccessLogTarget, format: AccessLogFormat) -> std::io::Result<AccessLog> {
        Ok(AccessLog {
            file: opened(&target)?,
            target,
            format,
        })
    }

    /// Starts the thread that writes.
    pub(super) fn start(&self, proxies: &Proxies) -> std::io::Result<RunningLog> {
        let (lines, waiting) = sync_channel(MOST_LINES);
        let shared = Arc::new(Shared {
            format: self.format,
            proxies: proxies.clone(),
            lines,
            is_reopened: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        });
        let writer = Writer {
            target: self.target.clone(),
            file: self.file.try_clone()?,
            waiting,
            shared: Arc::clone(&shared),
            has_failed: false,
        };
        let thread = std::thread::Builder::new().name("access log".to_owned());
        let thread = thread.spawn(move || {
            ibifs_os::caller::act_as_process();
            writer.run();
        })?;
        Ok(RunningLog {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }
}

fn opened(target: &AccessLogTarget) -> std::io::Result<File> {
    let open = |path: &Path| -> std::io::Result<OwnedFd> {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY;
        // Lines have the addresses of readers.
        #[expect(clippy::disallowed_methods, reason = "the administrator named it")]
        Ok(rustix::fs::open(path, flags, Mode::from_raw_mode(0o640))?)
    };
    match target {
        AccessLogTarget::Output => Ok(rustix::io::dup(rustix::stdio::stdout())?.into()),
        AccessLogTarget::File(path) => open(path).map(File::from),
    }
}

/// A message to the thread that writes.
#[derive(Debug)]
enum Entry {
    Line(String),
    /// Wakes the thread.
    Wake,
    /// Ends the thread, after what was sent before.
    End,
}

#[derive(Debug)]
struct Shared {
    format: AccessLogFormat,
    proxies: Proxies,
    lines: SyncSender<Entry>,
    /// Set when the file is to be opened again.
    is_reopened: AtomicBool,
    /// The lines for which there was no room.
    lost: AtomicU64,
}

impl Shared {
    fn put(&self, line: &Line, bytes: u64) {
        let text = line.written(self.format, bytes);
        if self.lines.try_send(Entry::Line(text)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A log that is being written.
#[derive(Debug)]
pub(super) struct RunningLog {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl RunningLog {
    /// Returns what the threads that answer need of it.
    pub(super) fn sink(&self) -> LogSink {
        LogSink(Arc::clone(&self.shared))
    }

    /// Opens the file again, for later lines.
    pub(super) fn reopen(&self) {
        self.shared.is_reopened.store(true, Ordering::SeqCst);
        // If the queue is full, the thread is awake.
        let _ = self.shared.lines.try_send(Entry::Wake);
    }
}

impl Drop for RunningLog {
    /// Waits until all lines are written; not for a reader of standard output who does not read.
    fn drop(&mut self) {
        let since = Instant::now();
        let is_late = || since.elapsed() > SHUTDOWN_TIMEOUT;
        let pause = || std::thread::sleep(Duration::from_millis(1));
        while let Err(TrySendError::Full(_)) = self.shared.lines.try_send(Entry::End) {
            if is_late() {
                break;
            }
            pause();
        }
        let Some(thread) = self.thread.lock().take() else {
            return;
        };
        while !thread.is_finished() {
            if is_late() {
                log::error!("the last requests are not in the access log: it cannot be written");
                return;
            }
            pause();
        }
        if thread.join().is_err() {
            log::error!("the thread that writes the access log has ended because of an error");
        }
    }
}

/// The thread that writes.
struct Writer {
    target: AccessLogTarget,
    file: File,
    waiting: Receiver<Entry>,
    shared: Arc<Shared>,
    /// Whether the last write failed, which has been reported then.
    has_failed: bool,
}

impl Writer {
    fn run(mut self) {
        let mut text = String::new();
        let mut is_ending = false;
        while !is_ending {
            let Ok(mut entry) = self.waiting.recv() else {
                return;
            };
            loop {
                match entry {
                    Entry::Line(line) => text.push_str(&line),
                    Entry::Wake => {}
                    Entry::End => is_ending = true,
                }
                if is_ending || text.len() >= MOST_BYTES {
                    break;
                }
                match self.waiting.try_recv() {
                    Ok(next) => entry = next,
                    Err(_) => break,
                }
            }
            if self.shared.is_reopened.swap(false, Ordering::SeqCst) {
                self.reopen();
            }
            self.write(&text);
            text.clear();
            let lost = self.shared.lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                log::error!(
                    "the access log lacks {lost} requests: it is not written as fast as they come"
                );
            }
        }
    }

    fn reopen(&mut self) {
        match opened(&self.target) {
            Ok(file) => {
                self.file = file;
                log::info!("the access log is opened again");
            }
            Err(error) => log::error!(
                "the access log cannot be opened again, and the last file stays in use: {error}"
            ),
        }
    }

    fn write(&mut self, text: &str) {
        match self.file.write_all(text.as_bytes()) {
            Ok(()) => self.has_failed = false,
            Err(error) if !self.has_failed => {
                self.has_failed = true;
                log::error!("the access log cannot be written: {error}");
            }
            Err(_) => {}
        }
    }
}

/// Takes the lines of a thread that answers.
#[derive(Clone, Debug)]
pub(super) struct LogSink(Arc<Shared>);

impl LogSink {
    /// Begins the line of a request.
    pub fn begin<B>(&self, request: &Request<B>, peer: std::net::IpAddr) -> PendingLine {
        let client = self.0.proxies.client(peer, request.headers());
        PendingLine {
            line: Line::begin(request, client),
            began: Instant::now(),
            sink: self.clone(),
        }
    }
}

/// The line of a request that is being answered.
#[derive(Debug)]
pub(super) struct PendingLine {
    line: Line,
    began: Instant,
    sink: LogSink,
}

impl PendingLine {
    /// The same answer. When it has been sent, or is given up, the line is written.
    pub fn follow(mut self, response: Response<Body>) -> Response<Body> {
        self.line.status = response.status().as_u16();
        response.map(|body| {
            Body::new(LoggedBody {
                body,
                bytes: 0,
                pending: self,
            })
        })
    }
}

/// A body whose bytes are counted.
struct LoggedBody {
    body: Body,
    bytes: u64,
    pending: PendingLine,
}

impl HttpBody for LoggedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            self.bytes += data.len() as u64;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for LoggedBody {
    fn drop(&mut self) {
        self.pending.line.taken = self.pending.began.elapsed();
        self.pending.sink.0.put(&self.pending.line, self.bytes);
    }
}
