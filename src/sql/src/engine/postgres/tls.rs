//! TLS to the server of an index.

use std::path::Path;
use std::sync::Arc;

use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use ibi::message;
use ibi::message::{Localize, Message};
use ibifs_os::opening::read_regular;
use rustix::fs::OFlags;

/// Makes connections with TLS.
pub(super) type Connector = MakeRustlsConnect;

/// Trusts the authorities of a file, else those of the system.
pub(super) fn connector(certificates: Option<&Path>) -> Result<Connector, Message> {
    let mut roots = RootCertStore::empty();
    match certificates {
        Some(path) => {
            let named = |what: Message| message!("{path}: {what}", path = path.display(), what);
            let text =
                read_regular(path, OFlags::empty()).map_err(|error| named(error.message()))?;
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let refused = |what: String| named(Message::foreign(what));
                let certificate = certificate.map_err(|error| refused(error.to_string()))?;
                let added = roots.add(certificate);
                added.map_err(|error| refused(error.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Message::foreign(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
