//! The HTTP door: listening, and what nobody may take more of than their share.
//!
//! What is answered is decided in the rooms of the two services ([`archive`], [`resolver`]); here connections
//! are taken, bounded and ended.

mod answer;
pub mod archive;
mod clock;
mod form;
mod languages;
mod page;
mod patient;
mod preference;
pub mod resolver;
mod share;
mod threads;

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

pub use clock::SiteClock;
use patient::Patient;
pub use share::Proxies;
use share::{Shares, client_of};
use threads::Threads;

/// Connections at once; who comes later waits until one ends.
pub const MOST_CONNECTIONS: usize = 4096;
/// Connections at once from one client, but for those that a proxy passes on; more are ended at once.
pub const MOST_OF_ONE_CLIENT: usize = 256;
/// What is said to who has as many.
const TOO_MANY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nConnection: close\r\n\
    Content-Type: text/plain; charset=utf-8\r\nContent-Length: 45\r\n\r\n\
    too many connections come from this address\r\n";
/// Requests at once that may have to wait for a disk or the index; further ones wait for one of them.
pub const MOST_ASIDE: usize = 512;
/// A request's line and headers together, in bytes; beyond it is 431.
pub const LONGEST_HEAD: usize = 16 * 1024;
/// How long a client may take for a request's line and headers, and rest between two requests.
pub const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// How long a client may take nothing of an answer, or send nothing of a body.
pub const STALL_PATIENCE: Duration = Duration::from_secs(30);
/// Shorter than any time that is given to a request or a connection.
const TICK: Duration = Duration::from_secs(1);
/// How long answers under way may take after the end has been asked for.
pub const END_PATIENCE: Duration = Duration::from_secs(5);

/// The address of whoever a request comes from, as an extension of it.
#[derive(Clone, Copy, Debug)]
struct Peer(IpAddr);

/// What is served, and what is done beside it.
#[allow(missing_debug_implementations, reason = "it holds futures")]
pub struct Started {
    /// What is answered, made for each thread that answers; None ends it at once.
    pub routes: Option<Routes>,
    /// What each thread that answers does first.
    pub begin: fn(),
    /// What goes on while it is served; None for nothing.
    pub beside: Option<Work>,
    /// What is done when it ends, for a short while; None for nothing.
    pub afterwards: Option<Work>,
}

impl Started {
    /// Nothing: it ends at once.
    #[must_use]
    pub fn nothing() -> Started {
        Started {
            routes: None,
            begin: || {},
            beside: None,
            afterwards: None,
        }
    }
}

/// Makes the routes of a thread.
pub type Routes = Box<dyn Fn() -> Router + Send + Sync>;

/// Something to be done.
pub type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Serves until `end` is ready; then answers under way are finished.
async fn serve(
    listener: TcpListener,
    routes: Routes,
    threads: &mut Threads,
    proxies: &Proxies,
    end: impl Future<Output = ()>,
) {
    let shares = Shares::new(MOST_OF_ONE_CLIENT);
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let routes: Vec<Router> = (0..threads.count()).map(|_| routes()).collect();
    let graceful = GracefulShutdown::new();
    let mut end = pin!(end);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = &mut end => break,
            next = next => next,
        };
        let share = match &accepted {
            Ok((stream, peer)) if !proxies.has(peer.ip()) => {
                let share = shares.take(client_of(peer.ip()));
                if share.is_none() {
                    // Nobody waits for what does not fit.
                    let _ = stream.try_write(TOO_MANY);
                    log::debug!("{} has too many connections", peer.ip());
                    continue;
                }
                share
            }
            _ => None,
        };
        // The stream goes over to the thread that answers.
        let taken = accepted.and_then(|(stream, peer)| Ok((stream.into_std()?, peer)));
        let (stream, peer) = match taken {
            Ok(taken) => taken,
            Err(error) => {
                // Out of descriptors, most likely: others end meanwhile.
                log::warn!("a connection is not taken: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (at, thread) = threads.next();
        let (routes, watcher) = (routes[at].clone(), graceful.watcher());
        thread.spawn(async move {
            if let Err(error) = connection(stream, peer.ip(), routes, watcher).await {
                log::debug!("a connection ends: {error}");
            }
            drop((place, share));
        });
    }
    drop(listener);
    let _ = tokio::time::timeout(END_PATIENCE, graceful.shutdown()).await;
}

/// Answers what comes on a connection until it ends.
async fn connection(
    stream: std::net::TcpStream,
    peer: IpAddr,
    routes: Router,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let stream = TcpStream::from_std(stream)?;
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |mut request: Request<_>| {
        let routes = routes.clone();
        request.extensions_mut().insert(Peer(peer));
        async move { Ok::<_, Infallible>(answer::bounded(routes, request).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(Patient::new(stream)), service);
    Ok(watcher.watch(connection).await?)
}

/// Listens, and serves until the process is told to end (SIGTERM, SIGINT). `start` is told the address
/// that was taken.
pub fn run(
    listen: SocketAddr,
    proxies: &Proxies,
    start: impl FnOnce(SocketAddr) -> Started,
) -> std::io::Result<()> {
    crate::os::limits::raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MOST_ASIDE)
        // A thread that answers may start one, and stay somebody that this one is not to be.
        .on_thread_start(crate::os::caller::act_as_process)
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(listen).await?;
        let local = listener.local_addr()?;
        let mut terminate =
            tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        let end = async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        };
        let started = start(local);
        let Some(routes) = started.routes else {
            return Ok(());
        };
        let mut threads = Threads::start(started.begin)?;
        let beside = started.beside.map(tokio::spawn);
        serve(listener, routes, &mut threads, proxies, end).await;
        if let Some(beside) = beside {
            beside.abort();
        }
        if let Some(afterwards) = started.afterwards {
            let _ = tokio::time::timeout(END_PATIENCE, afterwards).await;
        }
        Ok(())
    })
}
