use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use leasehold_core::{Namespace, Result, Secrets};
use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::failure::{PARSE, refuse};
use crate::schema::Schema;
use crate::tls::{Tls, tls};

/// The largest number of connections that a URL may allow.
const LARGEST_POOL: usize = 1_000;

/// A checked URL: the options for the driver, and the parameters of Leasehold. Neither `Debug` nor any error shows the password.
#[derive(Clone)]
pub(crate) struct Address {
    pub(crate) config: Config,
    /// The servers, without user and password, for errors.
    pub(crate) shown: String,
    /// Where to listen for notifications. `None`: nowhere.
    pub(crate) listen: Option<Config>,
    pub(crate) tls: Tls,
    pub(crate) secrets: Secrets,
    pub(crate) namespace: Namespace,
    pub(crate) schema: Schema,
    pub(crate) group_commit: bool,
    pub(crate) pool_max: usize,
}

impl Address {
    /// Parses a URL. Nothing is sent.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        Secrets::check_encoded(url, PARSE)?;
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(refuse("the URL does not begin with postgres://"));
        }
        let (place, query) = url.split_once('?').unwrap_or((url, ""));
        let mut own = Own::default();
        let mut theirs = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode_str(value).decode_utf8().map_err(|_| refuse(format!("{name} is not UTF-8")))?;
            if !own.take(name, &value)? {
                // A certificate is always verified.
                theirs.push(pair.replace("sslmode=verify-full", "sslmode=require"));
            }
        }
        // The driver's messages name options, and no values.
        let unusable =
            |wrong: tokio_postgres::Error| refuse(format!("the URL cannot be used: {}", crate::failure::text(&wrong)));
        let mut config = Config::from_str(&format!("{place}?{}", theirs.join("&"))).map_err(unusable)?;
        check(&config)?;
        let is_trusted = config.get_password().is_none() || config.get_ssl_mode() != SslMode::Prefer;
        if !is_trusted {
            if own.sslrootcert.is_some() {
                return Err(refuse("sslrootcert is for TLS: add sslmode=require"));
            }
            refuse_network(&config)?;
            // The driver would ask for TLS, and give up on a certificate that a server made for itself.
            config.ssl_mode(SslMode::Disable);
        }
        if config.get_application_name().is_none() {
            config.application_name("leasehold");
        }
        // Of several hosts only the primary is of use, and of one only if it is one.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        let password = config.get_password().map(|password| String::from_utf8_lossy(password).into_owned());
        Ok(Self {
            listen: own.listen_at(place, &config, is_trusted)?,
            tls: tls(&config, own.sslrootcert.as_deref())?,
            secrets: Secrets::of(password.as_deref()),
            shown: shown(&config),
            config,
            namespace: own.namespace.unwrap_or_default(),
            schema: own.schema.unwrap_or_default(),
            group_commit: own.group_commit.unwrap_or(true),
            pool_max: own.pool_max.unwrap_or(8),
        })
    }
}

/// The hosts and ports of a server, or of several.
fn shown(config: &Config) -> String {
    let hosts = config.get_hosts().iter().enumerate().map(|(place, host)| {
        // One port for all of them, or one for each.
        let port = config.get_ports().get(place).or(config.get_ports().first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(folder) => format!("{}:{port}", folder.display()),
        }
    });
    format!("postgres://{}", hosts.collect::<Vec<_>>().join(","))
}

/// Refuses what the driver would only notice later, or not at all.
fn check(config: &Config) -> Result<()> {
    if config.get_hosts().is_empty() || config.get_dbname().is_none() {
        return Err(refuse("the URL names no host or no database: postgres://user@host/database"));
    }
    if config.get_ssl_mode() == SslMode::Require && cfg!(not(feature = "tls-rustls")) {
        return Err(refuse("sslmode=require needs the cargo feature `tls-rustls`"));
    }
    Ok(())
}

/// Refuses an address that is reached through a network, for a password without TLS.
fn refuse_network(config: &Config) -> Result<()> {
    let is_here = |host: &Host| match host {
        Host::Tcp(name) => Secrets::stay_on_this_machine(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    // They are asked instead of the hosts, which then are only names.
    let addresses = config.get_hostaddrs();
    if addresses.iter().all(IpAddr::is_loopback) && (!addresses.is_empty() || config.get_hosts().iter().all(is_here)) {
        return Ok(());
    }
    Err(refuse(
        "without TLS whoever answers at this address can ask for the password, and read it: add sslmode=require (and \
         sslrootcert=/path for a CA of your own), or say that you trust the network by sslmode=disable",
    ))
}

/// The parameters of a URL that are not the driver's.
#[derive(Default)]
struct Own {
    namespace: Option<Namespace>,
    schema: Option<Schema>,
    group_commit: Option<bool>,
    pool_max: Option<usize>,
    listen: Option<String>,
    sslrootcert: Option<String>,
}

impl Own {
    /// Notes a parameter. Answers whether it is one of these.
    fn take(&mut self, name: &str, value: &str) -> Result<bool> {
        let wrong = |takes: &str| refuse(format!("{name} is {takes}, not {value:?}"));
        let twice = match name {
            "namespace" => self.namespace.replace(Namespace::new(value)?).is_some(),
            "schema" => self.schema.replace(Schema::new(value)?).is_some(),
            "group_commit" => self.group_commit.replace(value.parse().map_err(|_| wrong("true or false"))?).is_some(),
            "pool_max" => {
                let size = value.parse().ok().filter(|size| (1..=LARGEST_POOL).contains(size));
                self.pool_max.replace(size.ok_or_else(|| wrong("a number from 1 to 1000"))?).is_some()
            }
            "listen" => self.listen.replace(value.to_owned()).is_some(),
            "sslrootcert" => self.sslrootcert.replace(value.to_owned()).is_some(),
            _ => return Ok(false),
        };
        if twice { Err(refuse(format!("{name} is given twice"))) } else { Ok(true) }
    }

    /// Where to listen: at the address itself, nowhere (`listen=false`), or at another host and port.
    fn listen_at(&self, place: &str, config: &Config, is_trusted: bool) -> Result<Option<Config>> {
        let Some(host) = self.listen.as_deref().filter(|listen| *listen != "true") else {
            return Ok(Some(config.clone()));
        };
        if host == "false" {
            return Ok(None);
        }
        let refused = |_| refuse(format!("listen is true, false, or the host:port of the server itself, not {host:?}"));
        if host.contains(['@', '/', '?', ',']) {
            return Err(refuse("listen is true, false, or the host:port of the server itself"));
        }
        let scheme = place.split("://").next().unwrap_or_default();
        let there = Config::from_str(&format!("{scheme}://{host}/")).map_err(refused)?;
        if !is_trusted {
            refuse_network(&there)?;
        }
        let mut direct = there.clone();
        direct.ssl_mode(config.get_ssl_mode()).target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.get_user().map(|user| direct.user(user));
        config.get_password().map(|password| direct.password(password));
        config.get_dbname().map(|database| direct.dbname(database));
        config.get_application_name().map(|name| direct.application_name(name));
        Ok(Some(direct))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address")
            .field("hosts", &self.config.get_hosts())
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}
