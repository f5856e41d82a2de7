use fred::types::config::Config;
use leasehold_core::Result;

/// Switches TLS on, or refuses where it was not built in: the driver alone would go on in plain text.
#[cfg(not(feature = "tls-rustls"))]
pub(crate) fn enable(_config: &mut Config) -> Result<()> {
    Err(crate::endpoint::invalid("TLS is not built in: enable the feature tls-rustls"))
}

/// Switches TLS on, with the system's trusted roots.
#[cfg(feature = "tls-rustls")]
pub(crate) fn enable(config: &mut Config) -> Result<()> {
    let unusable = |error| crate::endpoint::invalid("the system's TLS roots cannot be read").caused_by(error);
    config.tls = Some(connector().map_err(unusable)?.into());
    Ok(())
}

/// Names its provider: left to itself, rustls panics in a program where another crate brings a second one.
#[cfg(feature = "tls-rustls")]
fn connector() -> Result<fred::types::config::TlsConnector, Box<dyn std::error::Error + Send + Sync>> {
    use std::sync::Arc;

    use fred::rustls::crypto::ring;
    use fred::rustls::{ClientConfig, RootCertStore};

    let mut roots = RootCertStore::empty();
    let found = fred::rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if let (true, Some(error)) = (roots.is_empty(), found.errors.into_iter().next()) {
        return Err(error.into());
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config.into())
}
