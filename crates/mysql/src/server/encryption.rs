use std::path::PathBuf;

use leasehold_core::{Result, Secrets};
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
    /// [`ErrorKind::InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions) if a password would go over a network
    /// without TLS and the URL does not allow it.
    pub(super) fn apply(self, opts: Opts) -> Result<Opts> {
        let encrypts = opts.ssl_opts().is_some() || opts.socket().is_some();
        let passes_a_network = !encrypts && !Secrets::stay_on_this_machine(opts.ip_or_hostname());
        if opts.enable_cleartext_plugin() && !encrypts {
            return Err(refuse("enable_cleartext_plugin would send the password in the clear: add require_ssl=true"));
        }
        if opts.pass().is_some_and(|password| !password.is_empty()) && passes_a_network && !self.key_retrieval {
            // The driver has no switch for it: it encrypts the password with any key that any server sends.
            let why = "without TLS whoever answers at this address can ask for the password, and read it: add \
                       require_ssl=true (and ssl_ca=/path for a CA of your own), or say that you trust the network by \
                       allow_public_key_retrieval=true";
            return Err(refuse(why));
        }
        #[cfg(feature = "tls-rustls")]
        let opts = self.with_certificates(opts)?;
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

#[cfg(test)]
mod tests {
    use leasehold_core::ErrorKind;

    use crate::server::address::Address;

    /// Whether sessions are encrypted.
    fn encrypts(rest: &str) -> Result<bool, String> {
        let address = Address::parse(&format!("mysql://{rest}"));
        address.map(|address| address.opts.ssl_opts().is_some()).map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            error.to_string()
        })
    }

    #[test]
    fn a_password_goes_only_where_nobody_else_can_read_it_or_where_the_url_says_so() {
        assert_eq!(encrypts("u@h/db"), Ok(false));
        assert_eq!(encrypts("u:@h/db"), Ok(false));
        assert_eq!(encrypts("u:pw@h/db?allow_public_key_retrieval=true"), Ok(false));
        assert_eq!(encrypts("u:pw@h/db?socket=/s"), Ok(false));
        assert_eq!(encrypts("u@h/db?socket=/s&enable_cleartext_plugin=true"), Ok(false));
        assert_eq!(encrypts("u@h/db?require_ssl=false"), Ok(false));
        for here in ["localhost", "127.0.0.1:3307", "[::1]"] {
            assert_eq!(encrypts(&format!("u:pw@{here}/db")), Ok(false), "{here}");
        }
        for refused in [
            "u:pw@h/db",
            "u:pw@10.0.0.1/db",
            "u@h/db?enable_cleartext_plugin=true",
            "u@h/db?allow_public_key_retrieval=1",
        ] {
            assert!(encrypts(refused).is_err(), "{refused}");
        }
        let told = encrypts("u:pw@h/db").unwrap_err();
        assert!(told.contains("require_ssl=true") && told.contains("allow_public_key_retrieval=true"), "{told}");
    }

    #[cfg(feature = "tls-rustls")]
    #[test]
    fn whatever_is_about_tls_asks_for_tls_and_nothing_declines_it_in_silence() {
        for wanted in ["require_ssl=true", "verify_ca=true", "verify_identity=true", "built_in_roots=true"] {
            assert_eq!(encrypts(&format!("u:pw@h/db?{wanted}")), Ok(true), "{wanted}");
        }
        assert_eq!(encrypts("u:pw@h/db?require_ssl=true&enable_cleartext_plugin=true"), Ok(true));
        for file in ["ssl_ca", "ssl-ca", "ssl_cert", "ssl-key"] {
            let declined = encrypts(&format!("u@h/db?{file}=/dev/null&require_ssl=false"));
            assert!(declined.unwrap_err().contains("exclude each other"), "{file}");
            let twice = encrypts(&format!("u@h/db?{file}=/dev/null&{file}=/dev/null"));
            assert!(twice.unwrap_err().contains("is given twice"), "{file}");
            let nowhere = encrypts(&format!("u@h/db?{file}=/nowhere/x"));
            assert!(nowhere.unwrap_err().contains("cannot be read"), "{file}");
        }
        for alone in ["ssl_cert", "ssl_key"] {
            assert!(encrypts(&format!("u@h/db?{alone}=/dev/null")).unwrap_err().contains("go together"), "{alone}");
        }
        assert_eq!(encrypts("u@h/db?ssl-ca=/dev/null"), Ok(true));
        assert_eq!(encrypts("u@h/db?ssl_cert=/dev/null&ssl-key=/dev/null"), Ok(true));
    }

    #[cfg(not(feature = "tls-rustls"))]
    #[test]
    fn whatever_is_about_tls_is_refused_in_a_build_without_it() {
        for wanted in ["require_ssl=true", "verify_ca=true", "ssl_ca=/dev/null"] {
            let told = encrypts(&format!("u@h/db?{wanted}")).unwrap_err();
            assert!(told.contains("needs the cargo feature `tls-rustls`"), "{wanted}: {told}");
        }
    }
}
