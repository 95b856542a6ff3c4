//! The path in front of all paths of a service, as in `https://example.org/archive`.
//!
//! Inside the service every path begins at its root. The prefix is taken off a request here, and put before the paths
//! in the headers of the answer; [`super::page`] puts it before those in pages.

use std::future::Future;

use axum::body::Body;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Request, Response, Uri, header};

use ibifs_formats::base_url::BaseUrl;

/// The headers whose value may be a path.
const HEADERS: [header::HeaderName; 2] = [header::LOCATION, header::CONTENT_LOCATION];

/// Answers a request. A path without the prefix is one as well: a reverse proxy may have taken it off.
pub async fn answered<F: Future<Output = Response<Body>>>(
    url: &BaseUrl,
    mut request: Request<Body>,
    answer: impl FnOnce(Request<Body>) -> F,
) -> Response<Body> {
    if url.prefix().is_empty() {
        return answer(request).await;
    }
    if let Some(short) = shortened(url, request.uri()) {
        *request.uri_mut() = short;
    }
    let mut response = answer(request).await;
    let headers = response.headers_mut();
    for name in HEADERS {
        let value = headers.get(&name).and_then(|value| value.to_str().ok());
        let path = value.filter(|text| text.starts_with('/') && !text.starts_with("//"));
        let full = path.map(|path| HeaderValue::from_str(&format!("{}{path}", url.prefix())));
        if let Some(Ok(full)) = full {
            headers.insert(name, full);
        }
    }
    response
}

/// The URI of a request without the prefix. None if it has none.
fn shortened(url: &BaseUrl, uri: &Uri) -> Option<Uri> {
    let path = url.below(uri.path())?;
    let text = match uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(text.parse::<PathAndQuery>().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_lose_the_prefix() {
        let url = BaseUrl::parse("https://a.org/x").expect("a URL");
        let short = |text: &str| {
            let uri: Uri = text.parse().expect("a URI");
            shortened(&url, &uri).map(|uri| uri.to_string())
        };
        assert_eq!(short("/x").as_deref(), Some("/"));
        assert_eq!(short("/x?y").as_deref(), Some("/?y"));
        assert_eq!(short("/x/a%20b?q=/x/").as_deref(), Some("/a%20b?q=/x/"));
        assert_eq!(short("/xy"), None);
    }

    #[tokio::test]
    async fn paths_in_headers_get_the_prefix() {
        let url = BaseUrl::parse("https://a.org/x").expect("a URL");
        for (from, to) in [
            ("/y", "/x/y"),
            ("//b/y", "//b/y"),
            ("http://b/y", "http://b/y"),
        ] {
            let request = Request::new(Body::empty());
            let response = answered(&url, request, |_| async {
                let mut response = Response::new(Body::empty());
                let value = HeaderValue::from_static(from);
                response.headers_mut().insert(header::LOCATION, value);
                response
            });
            assert_eq!(response.await.headers()[header::LOCATION], to);
        }
    }
}
