//! The bytes that are fetched, on their way to the cache.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::RemoteContent;
use crate::formats::fixity::Digest;
use crate::formats::inventory::CHUNK;
use crate::world::error::ForeignError;
use crate::world::remote::fetching::{Arriving, Stopped, receive};
use crate::world::remote::file::{FilePiece, RemoteFile};
use crate::world::remote::pace::Pace;

/// The part of a download that has arrived.
#[derive(Default)]
struct Arrived {
    /// Its length in bytes.
    length: u64,
    /// The digest of all of them.
    digest: Sha256,
    /// The bytes that are not in the cache yet.
    piece: Vec<u8>,
    /// The digests of the pieces before.
    digests: Vec<Digest>,
}

impl Arrived {
    fn digest(&self) -> Digest {
        Digest(self.digest.clone().finalize().into())
    }
}

/// A piece of a file, or a whole file whose digest was recorded, that arrives in the cache.
pub(super) struct ArrivingContent<'a> {
    content: &'a RemoteContent,
    file: &'a RemoteFile,
    /// The number of the piece. None for the whole file.
    number: Option<u64>,
    arrived: Arrived,
}

impl<'a> ArrivingContent<'a> {
    /// Nothing has arrived yet.
    pub(super) fn new(
        content: &'a RemoteContent,
        file: &'a RemoteFile,
        number: Option<u64>,
    ) -> ArrivingContent<'a> {
        ArrivingContent {
            content,
            file,
            number,
            arrived: Arrived::default(),
        }
    }

    async fn receive(
        &mut self,
        (start, end): (u64, u64),
        pace: &mut Pace,
    ) -> Result<Option<Digest>, Stopped> {
        let (remote, file) = (&self.content.remote, self.file);
        let range = (start + self.arrived.length, end);
        receive(remote, (&file.url, &file.entry), range, self, pace).await
    }

    /// Fetches a file and compares it as a whole. Its pieces are in the cache then, as far as there is room, and their
    /// digests are known.
    async fn whole(&mut self, pace: &mut Pace) -> Result<(), Stopped> {
        self.receive((0, self.file.size()), pace).await?;
        let (content, arrived) = (self.content, &mut self.arrived);
        if !arrived.piece.is_empty() {
            let digest = content.put(&mut arrived.piece).await;
            arrived.digests.push(digest);
        }
        if self.file.entry.digest != Some(arrived.digest()) {
            let what = "the file differs from the digest that its Archive has recorded";
            return Err(ForeignError::Broken(what.to_owned()).into());
        }
        content.learn(self.file, 0, &arrived.digests);
        Ok(())
    }
}

impl Arriving for ArrivingContent<'_> {
    type Done = Option<FilePiece>;

    fn taken(&self) -> u64 {
        self.arrived.length
    }

    fn start_over(&mut self) {
        self.arrived = Arrived::default();
    }

    async fn rest(&mut self, pace: &mut Pace) -> Result<Option<FilePiece>, Stopped> {
        let (content, file) = (self.content, self.file);
        let Some(number) = self.number else {
            self.whole(pace).await?;
            return Ok(None);
        };
        if !file.is_short() {
            content.ask_digests(file, number, pace).await?;
        }
        let (start, size) = (number * CHUNK, file.piece_size(number));
        let reserved = content.cache.reserve(size).ok();
        let announced = self.receive((start, start + size), pace).await?;
        let bytes = Bytes::from(std::mem::take(&mut self.arrived.piece));
        let found = (bytes, self.arrived.digest());
        let accepted = content.accept(file, number, found, announced, reserved);
        Ok(Some(accepted.await?))
    }

    /// The pieces before the last one go to the cache.
    async fn take(&mut self, mut bytes: Bytes, _pace: &mut Pace) -> Result<(), Stopped> {
        let whole = usize::try_from(CHUNK).unwrap_or(usize::MAX);
        let arrived = &mut self.arrived;
        arrived.length += bytes.len() as u64;
        arrived.digest.update(&bytes);
        while !bytes.is_empty() {
            if arrived.piece.len() == whole {
                let digest = self.content.put(&mut arrived.piece).await;
                arrived.digests.push(digest);
            }
            let room = whole - arrived.piece.len();
            let next = bytes.split_to(room.min(bytes.len()));
            arrived.piece.extend_from_slice(&next);
        }
        Ok(())
    }
}
