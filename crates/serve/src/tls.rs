// SPDX-License-Identifier: PostgreSQL
//! TLS with the certificate and the key of two files. A renewed certificate is used from the next connection on.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use error::Error;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use super::watched::{check_secret, named, WatchedFile};

/// The certificate and the key of this server.
#[derive(Debug)]
pub struct Tls(Mutex<Loaded>);

#[derive(Debug)]
struct Loaded {
    certificate: WatchedFile,
    key: WatchedFile,
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads both files.
    pub fn open(certificate: &Path, key: &Path) -> Result<Tls, Error> {
        let config = config(certificate, key)?;
        let (mut certificate, mut key) = (WatchedFile::new(certificate), WatchedFile::new(key));
        certificate.has_changed();
        key.has_changed();
        Ok(Tls(Mutex::new(Loaded { certificate, key, config })))
    }

    /// For the next connection. While the files do not match each other, the previous ones are
    /// used.
    pub fn acceptor(&self) -> TlsAcceptor {
        let mut loaded = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = [loaded.certificate.has_changed(), loaded.key.has_changed()];
        if changed.contains(&true) {
            match config(loaded.certificate.path(), loaded.key.path()) {
                Ok(config) => loaded.config = config,
                Err(error) => {
                    view::escape::say(&format!("{error}; the previous certificate is still used"));
                }
            }
        }
        TlsAcceptor::from(loaded.config.clone())
    }
}

fn config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Error> {
    check_secret(key, "key")?;
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| named(certificate, &format!("no certificate in PEM: {error}")))?;
    if chain.is_empty() {
        return Err(named(certificate, &"no certificate in PEM"));
    }
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| named(key, &format!("no private key in PEM: {error}")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(|error| named(certificate, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
