//! A file over HTTP: its headers, and its bytes, whole or a range, in pieces of limited size.

use std::fs::File;
use std::future::Future;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use rustix::io::ReadWriteFlags;
use tokio::task::JoinHandle;

use super::conditions::{ConditionResult, FilePart, FileVersion, evaluate, part};
use crate::archive::tree::Published;
use crate::http::server::answer::{FOR_ALL, RESOURCE_POLICY, refusal};
use crate::http::server::threads;

/// The size of a read, and so the memory that a connection uses for a file, in bytes. Data in the page cache
/// is read in the thread of the request, which costs less than passing it to another.
pub(super) const PIECE: usize = 64 * 1024;
/// The longest text that is examined for its encoding before it is sent, in bytes.
const LONGEST_TEXT: u64 = 1024 * 1024;
/// The first second that HTTP cannot express (the year 10000), in Unix seconds.
const LAST_DATE: u64 = 253_402_300_800;
/// The policy for pages in items: they may run scripts, but not with the origin of the Archive.
const SANDBOX: &str = "sandbox allow-scripts";

/// The media type of a file, by its name.
pub(super) fn media_type(name: &[u8]) -> &'static str {
    mime_guess::from_ext(&extension(name))
        .first_raw()
        .unwrap_or("application/octet-stream")
}

/// The content of a small file, with its validators.
#[derive(Debug)]
pub(super) struct SmallFile {
    bytes: Bytes,
    version: FileVersion,
}

impl SmallFile {
    /// Whether a file is one.
    pub(super) fn is(found: &Published) -> bool {
        found.is_file() && found.length() <= PIECE as u64
    }

    /// Reads a file that is open. None if it is not in the page cache. `now` is in Unix seconds.
    pub(super) fn read(opened: &Published, now: i64) -> Option<SmallFile> {
        let length = usize::try_from(opened.length()).ok()?;
        Some(SmallFile {
            bytes: read_cached(&opened.file, 0, length)?,
            version: version_of(opened, now),
        })
    }

    /// Its length in bytes.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }
}

/// A file that is sent.
#[derive(Debug)]
pub(super) enum Source {
    /// It is open.
    Open(Published),
    /// Its bytes are in memory.
    Small(Arc<SmallFile>),
}

/// Answers with a file. The name determines the type. `now` is in Unix seconds.
pub(super) async fn answer(
    method: &Method,
    headers: &HeaderMap,
    source: Source,
    name: &[u8],
    now: i64,
) -> Response<Body> {
    match source {
        Source::Small(small) => {
            let bytes = Content::Bytes(small.bytes.clone());
            let length = small.bytes.len() as u64;
            answered(method, headers, (bytes, length), &small.version, name).await
        }
        Source::Open(found) => {
            let (version, length) = (version_of(&found, now), found.length());
            let file = Content::File(Arc::new(found.file));
            answered(method, headers, (file, length), &version, name).await
        }
    }
}

/// The content of a file.
enum Content {
    File(Arc<File>),
    Bytes(Bytes),
}

impl Content {
    /// A part of it. A file that is too short is an error.
    async fn part(&self, at: u64, length: u64) -> std::io::Result<Bytes> {
        match self {
            Content::File(file) => read(file, at, length).await,
            Content::Bytes(bytes) => {
                let cut = |offset: u64| usize::try_from(offset).unwrap_or(bytes.len());
                Ok(bytes.slice(cut(at)..cut(at + length)))
            }
        }
    }
}

async fn answered(
    method: &Method,
    headers: &HeaderMap,
    (content, length): (Content, u64),
    version: &FileVersion,
    name: &[u8],
) -> Response<Body> {
    let verdict = evaluate(headers, version);
    let mut response = match verdict {
        ConditionResult::Send => {
            match sent(method, headers, (content, length), name, version).await {
                Ok(response) => response,
                Err(error) => {
                    log::warn!("a file of {length} bytes cannot be read: {error}");
                    return refusal(
                        StatusCode::SERVICE_UNAVAILABLE,
                        "the file cannot be read at the moment; try again later",
                    );
                }
            }
        }
        ConditionResult::NotModified => empty(StatusCode::NOT_MODIFIED),
        ConditionResult::Failed => refusal(
            StatusCode::PRECONDITION_FAILED,
            "the file has changed: the request requires another version",
        ),
    };
    let lines = response.headers_mut();
    lines.insert(RESOURCE_POLICY, FOR_ALL);
    set(lines, header::ETAG, &version.tag);
    if let Some(changed) = version.changed {
        set(
            lines,
            header::LAST_MODIFIED,
            &httpdate::fmt_http_date(changed),
        );
    }
    // The file may change at any time, so caches must validate it.
    set(lines, header::CACHE_CONTROL, "no-cache");
    response
}

/// The header for a file that is saved (RFC 6266, section 4.3). A name that a quoted string cannot have in all programs
/// is there in the form of RFC 8187, too. Bytes that are not UTF-8 are taken for Latin-1, as old collections have them.
pub(super) fn attachment(path: &[u8]) -> Option<HeaderValue> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let name = match std::str::from_utf8(name) {
        Ok(name) => name.to_owned(),
        Err(_) => name.iter().copied().map(char::from).collect(),
    };
    let is_plain = |character: char| {
        (character == ' ' || character.is_ascii_graphic()) && !"\"\\%".contains(character)
    };
    let plain: String = name
        .chars()
        .map(|character| if is_plain(character) { character } else { '_' })
        .collect();
    let mut text = format!("attachment; filename=\"{plain}\"");
    if plain != name {
        text.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if byte.is_ascii_alphanumeric() || b"!#$&+-.^_`|~".contains(&byte) {
                text.push(char::from(byte));
            } else {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    HeaderValue::from_str(&text).ok()
}

pub(super) fn version_of(found: &Published, now: i64) -> FileVersion {
    let seconds = u64::try_from(found.changed().seconds()).ok();
    let now = u64::try_from(now).unwrap_or(0);
    // A date in the future is not sent.
    let seconds = seconds.filter(|seconds| *seconds < LAST_DATE && *seconds <= now);
    FileVersion {
        tag: format!("\"{}\"", found.fingerprint()),
        changed: seconds.map(|seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
        is_settled: seconds.is_some_and(|seconds| seconds < now),
    }
}

/// The answer with the file or the requested part.
async fn sent(
    method: &Method,
    headers: &HeaderMap,
    (content, length): (Content, u64),
    name: &[u8],
    version: &FileVersion,
) -> std::io::Result<Response<Body>> {
    // RFC 9110, section 14.2: ranges apply to GET only.
    let part = match *method {
        Method::GET => part(headers, version, length),
        _ => FilePart::Whole,
    };
    let (status, start, end) = match part {
        FilePart::Whole => (StatusCode::OK, 0, length),
        FilePart::Range(start, end) => (StatusCode::PARTIAL_CONTENT, start, end),
        FilePart::Nothing => {
            let sentence =
                format!("the file has {length} bytes; the requested range is outside it");
            let mut response = refusal(StatusCode::RANGE_NOT_SATISFIABLE, &sentence);
            let lines = response.headers_mut();
            set(lines, header::CONTENT_RANGE, &format!("bytes */{length}"));
            return Ok(response);
        }
    };
    let kind = media_type(name);
    let is_text = kind.starts_with("text/") && length <= LONGEST_TEXT;
    let is_short = *method == Method::GET && end - start <= PIECE as u64;
    let known = match (is_text, is_short) {
        (true, _) => Some((0, content.part(0, length).await?)),
        (false, true) => Some((start, content.part(start, end - start).await?)),
        (false, false) => None,
    };
    let is_utf8 = is_text && known.as_ref().is_some_and(|(_, bytes)| is_utf8(bytes));
    let body = match (known, content) {
        _ if *method == Method::HEAD => Body::empty(),
        (Some((at, bytes)), _) => {
            let cut = |offset: u64| usize::try_from(offset - at).unwrap_or(bytes.len());
            Body::from(bytes.slice(cut(start)..cut(end)))
        }
        (None, Content::Bytes(bytes)) => Body::from(bytes),
        (None, Content::File(file)) => Body::new(Pieces {
            file,
            at: start,
            end,
            reading: None,
        }),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let lines = response.headers_mut();
    let charset = if is_utf8 { "; charset=utf-8" } else { "" };
    set(lines, header::CONTENT_TYPE, &format!("{kind}{charset}"));
    lines.insert(header::CONTENT_LENGTH, HeaderValue::from(end - start));
    set(lines, header::ACCEPT_RANGES, "bytes");
    set(lines, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    if is_a_page(kind) {
        set(lines, header::CONTENT_SECURITY_POLICY, SANDBOX);
    }
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {start}-{}/{length}", end - 1);
        set(lines, header::CONTENT_RANGE, &range);
    }
    Ok(response)
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Inserts a header. All values that occur here are valid.
fn set(lines: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        lines.insert(name, value);
    }
}

fn extension(name: &[u8]) -> String {
    let name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    let mut words = name.rsplitn(2, |byte| *byte == b'.');
    match (words.next(), words.next()) {
        (Some(extension), Some(_)) => String::from_utf8_lossy(extension).into_owned(),
        _ => String::new(),
    }
}

/// Whether browsers display a type as a page that may contain scripts.
fn is_a_page(kind: &str) -> bool {
    kind.contains("html") || kind.ends_with("xml") || kind.ends_with("/xsl")
}

/// Whether bytes are UTF-8. UTF-16 can be valid UTF-8, but contains zero bytes.
fn is_utf8(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0)
}

/// Reads a part of a file. A file that is too short is an error.
pub(super) async fn read(file: &Arc<File>, at: u64, length: u64) -> std::io::Result<Bytes> {
    let length = usize::try_from(length).map_err(std::io::Error::other)?;
    if let Some(bytes) = read_cached(file, at, length) {
        return Ok(bytes);
    }
    let file = Arc::clone(file);
    let reading = threads::aside(move || read_here(&file, at, length));
    reading.await.map_err(std::io::Error::other)?
}

/// A short part of a file, if all of it is in the page cache.
fn read_cached(file: &File, at: u64, length: usize) -> Option<Bytes> {
    if length > PIECE {
        return None;
    }
    let mut bytes = vec![0; length];
    let mut into = [IoSliceMut::new(&mut bytes)];
    let read = rustix::io::preadv2(file, &mut into, at, ReadWriteFlags::NOWAIT);
    (read == Ok(length)).then(|| bytes.into())
}

fn read_here(file: &File, at: u64, length: usize) -> std::io::Result<Bytes> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes.into())
}

/// A long part of a file as a body. A piece is read when the client has taken the one before.
struct Pieces {
    file: Arc<File>,
    at: u64,
    end: u64,
    reading: Option<JoinHandle<std::io::Result<Bytes>>>,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        let (at, left) = (this.at, this.end - this.at);
        if left == 0 {
            return Poll::Ready(None);
        }
        let length = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        let file = &this.file;
        if this.reading.is_none()
            && let Some(piece) = read_cached(file, at, length)
        {
            this.at += length as u64;
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let reading = this.reading.get_or_insert_with(|| {
            let file = Arc::clone(file);
            threads::aside(move || read_here(&file, at, length))
        });
        let read = ready!(Pin::new(reading).poll(context));
        this.reading = None;
        // A file that has become shorter closes the connection, so that the client notices.
        let piece = read.map_err(std::io::Error::other).and_then(|read| read);
        this.at += length as u64;
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.end
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.end - self.at)
    }
}
