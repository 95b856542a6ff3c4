//! The HTTP client: one GET request, with limits on the time and the size of the answer.

pub mod announcement;
pub mod archive;
pub(crate) mod archive_service;
mod hosts;

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, Uri};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use ibi::message::{Localize, Message};
use ibi::{display_message, message};

use archive_service::Reach;
use hosts::Hosts;

/// The timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long an idle connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(30);
/// The most idle connections that are kept for one host.
const MOST_IDLE: usize = 32;
/// The longest head of a response, in bytes.
const LONGEST_HEAD: usize = 16 * 1024;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum ClientError {
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
            ClientError::TooLong(most) => message!("the answer has more than {most} bytes", most),
        }
    }
}

display_message!(ClientError);

/// An HTTP client with a connection pool.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    inner: hyper_util::client::legacy::Client<HttpConnector<Hosts>, Empty<Bytes>>,
    reach: Reach,
}

impl Default for Client {
    fn default() -> Client {
        Client::reaching(Reach::Any)
    }
}

impl Client {
    /// A client whose requests reach these addresses. With [`Reach::Public`] each address is checked after
    /// its name is looked up, when the connection is made.
    pub(crate) fn reaching(reach: Reach) -> Client {
        let mut connector = HttpConnector::new_with_resolver(Hosts::new(reach));
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let mut builder = hyper_util::client::legacy::Client::builder(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MOST_IDLE)
            .http1_max_buf_size(LONGEST_HEAD);
        Client {
            inner: builder.build(connector),
            reach,
        }
    }

    /// Gets the body at a URL. The status must be 200, the body at most `most` bytes, the whole within
    /// `timeout`.
    pub(crate) async fn get(
        &self,
        url: &str,
        most: usize,
        timeout: Duration,
    ) -> Result<Bytes, ClientError> {
        let answer = tokio::time::timeout(timeout, self.ask(url, most)).await;
        answer.unwrap_or(Err(ClientError::IdleTimer(timeout)))
    }

    async fn ask(&self, url: &str, most: usize) -> Result<Bytes, ClientError> {
        let uri: Uri = url.parse().map_err(|_| ClientError::Url)?;
        // The connector looks up names only, so an address in the URL is checked here.
        if !hosts::may_reach(self.reach, uri.host().unwrap_or_default()) {
            return Err(ClientError::NotPublic);
        }
        let request = Request::get(uri)
            .body(Empty::new())
            .map_err(|_| ClientError::Url)?;
        let response = self.inner.request(request).await;
        let response = response.map_err(|error| ClientError::Failed(with_causes(&error)))?;
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
