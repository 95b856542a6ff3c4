//! The body of the answer: the zip file is written into a short buffer, which the client empties.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::HttpBody;
use bytes::Bytes;
use hyper::body::Frame;
use parking_lot::Mutex;
use rawzip::{Crc32, ZipArchiveWriter};
use sha2::{Digest, Sha512};

use super::bag::{self, BagManifest};
use super::entry::{self, Attributes};
use super::error::{MOST_ENTRIES, MOST_IN_A_BAG, ZipError};
use super::{Layout, Turn};
use crate::archive::store::Item;
use crate::archive::tree::Published;
use crate::archive::{ArchiveError, Clock, Listing, SystemClock};
use crate::http::server::threads::aside;
use crate::web::archive::Site;
use crate::web::archive::file::{PIECE, read};

/// The number of entries of an item that are found at a time.
const ENTRIES_AT_ONCE: usize = 1000;

/// The writing of a zip file, which goes on while the buffer is not full.
type Writing = Pin<Box<dyn Future<Output = Result<(), ZipError>> + Send>>;

/// A zip file that is written while it is sent. Everything is freed when it is dropped.
pub(super) struct ZipBody {
    buffer: Buffer,
    /// None after the end.
    writing: Option<Writing>,
    /// The item, for the log.
    name: String,
    _turn: Turn,
}

impl ZipBody {
    /// The zip file of an item with these first entries. The rest is found while the file is sent.
    pub(super) fn new(
        site: Arc<Site>,
        item: Arc<Item>,
        first: Listing,
        layout: Layout,
        turn: Turn,
    ) -> ZipBody {
        let buffer = Buffer::default();
        ZipBody {
            name: item.names.preferred(),
            writing: Some(Box::pin(write(site, item, first, layout, buffer.clone()))),
            buffer,
            _turn: turn,
        }
    }
}

impl HttpBody for ZipBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        if let Some(writing) = &mut this.writing {
            match writing.as_mut().poll(context) {
                Poll::Pending => {}
                Poll::Ready(Ok(())) => this.writing = None,
                Poll::Ready(Err(error)) => {
                    log::warn!("{} as a zip file: {error}", this.name);
                    this.writing = None;
                    // The connection ends without the end of the zip file, so that the client notices.
                    return Poll::Ready(Some(Err(std::io::Error::other(error))));
                }
            }
        }
        match this.buffer.take(this.writing.is_some()) {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None if this.writing.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// The bytes that have been written and not yet sent.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Parts>>);

#[derive(Default)]
struct Parts {
    /// The bytes that the library has written since the last call of [`Buffer::sent`].
    written: Vec<u8>,
    ready: Vec<u8>,
}

impl Buffer {
    /// Takes what is to be sent: a full buffer, or what is left at the end.
    fn take(&self, is_writing: bool) -> Option<Bytes> {
        let ready = &mut self.0.lock().ready;
        let is_short = if is_writing {
            ready.len() < PIECE
        } else {
            ready.is_empty()
        };
        (!is_short).then(|| std::mem::take(ready).into())
    }

    /// Changes what the library has written since the last call of [`Buffer::sent`].
    fn change(&self, change: impl FnOnce(&mut [u8])) {
        change(&mut self.0.lock().written);
    }

    /// Gives away what has been written, and waits while that is much. The body takes it, and polls again.
    async fn sent(&self) {
        {
            let parts = &mut *self.0.lock();
            if parts.ready.is_empty() {
                std::mem::swap(&mut parts.ready, &mut parts.written);
            } else {
                parts.ready.append(&mut parts.written);
            }
        }
        std::future::poll_fn(|_| {
            if self.0.lock().ready.len() < PIECE {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().written.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes an item, entry by entry.
async fn write(
    site: Arc<Site>,
    item: Arc<Item>,
    first: Listing,
    layout: Layout,
    buffer: Buffer,
) -> Result<(), ZipError> {
    let mut manifest = (layout == Layout::Bag).then(BagManifest::default);
    let above = match layout {
        Layout::Item => format!("{}/", item.names.preferred()),
        Layout::Bag => format!("{}/", bag::directory(&item)),
    };
    let above = above.into_bytes();
    let mut archive = ZipArchiveWriter::new(buffer.clone());
    let (mut listing, mut flagged) = (first, Vec::new());
    loop {
        let most = match layout {
            Layout::Item => MOST_ENTRIES,
            Layout::Bag => MOST_IN_A_BAG,
        };
        if flagged.len() + listing.files.len() > most {
            return Err(ZipError::TooMany(most));
        }
        for found in &listing.files {
            let below = match layout {
                Layout::Item => found.path.clone(),
                Layout::Bag => bag::path_in_bag(&found.path),
            };
            let path = [above.as_slice(), &below].concat();
            if found.path.ends_with(b"/") {
                let attributes = Attributes {
                    changed: found.changed.clone(),
                    permissions: found.permissions,
                };
                entry::directory(&mut archive, &path, &attributes)?;
                flag(&buffer, &path);
            } else if let Some(file) = open(&site, &item, &found.path).await? {
                let length = file.length();
                let mut digest = manifest.as_ref().map(|_| Sha512::new());
                file_bytes(&mut archive, &path, file, &buffer, digest.as_mut()).await?;
                if let (Some(manifest), Some(digest)) = (&mut manifest, digest) {
                    manifest.add(below, digest, length);
                }
            } else {
                continue;
            }
            flagged.push(entry::is_flagged(&path));
            buffer.sent().await;
        }
        match listing.files.into_iter().next_back() {
            Some(last) if listing.has_more => {
                let (site, item) = (Arc::clone(&site), Arc::clone(&item));
                listing = aside(move || entries(&site, &item, &last.path)).await??;
            }
            _ => break,
        }
    }
    if let Some(manifest) = manifest {
        let (site, item) = (Arc::clone(&site), Arc::clone(&item));
        for (name, text) in aside(move || manifest.texts(&site.archive, &item)).await? {
            let path = [above.as_slice(), name.as_bytes()].concat();
            text_bytes(&mut archive, &path, &text, &buffer).await?;
            flagged.push(entry::is_flagged(&path));
            buffer.sent().await;
        }
    }
    // The list of the entries may be long.
    let end = buffer.clone();
    aside(move || {
        archive.finish()?;
        end.change(|list| entry::flag_central(list, &flagged));
        Ok::<(), ZipError>(())
    })
    .await??;
    buffer.sent().await;
    Ok(())
}

/// Sets the flag of the entry that has just begun, where its name has one.
fn flag(buffer: &Buffer, path: &[u8]) {
    if entry::is_flagged(path) {
        buffer.change(entry::flag_local);
    }
}

/// The entries of an item after a path.
pub(super) fn entries(site: &Site, item: &Item, after: &[u8]) -> Result<Listing, ArchiveError> {
    site.public().entries(item, after, ENTRIES_AT_ONCE)
}

/// Opens a file. None if the reader may not read it any more, or it is gone.
async fn open(
    site: &Arc<Site>,
    item: &Arc<Item>,
    path: &[u8],
) -> Result<Option<Published>, ZipError> {
    if let Ok(found) = site.public().open_content_cached(item, path) {
        return Ok(Some(found).filter(Published::is_file));
    }
    let (site, item, path) = (Arc::clone(site), Arc::clone(item), path.to_vec());
    let opened = aside(move || site.public().open_content(&item, &path));
    match opened.await? {
        Ok(found) => Ok(Some(found).filter(Published::is_file)),
        Err(error) if error.is_refusal() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes a text that was made now.
async fn text_bytes(
    archive: &mut ZipArchiveWriter<Buffer>,
    path: &[u8],
    text: &[u8],
    buffer: &Buffer,
) -> Result<(), ZipError> {
    let attributes = Attributes {
        changed: SystemClock.now(),
        permissions: 0o644,
    };
    let length = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let mut writer = entry::begin(archive, path, &attributes, length)?;
    let mut checksum = Crc32::new();
    for piece in text.chunks(PIECE) {
        checksum.update(piece);
        writer.write_all(piece)?;
        buffer.sent().await;
    }
    entry::end(writer, checksum.checksum(), length)
}

/// Writes a file, in pieces of limited size, and adds them to a digest.
async fn file_bytes(
    archive: &mut ZipArchiveWriter<Buffer>,
    path: &[u8],
    found: Published,
    buffer: &Buffer,
    mut digest: Option<&mut Sha512>,
) -> Result<(), ZipError> {
    let length = found.length();
    let attributes = Attributes {
        changed: found.changed(),
        permissions: found
            .permissions_without_list()
            .map_err(std::io::Error::from)?,
    };
    let file = Arc::new(found.file.try_clone()?);
    let mut writer = entry::begin(archive, path, &attributes, length)?;
    flag(buffer, path);
    let mut checksum = Crc32::new();
    let mut at = 0;
    while at < length {
        let piece = (length - at).min(PIECE as u64);
        let bytes = read(&file, at, piece).await.map_err(|error| {
            // It has become shorter.
            match error.kind() {
                std::io::ErrorKind::UnexpectedEof => ZipError::Changed(path.to_vec()),
                _ => ZipError::Io(error),
            }
        })?;
        checksum.update(&bytes);
        if let Some(digest) = &mut digest {
            digest.update(&bytes);
        }
        writer.write_all(&bytes)?;
        at += piece;
        buffer.sent().await;
    }
    let is_unchanged = aside(move || found.is_unchanged()).await?;
    if is_unchanged.map_err(std::io::Error::from)? {
        entry::end(writer, checksum.checksum(), length)
    } else {
        Err(ZipError::Changed(path.to_vec()))
    }
}
