use std::time::Duration;

use fred::types::Builder;
use fred::types::config::{Config, ReconnectError, ReconnectPolicy, Server, ServerConfig, TcpConfig};
use socket2::TcpKeepalive;

/// How long a command may take unless the caller chooses: well below the usual lease, so that a server that does not answer
/// is noticed before a deadline passes.
pub(crate) const DEFAULT_COMMAND_TIMEOUT: Duration = Duration::from_secs(1);

/// How long connecting, and setting a connection up, may take each.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// How many commands may wait for their answers on one connection; more are refused before they are sent.
pub(crate) const MOST_IN_FLIGHT: usize = 10_000;

/// The one place that configures the driver.
///
/// Its defaults are unsafe for locks, each measured: a command whose reply was lost runs again and reports success,
/// a client without a policy hangs for ever after its first lost connection, a command never times out, listeners of
/// signals end without a word when 32 are waiting.
pub(crate) fn builder(config: Config, command_timeout: Duration) -> Builder {
    let mut policy = ReconnectPolicy::new_exponential(0, 50, 2_000, 2);
    policy.set_jitter(50);
    let mut builder = without_reconnecting(config, command_timeout);
    builder.set_policy(policy);
    builder
}

/// Configures a client that ends when its connection breaks, because the next one may lead to another server.
pub(crate) fn without_reconnecting(config: Config, command_timeout: Duration) -> Builder {
    let mut builder = Builder::from_config(config);
    builder
        .with_performance_config(|performance| {
            performance.default_command_timeout = command_timeout;
            performance.broadcast_channel_capacity = 4096;
        })
        .with_connection_config(|connection| {
            connection.connection_timeout = CONNECT_TIMEOUT;
            connection.internal_command_timeout = CONNECT_TIMEOUT;
            connection.max_command_attempts = 1;
            // Above the connection's own bound: a full buffer cannot take the order to reconnect.
            connection.max_command_buffer_len = 2 * MOST_IN_FLIGHT;
            connection.reconnect_errors = vec![
                ReconnectError::ReadOnly,
                ReconnectError::Loading,
                ReconnectError::ClusterDown,
                ReconnectError::MasterDown,
            ];
            connection.tcp = tcp();
        });
    builder
}

/// TCP without delays of small packets, and with an end when the other machine is gone without closing the connection.
fn tcp() -> TcpConfig {
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(10)).with_interval(Duration::from_secs(2)).with_retries(3);
    TcpConfig {
        nodelay: Some(true),
        keepalive: Some(keepalive),
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        user_timeout: Some(Duration::from_secs(5)),
        ..TcpConfig::default()
    }
}

/// The configuration for the connection to one server, with everything else as in the configuration of a set of servers.
pub(crate) fn for_server(server: Server, config: &Config) -> Config {
    Config { server: ServerConfig::Centralized { server }, ..config.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_tried_once_for_a_limited_time_and_a_silent_machine_is_given_up() {
        let limit = Duration::from_millis(123);
        let builder = without_reconnecting(Config::default(), limit);
        let (performance, connection) = (builder.get_performance_config(), builder.get_connection_config());
        assert_eq!(performance.default_command_timeout, limit);
        assert_eq!(connection.max_command_attempts, 1);
        assert_eq!(connection.internal_command_timeout, CONNECT_TIMEOUT);
        assert!(connection.max_command_buffer_len > MOST_IN_FLIGHT);
        assert_eq!(connection.tcp.nodelay, Some(true));
        assert!(connection.tcp.keepalive.is_some());
        #[cfg(target_os = "linux")]
        assert_eq!(connection.tcp.user_timeout, Some(Duration::from_secs(5)));
        assert!(builder.get_policy().is_none());
        assert!(super::builder(Config::default(), limit).get_policy().is_some());
    }
}
