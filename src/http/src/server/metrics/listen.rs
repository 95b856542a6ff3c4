//! The address at which a service reports of itself: `/healthz`, `/readyz`, `/metrics` and pages for the administrator. It has no TLS and knows no
//! users; it is for this machine, or a network of the administrator.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::Semaphore;

use super::requests::RequestCounts;
use super::text::{CONTENT_TYPE, MetricKind, MetricsText};
use super::{SharedMonitored, process, requests};
use crate::server::{HEAD_TIMEOUT, LONGEST_HEAD, MOST_CONNECTIONS, answer};

/// The most connections at a time. Later ones wait.
const MOST_AT_ONCE: usize = 16;
/// The time that a connection may last. Monitors connect for each question.
const LONGEST: Duration = Duration::from_secs(60);

/// An address for reports, which is taken before the service gives up root.
#[derive(Debug)]
pub struct MetricsSocket(TcpListener);

impl MetricsSocket {
    /// Listens at an address.
    ///
    /// # Errors The address cannot be had.
    pub fn bind(address: SocketAddr) -> std::io::Result<MetricsSocket> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(MetricsSocket(listener))
    }

    /// The address, with the port that was taken in place of port 0.
    ///
    /// # Errors The system does not say.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// The sources of the report.
#[derive(Clone)]
pub struct Reporter {
    /// The service.
    pub service: SharedMonitored,
    /// The requests that each thread has answered.
    pub threads: Vec<Arc<RequestCounts>>,
    /// The places for connections to the service that are free.
    pub places: Arc<Semaphore>,
}

/// Answers until it is dropped. It needs a runtime with timers.
pub async fn serve(socket: &MetricsSocket, reporter: Reporter) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(socket.0.try_clone()?)?;
    let places = Arc::new(Semaphore::new(MOST_AT_ONCE));
    loop {
        let place = Arc::clone(&places).acquire_owned().await;
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                log::warn!("a connection to the metrics is not taken: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let reporter = reporter.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request: Request<_>| {
                let reporter = reporter.clone();
                async move { Ok::<_, Infallible>(answered(reporter, &request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(LONGEST_HEAD)
                .serve_connection(TokioIo::new(stream), service);
            if let Ok(Err(error)) = tokio::time::timeout(LONGEST, connection).await {
                log::debug!("a connection to the metrics ends: {error}");
            }
            drop(place);
        });
    }
}

async fn answered<B>(reporter: Reporter, request: &Request<B>) -> Response<Body> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return answer::no_method(request.method(), "GET, HEAD");
    }
    let plain = "text/plain; charset=utf-8";
    let response = match request.uri().path() {
        "/healthz" => answer::whole(StatusCode::OK, plain, "ok\n"),
        "/readyz" => {
            let trouble = answer::aside(move || reporter.service.trouble()).await;
            match trouble {
                Ok(None) => answer::whole(StatusCode::OK, plain, "ok\n"),
                Ok(Some(trouble)) => answer::refusal(StatusCode::SERVICE_UNAVAILABLE, &trouble),
                Err(refusal) => refusal,
            }
        }
        "/metrics" => {
            let text = answer::aside(move || measured(&reporter)).await;
            match text {
                Ok(text) => answer::whole(StatusCode::OK, CONTENT_TYPE, text),
                Err(refusal) => refusal,
            }
        }
        path => {
            let (path, headers) = (path.to_owned(), request.headers().clone());
            let page = answer::aside(move || reporter.service.page(&path, &headers)).await;
            match page {
                Ok(Some(page)) => answer::whole(StatusCode::OK, "text/html; charset=utf-8", page),
                Ok(None) => {
                    let sentence =
                        "there is only /healthz, /readyz, /metrics and, of an Archive, /copies";
                    answer::refusal(StatusCode::NOT_FOUND, sentence)
                }
                Err(refusal) => refusal,
            }
        }
    };
    answer::no_store(response)
}

fn measured(reporter: &Reporter) -> String {
    let mut text = MetricsText::default();
    text.metric(
        "ibifs_build_info",
        MetricKind::Gauge,
        "The version of ibifs, as a label; always 1.",
    );
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    text.sample("ibifs_build_info", &version, 1);
    requests::measure(&reporter.threads, &mut text);
    text.single(
        "ibifs_http_connections",
        MetricKind::Gauge,
        "Connections that are open.",
        MOST_CONNECTIONS.saturating_sub(reporter.places.available_permits()),
    );
    reporter.service.measure(&mut text);
    process::measure(&mut text);
    text.into_string()
}
