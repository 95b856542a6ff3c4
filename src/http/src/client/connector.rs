//! Connections of the client: direct or by a proxy of the environment, with TLS for `https`, within a time limit.

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{Service, ServiceExt};

use super::Reach;
use super::hosts::Hosts;
use super::trust::Trust;

type AnyError = Box<dyn Error + Send + Sync>;

/// Makes the connections of a client.
#[derive(Clone)]
pub(super) struct Connector {
    inner: HttpsConnector<Route>,
    timeout: Duration,
}

/// The connection to a server, or to a proxy that connects to it.
#[derive(Clone)]
struct Route {
    direct: HttpConnector<Hosts>,
    to_proxy: HttpConnector<Hosts>,
    proxies: Proxies,
    hosts: Hosts,
}

/// The proxies that the environment names: `http_proxy`, `https_proxy`, `all_proxy`, except for what `no_proxy` names.
#[derive(Clone, Debug)]
pub struct Proxies(Arc<Matcher>);

impl Proxies {
    pub(super) fn of_environment() -> Proxies {
        Proxies(Arc::new(Matcher::from_env()))
    }

    fn of(&self, uri: &Uri) -> Option<Intercept> {
        self.0.intercept(uri)
    }

    /// The value of `Proxy-Authorization` for a request by a proxy without TLS. A tunnel gets its own.
    pub(super) fn authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        let is_plain = uri.scheme_str() == Some("http");
        let proxy = self.of(uri).filter(|_| is_plain)?;
        proxy.basic_auth().cloned()
    }
}

impl Connector {
    pub fn new(trust: &Trust, proxies: &Proxies, reach: Reach, timeout: Duration) -> Connector {
        let connector = |reach| {
            let mut connector = HttpConnector::new_with_resolver(Hosts::new(reach));
            connector.set_connect_timeout(Some(timeout));
            connector.set_nodelay(true);
            connector.enforce_http(false);
            connector
        };
        let route = Route {
            direct: connector(reach),
            // An administrator has named the proxy.
            to_proxy: connector(Reach::Any),
            proxies: proxies.clone(),
            hosts: Hosts::new(reach),
        };
        Connector {
            inner: HttpsConnectorBuilder::new()
                .with_tls_config(trust.config())
                .https_or_http()
                .enable_http1()
                .wrap_connector(route),
            timeout,
        }
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<RoutedStream>;
    type Error = AnyError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, AnyError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), AnyError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (connecting, timeout) = (self.inner.call(uri), self.timeout);
        Box::pin(async move {
            // The TLS handshake is part of it.
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected,
                Err(_) => Err(format!("no connection in {timeout:?}").into()),
            }
        })
    }
}

impl Route {
    async fn by_proxy(self, proxy: Intercept, uri: Uri) -> Result<RoutedStream, AnyError> {
        if proxy.uri().scheme_str() != Some("http") {
            let text = format!(
                "the proxy {} of the environment has another scheme than http",
                proxy.uri()
            );
            return Err(text.into());
        }
        // The proxy looks the name up again and has to refuse by itself what it must not reach.
        self.hosts.check(uri.host().unwrap_or_default()).await?;
        let is_tunnel = uri.scheme_str() == Some("https");
        let stream = if is_tunnel {
            let mut tunnel = Tunnel::new(proxy.uri().clone(), self.to_proxy);
            if let Some(authorization) = proxy.basic_auth() {
                tunnel = tunnel.with_auth(authorization.clone());
            }
            tunnel.oneshot(uri).await?
        } else {
            self.to_proxy.oneshot(proxy.uri().clone()).await?
        };
        Ok(RoutedStream {
            stream,
            is_proxied: !is_tunnel,
        })
    }
}

impl Service<Uri> for Route {
    type Response = RoutedStream;
    type Error = AnyError;
    type Future = Pin<Box<dyn Future<Output = Result<RoutedStream, AnyError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), AnyError>> {
        // Both connectors are asked for readiness when they are called.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let route = self.clone();
        Box::pin(async move {
            match route.proxies.of(&uri) {
                Some(proxy) => route.by_proxy(proxy, uri).await,
                None => Ok(RoutedStream {
                    stream: route.direct.oneshot(uri).await?,
                    is_proxied: false,
                }),
            }
        })
    }
}

/// A connection. To a proxy that forwards requests, they name the whole URL.
pub(super) struct RoutedStream {
    stream: TokioIo<TcpStream>,
    is_proxied: bool,
}

impl Connection for RoutedStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_proxied)
    }
}

impl Read for RoutedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for RoutedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }
}
