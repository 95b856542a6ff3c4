//! The text in the body of a POST request, and the fields of a form in it.

use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use http_body_util::{BodyExt, Collected, LengthLimitError, Limited};

use super::HEAD_TIMEOUT;
use super::answer::{self, Refusal};

fn refuse(status: StatusCode, sentence: &str) -> Refusal {
    Box::new(answer::refusal(status, sentence))
}

/// The most bytes that are read of a body after those that are allowed.
const PASSED_OVER: usize = 1 << 20;

/// Reads a body of at most `most` bytes.
///
/// # Errors
/// It is longer ([`LengthLimitError`]), or incomplete.
pub async fn limited(mut body: Body, most: usize) -> Result<Bytes, BoxError> {
    let read = Limited::new(&mut body, most).collect().await;
    if read
        .as_ref()
        .is_err_and(|error| error.is::<LengthLimitError>())
    {
        // A client whose connection is closed while it sends may not read the answer.
        let mut rest = Limited::new(body, PASSED_OVER);
        while let Some(Ok(_)) = rest.frame().await {}
    }
    read.map(Collected::to_bytes)
}

/// Reads the encoded fields: at most `most` bytes, within the timeout of a request head.
pub async fn in_body(parts: &Parts, body: Body, most: usize) -> Result<String, Refusal> {
    let kind = parts.headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the arguments in a body are of the type application/x-www-form-urlencoded",
        ));
    }
    text_of(body, most).await
}

/// Reads a text: at most `most` bytes, within the timeout of a request head.
pub async fn text_of(body: Body, most: usize) -> Result<String, Refusal> {
    let bytes = bytes_of("a body", body, most).await?;
    String::from_utf8(bytes.to_vec())
        .map_err(|_| refuse(StatusCode::BAD_REQUEST, "the body is not UTF-8"))
}

/// Reads a body: at most `most` bytes, within the timeout of a request head. `named` is what a refusal calls it.
pub async fn bytes_of(named: &str, body: Body, most: usize) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(HEAD_TIMEOUT, limited(body, most)).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("{named} has at most {} KiB", most / 1024),
        )),
        Ok(Err(_)) => Err(refuse(
            StatusCode::BAD_REQUEST,
            "the body of the request is incomplete",
        )),
        Err(_) => Err(refuse(
            StatusCode::REQUEST_TIMEOUT,
            "the body must be sent within 10 seconds",
        )),
    }
}
