//! Small pictures of files, drawn by a process without rights and kept for the next reader.
//!
//! They are kept in the store, and the latest in memory. A file that cannot be drawn is remembered there, too. A
//! picture is found by the fingerprint of the file, so that a changed file is drawn again.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::header::{self, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Response, StatusCode};
use parking_lot::{Condvar, Mutex};
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::Site;
use super::conditions::{ConditionResult, evaluate};
use super::file;
use crate::archive::Archive;
use crate::archive::store::{PICTURES_FILE, PictureCache, StoreError};
use crate::archive::tree::Published;
use crate::formats::picture::{Drawn, Picture};
use crate::http::server::answer::{self, FOR_ALL, RESOURCE_POLICY, refusal};
use crate::os::confinement;
use crate::os::running::NoResult;

/// The query that asks for the picture of a file.
pub(super) const QUERY: &str = "preview";
/// The longest file that is drawn, in bytes.
const LONGEST_FILE: u64 = 64 * 1024 * 1024;
/// The time that a picture may take.
const TIMEOUT: Duration = Duration::from_secs(6);
/// The most pictures that are drawn at a time, however many processors there are: each needs memory.
const MOST_AT_ONCE: usize = 4;
/// The number of requests that wait for a turn to draw, and for how long.
const MOST_WAITING: usize = 8;
const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// The time that it is remembered that a file cannot be drawn.
const FAILURE_KEPT: Duration = Duration::from_secs(3600);
/// The number of pictures that are kept in memory, and their bytes.
const MOST_KEPT: usize = 4096;
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// A picture runs nothing.
const POLICY: &str = "default-src 'none'; sandbox";

/// The known state of the picture of a file.
#[derive(Clone, Debug)]
enum Known {
    Picture(Arc<Picture>),
    /// It could not be drawn at this time.
    Failed(Instant),
}

#[derive(Clone, Debug)]
struct Weights;

impl Weighter<String, Known> for Weights {
    fn weight(&self, key: &String, known: &Known) -> u64 {
        let bytes = match known {
            Known::Picture(picture) => picture.jpeg.len(),
            Known::Failed(_) => 0,
        };
        (key.len() + bytes + 100) as u64
    }
}

/// The processes that draw, and the requests that wait for them.
#[derive(Debug, Default)]
struct Turns {
    drawing: usize,
    waiting: usize,
}

/// The pictures of a site.
#[derive(Debug)]
pub(super) struct Pictures {
    known: Cache<String, Known, Weights>,
    /// Those in the store, once it was tried to open them; None if it cannot be written.
    stored: OnceLock<Option<PictureCache>>,
    turns: Mutex<Turns>,
    has_turn: Condvar,
    most_at_once: usize,
}

impl Default for Pictures {
    fn default() -> Pictures {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Pictures {
            known: Cache::with_weighter(MOST_KEPT, MOST_BYTES, Weights),
            stored: OnceLock::new(),
            turns: Mutex::default(),
            has_turn: Condvar::new(),
            most_at_once: processors.min(MOST_AT_ONCE),
        }
    }
}

/// A turn to draw. The next one begins when it is dropped.
struct Turn<'a>(&'a Pictures);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turns.lock().drawing -= 1;
        self.0.has_turn.notify_one();
    }
}

impl Pictures {
    /// Opens the pictures of a store, which takes the rights of its owner. Without them pictures are kept in memory.
    pub(super) fn open(&self, archive: &Archive) {
        self.stored.get_or_init(|| {
            let opened = archive.picture_cache();
            let not_kept = |error: StoreError| {
                log::warn!("pictures are kept in memory alone: {error}");
            };
            opened.map_err(not_kept).ok()
        });
    }

    /// The picture of a file that the public may read. None if there is none, or if too many are being drawn.
    /// Waits for a process.
    pub(super) fn of(&self, found: &Published, name: &[u8]) -> Option<Arc<Picture>> {
        let media_type = file::media_type(name);
        Drawn::of_media_type(media_type)?;
        if !found.is_file() || !(1..=LONGEST_FILE).contains(&found.length()) {
            return None;
        }
        // The type is that of the name, and a file may have two.
        let (identity, version) = (found.fingerprint().with_device(), env!("CARGO_PKG_VERSION"));
        let key = format!("{identity} {media_type} {version}");
        if let Some(known) = self.known(&key) {
            return known;
        }
        if let Some(picture) = self.stored(&key) {
            return Some(picture);
        }
        let _turn = self.turn()?;
        // Another request may have drawn it meanwhile.
        if let Some(known) = self.known(&key) {
            return known;
        }
        let input = found.file.try_clone().ok()?;
        let result = confinement::run(&["preview-helper", media_type], input, TIMEOUT);
        let drawn = match result {
            Ok(bytes) => Picture::from_bytes(&bytes).ok_or_else(|| "it is no picture".to_owned()),
            Err(NoResult::Failed(reason)) => Err(reason),
            Err(NoResult::NotStarted(error)) => {
                log::warn!("no picture can be drawn: {error}");
                return None;
            }
        };
        let known = match drawn {
            Ok(picture) => {
                self.store(&key, &picture);
                Known::Picture(Arc::new(picture))
            }
            Err(reason) => {
                log::debug!("a file cannot be drawn: {reason}");
                Known::Failed(Instant::now())
            }
        };
        self.known.insert(key, known.clone());
        match known {
            Known::Picture(picture) => Some(picture),
            Known::Failed(_) => None,
        }
    }

    /// Returns what is known: a picture, or that there is none.
    fn known(&self, key: &str) -> Option<Option<Arc<Picture>>> {
        match self.known.get(key)? {
            Known::Picture(picture) => Some(Some(picture)),
            Known::Failed(at) if at.elapsed() < FAILURE_KEPT => Some(None),
            Known::Failed(_) => None,
        }
    }

    /// The picture of the store, which is in memory then. It is checked as one that was drawn now.
    fn stored(&self, key: &str) -> Option<Arc<Picture>> {
        let found = self.stored.get()?.as_ref()?.get(key);
        let bytes = found.unwrap_or_else(|error| {
            log::debug!("{PICTURES_FILE} cannot be read: {error}");
            None
        })?;
        let picture = Arc::new(Picture::from_bytes(&bytes)?);
        let known = Known::Picture(Arc::clone(&picture));
        self.known.insert(key.to_owned(), known);
        Some(picture)
    }

    /// Stores a picture. If that is not possible, it is drawn again after the next start.
    fn store(&self, key: &str, picture: &Picture) {
        if let Some(Some(stored)) = self.stored.get()
            && let Err(error) = stored.put(key, &picture.to_bytes())
        {
            log::debug!("{PICTURES_FILE} cannot be written: {error}");
        }
    }

    /// A turn to draw, if there is one in time.
    fn turn(&self) -> Option<Turn<'_>> {
        let mut turns = self.turns.lock();
        if turns.drawing >= self.most_at_once {
            if turns.waiting >= MOST_WAITING {
                return None;
            }
            turns.waiting += 1;
            let until = Instant::now() + LONGEST_WAIT;
            let is_busy = |turns: &mut Turns| turns.drawing >= self.most_at_once;
            let waited = self.has_turn.wait_while_until(&mut turns, is_busy, until);
            turns.waiting -= 1;
            if waited.timed_out() {
                return None;
            }
        }
        turns.drawing += 1;
        Some(Turn(self))
    }
}

/// Whether a request for a file wants its picture.
pub(super) fn is_wanted(request: &Parts, name: &[u8]) -> bool {
    request.uri.query() == Some(QUERY) && Drawn::of_media_type(file::media_type(name)).is_some()
}

/// Answers with the picture of a file.
pub(super) async fn answer(
    site: &Arc<Site>,
    request: &Parts,
    found: Published,
    name: Vec<u8>,
) -> Response<Body> {
    let mut version = file::version_of(&found, site.clock.seconds());
    // A program that draws differently may follow.
    let tag = version.tag.trim_matches('"');
    version.tag = format!("\"{tag}-{QUERY}-{}\"", env!("CARGO_PKG_VERSION"));
    let drawing = Arc::clone(site);
    let drawn = answer::aside(move || drawing.pictures.of(&found, &name)).await;
    let picture = match drawn {
        Ok(Some(picture)) => picture,
        Ok(None) => return refusal(StatusCode::NOT_FOUND, "this file has no picture"),
        Err(refusal) => return refusal,
    };
    let mut response = match evaluate(&request.headers, &version) {
        ConditionResult::Send => answer::whole(StatusCode::OK, "image/jpeg", picture.jpeg.clone()),
        ConditionResult::NotModified => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        }
        ConditionResult::Failed => refusal(
            StatusCode::PRECONDITION_FAILED,
            "the file has changed: the request requires another version",
        ),
    };
    let lines = response.headers_mut();
    lines.insert(RESOURCE_POLICY, FOR_ALL);
    lines.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
    if let Ok(tag) = HeaderValue::from_str(&version.tag) {
        lines.insert(header::ETAG, tag);
    }
    answer::fresh(response)
}
