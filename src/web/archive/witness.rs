//! Cosigns checkpoints of other logs (C2SP tlog-witness 1.0.0).
//!
//! A log asks by a POST to `/add-checkpoint`, and needs no right but its key. `/witness-key` is the public key of the witness.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};

use super::Site;
use crate::archive::witness::NotCosigned;
use crate::formats::tlog::witness::{AddCheckpoint, PATH, SIZE_TYPE};
use crate::http::server::answer::{self, Refusal, no_store, refusal, whole};
use crate::http::server::form;

/// The path of the public key.
const KEY_PATH: &str = "witness-key";
/// The longest request, in bytes.
const LONGEST_BODY: usize = 64 << 10;
/// The seconds after which a log that another request keeps busy may be asked for again.
const ASK_AGAIN: u16 = 5;
const TEXT: &str = "text/plain; charset=utf-8";

/// The paths of requests and of the public key.
pub(super) const PATHS: (&str, &str) = (PATH, KEY_PATH);

/// Answers a request.
pub(super) async fn answer(site: Arc<Site>, request: Request<Body>) -> Response<Body> {
    match cosigned(site, request).await {
        Ok(response) => no_store(response),
        Err(refusal) => *refusal,
    }
}

async fn cosigned(site: Arc<Site>, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    let Some(witness) = site.witness.clone() else {
        let sentence = "this Archive cosigns no checkpoints; see --witness-logs";
        return Err(Box::new(refusal(StatusCode::NOT_FOUND, sentence)));
    };
    let (parts, body) = request.into_parts();
    let body = form::text_of(body, LONGEST_BODY).await?;
    let asked = AddCheckpoint::parse(&body);
    let asked = asked.map_err(|error| refused(NotCosigned::Malformed(error)))?;
    let seconds = site.clock.seconds().try_into().unwrap_or_default();
    let cosigned = site.aside(site.client(&parts), move || witness.cosign(&asked, seconds));
    let signature = cosigned.await.map_err(Box::new)?.map_err(refused)?;
    Ok(whole(StatusCode::OK, TEXT, signature.to_string()))
}

fn refused(reason: NotCosigned) -> Refusal {
    let (status, sentence) = match reason {
        NotCosigned::Malformed(error) => (StatusCode::BAD_REQUEST, error.to_string()),
        NotCosigned::Older => (
            StatusCode::BAD_REQUEST,
            "the checkpoint is older than the one that the request begins with".to_owned(),
        ),
        NotCosigned::UnknownLog => (
            StatusCode::NOT_FOUND,
            "this Archive does not cosign for this log".to_owned(),
        ),
        NotCosigned::NotSigned => (
            StatusCode::FORBIDDEN,
            "no key of the log that is listed here has signed the checkpoint".to_owned(),
        ),
        NotCosigned::NotGrown => (
            StatusCode::UNPROCESSABLE_ENTITY,
            "the hashes do not show that the log has grown to this checkpoint".to_owned(),
        ),
        NotCosigned::Conflict(size) => {
            return Box::new(whole(StatusCode::CONFLICT, SIZE_TYPE, format!("{size}\n")));
        }
        NotCosigned::Busy => {
            let sentence = "another request about this log is not done; try again later";
            return Box::new(answer::busy(sentence, ASK_AGAIN));
        }
        NotCosigned::Failed(error) => {
            log::error!("a checkpoint is not cosigned: {error}");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the store cannot be written; the log has the reason".to_owned(),
            )
        }
    };
    Box::new(refusal(status, &sentence))
}
