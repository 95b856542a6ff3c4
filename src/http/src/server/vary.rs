//! The headers of a request that an answer depends on.

use axum::body::Body;
use axum::http::Response;
use axum::http::header::{HeaderValue, VARY};

/// Marks an answer as dependent on a header of the request (RFC 9110, section 12.5.5). Each is named once.
pub fn by(mut response: Response<Body>, name: &'static str) -> Response<Body> {
    let headers = response.headers_mut();
    let others = headers.get_all(VARY).iter();
    let mut names: Vec<&str> = others.filter_map(|value| value.to_str().ok()).collect();
    let known = names
        .iter()
        .flat_map(|value| value.split(','))
        .map(str::trim);
    if known.clone().any(|known| known.eq_ignore_ascii_case(name)) {
        return response;
    }
    names.push(name);
    if let Ok(names) = HeaderValue::from_str(&names.join(", ")) {
        headers.insert(VARY, names);
    }
    response
}
