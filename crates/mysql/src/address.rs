mod encryption;

use std::fmt;
use std::ops::RangeInclusive;

use leasehold_core::{Error, ErrorKind, Result, Secrets};
use mysql_async::{Opts, OptsBuilder};
use url::Url;

use self::encryption::Encryption;
use crate::{Namespace, TableName};

/// Where the server is and what is ours there: a checked `mysql://` URL with our own parameters taken out of it.
///
/// Nothing is sent. Neither `Debug` nor any error shows the password; the driver's own types do.
#[derive(Clone)]
pub struct Address {
    opts: Opts,
    shown: String,
    /// Of `?namespace=`.
    pub namespace: Option<Namespace>,
    /// Of `?table=`.
    pub table: Option<TableName>,
    /// Of `?doorbell=true`.
    pub doorbell: bool,
}

/// The most connections of a pool whose URL does not say.
const ORDINARY: usize = 32;

/// The most connections of a pool. The driver takes memory for all of them at once, and ends the process without it.
const MOST: usize = 1_000;

const YEAR: u64 = 365 * 24 * 3600;

/// The driver's parameters that are numbers: it takes any, and some make it panic or abort.
const NUMBERS: [(&str, RangeInclusive<u64>); 11] = [
    ("pool_min", 0..=MOST as u64),
    ("pool_max", 1..=MOST as u64),
    ("inactive_connection_ttl", 0..=YEAR),
    ("ttl_check_interval", 1..=YEAR),
    ("conn_ttl", 0..=YEAR),
    ("abs_conn_ttl", 0..=YEAR),
    ("abs_conn_ttl_jitter", 0..=YEAR),
    ("tcp_keepalive", 1_000..=24 * 3_600_000),
    ("max_allowed_packet", 1_024..=1 << 30),
    ("wait_timeout", 1..=YEAR),
    ("stmt_cache_size", 0..=10_000),
];

impl Address {
    /// Reads `mysql://user:password@host:port/database?namespace=…&table=…&doorbell=…`, the driver's own parameters,
    /// and of TLS `ssl_ca=`, `ssl_cert=` and `ssl_key=`, each the path of a PEM file. A password needs TLS, or
    /// `allow_public_key_retrieval=true`; see the README. An `@` anywhere but before the host is written `%40`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`], in words that show no credential.
    pub fn parse(url: &str) -> Result<Self> {
        Secrets::check_encoded(url, READING)?;
        let mut url = Url::parse(url).map_err(|wrong| refuse(format!("the URL cannot be read: {wrong}")))?;
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let (mut ours, mut encryption) = (Ours::default(), Encryption::default());
        url.set_query(None);
        for (name, value) in sized(pairs) {
            if !ours.takes(&name, &value)? && !encryption.takes(&name, &value)? {
                check_socket(&name, &value)?;
                check_number(&name, &value)?;
                url.query_pairs_mut().append_pair(&name, &value);
            }
        }
        if encryption.is_wanted()? {
            url.query_pairs_mut().append_pair("require_ssl", "true");
        }
        // The driver checks scheme, host and values; its messages show parameters, and those are no secrets.
        let opts = Opts::from_url(url.as_str()).map_err(|wrong| refuse(wrong.to_string()))?;
        if opts.db_name().is_none() {
            return Err(refuse("the URL names no database: mysql://user@host/database"));
        }
        let opts = encryption.of(with_plain_host(opts))?;
        let host = if opts.ip_or_hostname().contains(':') {
            format!("[{}]", opts.ip_or_hostname())
        } else {
            opts.ip_or_hostname().into()
        };
        let shown = format!("mysql://{}:{}/{}", host, opts.tcp_port(), opts.db_name().unwrap_or(""));
        let doorbell = ours.doorbell.unwrap_or(false);
        Ok(Self { opts, shown, namespace: ours.namespace, table: ours.table, doorbell })
    }

    /// What the driver needs, but for what [`Connections`](crate::connections::Connections) sets.
    pub(crate) fn opts(&self) -> &Opts {
        &self.opts
    }
}

#[derive(Default)]
struct Ours {
    namespace: Option<Namespace>,
    table: Option<TableName>,
    doorbell: Option<bool>,
}

impl Ours {
    /// Whether the parameter is one of ours.
    fn takes(&mut self, name: &str, value: &str) -> Result<bool> {
        let twice = match name {
            "namespace" => self.namespace.replace(Namespace::new(value)?).is_some(),
            "table" => self.table.replace(TableName::new(value)?).is_some(),
            "doorbell" => {
                let wanted = value.parse().map_err(|_| refuse(format!("doorbell is true or false, not {value:?}")))?;
                self.doorbell.replace(wanted).is_some()
            }
            _ => return Ok(false),
        };
        if twice { Err(refuse(format!("{name} is given twice"))) } else { Ok(true) }
    }
}

fn check_number(name: &str, value: &str) -> Result<()> {
    let Some((_, range)) = NUMBERS.iter().find(|(known, _)| *known == name) else { return Ok(()) };
    if value.parse().is_ok_and(|number: u64| range.contains(&number)) {
        return Ok(());
    }
    Err(refuse(format!("{name} is a number from {} to {}, not {value:?}", range.start(), range.end())))
}

/// The driver would look for a host whose name has the brackets of an IPv6 address.
fn with_plain_host(opts: Opts) -> Opts {
    let host = opts.ip_or_hostname().trim_matches(['[', ']']).to_owned();
    OptsBuilder::from_opts(opts).ip_or_hostname(host).into()
}

/// The driver's way to a local socket may lead to another server than the address; see the README.
fn check_socket(name: &str, value: &str) -> Result<()> {
    if name == "prefer_socket" && value == "true" {
        return Err(refuse(
            "prefer_socket is always off: the server's path may be another server's here; say socket=/path",
        ));
    }
    Ok(())
}

/// The size of the pool, where the URL leaves it open: the driver would keep ten idle connections, and refuse a smaller
/// limit.
fn sized(mut pairs: Vec<(String, String)>) -> Vec<(String, String)> {
    let given = |wanted: &str| pairs.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    let (min, max) = (given("pool_min"), given("pool_max"));
    let least = min.as_ref().and_then(|min| min.parse().ok()).unwrap_or(0);
    if min.is_none() {
        pairs.push(("pool_min".into(), "0".into()));
    }
    if max.is_none() {
        pairs.push(("pool_max".into(), ORDINARY.max(least).to_string()));
    }
    pairs
}

/// What an error says was being done.
const READING: &str = "read the address";

fn refuse(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOptions, READING).detail(why)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn our_own_parameters_are_taken_out() {
        let url = "mysql://u@db.example:3307/locks?namespace=billing&doorbell=true&table=l_1&prefer_socket=false";
        let address = Address::parse(url).unwrap();
        assert_eq!(address.namespace, Some(Namespace::new("billing").unwrap()));
        assert_eq!(address.table, Some(TableName::new("l_1").unwrap()));
        assert!(address.doorbell);
        assert_eq!(address.to_string(), "mysql://db.example:3307/locks");
        assert_eq!(format!("{address:?}"), r#"Address("mysql://db.example:3307/locks")"#);
    }

    #[test]
    fn bad_addresses_are_refused_without_showing_the_password() {
        for url in [
            "",
            "canary",
            "mysql:///locks",
            "mysql://u:canary@host",
            "mysql://u:canary@host/",
            "redis://u:canary@host/locks",
            "mysql://u:canary@host:99999/locks",
            "mysql://u:canary@host/locks?table=a`b",
            "mysql://u:canary@host/locks?table=a&table=b",
            "mysql://u:canary@host/locks?table=",
            "mysql://u:canary@host/locks?doorbell=1",
            "mysql://u:canary@host/locks?no_such_parameter=1",
            "mysql://u:canary@host/locks?pool_min=5&pool_max=1",
            "mysql://u:canary@host/locks?pool_max=0",
            "mysql://u:canary@host/locks?prefer_socket=2",
            "mysql://u:canary@host/locks?prefer_socket=true",
            "mysql://u:canary@host/locks?allow_public_key_retrieval=1",
            "mysql://u:canary@host/locks?allow_public_key_retrieval=false",
            "mysql://u:canary@host/locks?require_ssl=false",
            "mysql://u:canary@host/locks?enable_cleartext_plugin=true&allow_public_key_retrieval=true",
            "mysql://u:canary@host/locks?verify_ca=true&require_ssl=false",
            "mysql://u:canary@host/locks?require_ssl=true&ssl_ca=/no/such/file",
            "mysql://u:canary@host/locks?require_ssl=true&ssl_cert=/dev/null",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{url}");
            assert!(url.is_empty() || !format!("{error} {error:?}").contains(":canary"), "{error:?}");
        }
    }

    #[test]
    fn a_pool_is_as_large_as_the_url_says_or_ordinary() {
        for (query, expected) in
            [("", (0, 32)), ("pool_max=5", (0, 5)), ("pool_min=40", (40, 40)), ("pool_min=3&pool_max=4", (3, 4))]
        {
            let address = Address::parse(&format!("mysql://u@host/locks?{query}")).unwrap();
            let constraints = address.opts.pool_opts().constraints();
            assert_eq!((constraints.min(), constraints.max()), expected, "{query}");
        }
    }

    #[test]
    fn a_password_that_is_not_encoded_is_refused_before_any_of_it_is_looked_up_or_shown() {
        for url in [
            "mysql://u:12/canary@h/db",
            "mysql://u:12?canary@h/db",
            "mysql://u:12#canary@h/db",
            "mysql://u:/canary@h/db",
            "mysql://u:?canary@h/db",
            "mysql://u:#canary@h/db",
            "mysql://u:a@b/canary@h/db",
            "mysql://u@h/db?canary@=1",
            "mysql:/u:canary@h/db",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{url}");
            assert!(error.to_string().contains("percent-encode"), "{url}: {error}");
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
        let encoded = Address::parse("mysql://u%40x:1%2F2%3F3@h/d%40b?allow_public_key_retrieval=true").unwrap();
        assert_eq!((encoded.opts.pass(), encoded.opts.db_name()), (Some("1/2?3"), Some("d@b")));
    }

    #[test]
    fn numbers_that_no_pool_or_clock_takes_are_refused() {
        let all = [
            "pool_min",
            "pool_max",
            "inactive_connection_ttl",
            "ttl_check_interval",
            "conn_ttl",
            "abs_conn_ttl",
            "abs_conn_ttl_jitter",
            "tcp_keepalive",
            "max_allowed_packet",
            "wait_timeout",
            "stmt_cache_size",
        ];
        let too_many = ["4294967296", "100000000000", "2305843009213693952", "18446744073709551615", "-1", "1e3", ""];
        for (name, number) in all.iter().flat_map(|name| too_many.map(|number| (name, number))) {
            let error = Address::parse(&format!("mysql://u@host/locks?{name}={number}")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{name}={number}");
            assert!(error.to_string().contains(name), "{name}={number}: {error}");
        }
        for fine in ["pool_max=1000", "pool_min=1000", "conn_ttl=31536000", "stmt_cache_size=0", "tcp_keepalive=1000"] {
            Address::parse(&format!("mysql://u@host/locks?{fine}")).unwrap();
        }
        for bad in ["pool_max=1001", "pool_min=1001", "pool_max=5&pool_max=1001", "ttl_check_interval=0"] {
            Address::parse(&format!("mysql://u@host/locks?{bad}")).unwrap_err();
        }
    }

    #[test]
    fn a_password_goes_to_who_was_asked_for_only() {
        let needs_tls = Address::parse("mysql://u:canary@host/locks").unwrap_err().to_string();
        assert!(needs_tls.contains("require_ssl=true") && needs_tls.contains("allow_public_key_retrieval=true"));
        for fine in [
            "u:canary@host/locks?allow_public_key_retrieval=true",
            "u:canary@host/locks?socket=/s",
            "u@host/l",
            "u:@host/l",
        ] {
            Address::parse(&format!("mysql://{fine}")).unwrap();
        }
    }

    #[test]
    fn an_address_of_version_6_keeps_its_brackets_in_what_is_shown_alone() {
        let address = Address::parse("mysql://u@[::1]:3307/locks").unwrap();
        assert_eq!(address.opts.ip_or_hostname(), "::1");
        assert_eq!(address.to_string(), "mysql://[::1]:3307/locks");
    }

    #[cfg(feature = "tls-rustls")]
    #[test]
    fn whatever_is_said_of_certificates_asks_for_tls() {
        for (word, both) in [("ssl_ca", ""), ("ssl-ca", ""), ("verify_ca", ""), ("ssl_cert", "&ssl-key=/dev/null")] {
            let value = if word == "verify_ca" { "true" } else { "/dev/null" };
            let address = Address::parse(&format!("mysql://u:p@host/locks?{word}={value}{both}")).unwrap();
            assert!(address.opts.ssl_opts().is_some(), "{word}");
        }
    }

    #[cfg(not(feature = "tls-rustls"))]
    #[test]
    fn tls_without_the_feature_is_an_error_and_no_panic() {
        let error = Address::parse("mysql://u@host/locks?require_ssl=true").unwrap_err();
        assert!(error.to_string().contains("tls-rustls"), "{error}");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*", query in "[ -~]{0,40}") {
            let _ = Address::parse(&text);
            let _ = Address::parse(&format!("mysql://u:p@h/db?{query}"));
        }
    }
}
