use std::fmt;

use leasehold_core::{Error, ErrorKind, Namespace, Result, Secrets};
use percent_encoding::percent_decode_str;
use tonic::transport::Endpoint;

/// A checked URL. Neither `Debug` nor any error shows the password.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) endpoints: Vec<Endpoint>,
    /// Name and password.
    pub(crate) user: Option<(String, String)>,
    pub(crate) namespace: Namespace,
    /// Whether claims and releases that come in while others are on their way are sent together.
    pub(crate) group_commit: bool,
    pub(crate) secrets: Secrets,
}

const PARSE: &str = "read the address";

impl Address {
    /// Parses `etcds://user:password@host:port,host:port/namespace`. Nothing is sent.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        Secrets::check_encoded(url, PARSE)?;
        let (is_secure, rest) = match (url.strip_prefix("etcd://"), url.strip_prefix("etcds://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(refuse("the URL begins with neither etcd:// nor etcds://")),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, path) = place.split_once('/').unwrap_or((place, ""));
        let (user, hosts) = place.rsplit_once('@').map_or((None, place), |(user, hosts)| (Some(user), hosts));
        let mut namespace = (!path.is_empty()).then(|| decoded("the namespace", path)).transpose()?;
        let (mut ca, mut sslmode, mut group_commit) = (None, None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let twice = match name {
                "namespace" => namespace.replace(decoded(name, value)?).is_some(),
                "ca" if is_secure => ca.replace(decoded(name, value)?).is_some(),
                "ca" => return Err(refuse("ca is for etcds:// only")),
                "sslmode" if value != "disable" => return Err(refuse("sslmode is disable; TLS comes with etcds://")),
                "sslmode" if is_secure => return Err(refuse("sslmode=disable is for etcd:// only")),
                "sslmode" => sslmode.replace(value).is_some(),
                "group_commit" => {
                    let wanted = value.parse().map_err(|_| refuse("group_commit is true or false"))?;
                    group_commit.replace(wanted).is_some()
                }
                _ => {
                    return Err(refuse(format!(
                        "there is no parameter {name:?}; there are namespace, group_commit, ca and sslmode"
                    )));
                }
            };
            if twice {
                return Err(refuse(format!("{name} is given twice")));
            }
        }
        let user = user.map(credentials).transpose()?;
        let endpoints = hosts.split(',').map(|host| endpoint(host, is_secure, ca.as_deref()));
        let endpoints = endpoints.collect::<Result<Vec<_>>>()?;
        let is_here = |endpoint: &Endpoint| endpoint.uri().host().is_some_and(Secrets::stay_on_this_machine);
        if user.is_some() && !is_secure && sslmode.is_none() && !endpoints.iter().all(is_here) {
            return Err(refuse(
                "without TLS whoever answers at this address is sent the password, and everybody on the way can read it: \
                 use etcds:// (and ca=/path for a CA of your own), or say that you trust the network by sslmode=disable",
            ));
        }
        Ok(Self {
            endpoints,
            namespace: namespace.as_deref().map_or_else(|| Ok(Namespace::default()), Namespace::new)?,
            group_commit: group_commit.unwrap_or(true),
            secrets: Secrets::of(user.as_ref().map(|(_, password)| password.as_str())),
            user,
        })
    }
}

/// The error for a URL that cannot be used.
pub(crate) fn refuse(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOptions, PARSE).detail(why)
}

fn decoded(what: &str, text: &str) -> Result<String> {
    let text = percent_decode_str(text).decode_utf8().map_err(|_| refuse(format!("{what} is not UTF-8")))?;
    Ok(text.into_owned())
}

fn credentials(text: &str) -> Result<(String, String)> {
    let (name, password) = text.split_once(':').ok_or_else(|| refuse("a user needs a password: user:password@host"))?;
    Ok((decoded("the user", name)?, decoded("the password", password)?))
}

fn endpoint(host: &str, is_secure: bool, ca: Option<&str>) -> Result<Endpoint> {
    let has_port = host.rsplit_once(':').is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok());
    if host.is_empty() || host.contains('@') {
        return Err(refuse("the URL names no host, or an empty one between two commas"));
    }
    let scheme = if is_secure { "https" } else { "http" };
    let port = if has_port { "" } else { ":2379" };
    let endpoint = Endpoint::from_shared(format!("{scheme}://{host}{port}"));
    let endpoint = endpoint.map_err(|_| refuse(format!("{host:?} is not a host, nor host:port")))?;
    if endpoint.uri().host().is_none_or(str::is_empty) || endpoint.uri().path() != "/" {
        return Err(refuse(format!("{host:?} is not a host, nor host:port")));
    }
    if is_secure { secured(endpoint, ca) } else { Ok(endpoint) }
}

#[cfg(not(feature = "tls-rustls"))]
fn secured(_: Endpoint, _: Option<&str>) -> Result<Endpoint> {
    Err(refuse("etcds:// needs the cargo feature `tls-rustls`"))
}

/// TLS that trusts the certificates of this file, or else of the system.
#[cfg(feature = "tls-rustls")]
fn secured(endpoint: Endpoint, ca: Option<&str>) -> Result<Endpoint> {
    use tonic::transport::{Certificate, ClientTlsConfig};

    let tls = match ca {
        Some(file) => {
            let pem = std::fs::read_to_string(file);
            let pem = pem.map_err(|why| refuse(format!("ca: {file:?} cannot be read: {why}")))?;
            if !pem.contains("-----BEGIN CERTIFICATE-----") {
                return Err(refuse(format!("ca: {file:?} has no certificate in PEM")));
            }
            ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem))
        }
        None => ClientTlsConfig::new().with_native_roots(),
    };
    endpoint.tls_config(tls).map_err(|why| refuse(format!("TLS cannot be used: {why}")))
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts: Vec<_> = self.endpoints.iter().map(|endpoint| endpoint.uri().to_string()).collect();
        f.debug_struct("Address").field("endpoints", &hosts).field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use leasehold_testkit::{corpus_of_urls, shown};

    use super::*;

    #[test]
    fn a_url_names_hosts_user_and_namespace() {
        let address = Address::parse("etcd://ada:p%2Fw@one:2379,two,[::1]:4/billing?sslmode=disable").unwrap();
        let hosts: Vec<_> = address.endpoints.iter().map(|endpoint| endpoint.uri().to_string()).collect();
        assert_eq!(hosts, ["http://one:2379/", "http://two:2379/", "http://[::1]:4/"]);
        assert_eq!(address.user, Some(("ada".to_owned(), "p/w".to_owned())));
        assert_eq!(address.namespace.as_str(), "billing");
        assert!(!format!("{address:?}").contains("p/w"), "{address:?}");
        assert_eq!(Address::parse("etcd://h?namespace=a%2Fb").unwrap().namespace.as_str(), "a/b");
        assert_eq!(Address::parse("etcd://h").unwrap().namespace, Namespace::default());
        for (query, together) in [("", true), ("?group_commit=true", true), ("?group_commit=false", false)] {
            assert_eq!(Address::parse(&format!("etcd://h{query}")).unwrap().group_commit, together, "{query}");
        }
    }

    #[test]
    fn a_password_needs_no_tls_where_it_passes_no_network() {
        for url in
            ["etcd://u:canary@localhost", "etcd://u:canary@127.0.0.1:4,[::1]:5", "etcd://u:canary@h?sslmode=disable"]
        {
            assert!(Address::parse(url).is_ok(), "{url}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        for (url, why) in [
            ("redis://h", "etcd://"),
            ("etcd://", "no host"),
            ("etcd://a,,b", "no host"),
            ("etcd://a b", "not a host"),
            ("etcd://h:port", "not a host"),
            ("etcd://user@h", "needs a password"),
            ("etcd://h/n?namespace=m", "twice"),
            ("etcd://h?ttl=1", "no parameter"),
            ("etcd://h?group_commit=no", "true or false"),
            ("etcd://h?ca=/f", "etcds:// only"),
            ("etcd://u:canary@h", "sslmode=disable"),
            ("etcd://u:canary@127.0.0.1,h", "sslmode=disable"),
            ("etcd://u:canary@10.0.0.1", "sslmode=disable"),
            ("etcd://u:canary@h?sslmode=require", "etcds://"),
            ("etcd://u:canary@h?sslmode=", "etcds://"),
            ("etcd://u:canary@h?sslmode=disable&sslmode=disable", "twice"),
            ("etcds://u:canary@h?sslmode=disable", "etcd:// only"),
            ("etcd://h?namespace=", "namespace"),
            ("etcd://u:p/w@h", "percent-encode"),
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{url}");
            assert!(error.to_string().contains(why), "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("canary"), "{url}: {error:?}");
        }
        #[cfg(not(feature = "tls-rustls"))]
        assert!(Address::parse("etcds://h").unwrap_err().to_string().contains("tls-rustls"));
        #[cfg(feature = "tls-rustls")]
        assert!(Address::parse("etcds://h?ca=/absent").unwrap_err().to_string().contains("cannot be read"));
    }

    #[test]
    fn no_url_panics_or_shows_its_password() {
        corpus_of_urls(include_str!("../corpus/urls.txt"), |url| match Address::parse(url) {
            Ok(address) => format!("{address:?}"),
            Err(error) => shown(&error),
        });
    }
}
