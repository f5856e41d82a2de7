use fred::error::Error as DriverError;
use fred::types::config::{Config, ServerConfig};
use leasehold_core::Secrets;

/// The passwords of a connection.
pub(crate) fn of(config: &Config) -> Secrets {
    let sentinels = match &config.server {
        ServerConfig::Sentinel { password, .. } => password.as_deref(),
        _ => None,
    };
    Secrets::of([config.password.as_deref(), sentinels].into_iter().flatten())
}

/// An error without the passwords, on one line. Called after an error was classified, because its text is what is classified.
pub(crate) fn keep_out(secrets: &Secrets, error: &DriverError) -> DriverError {
    // A server that does not know a command quotes its arguments, and those of AUTH are a password; cut short, it
    // would not be found.
    let told = error.details().split(", with args beginning with").next().unwrap_or_default();
    DriverError::new(error.kind().clone(), secrets.quote(told))
}

#[cfg(test)]
mod tests {
    use crate::client::endpoint::Endpoint;

    #[test]
    fn the_passwords_of_servers_and_of_sentinels_are_secrets() {
        let url = "redis-sentinel://:p%22w%2F@h?sentinelServiceName=m&sentinelPassword=hunter2";
        let secrets = super::of(&Endpoint::parse(url).expect("a good URL").config);
        for secret in ["p\"w/", "p%22w%2f", "hunter2"] {
            assert!(!secrets.hide(&format!("m {secret}")).contains(secret), "{secret}");
        }
        assert_eq!(secrets.hide("m"), "m");
    }
}
