//! The HTTP front end: it listens, and limits what each client may use.
//!
//! The services decide the answers; this module accepts, limits and closes connections.

pub mod access_log;
pub mod answer;
mod clock;
mod compression;
pub mod form;
mod idle_timeout;
pub mod languages;
pub mod metrics;
pub mod negotiation;
pub mod page;
pub mod preference;
pub mod prefix;
pub mod share;
pub mod striped;
pub mod threads;
mod tls;
mod vary;

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

pub use access_log::{AccessLog, AccessLogFormat, AccessLogTarget};
use access_log::{LogSink, RunningLog};
pub use clock::SiteClock;
use idle_timeout::IdleTimeoutStream;
pub use metrics::MetricsSocket;
use metrics::{Monitored, Reporter, RequestCounts, RequestKinds};
pub use share::Proxies;
use share::{Shares, client_of};
use threads::Threads;
pub use tls::Tls;

/// The most connections at a time. Later connections wait until one is closed.
pub const MOST_CONNECTIONS: usize = 4096;
/// The most connections of one client at a time, except those that a proxy forwards. Excess connections are
/// closed at once.
pub const MOST_OF_ONE_CLIENT: usize = 256;
/// The answer to an excess connection.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 45\r\n\r\n\
    too many connections come from this address\r\n";
/// The most requests that block on a disk or the index at a time. Further ones wait.
pub const MOST_ASIDE: usize = 512;
/// The longest request line with headers, in bytes. A longer one is answered with 431.
pub const LONGEST_HEAD: usize = 16 * 1024;
/// The timeout of a request line with headers, and the idle timeout between two requests.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The time that a client may leave an answer unread, or stop sending a body.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of bytes of an answer that a client must take in that time, if not all of it, some 2 KiB in a second.
pub const LEAST_TAKEN: usize = 64 * 1024;
/// The interval of the timer that [`Threads`] keep set. Shorter than every timeout of a request or
/// connection.
const TICK: Duration = Duration::from_secs(1);
/// The time that answers in progress may take after shutdown was requested.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The address of the peer that sent a request, as an extension of the request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// The parts of a service that are run.
#[allow(missing_debug_implementations, reason = "it holds futures")]
pub struct Started {
    /// Makes what answers in each thread. None ends the service at once.
    pub responders: Option<Responders>,
    /// Runs first in each thread that answers.
    pub begin: fn(),
    /// Runs while the service is up.
    pub beside: Option<BackgroundTask>,
    /// Runs after the service has stopped, for at most [`SHUTDOWN_TIMEOUT`].
    pub afterwards: Option<BackgroundTask>,
    /// The source of its reports of itself.
    pub monitored: Option<Arc<dyn Monitored>>,
    /// The kinds of its requests.
    pub kinds: Option<RequestKinds>,
}

impl Started {
    /// A service that ends at once.
    #[must_use]
    pub fn nothing() -> Started {
        Started {
            responders: None,
            begin: || {},
            beside: None,
            afterwards: None,
            monitored: None,
            kinds: None,
        }
    }
}

/// Makes what answers in a thread.
pub type Responders = Box<dyn Fn() -> Responder + Send + Sync>;

/// Answers requests.
pub type Responder = Arc<dyn Fn(Request<Body>) -> PendingResponse + Send + Sync>;

/// An answer that is being made.
pub type PendingResponse = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;

/// A background task.
pub type BackgroundTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The way in which a service accepts connections.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig<'a> {
    /// The address on which it listens.
    pub listen: SocketAddr,
    /// The proxies whose connections are those of many clients.
    pub proxies: &'a Proxies,
    /// Its certificate and key. None without TLS.
    pub tls: Option<&'a Tls>,
    /// The socket at which it reports of itself.
    pub metrics: Option<&'a MetricsSocket>,
    /// Its access log.
    pub access_log: Option<&'a AccessLog>,
}

/// The state that all connections to a thread share.
#[derive(Clone)]
struct Answering {
    responder: Responder,
    /// None if nothing is reported.
    counts: Option<Arc<RequestCounts>>,
    log: Option<LogSink>,
}

/// Serves until `end` is ready, then finishes the answers in progress.
async fn serve(
    listener: TcpListener,
    each: &[Answering],
    threads: &mut Threads,
    places: &Arc<Semaphore>,
    config: &ServerConfig<'_>,
    end: impl Future<Output = ()>,
) {
    let shares = Shares::new(MOST_OF_ONE_CLIENT);
    let graceful = GracefulShutdown::new();
    let mut end = pin!(end);
    loop {
        let next = async {
            let place = Arc::clone(places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut end => break,
            next = next => next,
        };
        let share = match &accepted {
            Ok((stream, peer)) if !config.proxies.has(peer.ip()) => {
                let share = shares.take(client_of(peer.ip()));
                if share.is_none() {
                    if config.tls.is_none() {
                        // If the message does not fit into the socket buffer, it is dropped.
                        let _ = stream.try_write(TOO_MANY);
                    }
                    log::debug!("{} has too many connections", peer.ip());
                    continue;
                }
                share
            }
            _ => None,
        };
        // Detach the stream from this runtime: the thread that answers registers it with its own.
        let taken = accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer)));
        let (stream, peer) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                // Most likely out of descriptors. Wait for other connections to close.
                log::warn!("a connection is not taken: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (at, thread) = threads.next();
        let (answering, watcher) = (each[at].clone(), graceful.watcher());
        let tls = config.tls.map(Tls::acceptor);
        thread.spawn(async move {
            let ended = connection(stream, tls, peer.ip(), answering, watcher).await;
            if let Err(error) = ended {
                log::debug!("a connection ends: {error}");
            }
            drop((place, share));
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, graceful.shutdown()).await;
}

/// Answers the requests of a connection until it is closed, after the handshake if there is one.
async fn connection(
    stream: std::net::TcpStream,
    tls: Option<TlsAcceptor>,
    peer: IpAddr,
    answering: Answering,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::from_std(stream)?;
    let _ = stream.set_nodelay(true);
    let stream = IdleTimeoutStream::new(stream);
    match tls {
        None => answered(stream, peer, answering, watcher).await,
        Some(acceptor) => {
            let stream = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await??;
            answered(stream, peer, answering, watcher).await
        }
    }
}

async fn answered(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: IpAddr,
    answering: Answering,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let service = hyper::service::service_fn(move |mut request: Request<_>| {
        let Answering {
            responder,
            counts,
            log,
        } = answering.clone();
        request.extensions_mut().insert(Peer(peer));
        let measured = counts.map(|counts| (counts.begin(&request), counts));
        let line = log.map(|log| log.begin(&request, peer));
        async move {
            let response = answer::routed(&responder, request).await;
            if let Some((measured, counts)) = measured {
                counts.end(measured, &response);
            }
            Ok::<_, Infallible>(match line {
                Some(line) => line.follow(response),
                None => response,
            })
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    Ok(watcher.watch(connection).await?)
}

/// Listens, and serves until the process receives SIGTERM or SIGINT. `start` receives the bound address.
pub fn run(
    config: &ServerConfig<'_>,
    start: impl FnOnce(SocketAddr) -> Started,
) -> std::io::Result<()> {
    ibifs_os::limits::raise_descriptor_limit();
    ibifs_os::memory::share_between_threads();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MOST_ASIDE)
        // A thread inherits the identity of its parent, which may be a thread that answers.
        .on_thread_start(ibifs_os::caller::act_as_process)
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(config.listen).await?;
        let local = listener.local_addr()?;
        let mut terminate = signal(SignalKind::terminate())?;
        let end = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        // Without TLS and log the signal ends the process, as a terminal expects that is closed.
        let mut hangup = match (config.tls, config.access_log) {
            (None, None) => None,
            _ => Some(signal(SignalKind::hangup())?),
        };
        let started = start(local);
        let Some(responders) = started.responders else {
            return Ok(());
        };
        // Started as the user that the service has become.
        let log = match config.access_log {
            Some(log) => Some(log.start(config.proxies)?),
            None => None,
        };
        let reloading = async {
            if let Some(hangup) = &mut hangup {
                while hangup.recv().await.is_some() {
                    if let Some(tls) = config.tls {
                        tls.reload();
                    }
                    if let Some(log) = &log {
                        log.reopen();
                    }
                }
            }
            std::future::pending::<()>().await;
        };
        if let Some(tls) = config.tls {
            tls.check();
        }
        let mut threads = Threads::start(started.begin)?;
        let beside = started.beside.map(tokio::spawn);
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let kinds = started.kinds.filter(|_| config.metrics.is_some());
        let each: Vec<Answering> = (0..threads.count())
            .map(|_| Answering {
                responder: responders(),
                counts: kinds.as_ref().map(RequestCounts::new),
                log: log.as_ref().map(RunningLog::sink),
            })
            .collect();
        let reporter = started.monitored.map(|service| Reporter {
            service,
            threads: each.iter().filter_map(|it| it.counts.clone()).collect(),
            places: Arc::clone(&places),
        });
        let reporting = async {
            if let (Some(socket), Some(reporter)) = (config.metrics, reporter)
                && let Err(error) = metrics::serve(socket, reporter).await
            {
                log::error!("the metrics cannot be served: {error}");
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = serve(listener, &each, &mut threads, &places, config, end) => {}
            () = reloading => {}
            () = reporting => {}
        }
        if let Some(beside) = beside {
            beside.abort();
        }
        if let Some(afterwards) = started.afterwards {
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, afterwards).await;
        }
        Ok(())
    })
}
