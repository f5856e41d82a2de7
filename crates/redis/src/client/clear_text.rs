use fred::types::config::{Config, Server, ServerConfig};
use leasehold_core::Secrets;

use crate::client::endpoint::Endpoint;

/// Warns of a password that goes over a network without TLS. A refusal would break the URLs that every client of Redis takes.
///
/// The event has the path of this module as its target, by which a program can show it alone.
pub(crate) fn warn_of(endpoint: &Endpoint) {
    if tells_the_network_the_password(&endpoint.config) {
        let server = endpoint.to_string();
        tracing::warn!("everybody on the way to {server} can read the password; with TLS (rediss…) nobody can");
    }
}

fn tells_the_network_the_password(config: &Config) -> bool {
    let of_sentinels = matches!(config.server, ServerConfig::Sentinel { password: Some(_), .. });
    let is_here = |server: &Server| Secrets::stay_on_this_machine(&server.host);
    (of_sentinels || config.password.is_some()) && !config.uses_tls() && !config.server.hosts().iter().all(is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_told_to_a_network_only_by_a_url_that_has_one_and_no_tls() {
        for (url, tells) in [
            ("redis://h", false),
            ("redis://:pw@h", true),
            ("redis://ada:pw@10.0.0.1", true),
            ("redis://:pw@localhost:7000", false),
            ("redis://:pw@127.0.0.1", false),
            ("redis://:pw@[::1]", false),
            ("redis-cluster://:pw@localhost?node=b:7001", true),
            ("redis-sentinel://a?sentinelServiceName=m&sentinelPassword=pw", true),
            ("redis-sentinel://localhost?sentinelServiceName=m&sentinelPassword=pw", false),
            #[cfg(feature = "tls-rustls")]
            ("rediss://:pw@h", false),
        ] {
            assert_eq!(tells_the_network_the_password(&Endpoint::parse(url).unwrap().config), tells, "{url}");
        }
    }
}
