//! A file of an Archive, fetched into a file that arrives in parts.
//!
//! A file whose digest a scrub has recorded is compared with it at its end, a short one with the digest that comes with
//! it, and any other one piece by piece with the digests that its Archive tells.

use std::time::Instant;

use bytes::Bytes;

use crate::archive::transfer::Part;
use crate::formats::fixity::Digest;
use crate::formats::inventory::{CHUNK, FileEntry};
use crate::world::remote::pace::{PAUSE, Pace};
use crate::world::remote::requests::{READ_TIMEOUT, RemoteServers, pieces};
use crate::world::trouble::Trouble;

/// The number of times that bytes are fetched if they differ from their digest.
const MOST_ATTEMPTS: u32 = 2;

/// The reason why a file has not arrived.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The Archive.
    Trouble(Trouble),
    /// The disk.
    Disk(std::io::Error),
}

impl From<Trouble> for Stopped {
    fn from(trouble: Trouble) -> Stopped {
        Stopped::Trouble(trouble)
    }
}

impl From<std::io::Error> for Stopped {
    fn from(error: std::io::Error) -> Stopped {
        Stopped::Disk(error)
    }
}

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
    pace: Pace,
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
        pace: Pace::begin(),
    };
    let arrived = download.until_it_is_there().await;
    let bytes = download.part.taken();
    let digest = arrived.and_then(|()| Ok(download.part.finish()?));
    Downloaded { digest, bytes }
}

fn differs() -> Stopped {
    let text = "the bytes differ from their digest";
    Trouble::Broken(text.to_owned()).into()
}

impl Download<'_> {
    async fn until_it_is_there(&mut self) -> Result<(), Stopped> {
        let mut attempts = 0;
        loop {
            let had = self.part.taken();
            match self.rest().await {
                Err(Stopped::Trouble(Trouble::Broken(what))) => {
                    log::warn!("{}: {what}", self.url);
                    attempts += 1;
                    if attempts >= MOST_ATTEMPTS {
                        return Err(Trouble::Broken(what).into());
                    }
                    // The digests may have been damaged on the way as well.
                    self.told.clear();
                    self.compared = 0;
                }
                // It goes on where the connection was cut.
                Err(Stopped::Trouble(Trouble::Unreachable(_)))
                    if self.part.taken() > had && !self.pace.is_over() => {}
                Err(Stopped::Trouble(Trouble::Unreachable(what))) => {
                    if self.pace.is_over() {
                        return Err(Trouble::Unreachable(what).into());
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                done => return done,
            }
        }
    }

    /// Whether its pieces are compared.
    fn is_in_pieces(&self) -> bool {
        self.entry.digest.is_none() && self.entry.size > CHUNK
    }

    /// Fetches what is missing, and compares it.
    async fn rest(&mut self) -> Result<(), Stopped> {
        let size = self.entry.size;
        if self.is_in_pieces() || self.entry.digest.is_none() && self.part.length() == size {
            self.compare_pieces().await?;
        }
        let announced = if self.part.length() < size {
            self.receive().await?
        } else {
            None
        };
        let expected = match self.entry.digest {
            Some(digest) => digest,
            None if size == 0 => return Ok(()),
            None if self.is_in_pieces() => {
                return self.compare_last().await;
            }
            None => match announced {
                Some(digest) => digest,
                None => return self.compare_last().await,
            },
        };
        if self.part.digest() == expected {
            return Ok(());
        }
        self.part.read_again(0)?;
        Err(differs())
    }

    /// The digest of a piece, as the Archive tells it.
    async fn piece(&mut self, number: u64) -> Result<Digest, Stopped> {
        while self.told.len() as u64 <= number {
            let until = Instant::now() + READ_TIMEOUT;
            let first = self.told.len() as u64;
            let told = self
                .remote
                .digests(self.url, self.entry, first, until)
                .await?;
            self.pace = Pace::begin();
            self.told.extend(told);
            if self.told.len() as u64 > pieces(self.entry.size) {
                let text = "digests of more pieces than the file has";
                return Err(Trouble::Broken(text.to_owned()).into());
            }
        }
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        self.told.get(at).copied().ok_or_else(differs)
    }

    /// Compares the pieces that are there, and keeps those before the first that differs.
    async fn compare_pieces(&mut self) -> Result<(), Stopped> {
        while let Some(found) = self.part.pieces().get(self.compared).copied() {
            let number = self.compared as u64;
            if self.piece(number).await? != found {
                self.part.read_again(number * CHUNK)?;
                return Ok(());
            }
            self.compared += 1;
        }
        // The bytes behind the last whole piece are compared when the file is complete.
        if self.part.length() == self.entry.size && self.compare_last().await.is_err() {
            log::debug!("{}: the last piece is fetched", self.url);
        }
        Ok(())
    }

    /// Compares what is behind the last whole piece of a complete file.
    async fn compare_last(&mut self) -> Result<(), Stopped> {
        let size = self.entry.size;
        if size.is_multiple_of(CHUNK) {
            return Ok(());
        }
        if self.piece(size / CHUNK).await? == self.part.last_piece() {
            return Ok(());
        }
        self.part.read_again(size / CHUNK * CHUNK)?;
        Err(differs())
    }

    /// Receives the rest. Returns the digest of the file that its Archive announces.
    async fn receive(&mut self) -> Result<Option<Digest>, Stopped> {
        let size = self.entry.size;
        let until = Instant::now() + READ_TIMEOUT;
        let range = (self.part.length(), size);
        let asked = self.remote.bytes(self.url, self.entry, range, until);
        let (mut answer, announced) = asked.await?;
        while self.part.length() < size {
            let part = answer.next(self.pace.left()).await;
            let part = part.map_err(|error| Trouble::Unreachable(error.to_string()))?;
            let part = part.ok_or_else(|| {
                Trouble::Unreachable("fewer bytes than were announced".to_owned())
            })?;
            self.pace.took(part.len());
            self.take(part).await?;
        }
        Ok(announced)
    }

    /// Writes bytes, and compares the pieces that are complete with them.
    async fn take(&mut self, mut bytes: Bytes) -> Result<(), Stopped> {
        while !bytes.is_empty() {
            let room = usize::try_from(self.part.room()).unwrap_or(usize::MAX);
            if room == 0 {
                let text = "more bytes than were announced";
                return Err(Trouble::Broken(text.to_owned()).into());
            }
            let now = bytes.split_to(room.min(bytes.len()));
            self.part.take(&now)?;
            if self.is_in_pieces() && self.part.pieces().len() > self.compared {
                let before = self.compared;
                self.compare_pieces().await?;
                if self.compared == before {
                    return Err(differs());
                }
            }
        }
        Ok(())
    }
}
