//! The URLs to which answers redirect.

use hyper::header::{HeaderMap, LOCATION};
use hyper::{StatusCode, Uri};

/// The place to which an answer redirects. None for an answer that does not.
///
/// # Errors The place, if it is not a URL with `http` or `https`, or leaves TLS.
pub fn target(from: &Uri, status: StatusCode, headers: &HeaderMap) -> Result<Option<Uri>, String> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = headers.get(LOCATION) else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(location.as_bytes()).into_owned();
    let text = text.split('#').next().unwrap_or_default().to_owned();
    let found = joined(from, &text).filter(|target| {
        let scheme = target.scheme_str();
        scheme == Some("https") || scheme == Some("http") && from.scheme_str() == Some("http")
    });
    found.map(Some).ok_or(text)
}

/// Whether two URLs are of one server: the same host and the same port, or the ports that HTTP has without and with TLS.
pub(crate) fn is_same_server(first: &Uri, next: &Uri) -> bool {
    let place = |uri: &Uri| {
        let is_tls = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let is_usual = port == 443 && is_tls || port == 80 && !is_tls;
        (
            uri.host().map(str::to_ascii_lowercase),
            (!is_usual).then_some(port),
        )
    };
    place(first) == place(next)
}

/// A reference that a URL has (RFC 3986, 5.2), as far as servers use them in redirections.
fn joined(from: &Uri, text: &str) -> Option<Uri> {
    let (scheme, authority) = (from.scheme_str()?, from.authority()?);
    let whole = if text.contains("://") {
        text.to_owned()
    } else if text.starts_with("//") {
        format!("{scheme}:{text}")
    } else if text.starts_with('/') {
        format!("{scheme}://{authority}{text}")
    } else if text.starts_with('?') {
        format!("{scheme}://{authority}{}{text}", from.path())
    } else {
        let folder = from
            .path()
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{text}")
    };
    let uri: Uri = whole.parse().ok()?;
    let is_whole = uri.host().is_some_and(|host| !host.is_empty());
    let has_user = uri.authority().is_some_and(|it| it.as_str().contains('@'));
    (is_whole && !has_user).then_some(uri)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(from: &str, location: &str) -> Result<Option<String>, String> {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, location.parse().expect("a value"));
        let from: Uri = from.parse().expect("a URL");
        let found = target(&from, StatusCode::FOUND, &headers)?;
        Ok(found.map(|uri| uri.to_string()))
    }

    #[test]
    fn places() {
        let from = "http://a.org:8080/x/y?z";
        for (location, target) in [
            ("https://a.org/x?z#part", "https://a.org/x?z"),
            ("//b.org/x", "http://b.org/x"),
            ("/v", "http://a.org:8080/v"),
            ("v?w", "http://a.org:8080/x/v?w"),
            ("?w", "http://a.org:8080/x/y?w"),
        ] {
            assert_eq!(
                to(from, location),
                Ok(Some(target.to_owned())),
                "{location}"
            );
        }
        assert_eq!(
            to("https://a.org/x", "/v"),
            Ok(Some("https://a.org/v".to_owned()))
        );
        for (from, bad) in [
            (from, "ftp://a.org/"),
            (from, "file:///etc/passwd"),
            (from, "http://"),
            (from, "http://u@a.org/"),
            ("https://a.org/", "http://a.org/"),
        ] {
            assert_eq!(to(from, bad), Err(bad.to_owned()));
        }
    }

    #[test]
    fn another_port_is_another_server() {
        let is_same = |first: &str, next: &str| {
            is_same_server(
                &first.parse().expect("a URL"),
                &next.parse().expect("a URL"),
            )
        };
        for same in [
            "http://10.0.0.1/y",
            "http://10.0.0.1:80/",
            "https://10.0.0.1/",
            "https://10.0.0.1:443/",
        ] {
            assert!(is_same("http://10.0.0.1/x", same), "{same}");
        }
        assert!(is_same("http://a.org:1905/", "https://A.org:1905/"));
        for other in [
            "http://10.0.0.2/",
            "http://10.0.0.1:81/",
            "http://10.0.0.1:443/",
            "https://10.0.0.1:80/",
        ] {
            assert!(!is_same("http://10.0.0.1/x", other), "{other}");
        }
        assert!(!is_same("http://a.org:1905/", "https://a.org/"));
    }

    #[test]
    fn other_answers_redirect_nowhere() {
        let from: Uri = "http://a.org/".parse().expect("a URL");
        let mut headers = HeaderMap::new();
        assert_eq!(target(&from, StatusCode::FOUND, &headers), Ok(None));
        headers.insert(LOCATION, "/x".parse().expect("a value"));
        assert_eq!(target(&from, StatusCode::CREATED, &headers), Ok(None));
        assert_eq!(target(&from, StatusCode::NOT_MODIFIED, &headers), Ok(None));
    }
}
