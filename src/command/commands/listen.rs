//! Where a service listens, and why it does not start.

use std::net::SocketAddr;
use std::path::Path;

use super::usage;
use crate::command::exit::{Exit, Failure};
use crate::formats::base_url::{BaseUrl, Scheme};
use crate::web::server::Tls;
use ibi::message;

pub(super) fn cannot_give_up(error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Failed,
        message!(
            "root's rights cannot be given up: {error}; add CAP_SETUID and CAP_SETGID to the container or service, or run it as the user who owns the store",
            error
        ),
    )
}

pub(super) fn cannot_listen(listen: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Failed,
        message!(
            "cannot listen at {listen}: {error}; choose another with --listen",
            listen,
            error
        ),
    )
}

/// The certificate and key of a service with TLS.
pub(super) fn tls(certificate: Option<&Path>, key: Option<&Path>) -> Result<Option<Tls>, Failure> {
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return Ok(None);
    };
    Tls::open(certificate, key).map(Some).map_err(usage)
}

/// The URL of the listening socket.
pub(super) fn socket_url(local: SocketAddr, tls: Option<&Tls>) -> String {
    let scheme = tls.map_or(Scheme::Http, |_| Scheme::Https);
    format!("{}://{local}/", scheme.name())
}

/// The URL of a service, with the port that was taken in place of port 0. A service with TLS of its own has `https`.
pub(super) fn public_url(url: BaseUrl, local: SocketAddr, tls: Option<&Tls>) -> BaseUrl {
    let address = match url.address().strip_suffix(":0") {
        Some(host) => format!("{host}:{}", local.port()),
        None => url.address().to_owned(),
    };
    match (url.scheme(), url.prefix(), tls) {
        (Scheme::Http, "", Some(_)) => BaseUrl::of_tls_address(&address),
        (Scheme::Http, "", None) => BaseUrl::of_address(&address),
        _ => url,
    }
}
