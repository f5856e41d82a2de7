use std::fmt;

use leasehold_core::{Namespace, Result, Secrets};
use mysql_async::{Opts, OptsBuilder};
use url::Url;

use super::encryption::Encryption;
use super::parameters::{PARSE, check_number, check_socket, refuse, with_pool_size};
use crate::names::TableName;

/// A checked `mysql://` URL: the options for the driver, and the parameters of Leasehold.
///
/// Neither `Debug` nor any error shows the password. The driver's own types do.
#[derive(Clone)]
pub(crate) struct Address {
    /// The options for the driver, before [`Connections`](super::connections::Connections) adds its own.
    pub(super) opts: Opts,
    /// The server and the database, without user and password, for errors.
    pub(super) shown: String,
    pub(crate) own: OwnParameters,
}

impl Address {
    /// Parses a URL; see [`ConnectionSettings::url`](crate::ConnectionSettings::url). Nothing is sent.
    pub(crate) fn parse(url: &str) -> Result<Self> {
        Secrets::check_encoded(url, PARSE)?;
        let mut url = Url::parse(url).map_err(|wrong| refuse(format!("the URL cannot be read: {wrong}")))?;
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let (mut own, mut encryption) = (OwnParameters::default(), Encryption::default());
        url.set_query(None);
        for (name, value) in with_pool_size(pairs) {
            if !own.take(&name, &value)? && !encryption.take(&name, &value)? {
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
        let shown = format!("mysql://{}:{}/{}", opts.ip_or_hostname(), opts.tcp_port(), opts.db_name().unwrap_or(""));
        // The driver would look for a host whose name has the brackets of an IPv6 address.
        let plain_host = opts.ip_or_hostname().trim_matches(['[', ']']).to_owned();
        let opts = encryption.apply(OptsBuilder::from_opts(opts).ip_or_hostname(plain_host).into())?;
        Ok(Self { opts, shown, own })
    }
}

/// The parameters of a URL that are not the driver's.
#[derive(Clone, Default)]
pub(crate) struct OwnParameters {
    pub(crate) namespace: Option<Namespace>,
    pub(crate) table: Option<TableName>,
    pub(crate) advisory_queue: Option<bool>,
    pub(crate) group_commit: Option<bool>,
}

impl OwnParameters {
    /// Notes a parameter. Answers whether it is one of these.
    fn take(&mut self, name: &str, value: &str) -> Result<bool> {
        let twice = match name {
            "namespace" => self.namespace.replace(Namespace::new(value)?).is_some(),
            "table" => self.table.replace(TableName::new(value)?).is_some(),
            "advisory_queue" | "group_commit" => {
                let wanted = value.parse().map_err(|_| refuse(format!("{name} is true or false, not {value:?}")))?;
                let ours = if name == "group_commit" { &mut self.group_commit } else { &mut self.advisory_queue };
                ours.replace(wanted).is_some()
            }
            _ => return Ok(false),
        };
        if twice { Err(refuse(format!("{name} is given twice"))) } else { Ok(true) }
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(&self.shown).finish()
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::ErrorKind;

    use super::*;
    use crate::server::parameters::NUMBERS;
    use leasehold_testkit::{corpus_of_urls, shown as shown_chain};

    #[test]
    fn bad_addresses_are_refused_without_showing_the_password() {
        for url in [
            "",
            "canary",
            "mysql:///locks",
            "mysql://u:canary@host",
            "mysql://u:canary@host/",
            "redis://u:canary@host/locks",
            "mysql://u:12/canary@host/locks",
            "mysql://u:canary@host:99999/locks",
            "mysql://u:canary@host/locks?table=a`b",
            "mysql://u:canary@host/locks?table=a&table=b",
            "mysql://u:canary@host/locks?table=",
            "mysql://u:canary@host/locks?advisory_queue=1",
            "mysql://u:canary@host/locks?group_commit=yes",
            "mysql://u:canary@host/locks?no_such_parameter=1",
            "mysql://u:canary@host/locks?pool_min=5&pool_max=1",
            "mysql://u:canary@host/locks?pool_max=0",
            "mysql://u:canary@host/locks?prefer_socket=2",
            "mysql://u:canary@host/locks?prefer_socket=true",
            "mysql://u:canary@host/locks?allow_public_key_retrieval=false",
            "mysql://u:canary@host/locks?require_ssl=false",
            "mysql://u:canary@host/locks?enable_cleartext_plugin=true&allow_public_key_retrieval=true",
            "mysql://u:canary@host/locks?require_ssl=true&ssl_ca=/no/such/file",
            "mysql://u:canary@host/locks?require_ssl=true&ssl_cert=/dev/null",
        ] {
            let error = Address::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{url}");
            assert!(url.is_empty() || !format!("{error} {error:?}").contains(":canary"), "{error:?}");
        }
    }

    #[test]
    fn a_pool_has_the_size_that_the_url_says_or_the_default() {
        for (query, expected) in
            [("", (0, 32)), ("pool_max=5", (0, 5)), ("pool_min=40", (40, 40)), ("pool_min=3&pool_max=4", (3, 4))]
        {
            let address = Address::parse(&format!("mysql://u@host/locks?{query}")).unwrap();
            let constraints = address.opts.pool_opts().constraints();
            assert_eq!((constraints.min(), constraints.max()), expected, "{query}");
        }
    }

    #[test]
    fn numbers_that_no_pool_or_clock_takes_are_refused() {
        let too_many = ["4294967296", "100000000000", "2305843009213693952", "18446744073709551615", "-1", "1e3", ""];
        for (name, number) in NUMBERS.iter().flat_map(|(name, _)| too_many.map(|number| (name, number))) {
            let error = Address::parse(&format!("mysql://u@host/locks?{name}={number}")).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{name}={number}");
            assert!(error.to_string().contains(name), "{name}={number}: {error}");
        }
        for fine in ["pool_max=1000", "pool_min=1000", "conn_ttl=31536000", "stmt_cache_size=0", "tcp_keepalive=1000"] {
            Address::parse(&format!("mysql://u@host/locks?{fine}")).unwrap();
        }
        for bad in
            ["pool_max=1001", "pool_min=1001", "pool_max=5&pool_max=1001", "ttl_check_interval=0", "tcp_keepalive=999"]
        {
            Address::parse(&format!("mysql://u@host/locks?{bad}")).unwrap_err();
        }
    }

    #[test]
    fn an_ipv6_address_has_brackets_only_where_it_is_shown() {
        let address = Address::parse("mysql://u@[::1]:3307/locks").unwrap();
        assert_eq!(address.opts.ip_or_hostname(), "::1");
        assert_eq!(address.shown, "mysql://[::1]:3307/locks");
    }

    #[test]
    fn whatever_the_url_is_it_is_understood_or_refused_and_its_password_is_not_shown() {
        corpus_of_urls(include_str!("../../corpus/urls.txt"), |url| match Address::parse(url) {
            Ok(address) => format!("{address:?}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{url}: {error}");
                format!("{} {error:?}", shown_chain(&error))
            }
        });
    }
}
