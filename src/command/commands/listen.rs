//! The address on which a service listens, and the reasons why it does not start.

use std::net::SocketAddr;
use std::path::Path;

use super::{failed_at, usage};
use crate::command::cli::{LogForm, Monitoring};
use crate::command::exit::{Exit, Failure};
use crate::command::language::localized;
use crate::formats::base_url::{BaseUrl, Scheme};
use crate::http::server::{AccessLog, AccessLogFormat, AccessLogTarget, MetricsSocket, Tls};
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

/// The address at which a service reports of itself.
pub(super) fn metrics(address: Option<SocketAddr>) -> Result<Option<MetricsSocket>, Failure> {
    let Some(address) = address else {
        return Ok(None);
    };
    MetricsSocket::bind(address).map(Some).map_err(|error| {
        Failure::new(
            Exit::Failed,
            message!(
                "cannot listen at {address}: {error}; choose another with --metrics",
                address,
                error
            ),
        )
    })
}

/// The access log of a service.
pub(super) fn access_log(options: &Monitoring) -> Result<Option<AccessLog>, Failure> {
    let Some(path) = &options.access_log else {
        return Ok(None);
    };
    let target = match path.as_os_str().as_encoded_bytes() {
        b"-" => AccessLogTarget::Output,
        _ => AccessLogTarget::File(path.clone()),
    };
    let format = match options.access_log_format {
        LogForm::Combined => AccessLogFormat::Combined,
        LogForm::Json => AccessLogFormat::Json,
    };
    let opened = AccessLog::open(target, format);
    let failed = |error: std::io::Error| failed_at(path, Exit::Failed, &error);
    opened.map(Some).map_err(failed)
}

/// The URL of the reports. None if there are none.
pub(super) fn metrics_url(socket: Option<&MetricsSocket>) -> Option<String> {
    let address = socket?.address().ok()?;
    Some(format!("http://{address}/metrics"))
}

/// Returns what a service prints of its reports.
pub(super) fn metrics_line(socket: Option<&MetricsSocket>) -> String {
    metrics_url(socket).map_or_else(String::new, |url| {
        format!("{}\n", localized(&message!("metrics at {url}", url)))
    })
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
