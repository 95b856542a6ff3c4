//! The transparency log of the Archive for those who check it, as C2SP tlog-tiles has it: `/log/checkpoint` and
//! `/log/tile/...`, the key in `/log/key.pub`, those before in `/log/old-keys`, and the last checkpoint with cosignatures in `/log/witnessed`.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode, header};

use super::Site;
use crate::archive::{Archive, LogFile, PublishedLog};
use crate::http::server::answer;

/// The directory of the log in the Archive.
const ABOVE: &str = "log/";

const TEXT: &str = "text/plain; charset=utf-8";
const BINARY: &str = "application/octet-stream";

/// The log, once it has been opened.
#[derive(Debug, Default)]
pub(super) struct Log(OnceLock<PublishedLog>);

impl Log {
    /// Opens the log, which takes the rights of the store's owner.
    pub(super) fn open(&self, archive: &Archive) {
        match archive.published_log() {
            Ok(Some(log)) => drop(self.0.set(log)),
            Ok(None) => {}
            Err(error) => log::debug!("the log is not published: {error}"),
        }
    }

    fn read(&self, archive: &Archive, file: LogFile) -> Option<Vec<u8>> {
        if self.0.get().is_none() {
            self.open(archive);
        }
        let read = self.0.get()?.read(file);
        read.unwrap_or_else(|errno| {
            log::warn!("{file} of the log cannot be read: {errno}");
            None
        })
    }
}

/// The file of the log that a path names. Each has one path alone.
pub(super) fn file_at(path: &str) -> Option<LogFile> {
    path.strip_prefix(ABOVE).and_then(LogFile::parse)
}

/// Answers with a file of the log. None if there is none, and the path may name something else.
pub(super) async fn answer(
    site: &Arc<Site>,
    file: LogFile,
    request: &Parts,
) -> Option<Response<Body>> {
    let reading = Arc::clone(site);
    let read = move || reading.log.read(&reading.archive, file);
    let bytes = match site.aside(site.client(request), read).await {
        Ok(bytes) => bytes?,
        Err(refusal) => return Some(refusal),
    };
    Some(match file {
        LogFile::Checkpoint | LogFile::Witnessed | LogFile::Key | LogFile::OldKeys => {
            answer::fresh(answer::whole(StatusCode::OK, TEXT, bytes))
        }
        LogFile::Tile(_) => {
            let mut response = answer::whole(StatusCode::OK, BINARY, bytes);
            // What is in a log does not change.
            let lasts = HeaderValue::from_static("public, max-age=31536000, immutable");
            response.headers_mut().insert(header::CACHE_CONTROL, lasts);
            response
        }
    })
}
