//! The body of a request: bytes, or a part of a file.

use std::fs::File;
use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// The bytes of a file that are sent at a time.
const PIECE: usize = 256 << 10;

/// A request body: bytes, or `left` bytes of a file.
#[derive(Debug, Default)]
pub struct Sent {
    bytes: Option<Bytes>,
    file: Option<File>,
    left: u64,
}

impl Sent {
    pub fn bytes(bytes: Vec<u8>) -> Sent {
        Sent {
            left: bytes.len() as u64,
            bytes: Some(bytes.into()),
            file: None,
        }
    }

    pub fn file(file: File, length: u64) -> Sent {
        Sent {
            bytes: None,
            file: Some(file),
            left: length,
        }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        if let Some(bytes) = self.bytes.take() {
            self.left = 0;
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        let wanted = usize::try_from(self.left).unwrap_or(PIECE).min(PIECE);
        let mut piece = vec![0; wanted];
        // A blocking read: the command has no other work meanwhile.
        let read = match &mut self.file {
            Some(file) => file.read(&mut piece),
            None => Ok(0),
        };
        Poll::Ready(Some(match read {
            // The file has become shorter, and the destination would wait for the rest.
            Ok(0) => Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                piece.truncate(count);
                self.left -= count as u64;
                Ok(Frame::data(piece.into()))
            }
            Err(error) => Err(error),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
