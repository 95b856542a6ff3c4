//! A download that goes on where it was cut, again and again while no server answers, until no byte has come for too
//! long. Bytes that differ from their digest are fetched once more.

use std::future::Future;

use bytes::Bytes;

use crate::formats::fixity::Digest;
use crate::formats::inventory::FileEntry;
use crate::world::error::ForeignError;
use crate::world::remote::pace::{PAUSE, Pace};
use crate::world::remote::requests::RemoteServers;

/// The number of times that bytes are fetched if they differ from their digest.
pub(crate) const MOST_ATTEMPTS: u32 = 2;

/// The reason why bytes have not arrived.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The Archive.
    ForeignError(ForeignError),
    /// The disk.
    Disk(std::io::Error),
}

impl From<ForeignError> for Stopped {
    fn from(trouble: ForeignError) -> Stopped {
        Stopped::ForeignError(trouble)
    }
}

impl From<std::io::Error> for Stopped {
    fn from(error: std::io::Error) -> Stopped {
        Stopped::Disk(error)
    }
}

/// The part of a file that is fetched.
pub(crate) trait Arriving: Send {
    /// The thing that is there when it has arrived.
    type Done: Send;

    /// The number of bytes that have come.
    fn taken(&self) -> u64;

    /// Fetches what is missing, and compares it.
    fn rest(&mut self, pace: &mut Pace)
    -> impl Future<Output = Result<Self::Done, Stopped>> + Send;

    /// Adds bytes.
    fn take(
        &mut self,
        bytes: Bytes,
        pace: &mut Pace,
    ) -> impl Future<Output = Result<(), Stopped>> + Send;

    /// Forgets what may have been damaged on the way.
    fn start_over(&mut self);
}

/// Fetches what is missing.
pub(crate) async fn fetch<A: Arriving>(url: &str, arriving: &mut A) -> Result<A::Done, Stopped> {
    let (mut pace, mut attempts) = (Pace::begin(), 0);
    loop {
        let had = arriving.taken();
        match arriving.rest(&mut pace).await {
            Err(Stopped::ForeignError(ForeignError::Broken(what))) => {
                log::warn!("{url}: {what}");
                attempts += 1;
                if attempts >= MOST_ATTEMPTS {
                    return Err(ForeignError::Broken(what).into());
                }
                arriving.start_over();
            }
            Err(Stopped::ForeignError(ForeignError::Unreachable(_))) if !pace.is_over() => {
                // It goes on at once where the connection was cut.
                if arriving.taken() == had {
                    tokio::time::sleep(PAUSE).await;
                }
            }
            done => return done,
        }
    }
}

/// Receives a range of a file. Returns the digest of the file that its Archive announces.
pub(crate) async fn receive<A: Arriving>(
    remote: &RemoteServers,
    (url, entry): (&str, &FileEntry),
    (start, end): (u64, u64),
    arriving: &mut A,
    pace: &mut Pace,
) -> Result<Option<Digest>, Stopped> {
    let asked = remote.bytes(url, entry, (start, end), pace.until());
    let (mut answer, announced) = asked.await?;
    let mut left = end - start;
    while left > 0 {
        let part = answer.next(pace.left()).await;
        let part = part.map_err(|error| ForeignError::Unreachable(error.to_string()))?;
        let part = part.ok_or_else(|| {
            ForeignError::Unreachable("fewer bytes than were announced".to_owned())
        })?;
        pace.took(part.len());
        left = left
            .checked_sub(part.len() as u64)
            .ok_or_else(|| ForeignError::Broken("more bytes than were announced".to_owned()))?;
        arriving.take(part, pace).await?;
    }
    Ok(announced)
}
