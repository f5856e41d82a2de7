use std::path::PathBuf;

use fred::types::config::Config;
use leasehold_core::Result;

/// What a URL says of TLS beside that it is wanted: files in PEM.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// Who is trusted, instead of the system's roots.
    pub(crate) cacert: Option<PathBuf>,
    /// What a server is shown that asks who we are.
    pub(crate) cert: Option<PathBuf>,
    /// The private key of that.
    pub(crate) key: Option<PathBuf>,
}

impl Files {
    pub(crate) fn are_named(&self) -> bool {
        self.cacert.is_some() || self.cert.is_some() || self.key.is_some()
    }
}

/// Switches TLS on, or refuses where it was not built in: the driver alone would go on in plain text.
#[cfg(not(feature = "tls-rustls"))]
pub(crate) fn enable(_config: &mut Config, _files: &Files) -> Result<()> {
    Err(crate::client::invalid_url::invalid("TLS is not built in: enable the feature tls-rustls"))
}

#[cfg(feature = "tls-rustls")]
pub(crate) use with_rustls::enable;

#[cfg(feature = "tls-rustls")]
mod with_rustls {
    use std::path::Path;
    use std::sync::Arc;

    use fred::rustls::crypto::ring;
    use fred::rustls::pki_types::pem::{Error as PemError, PemObject};
    use fred::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use fred::rustls::{ClientConfig, RootCertStore};
    use leasehold_core::Error;

    use super::{Config, Files, Result};
    use crate::client::invalid_url::invalid;

    /// Switches TLS on, with the trusted roots and the certificate that are named, or the system's and none.
    pub(crate) fn enable(config: &mut Config, files: &Files) -> Result<()> {
        let roots = files.cacert.as_deref().map_or_else(roots_of_the_system, roots_in)?;
        // Names its provider: left to itself, rustls panics in a program where another crate brings a second one.
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid("TLS cannot be set up").caused_by(error))?
            .with_root_certificates(roots);
        let client = match (&files.cert, &files.key) {
            (Some(cert), Some(key)) => builder
                .with_client_auth_cert(certificates("cert", cert)?, private_key(key)?)
                .map_err(|error| invalid("`cert` and `key` do not go together").caused_by(error))?,
            (None, None) => builder.with_no_client_auth(),
            _ => return Err(invalid("`cert` and `key` are given together or not at all")),
        };
        config.tls = Some(client.into());
        Ok(())
    }

    fn roots_of_the_system() -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        let found = fred::rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        match found.errors.into_iter().next().filter(|_| roots.is_empty()) {
            Some(error) => Err(invalid("the system's TLS roots cannot be read").caused_by(error)),
            None => Ok(roots),
        }
    }

    fn roots_in(file: &Path) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates("cacert", file)? {
            let odd = |error| {
                invalid(format!("`cacert`: {} has a certificate that is none", file.display())).caused_by(error)
            };
            roots.add(certificate).map_err(odd)?;
        }
        Ok(roots)
    }

    fn certificates(parameter: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>> {
        let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
        let found: Vec<_> = read.map_err(|error| unreadable(parameter, file, error))?;
        if found.is_empty() { Err(unreadable(parameter, file, PemError::NoItemsFound)) } else { Ok(found) }
    }

    fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>> {
        PrivateKeyDer::from_pem_file(file).map_err(|error| unreadable("key", file, error))
    }

    fn unreadable(parameter: &str, file: &Path, error: PemError) -> Error {
        let shown = file.display();
        let why = match error {
            PemError::Io(error) => return invalid(format!("`{parameter}`: {shown} cannot be read")).caused_by(error),
            PemError::NoItemsFound if parameter == "key" => "has no private key in PEM, or only one with a passphrase",
            PemError::NoItemsFound => "has no certificate in PEM",
            // Its words may quote a part of a private key.
            _ => "is not PEM",
        };
        invalid(format!("`{parameter}`: {shown} {why}"))
    }
}
