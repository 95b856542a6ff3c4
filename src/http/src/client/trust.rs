//! The certificate authorities that a client trusts: those of the system, and those of a file.
//!
//! TLS is rustls, with the algorithms of ring. The certificates of the system are where OpenSSL looks for them, or where
//! the variables `SSL_CERT_FILE` and `SSL_CERT_DIR` say.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use ibi::message::{Localize, Message};
use ibi::{display_message, message};
use ibifs_os::opening::read_regular;
use rustix::fs::OFlags;

/// The reason why a file with certificates is not used.
#[derive(Debug)]
pub struct TrustError {
    path: PathBuf,
    what: Message,
}

impl Localize for TrustError {
    fn message(&self) -> Message {
        message!(
            "{path}: {what}",
            path = self.path.display(),
            what = &self.what
        )
    }
}

display_message!(TrustError);

impl std::error::Error for TrustError {}

/// The certificate authorities that a client trusts.
#[derive(Clone)]
pub struct Trust {
    config: Arc<ClientConfig>,
    authorities: usize,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.authorities;
        f.debug_struct("Trust")
            .field("authorities", &count)
            .finish_non_exhaustive()
    }
}

impl Trust {
    /// Those of the system and, if a file is given, those in it, as PEM.
    ///
    /// # Errors
    /// The file cannot be read or holds no certificate.
    pub fn new(ca_file: Option<&Path>) -> Result<Trust, TrustError> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = ca_file {
            let refuse = |what: Message| TrustError {
                path: path.to_owned(),
                what,
            };
            let text =
                read_regular(path, OFlags::empty()).map_err(|error| refuse(error.message()))?;
            let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
            let found = found.map_err(|error| refuse(Message::foreign(error.to_string())))?;
            for certificate in found {
                let added = roots.add(certificate);
                added.map_err(|error| refuse(Message::foreign(error.to_string())))?;
            }
            if roots.is_empty() {
                return Err(refuse(message!(
                    "it holds no certificate; write those of the authorities in PEM form"
                )));
            }
        }
        let system = rustls_native_certs::load_native_certs();
        for error in &system.errors {
            log::debug!("certificates of the system: {error}");
        }
        // Some of a system's certificates are of forms that rustls does not take.
        roots.add_parsable_certificates(system.certs);
        let authorities = roots.len();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| TrustError {
                path: PathBuf::from("TLS"),
                what: Message::foreign(error.to_string()),
            })?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Trust {
            config: Arc::new(config),
            authorities,
        })
    }

    /// Whether there is any. Without one, no server with TLS can be trusted.
    pub(super) fn is_any(&self) -> bool {
        self.authorities > 0
    }

    pub fn config(&self) -> ClientConfig {
        ClientConfig::clone(&self.config)
    }
}
