//! Answers the audits of other Archives: `/audit` by POST, with the public key at `/audit-key`, see [`crate::formats::audit`].

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::http::{Request, Response, StatusCode};
use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::mpsc::{Receiver, channel};

use super::Site;
use crate::archive::Clock;
use crate::archive::answering::{AuditService, NotAudited};
use crate::formats::audit::{AuditError, AuditProof, KEY_PATH, LONGEST_REQUEST, PATH};
use crate::formats::tlog::LogError;
use crate::http::server::answer::{self, Refusal, no_store, refusal, whole};
use crate::http::server::form;
use crate::http::server::threads::aside;

/// The seconds after which an Archive whose last request is not answered may ask again.
const ASK_AGAIN: u16 = 5;
/// The parts of an answer that wait for the client.
const MOST_PARTS: usize = 4;
const TEXT: &str = "text/plain; charset=utf-8";

/// The paths of requests and of the public key.
pub(super) const PATHS: (&str, &str) = (PATH, KEY_PATH);

/// Answers a request.
pub(super) async fn answer(site: Arc<Site>, request: Request<Body>) -> Response<Body> {
    match begun(site, request).await {
        Ok(response) => no_store(response),
        Err(refusal) => *refusal,
    }
}

async fn begun(site: Arc<Site>, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    let Some(service) = site.audits.clone() else {
        let sentence = "this Archive is audited by no other; see 'audit' in archive.ibi";
        return Err(Box::new(refusal(StatusCode::NOT_FOUND, sentence)));
    };
    let text = form::text_of(request.into_body(), LONGEST_REQUEST).await?;
    if AuditProof::is_of(&text) {
        return compared(&service, &text).map_err(refused);
    }
    let now = site.clock.now().as_nanoseconds() / 1000;
    let now = u64::try_from(now).unwrap_or_default();
    let turn = service.begin(&text, site.archive.facts(), now);
    let turn = turn.map_err(refused)?;
    let (sender, parts) = channel(MOST_PARTS);
    // The task ends when the client has gone: what it sends is not taken then.
    let _reading = aside(move || {
        let send = &mut |lines: String| sender.blocking_send(Bytes::from(lines)).is_ok();
        turn.answer(&site.public(), send);
    });
    Ok(whole(StatusCode::OK, TEXT, Body::new(Parts(parts))))
}

/// Compares what the Archive that has asked has computed itself.
fn compared(service: &AuditService, text: &str) -> Result<Response<Body>, NotAudited> {
    let shared = service.compare(text)?;
    let (name, same) = (shared.asker.name(), shared.same);
    log::info!("{name} has shown that it has {same} items with the content that is here");
    if !shared.other.is_empty() {
        let items: Vec<String> = shared.other.iter().map(ToString::to_string).collect();
        log::warn!(
            "{name} has other content than is here: {}",
            items.join(", ")
        );
    }
    let line = format!("same {same} other {}\n", shared.other.len());
    Ok(whole(StatusCode::OK, TEXT, line))
}

fn refused(reason: NotAudited) -> Refusal {
    let (status, sentence) = match reason {
        NotAudited::Refused(error) => {
            let status = match error {
                AuditError::Line(_) | AuditError::Signature(LogError::Line { .. }) => {
                    StatusCode::BAD_REQUEST
                }
                _ => StatusCode::FORBIDDEN,
            };
            (status, error.to_string())
        }
        NotAudited::Time => (
            StatusCode::FORBIDDEN,
            "the time of the request is not within 15 minutes of the time here; see to the clock"
                .to_owned(),
        ),
        NotAudited::Replayed => (
            StatusCode::FORBIDDEN,
            "the request was sent before".to_owned(),
        ),
        NotAudited::Busy => {
            let sentence = "another request of this Archive is being answered; try again later";
            return Box::new(answer::busy(sentence, ASK_AGAIN));
        }
        NotAudited::NotExpected => (
            StatusCode::CONFLICT,
            "no answer was given last to which this belongs".to_owned(),
        ),
        NotAudited::Random(errno) => {
            log::error!("an audit is not answered: no random numbers: {errno}");
            let sentence = "the service has an internal error";
            (StatusCode::INTERNAL_SERVER_ERROR, sentence.to_owned())
        }
    };
    Box::new(refusal(status, &sentence))
}

/// The body of an answer, whose parts come from the thread that reads.
struct Parts(Receiver<Bytes>);

impl HttpBody for Parts {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        let part = self.0.poll_recv(context);
        part.map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }
}
