//! A connection with a stall timeout.
//!
//! A client that takes some bytes now and then stalls as well, unless they are [`LEAST_TAKEN`] or all that it is to take:
//! otherwise it could hold for good what an answer holds.
//!
//! While an answer is sent, the other direction is polled for the end of the connection, and nothing arrives:
//! a client that takes what it is sent does not stall.
//!
//! A timer is set again only after it has fired, not for each request: setting it costs more than an answer.

use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::{IDLE_TIMEOUT, LEAST_TAKEN};

/// A connection that fails with an error if its client stalls for [`IDLE_TIMEOUT`].
#[derive(Debug)]
pub(super) struct IdleTimeoutStream {
    stream: TcpStream,
    reading: IdleTimer,
    writing: IdleTimer,
}

/// The stall timeout of one direction.
#[derive(Debug)]
struct IdleTimer {
    /// The start of the stall. None while there is none.
    since: Option<Instant>,
    /// The number of bytes that have gone since.
    taken: usize,
    timer: Pin<Box<Sleep>>,
}

impl IdleTimer {
    fn new() -> IdleTimer {
        IdleTimer {
            since: None,
            taken: 0,
            timer: Box::pin(tokio::time::sleep(IDLE_TIMEOUT)),
        }
    }

    /// Ends a stall.
    fn reset(&mut self) {
        (self.since, self.taken) = (None, 0);
    }

    /// Passes on the result of an attempt, or an error if the stall has lasted too long.
    fn check<T>(
        &mut self,
        context: &mut Context<'_>,
        tried: Poll<Result<T, Error>>,
    ) -> Poll<Result<T, Error>> {
        if tried.is_ready() {
            self.reset();
            return tried;
        }
        self.wait(context)
    }

    /// An error if the stall has lasted too long.
    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<Result<T, Error>> {
        let end = *self.since.get_or_insert_with(Instant::now) + IDLE_TIMEOUT;
        while self.timer.as_mut().poll(context).is_ready() {
            if end <= Instant::now() {
                return Poll::Ready(Err(Error::from(ErrorKind::TimedOut)));
            }
            // The timer was set for an earlier stall.
            self.timer.as_mut().reset(end);
        }
        Poll::Pending
    }
}

impl IdleTimeoutStream {
    pub fn new(stream: TcpStream) -> IdleTimeoutStream {
        IdleTimeoutStream {
            stream,
            reading: IdleTimer::new(),
            writing: IdleTimer::new(),
        }
    }

    /// Passes on the result of a write. A client that takes bytes is idle in neither direction.
    fn check_write(
        &mut self,
        context: &mut Context<'_>,
        tried: Poll<Result<usize, Error>>,
    ) -> Poll<Result<usize, Error>> {
        let Poll::Ready(taken) = &tried else {
            return self.writing.wait(context);
        };
        self.reading.reset();
        if self.writing.since.is_some() {
            self.writing.taken += taken.as_ref().copied().unwrap_or_default();
            if self.writing.taken >= LEAST_TAKEN {
                self.writing.reset();
            }
        }
        tried
    }
}

impl AsyncRead for IdleTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Error>> {
        let this = &mut *self;
        let tried = Pin::new(&mut this.stream).poll_read(context, buffer);
        this.reading.check(context, tried)
    }
}

impl AsyncWrite for IdleTimeoutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        let this = &mut *self;
        let tried = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.check_write(context, tried)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        let this = &mut *self;
        let tried = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.check_write(context, tried)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // It is called when everything was taken.
        self.writing.reset();
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
