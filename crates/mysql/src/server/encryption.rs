use std::path::PathBuf;

use leasehold_core::Result;
use mysql_async::Opts;

use super::parameters::refuse;

/// The parameters of a URL that decide about TLS, and whether a password may be sent without it.
#[derive(Debug, Default)]
pub(super) struct Encryption {
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    /// The first parameter that makes no sense without TLS.
    wanted: Option<String>,
    declined: bool,
    key_retrieval: bool,
}

impl Encryption {
    /// Notes a parameter that is about encryption. Answers whether the parameter is one that the driver does not know.
    pub(super) fn take(&mut self, name: &str, value: &str) -> Result<bool> {
        let file = match name {
            "ssl_ca" | "ssl-ca" => &mut self.ca,
            "ssl_cert" | "ssl-cert" => &mut self.cert,
            "ssl_key" | "ssl-key" => &mut self.key,
            "allow_public_key_retrieval" => {
                self.key_retrieval =
                    value.parse().map_err(|_| refuse(format!("{name} is true or false, not {value:?}")))?;
                return Ok(true);
            }
            "require_ssl" => {
                self.declined |= value == "false";
                self.wanted = self.wanted.take().or_else(|| (value == "true").then(|| name.to_owned()));
                return Ok(false);
            }
            "verify_ca" | "verify_identity" | "built_in_roots" => {
                self.wanted.get_or_insert_with(|| name.to_owned());
                return Ok(false);
            }
            _ => return Ok(false),
        };
        std::fs::File::open(value).map_err(|why| refuse(format!("{name}: {value:?} cannot be read: {why}")))?;
        if file.replace(value.into()).is_some() {
            return Err(refuse(format!("{name} is given twice")));
        }
        self.wanted.get_or_insert_with(|| name.to_owned());
        Ok(true)
    }

    /// Whether `require_ssl=true` has to be added to the URL for the driver.
    pub(super) fn is_wanted(&self) -> Result<bool> {
        match &self.wanted {
            // The driver would ignore the parameter, and send everything in the clear.
            Some(name) if self.declined => Err(refuse(format!("{name} and require_ssl=false exclude each other"))),
            // The driver would panic.
            Some(name) if cfg!(not(feature = "tls-rustls")) => {
                Err(refuse(format!("{name} needs the cargo feature `tls-rustls`")))
            }
            wanted => Ok(wanted.is_some()),
        }
    }

    /// The options with the certificates.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) if a password would be sent without TLS
    /// and the URL does not allow it.
    pub(super) fn apply(self, opts: Opts) -> Result<Opts> {
        let encrypts = opts.ssl_opts().is_some() || opts.socket().is_some();
        if opts.enable_cleartext_plugin() && !encrypts {
            return Err(refuse("enable_cleartext_plugin would send the password in the clear: add require_ssl=true"));
        }
        if opts.pass().is_some_and(|password| !password.is_empty()) && !encrypts && !self.key_retrieval {
            // The driver has no switch for it: it encrypts the password with any key that any server sends.
            let why = "without TLS whoever answers at this address can ask for the password, and read it: add \
                       require_ssl=true (and ssl_ca=/path for a CA of your own), or say that you trust the network by \
                       allow_public_key_retrieval=true";
            return Err(refuse(why));
        }
        self.with_certificates(opts)
    }

    #[cfg(not(feature = "tls-rustls"))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "there are none")]
    fn with_certificates(self, opts: Opts) -> Result<Opts> {
        Ok(opts)
    }

    #[cfg(feature = "tls-rustls")]
    fn with_certificates(self, opts: Opts) -> Result<Opts> {
        let Some(mut ssl) = opts.ssl_opts().cloned() else { return Ok(opts) };
        if let Some(ca) = self.ca {
            // A URL that names a CA trusts no other.
            ssl = ssl.with_root_certs(vec![ca.into()]).with_disable_built_in_roots(true);
        }
        ssl = match (self.cert, self.key) {
            (Some(cert), Some(key)) => {
                ssl.with_client_identity(Some(mysql_async::ClientIdentity::new(cert.into(), key.into())))
            }
            (None, None) => ssl,
            _ => return Err(refuse("ssl_cert and ssl_key go together")),
        };
        Ok(mysql_async::OptsBuilder::from_opts(opts).ssl_opts(ssl).into())
    }
}
