//! TLS of a service: its certificate and key, which are read again on request.
//!
//! TLS is rustls, with the algorithms of ring. HTTP/1.1 is spoken inside it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use ibi::message::{Localize, Message};
use ibi::{display_message, message};
use ibifs_os::opening::read_regular;
use rustix::fs::OFlags;

/// The reason why a certificate or key is not used.
#[derive(Debug)]
pub struct TlsError {
    path: PathBuf,
    what: Message,
}

impl Localize for TlsError {
    fn message(&self) -> Message {
        message!(
            "{path}: {what}",
            path = self.path.display(),
            what = &self.what
        )
    }
}

display_message!(TlsError);

impl std::error::Error for TlsError {}

/// The certificate and the key of a service.
#[derive(Debug)]
pub struct Tls {
    certificates: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files, in PEM form: the certificate of the service followed by those that lead to an authority, and
    /// its key.
    ///
    /// # Errors
    /// A file cannot be read or does not hold that, or the key is not that of the certificate.
    pub fn open(certificates: &Path, key: &Path) -> Result<Tls, TlsError> {
        let config = read(certificates, key)?;
        Ok(Tls {
            certificates: certificates.to_owned(),
            key: key.to_owned(),
            config: RwLock::new(config),
        })
    }

    /// Warns if the files cannot be read again, which a process that has given up the privileges of root may not.
    pub fn check(&self) {
        if let Err(error) = read(&self.certificates, &self.key) {
            log::warn!(
                "the certificate will not be read again when it is renewed, since this process runs as user {}: {error}; \
                 let that user read it by a group or with setfacl(1), or restart the service after each renewal",
                rustix::process::geteuid().as_raw()
            );
        }
    }

    /// Reads the files again, for later connections. If that fails, what was read before stays in use.
    pub(super) fn reload(&self) {
        match read(&self.certificates, &self.key) {
            Ok(config) => {
                *self.config.write() = config;
                log::info!("{} is read again", self.certificates.display());
            }
            Err(error) => log::error!(
                "the certificate is not read again, and the last one stays in use until the service is started again: {error}"
            ),
        }
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config.read()))
    }
}

fn read(certificates: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let refuse = |path: &Path, what: Message| TlsError {
        path: path.to_owned(),
        what,
    };
    let text = |path: &Path| {
        let text = read_regular(path, OFlags::empty());
        text.map_err(|error| refuse(path, error.message()))
    };
    let foreign = |error: &dyn std::error::Error| Message::foreign(error.to_string());
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text(certificates)?).collect();
    let chain = chain.map_err(|error| refuse(certificates, foreign(&error)))?;
    if chain.is_empty() {
        let what = message!("it holds no certificate in PEM form");
        return Err(refuse(certificates, what));
    }
    let secret = PrivateKeyDer::from_pem_slice(&text(key)?)
        .map_err(|_| refuse(key, message!("it holds no private key in PEM form")))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| refuse(certificates, foreign(&error)))?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(|error| refuse(certificates, foreign(&error)));
    let mut config = config?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
