//! A file of an Archive, fetched into a file that arrives in parts.
//!
//! A file whose digest a scrub has recorded is compared with it at its end, a short one with the digest that comes with
//! it, and any other one piece by piece with the digests that its Archive tells.

use std::time::Instant;

use bytes::Bytes;

use crate::archive::transfer::Part;
use crate::formats::fixity::Digest;
use crate::formats::inventory::{CHUNK, FileEntry};
use crate::world::error::ForeignError;
use crate::world::remote::fetching::{Arriving, Stopped, fetch, receive};
use crate::world::remote::pace::Pace;
use crate::world::remote::requests::{READ_TIMEOUT, RemoteServers, pieces};

/// The result of a file's download.
#[derive(Debug)]
pub(crate) struct Downloaded {
    /// Its digest.
    pub(crate) digest: Result<Digest, Stopped>,
    /// The number of bytes that have come in this run.
    pub(crate) bytes: u64,
}

/// One download.
struct Download<'a> {
    remote: &'a RemoteServers,
    url: &'a str,
    entry: &'a FileEntry,
    part: Part,
    /// The digests of its pieces, as far as they were asked for.
    told: Vec<Digest>,
    /// The number of pieces there that have been compared.
    compared: usize,
}

/// Fetches what is missing of a file, again and again while no server answers, until no byte has come for too long.
pub(crate) async fn download(
    remote: &RemoteServers,
    url: &str,
    entry: &FileEntry,
    part: Part,
) -> Downloaded {
    let mut download = Download {
        remote,
        url,
        entry,
        part,
        told: Vec::new(),
        compared: 0,
    };
    let arrived = fetch(url, &mut download).await;
    let bytes = download.part.taken();
    let digest = arrived.and_then(|()| Ok(download.part.finish()?));
    Downloaded { digest, bytes }
}

fn differs() -> Stopped {
    let text = "the bytes differ from their digest";
    ForeignError::Broken(text.to_owned()).into()
}

impl Download<'_> {
    /// Whether its pieces are compared.
    fn is_in_pieces(&self) -> bool {
        self.entry.digest.is_none() && self.entry.size > CHUNK
    }

    /// The digest of a piece, as the Archive tells it.
    async fn piece(&mut self, number: u64, pace: &mut Pace) -> Result<Digest, Stopped> {
        while self.told.len() as u64 <= number {
            let until = Instant::now() + READ_TIMEOUT;
            let first = self.told.len() as u64;
            let told = self
                .remote
                .digests(self.url, self.entry, first, until)
                .await?;
            *pace = Pace::begin();
            self.told.extend(told);
            if self.told.len() as u64 > pieces(self.entry.size) {
                let text = "digests of more pieces than the file has";
                return Err(ForeignError::Broken(text.to_owned()).into());
            }
        }
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        self.told.get(at).copied().ok_or_else(differs)
    }

    /// Compares the pieces that are there, and keeps those before the first that differs.
    async fn compare_pieces(&mut self, pace: &mut Pace) -> Result<(), Stopped> {
        while let Some(found) = self.part.pieces().get(self.compared).copied() {
            let number = self.compared as u64;
            if self.piece(number, pace).await? != found {
                self.part.read_again(number * CHUNK)?;
                return Ok(());
            }
            self.compared += 1;
        }
        // The bytes behind the last whole piece are compared when the file is complete.
        if self.part.length() == self.entry.size && self.compare_last(pace).await.is_err() {
            log::debug!("{}: the last piece is fetched", self.url);
        }
        Ok(())
    }

    /// Compares what is behind the last whole piece of a complete file.
    async fn compare_last(&mut self, pace: &mut Pace) -> Result<(), Stopped> {
        let size = self.entry.size;
        if size.is_multiple_of(CHUNK) {
            return Ok(());
        }
        if self.piece(size / CHUNK, pace).await? == self.part.last_piece() {
            return Ok(());
        }
        self.part.read_again(size / CHUNK * CHUNK)?;
        Err(differs())
    }
}

impl Arriving for Download<'_> {
    type Done = ();

    fn taken(&self) -> u64 {
        self.part.taken()
    }

    fn start_over(&mut self) {
        self.told.clear();
        self.compared = 0;
    }

    async fn rest(&mut self, pace: &mut Pace) -> Result<(), Stopped> {
        let size = self.entry.size;
        if self.is_in_pieces() || self.entry.digest.is_none() && self.part.length() == size {
            self.compare_pieces(pace).await?;
        }
        let announced = if self.part.length() < size {
            let range = (self.part.length(), size);
            let file = (self.url, self.entry);
            receive(self.remote, file, range, self, pace).await?
        } else {
            None
        };
        let expected = match self.entry.digest {
            Some(digest) => digest,
            None if size == 0 => return Ok(()),
            None if self.is_in_pieces() => {
                return self.compare_last(pace).await;
            }
            None => match announced {
                Some(digest) => digest,
                None => return self.compare_last(pace).await,
            },
        };
        if self.part.digest() == expected {
            return Ok(());
        }
        self.part.read_again(0)?;
        Err(differs())
    }

    /// Writes bytes, and compares the pieces that are complete with them.
    async fn take(&mut self, mut bytes: Bytes, pace: &mut Pace) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            let room = usize::try_from(self.part.room()).unwrap_or(usize::MAX);
            if room == 0 {
                let text = "more bytes than were announced";
                return Err(ForeignError::Broken(text.to_owned()).into());
            }
            let now = bytes.split_to(room.min(bytes.len()));
            self.part.take(&now)?;
            if self.is_in_pieces() && self.part.pieces().len() > self.compared {
                let before = self.compared;
                self.compare_pieces(pace).await?;
                if self.compared == before {
                    return Err(differs());
                }
            }
        }
        Ok(())
    }
}
