//! The list that a resolver publishes: the Archives that are registered and included with it, signed if it has a key.
//! The serial number of a signed list is its validator, so that peers read only what is new to them.

use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::registry::{RENEW, RegisteredArchive, Signature};
use ibi::Timestamp;
use ibifs_formats::federation::{self, FederatedArchive, SignedList};
use ibifs_http::server::answer;

/// The list, and when it was signed.
#[derive(Debug, Default)]
pub(super) struct Publication {
    list: RwLock<PublishedList>,
    /// Held while the registered Archives are read, so that an older list does not replace a later one.
    signed_at: Mutex<Option<i64>>,
}

#[derive(Clone, Debug, Default)]
struct PublishedList {
    text: Arc<str>,
    /// The serial number of a signed list.
    serial: Option<u64>,
}

/// The right to replace the list.
#[derive(Debug)]
pub(super) struct Publishing<'a> {
    signed_at: MutexGuard<'a, Option<i64>>,
    list: &'a RwLock<PublishedList>,
}

impl Publication {
    /// Answers a request for the list.
    pub(super) fn answer(&self, headers: &HeaderMap) -> Response<Body> {
        let PublishedList { text, serial } = self.list.read().clone();
        let validator = serial.map(|serial| format!("\"{serial}\""));
        let known = headers
            .get(header::IF_NONE_MATCH)
            .map(HeaderValue::as_bytes);
        let is_known = validator.is_some() && known == validator.as_ref().map(String::as_bytes);
        let mut response = if is_known {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            answer::whole(StatusCode::OK, "text/plain", text.to_string())
        };
        if let Some(Ok(validator)) = validator.map(HeaderValue::try_from) {
            response.headers_mut().insert(header::ETAG, validator);
        }
        answer::fresh(response)
    }

    /// Waits until no other thread replaces the list.
    pub(super) fn lock(&self) -> Publishing<'_> {
        Publishing {
            signed_at: self.signed_at.lock(),
            list: &self.list,
        }
    }

    /// Whether the list has to be signed again.
    pub(super) fn is_due(&self, now: &Timestamp) -> bool {
        let signed_at = *self.signed_at.lock();
        signed_at.is_some_and(|at| (now.seconds() - at).abs() >= RENEW)
    }
}

impl Publishing<'_> {
    /// Publishes the list of these Archives. A list names an address once: of several Archives that are included at one, the
    /// first that was registered has it, and the others are not reached.
    pub(super) fn publish(
        &mut self,
        registered: &[RegisteredArchive],
        signature: Option<Signature>,
    ) {
        let (mut included, mut absent) = (Vec::new(), Vec::new());
        let mut places = HashSet::new();
        for archive in registered {
            let service = archive.service.clone();
            let url = archive.included.as_ref().map(|it| it.url.clone());
            match url.filter(|url| places.insert(url.place())) {
                Some(url) => included.push(FederatedArchive { url, service }),
                None => absent.push(service),
            }
        }
        let (text, serial) = match signature {
            Some(Signature { key, serial, time }) => {
                *self.signed_at = Some(time);
                let list = SignedList {
                    serial,
                    time: Timestamp::from_unix(time, 0),
                    absent,
                    archives: included,
                };
                (list.signed(&key), Some(serial))
            }
            None => (federation::written(&included), None),
        };
        let text = text.into();
        *self.list.write() = PublishedList { text, serial };
    }
}
