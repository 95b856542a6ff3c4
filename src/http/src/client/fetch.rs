//! A request with its headers, whose answer is read in pieces.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Method, Request, Response, Uri};

use super::{Client, ClientError, MOST_REDIRECTIONS, redirection};
use crate::client::Reach;

/// A request.
#[derive(Clone, Debug)]
pub struct Fetch<'a> {
    url: &'a str,
    method: Method,
    headers: Vec<(HeaderName, HeaderValue)>,
    follows: bool,
}

/// The answer to a request, whose body has not been read yet.
#[derive(Debug)]
pub struct Fetched {
    /// Its head, before the body.
    pub response: Response<Incoming>,
    /// The URL at which it was found.
    pub url: String,
}

impl<'a> Fetch<'a> {
    /// A GET request, which is redirected.
    pub fn get(url: &'a str) -> Fetch<'a> {
        Fetch {
            url,
            method: Method::GET,
            headers: Vec::new(),
            follows: true,
        }
    }

    /// A HEAD request whose answer is not followed if it redirects.
    pub fn place_of(url: &'a str) -> Fetch<'a> {
        Fetch {
            method: Method::HEAD,
            follows: false,
            ..Fetch::get(url)
        }
    }

    /// Adds a header. A value that HTTP cannot carry is left out.
    pub fn with(mut self, name: HeaderName, value: &str) -> Fetch<'a> {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    fn request(&self, uri: &Uri) -> Result<Request<Empty<Bytes>>, ClientError> {
        let mut request = Request::new(Empty::new());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri.clone();
        for (name, value) in &self.headers {
            request.headers_mut().insert(name, value.clone());
        }
        let is_url = uri.scheme_str().is_some() && uri.host().is_some();
        is_url.then_some(request).ok_or(ClientError::Url)
    }
}

impl Client {
    /// Sends a request, also to where its answers redirect, and returns the head of the answer. The time is the caller's
    /// to limit.
    pub async fn fetch(&self, fetch: &Fetch<'_>) -> Result<Fetched, ClientError> {
        let first: Uri = fetch.url.parse().map_err(|_| ClientError::Url)?;
        let mut uri = first.clone();
        for _ in 0..=MOST_REDIRECTIONS {
            // Another host or port is one that the server has named: a stranger.
            let (pool, reach): (_, Reach) = if redirection::is_same_server(&first, &uri) {
                (&self.inner, self.reach)
            } else {
                (&self.strange, self.strangers)
            };
            let request = fetch.request(&uri)?;
            let response = self.answered(pool, reach, request).await?;
            let target = if fetch.follows {
                redirection::target(&uri, response.status(), response.headers())
            } else {
                Ok(None)
            };
            match target {
                Ok(None) => {
                    return Ok(Fetched {
                        response,
                        url: uri.to_string(),
                    });
                }
                Ok(Some(target)) => uri = target,
                Err(location) => return Err(ClientError::Redirection(location)),
            }
        }
        Err(ClientError::Redirection(uri.to_string()))
    }
}

impl Fetched {
    /// The status of the answer.
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The value of a header.
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The URL to which the answer redirects.
    ///
    /// # Errors
    /// The place, if it is not a URL with `http` or `https`, or leaves TLS.
    pub fn target(&self) -> Result<Option<String>, ClientError> {
        let from: Uri = self.url.parse().map_err(|_| ClientError::Url)?;
        let target = redirection::target(&from, self.response.status(), self.response.headers());
        match target {
            Ok(target) => Ok(target.map(|uri| uri.to_string())),
            Err(place) => Err(ClientError::Redirection(place)),
        }
    }

    /// The next bytes of the body. None at its end. An error if no byte comes for so long, or the connection is closed
    /// before the end.
    pub async fn next(&mut self, idle: Duration) -> Result<Option<Bytes>, ClientError> {
        loop {
            let frame = tokio::time::timeout(idle, self.response.body_mut().frame()).await;
            match frame {
                Err(_) => return Err(ClientError::IdleTimer(idle)),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => {
                    return Err(ClientError::Failed(super::with_causes(&error)));
                }
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data()
                        && !bytes.is_empty()
                    {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// The body, of at most `most` bytes. An error if not a kibibyte of it comes in `idle`.
    pub async fn whole(mut self, most: usize, idle: Duration) -> Result<Vec<u8>, ClientError> {
        let (mut body, mut since, mut begin) = (Vec::new(), 0, Instant::now());
        while let Some(bytes) = self.next(idle.saturating_sub(begin.elapsed())).await? {
            if body.len() + bytes.len() > most {
                return Err(ClientError::TooLong(most));
            }
            body.extend_from_slice(&bytes);
            if body.len() - since >= 1 << 10 {
                (since, begin) = (body.len(), Instant::now());
            }
        }
        Ok(body)
    }

    /// The end of the body, of at least `least` bytes if it has as many, and of at most twice as many. An error if it does not
    /// end until then.
    pub async fn end(mut self, least: usize, until: Instant) -> Result<Vec<u8>, ClientError> {
        let mut body = Vec::new();
        let left = || until.saturating_duration_since(Instant::now());
        while let Some(bytes) = self.next(left()).await? {
            if body.len() + bytes.len() > 2 * least {
                body.drain(..body.len().saturating_sub(least));
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }
}
