//! The HTTP client, with and without TLS: requests with limits on the time, the redirections and the size of the
//! answer.
//!
//! - [`hosts`], [`trust`], [`connector`]: how a server is reached, and whether it is trusted.
//! - [`redirection`]: where an answer redirects to.
//! - [`fetch`]: a request with its headers, whose answer is read in pieces.

mod connector;
pub mod fetch;
mod hosts;
pub mod redirection;
mod trust;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::PROXY_AUTHORIZATION;
use hyper::{HeaderMap, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

use connector::{Connector, Proxies};
use fetch::Fetch;
use trust::Trust;
pub use trust::TrustError;

/// The timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The time that an idle connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(30);
/// The most idle connections that are kept for one host.
const MOST_IDLE: usize = 32;
/// The most redirections that are followed.
const MOST_REDIRECTIONS: usize = 5;
/// The longest head of a response, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;

/// The addresses that the requests to a server may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All: an administrator has named the server.
    Any,
    /// Those of the public Internet: the server is on a list from the network.
    Public,
}

/// The reason why a request has no answer.
#[derive(Debug)]
pub enum ClientError {
    /// The URL is malformed.
    Url,
    /// The timeout has elapsed.
    IdleTimer(Duration),
    /// The server cannot be reached, or closes the connection.
    Failed(String),
    /// A status other than 200, with the start of the body.
    Status(u16, String),
    /// The body is longer than this limit, in bytes.
    TooLong(usize),
    /// The address in the URL is not one of the public Internet.
    NotPublic,
    /// More redirections than are followed, or one to this place, which is not followed.
    Redirection(String),
    /// A URL with `https`, and no certificate authority is known.
    NoAuthorities,
}

impl Localize for ClientError {
    fn message(&self) -> Message {
        match self {
            ClientError::Url => message!("the address of the request is not a URL"),
            ClientError::IdleTimer(timeout) => {
                message!("no answer in {timeout}", timeout = format!("{timeout:?}"))
            }
            ClientError::Failed(error) => Message::foreign(error.as_str()),
            ClientError::Status(status, text) => {
                message!("status {status}: {text}", status, text = text.trim_end())
            }
            ClientError::NotPublic => message!("the address is not public"),
            ClientError::Redirection(place) => {
                message!("it redirects to {place}, which is not followed", place)
            }
            ClientError::NoAuthorities => message!(
                "this machine has no certificates of authorities for https; install ca-certificates, or name a file with --ca-file"
            ),
            ClientError::TooLong(most) => message!("the answer has more than {most} bytes", most),
        }
    }
}

display_message!(ClientError);

/// An HTTP client with a connection pool.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Pool<Empty<Bytes>>,
    /// For a URL that a redirection names.
    strange: Pool<Empty<Bytes>>,
    network: Network,
    reach: Reach,
    strangers: Reach,
}

/// The servers that a client trusts, and the proxies by which it goes.
#[derive(Clone, Debug)]
pub struct Network {
    trust: Trust,
    proxies: Proxies,
}

impl Network {
    /// The network of this machine: the certificate authorities of the system and, if a file is given, those in it;
    /// the proxies of the environment.
    ///
    /// # Errors
    /// The file cannot be read or holds no certificate.
    pub fn new(ca_file: Option<&Path>) -> Result<Network, TrustError> {
        Ok(Network {
            trust: Trust::new(ca_file)?,
            proxies: Proxies::of_environment(),
        })
    }
}

/// Connections that are kept for the next request.
pub struct Pool<B>(hyper_util::client::legacy::Client<Connector, B>);

impl<B> Clone for Pool<B> {
    fn clone(&self) -> Pool<B> {
        Pool(self.0.clone())
    }
}

impl<B> fmt::Debug for Pool<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pool")
    }
}

impl<B> Pool<B>
where
    B: Body + Send + 'static + Unpin,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// No connection yet, with a timeout for each attempt at one.
    #[must_use]
    pub fn new(network: &Network, reach: Reach, connect_timeout: Duration) -> Pool<B> {
        let Network { trust, proxies } = network;
        let connector = Connector::new(trust, proxies, reach, connect_timeout);
        let mut builder = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .http1_max_buf_size(LONGEST_HEAD);
        Pool(builder.build(connector))
    }

    /// Sends a request and returns the head of the answer.
    pub async fn send(
        &self,
        network: &Network,
        mut request: Request<B>,
    ) -> Result<Response<Incoming>, ClientError> {
        if request.uri().scheme_str() == Some("https") && !network.trust.is_any() {
            return Err(ClientError::NoAuthorities);
        }
        if let Some(value) = network.proxies.authorization(request.uri()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, value);
        }
        let response = self.0.request(request).await;
        response.map_err(|error| ClientError::Failed(with_causes(&error)))
    }
}

impl Client {
    /// A client whose requests reach these addresses. With [`Reach::Public`] each address is checked after
    /// its name is looked up, when the connection is made. Another host to which an answer redirects must be a public
    /// one.
    pub fn new(network: &Network, reach: Reach) -> Client {
        Client::with_strangers(network, reach, Reach::Public)
    }

    /// The same for hosts to which an answer redirects, which may have these addresses.
    pub fn with_strangers(network: &Network, reach: Reach, strangers: Reach) -> Client {
        Client {
            inner: Pool::new(network, reach, CONNECT_TIMEOUT),
            strange: Pool::new(network, strangers, CONNECT_TIMEOUT),
            network: network.clone(),
            reach,
            strangers,
        }
    }

    /// Gets the body at a URL, or where it redirects to. The status must be 200, the body at most `most` bytes, the
    /// whole within `timeout`.
    pub async fn get(
        &self,
        url: &str,
        most: usize,
        timeout: Duration,
    ) -> Result<Bytes, ClientError> {
        let answer = self.get_with_headers(url, most, timeout).await;
        answer.map(|(_, body)| body)
    }

    /// The same with the headers of the answer.
    pub async fn get_with_headers(
        &self,
        url: &str,
        most: usize,
        timeout: Duration,
    ) -> Result<(HeaderMap, Bytes), ClientError> {
        let answer = tokio::time::timeout(timeout, self.ask(url, most)).await;
        answer.unwrap_or(Err(ClientError::IdleTimer(timeout)))
    }

    async fn ask(&self, url: &str, most: usize) -> Result<(HeaderMap, Bytes), ClientError> {
        let mut response = self.fetch(&Fetch::get(url)).await?.response;
        let headers = std::mem::take(response.headers_mut());
        Ok((headers, read(response, most).await?))
    }

    async fn answered(
        &self,
        pool: &Pool<Empty<Bytes>>,
        reach: Reach,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, ClientError> {
        // The connector looks up names only, so an address in the URL is checked here.
        if !hosts::may_reach(reach, request.uri().host().unwrap_or_default()) {
            return Err(ClientError::NotPublic);
        }
        pool.send(&self.network, request).await
    }
}

/// Reads the body of an answer. The status must be 200, the body at most `most` bytes.
pub async fn read(response: Response<Incoming>, most: usize) -> Result<Bytes, ClientError> {
    let status = response.status();
    let body = Limited::new(response.into_body(), most).collect().await;
    let body = body.map_err(|error| {
        if error.is::<http_body_util::LengthLimitError>() {
            ClientError::TooLong(most)
        } else {
            ClientError::Failed(error.to_string())
        }
    })?;
    let body = body.to_bytes();
    match status.as_u16() {
        200 => Ok(body),
        other => {
            let text = body.get(..body.len().min(300)).unwrap_or_default();
            let text = String::from_utf8_lossy(text).into_owned();
            Err(ClientError::Status(other, text))
        }
    }
}

/// The message of an error with those of its causes: the library's own message names only the outermost.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}
