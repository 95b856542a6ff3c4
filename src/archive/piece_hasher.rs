//! The digests of the pieces of a file, of which a reader may fetch and compare one alone.

use sha2::{Digest as _, Sha256};

use crate::formats::fixity::Digest;
use crate::formats::inventory::CHUNK;

/// Takes the bytes of a file in their order, and has the digests of its pieces of [`CHUNK`] bytes.
#[derive(Debug, Default)]
pub(crate) struct PieceHasher {
    piece: Sha256,
    /// The number of bytes of the piece that is not complete.
    filled: u64,
    complete: Vec<Digest>,
}

impl PieceHasher {
    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = usize::try_from(CHUNK - self.filled).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.piece.update(now);
            self.filled += now.len() as u64;
            bytes = later;
            if self.filled == CHUNK {
                self.complete
                    .push(Digest(self.piece.finalize_reset().into()));
                self.filled = 0;
            }
        }
    }

    /// The digests of the complete pieces.
    pub(crate) fn complete(&self) -> &[Digest] {
        &self.complete
    }

    /// The digest of what is behind them.
    pub(crate) fn rest(&self) -> Digest {
        Digest(self.piece.clone().finalize().into())
    }

    /// The digests of all pieces. The last one may be shorter.
    pub(crate) fn finish(mut self) -> Vec<Digest> {
        if self.filled > 0 {
            let rest = self.rest();
            self.complete.push(rest);
        }
        self.complete
    }
}
