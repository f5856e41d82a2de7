use std::fmt;

use fred::clients::Client;
use fred::interfaces::ClientLike;
use fred::types::config::{ClusterDiscoveryPolicy, Config, Server, ServerConfig};
use leasehold_core::{Result, Secrets};
use percent_encoding::percent_decode_str;
use url::{Host, ParseError, Url};

use crate::client::invalid_url::{READING, invalid};
use crate::client::tls::{self, Files};
use crate::keyspace::names::Namespace;

/// What a builder was given to reach a server: a URL, or a client that the caller made and will close.
#[derive(Clone)]
pub enum Source {
    /// A URL as [`Endpoint`] reads it.
    Url(String),
    /// A client of the driver.
    Client(Client),
}

/// Where Redis is and as whom to go there: a URL that was understood as a whole before anything is sent.
///
/// `redis://[[user]:password@]host[:port][/database][?namespace=…]`, and with more query parameters
/// `redis-sentinel://…?sentinelServiceName=…[&node=host:port]…[&sentinelUsername=…][&sentinelPassword=…]` and
/// `redis-cluster://…[?node=host:port]…`. With TLS `rediss…`; `valkey…` and `valkeys…` mean the same.
///
/// TLS takes files in PEM, called as by `redis-cli`: `cacert=…` says who is trusted, instead of the system's roots,
/// `cert=…&key=…` what a server is shown that asks for a certificate. They are read when the URL is.
///
/// Neither `Display` nor `Debug` shows a password.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) config: Config,
    namespace: Option<Namespace>,
    shown: String,
    /// `None`: Leasehold makes the client.
    pub(crate) client: Option<Client>,
}

impl Endpoint {
    /// Reads a URL, and the certificates that TLS takes, or what a client is configured with.
    ///
    /// # Errors
    /// [`InvalidOptions`](leasehold_core::ErrorKind::InvalidOptions), and never with the URL in it: for an unknown scheme, query parameter or
    /// database, for a user without a password, for a file that cannot be read or is not what it should be, and for TLS
    /// in a build without it.
    pub fn of(source: &Source) -> Result<Self> {
        match source {
            Source::Url(url) => Self::parse(url),
            Source::Client(client) => {
                let config = client.client_config();
                let hosts: Vec<_> = config.server.hosts().iter().map(|host| format!("redis://{host}")).collect();
                Ok(Self { config, namespace: None, shown: hosts.join(","), client: Some(client.clone()) })
            }
        }
    }

    pub(crate) fn parse(url: &str) -> Result<Self> {
        let (mut endpoint, tls) = Self::read(url)?;
        if let Some(files) = tls {
            tls::enable(&mut endpoint.config, &files)?;
        }
        Ok(endpoint)
    }

    /// Whether it is one server by itself, and neither a Sentinel set nor a Cluster.
    pub fn is_one_server(&self) -> bool {
        matches!(self.config.server, ServerConfig::Centralized { .. })
    }

    /// What of a URL may be shown. One that cannot be read may hold a password anywhere.
    pub(crate) fn shown(url: &str) -> String {
        Self::read(url).map_or_else(|_| "…".to_owned(), |(endpoint, _)| endpoint.shown)
    }

    /// Also what TLS takes, if it is asked for.
    fn read(url: &str) -> Result<(Self, Option<Files>)> {
        Secrets::check_encoded(url, READING)?;
        let url = Url::parse(url).map_err(|wrong| {
            let why = match wrong {
                ParseError::RelativeUrlWithoutBase => "a server's begins with redis:// or rediss://".to_owned(),
                _ => wrong.to_string(),
            };
            invalid(format!("the URL cannot be read: {why}"))
        })?;
        if url.fragment().is_some() {
            return Err(invalid("the URL has a `#`; in a password it is written %23"));
        }
        let (topology, tls) = scheme(url.scheme())?;
        let query = Query::read(&url, topology)?;
        let (username, password) = credentials(&url)?;
        let mut hosts = vec![first_host(&url, topology)?];
        hosts.extend(query.nodes.iter().cloned());
        let database = database(&url, topology)?;
        let shown = shown(&url, &hosts, database, query.service.as_deref());
        let server = match topology {
            Topology::Single => ServerConfig::Centralized { server: hosts.swap_remove(0) },
            Topology::Cluster => ServerConfig::Clustered { hosts, policy: ClusterDiscoveryPolicy::UseCache },
            Topology::Sentinel => ServerConfig::Sentinel {
                hosts,
                service_name: query.service.ok_or_else(|| invalid("a Sentinel URL needs ?sentinelServiceName=…"))?,
                username: query.sentinel_username,
                password: query.sentinel_password,
            },
        };
        if query.tls.are_named() && !tls {
            return Err(invalid("certificates are for TLS, and the URL asks for none: write rediss…"));
        }
        let config = Config { username, password, server, database, ..Config::default() };
        Ok((Self { config, namespace: query.namespace, shown, client: None }, tls.then_some(query.tls)))
    }

    /// What `?namespace=` says.
    pub fn namespace(&self) -> Option<&Namespace> {
        self.namespace.as_ref()
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Endpoint").field(&self.shown).finish()
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.debug_tuple("Endpoint").field(&Endpoint::shown(url)).finish(),
            Self::Client(client) => fmt::Debug::fmt(client, f),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Topology {
    Single,
    Sentinel,
    Cluster,
}

fn scheme(scheme: &str) -> Result<(Topology, bool)> {
    let (base, topology) = match scheme.split_once('-') {
        None => (scheme, Topology::Single),
        Some((base, "sentinel")) => (base, Topology::Sentinel),
        Some((base, "cluster")) => (base, Topology::Cluster),
        Some(_) => ("", Topology::Single),
    };
    match base {
        "redis" | "valkey" => Ok((topology, false)),
        "rediss" | "valkeys" => Ok((topology, true)),
        _ => Err(invalid(format!(
            "unknown scheme `{scheme}`; it takes redis, redis-sentinel or redis-cluster, and with TLS rediss…"
        ))),
    }
}

#[derive(Default)]
struct Query {
    namespace: Option<Namespace>,
    nodes: Vec<Server>,
    service: Option<String>,
    sentinel_username: Option<String>,
    sentinel_password: Option<String>,
    tls: Files,
}

impl Query {
    fn read(url: &Url, topology: Topology) -> Result<Self> {
        let mut query = Self::default();
        for (name, value) in url.query_pairs() {
            let value = value.into_owned();
            let twice = match (&*name, topology) {
                ("namespace", _) => query.namespace.replace(Namespace::new(value)?).is_some(),
                ("node", Topology::Sentinel | Topology::Cluster) => {
                    query.nodes.push(node(&value, topology)?);
                    false
                }
                ("sentinelServiceName", Topology::Sentinel) => query.service.replace(value).is_some(),
                ("sentinelUsername", Topology::Sentinel) => query.sentinel_username.replace(value).is_some(),
                ("sentinelPassword", Topology::Sentinel) => query.sentinel_password.replace(value).is_some(),
                ("cacert", _) => query.tls.cacert.replace(value.into()).is_some(),
                ("cert", _) => query.tls.cert.replace(value.into()).is_some(),
                ("key", _) => query.tls.key.replace(value.into()).is_some(),
                // A misspelt `namespace` must not put locks where nobody else looks.
                _ => return Err(invalid(format!("`{name}` is no query parameter of {}://", url.scheme()))),
            };
            if twice {
                return Err(invalid(format!("`{name}` is given twice in the URL")));
            }
        }
        Ok(query)
    }
}

fn credentials(url: &Url) -> Result<(Option<String>, Option<String>)> {
    let decode = |text: &str| {
        let text = percent_decode_str(text).decode_utf8();
        text.map(String::from).map_err(|_| invalid("user or password is not UTF-8 when percent-decoded"))
    };
    let username = Some(url.username()).filter(|name| !name.is_empty()).map(decode).transpose()?;
    let password = url.password().filter(|password| !password.is_empty()).map(decode).transpose()?;
    if username.is_some() && password.is_none() {
        // The driver would go there as the default user without a word.
        return Err(invalid("there is a user but no password in the URL"));
    }
    Ok((username, password))
}

fn first_host(url: &Url, topology: Topology) -> Result<Server> {
    let host = match url.host() {
        Some(Host::Domain(name)) if !name.is_empty() => name.to_owned(),
        Some(Host::Ipv6(address)) => address.to_string(),
        _ => return Err(invalid("there is no host in the URL")),
    };
    let usual = if topology == Topology::Sentinel { 26379 } else { 6379 };
    match url.port().unwrap_or(usual) {
        0 => Err(invalid("port 0 is nobody's")),
        port => Ok(Server::new(host, port)),
    }
}

fn node(text: &str, topology: Topology) -> Result<Server> {
    let url = Url::parse(&format!("redis://{text}")).ok().filter(|url| {
        matches!(url.path(), "" | "/") && url.query().is_none() && url.username().is_empty() && url.password().is_none()
    });
    first_host(&url.ok_or_else(|| invalid("a `node` in the URL is not host:port"))?, topology)
}

fn database(url: &Url, topology: Topology) -> Result<Option<u8>> {
    match url.path().trim_start_matches('/') {
        "" => Ok(None),
        _ if topology == Topology::Cluster => Err(invalid("a Cluster has no databases")),
        number => {
            let number = number.parse().map_err(|_| invalid("the database is not a number from 0 to 255"))?;
            Ok(Some(number))
        }
    }
}

fn shown(url: &Url, hosts: &[Server], database: Option<u8>, service: Option<&str>) -> String {
    let host = |server: &Server| {
        let (open, close) = if server.host.contains(':') { ("[", "]") } else { ("", "") };
        format!("{open}{}{close}:{}", server.host, server.port)
    };
    let user = Some(url.username()).filter(|name| !name.is_empty()).map(|name| format!("{name}@"));
    format!(
        "{}://{}{}{}{}",
        url.scheme(),
        user.unwrap_or_default(),
        hosts.iter().map(host).collect::<Vec<_>>().join(","),
        database.map(|number| format!("/{number}")).unwrap_or_default(),
        service.map(|name| format!("?sentinelServiceName={name}")).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use leasehold_core::ErrorKind;

    use super::*;
    use leasehold_testkit::{corpus_of_urls, shown as shown_chain};

    #[test]
    fn whatever_the_url_is_it_is_understood_or_refused_and_its_password_is_not_shown() {
        corpus_of_urls(include_str!("../../corpus/urls.txt"), |url| match Endpoint::parse(url) {
            Ok(endpoint) => format!("{endpoint} {endpoint:?} {}", Endpoint::shown(url)),
            Err(error) => {
                let kinds = [ErrorKind::InvalidOptions, ErrorKind::Backend];
                assert!(kinds.contains(&error.kind()), "{url}: {error}");
                format!("{} {error:?} {}", shown_chain(&error), Endpoint::shown(url))
            }
        });
    }

    #[test]
    fn urls_are_understood_and_shown_without_their_passwords() {
        for (url, shown) in [
            ("redis://h", "redis://h:6379"),
            ("redis://127.0.0.1:6380/3", "redis://127.0.0.1:6380/3"),
            ("redis://:pw@h", "redis://h:6379"),
            ("redis://ada:pw@h:1", "redis://ada@h:1"),
            ("valkey://[::1]:6379/", "valkey://[::1]:6379"),
            ("redis://h?namespace=shop", "redis://h:6379"),
            ("redis-cluster://a:7000?node=b:7001&node=[::1]:7002", "redis-cluster://a:7000,b:7001,[::1]:7002"),
            (
                "redis-sentinel://:pw@a?sentinelServiceName=m&node=b&sentinelPassword=pw&sentinelUsername=s",
                "redis-sentinel://a:26379,b:26379?sentinelServiceName=m",
            ),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!((endpoint.to_string().as_str(), Endpoint::shown(url).as_str()), (shown, shown));
            assert_eq!(format!("{endpoint:?}"), format!("{:?}", Source::Url(url.into())));
            assert_eq!(format!("{endpoint:?}"), format!("Endpoint({shown:?})"));
        }
    }

    #[test]
    fn credentials_and_parameters_reach_the_driver_decoded() {
        let endpoint = Endpoint::parse("redis://a%40b:p%3A%2F%23@h/7?namespace=a%2Fb").unwrap();
        assert_eq!(endpoint.config.username.as_deref(), Some("a@b"));
        assert_eq!(endpoint.config.password.as_deref(), Some("p:/#"));
        assert_eq!(endpoint.config.database, Some(7));
        assert_eq!(endpoint.namespace().unwrap().to_string(), "a/b");
        assert!(endpoint.config.fail_fast && endpoint.is_one_server() && endpoint.client.is_none());
        assert!(Endpoint::of(&Source::Client(Client::default())).unwrap().client.is_some());
    }

    #[test]
    fn sentinels_and_the_primary_behind_them_have_credentials_of_their_own() {
        let url = "redis-sentinel://ada:one@a?sentinelServiceName=m&node=b:1&sentinelUsername=s&sentinelPassword=two";
        let endpoint = Endpoint::parse(url).unwrap();
        let Config { username, password, server, .. } = &endpoint.config;
        assert_eq!((username.as_deref(), password.as_deref()), (Some("ada"), Some("one")));
        let expected = ServerConfig::Sentinel {
            hosts: vec![Server::new("a", 26379), Server::new("b", 1)],
            service_name: "m".into(),
            username: Some("s".into()),
            password: Some("two".into()),
        };
        assert_eq!((server, endpoint.is_one_server()), (&expected, false));
    }

    #[test]
    fn what_is_not_understood_is_refused_without_being_quoted() {
        for url in [
            "",
            "hunter2",
            "http://:hunter2@h",
            "redis-ring://:hunter2@h",
            "redis+unix:///hunter2.sock",
            "redis://:hunter2@",
            "redis:///0",
            "redis:hunter2",
            "redis://:hunter2@h:0",
            "redis://:hunter2@h:65536",
            "redis://:hunter2@h/256",
            "redis://:hunter2@h/0/1",
            "redis://:hunter2@h/x",
            "redis://:hunter2@h?namespce=a",
            "redis://:hunter2@h?namespace=",
            "redis://:hunter2@h?node=b:1",
            "redis://:hunter2@h#x",
            "redis://hunter2@h",
            "redis://ada:@h",
            "redis://:%ff@h",
            "redis-cluster://:hunter2@h/1",
            "redis-cluster://h?node=hunter2:x",
            "redis-cluster://h?node=:hunter2@b:1",
            "redis-cluster://h?node=hunter2@b:1",
            "redis-cluster://h?node=b:1/hunter2",
            "redis-sentinel://:hunter2@h",
            "redis://:hunter2@h?cacert=/ca.pem",
            "redis://:hunter2@h?cert=/c.pem",
            "redis://:hunter2@h?key=/k.pem",
            "rediss://:hunter2@h?cacert=/nowhere/ca.pem",
            "rediss://:hunter2@h?cert=/dev/null",
            "rediss://:hunter2@h?key=/dev/null",
            "rediss://:hunter2@h?cacert=/dev/null",
        ] {
            let error = Endpoint::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{url}");
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_password_that_is_not_encoded_is_refused_before_any_of_it_is_looked_up_or_shown() {
        for scheme in ["redis", "rediss", "valkey", "redis-cluster", "redis-sentinel"] {
            for rest in [
                "u:12/hunter2@h/0",
                "u:12?hunter2@h/0",
                "u:12?namespace=hunter2@h",
                "u:12#hunter2@h/0",
                "u:?hunter2@h",
                ":12/hunter2@h",
                ":a@b?hunter2@h",
            ] {
                let error = Endpoint::parse(&format!("{scheme}://{rest}")).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{rest}");
                assert!(error.to_string().contains("percent-encode"), "{rest}: {error}");
                let told = format!("{error} {error:?} {}", Endpoint::shown(&format!("{scheme}://{rest}")));
                assert!(!told.contains("hunter2"), "{told}");
            }
        }
        assert_eq!(Endpoint::parse("redis://:a@h?namespace=a%40b").unwrap().namespace().unwrap().to_string(), "a@b");
    }

    #[test]
    fn of_two_values_of_a_parameter_none_is_chosen() {
        let parameters = ["namespace=x", "sentinelServiceName=x", "sentinelUsername=x", "sentinelPassword=x"];
        for parameter in parameters.into_iter().chain(["cacert=x", "cert=x", "key=x"]) {
            let url = format!("rediss-sentinel://a?{parameter}&node=b&node=c&{parameter}2");
            let error = Endpoint::parse(&url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert!(error.to_string().contains("is given twice"), "{url}: {error}");
        }
    }

    #[test]
    fn tls_is_switched_on_by_the_scheme_alone_and_refused_in_a_build_without_it() {
        let is_built_in = cfg!(feature = "tls-rustls");
        for url in ["rediss://h", "valkeys://h", "rediss-cluster://h", "rediss-sentinel://h?sentinelServiceName=m"] {
            match Endpoint::parse(url) {
                Ok(endpoint) => assert!(is_built_in && endpoint.config.uses_tls(), "{url}"),
                Err(error) => {
                    assert_eq!((is_built_in, error.kind()), (false, ErrorKind::InvalidOptions), "{error}");
                    assert!(error.to_string().contains("tls-rustls"), "{error}");
                }
            }
        }
        assert!(!Endpoint::parse("redis://h").unwrap().config.uses_tls());
    }
}
