//! How connections are encrypted.

use leasehold_core::Result;
use tokio_postgres::Config;

#[cfg(feature = "tls-rustls")]
pub(crate) type Tls = tokio_postgres_rustls::MakeRustlsConnect;
#[cfg(not(feature = "tls-rustls"))]
pub(crate) type Tls = tokio_postgres::NoTls;

#[cfg(not(feature = "tls-rustls"))]
pub(crate) fn tls(_: &Config, sslrootcert: Option<&str>) -> Result<Tls> {
    match sslrootcert {
        Some(_) => Err(crate::failure::refuse("sslrootcert needs the cargo feature `tls-rustls`")),
        None => Ok(tokio_postgres::NoTls),
    }
}

/// TLS that trusts the certificates of this file, or else of the system.
#[cfg(feature = "tls-rustls")]
pub(crate) fn tls(config: &Config, sslrootcert: Option<&str>) -> Result<Tls> {
    use std::sync::Arc;

    use rustls::pki_types::{CertificateDer, pem::PemObject};
    use rustls::{ClientConfig, RootCertStore, crypto::ring};
    use tokio_postgres::config::SslMode;

    use crate::failure::refuse;

    let mut roots = RootCertStore::empty();
    if let Some(file) = sslrootcert {
        let unreadable = |why| refuse(format!("sslrootcert: {file:?} cannot be read: {why}"));
        for certificate in CertificateDer::pem_file_iter(file).map_err(unreadable)? {
            let unusable = |why| refuse(format!("sslrootcert: {file:?} has a certificate that cannot be used: {why}"));
            roots.add(certificate.map_err(unreadable)?).map_err(unusable)?;
        }
        if roots.is_empty() {
            return Err(refuse(format!("sslrootcert: {file:?} has no certificate in PEM")));
        }
    } else if config.get_ssl_mode() != SslMode::Disable {
        // Those of the system that cannot be read are not trusted.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    let versions =
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions();
    let versions = versions.map_err(|why| refuse(why.to_string()))?;
    Ok(Tls::new(versions.with_root_certificates(roots).with_no_client_auth()))
}
