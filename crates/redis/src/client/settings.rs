use std::time::Duration;

use leasehold_core::{Error, ErrorKind, Result};

use crate::client::confirmation::Confirmation;
use crate::client::driver::DEFAULT_COMMAND_TIMEOUT;
use crate::client::endpoint::{Endpoint, Source};
use crate::keyspace::names::Namespace;

/// What the builders of the backends have in common; [`connection_settings!`](crate::connection_settings) writes their
/// methods. Nothing is checked or sent before [`Store::open`](crate::Store::open).
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// Where the server is. It is an error to leave it out.
    pub source: Option<Source>,
    /// The namespace of all names. Wins over the URL's.
    pub namespace: Option<String>,
    /// How long a command may take, from 1 ms to a minute.
    pub command_timeout: Duration,
    /// How many replicas have to confirm a grant or a renewal, and how long they may take, from 1 ms to 10 s. 0: none has to.
    pub replicas: (u32, Duration),
    /// Whether script functions that come in while others are on their way are sent in one batch.
    pub group_commit: bool,
}

impl ConnectionSettings {
    /// Checks everything, and reads the URL.
    pub(crate) fn check(&self) -> Result<(Endpoint, Namespace)> {
        check_setting("command_timeout", self.command_timeout, Duration::from_millis(1), Duration::from_secs(60))?;
        self.confirmation().map_or(Ok(()), Confirmation::check)?;
        let namespace = self.namespace.clone().map(Namespace::new).transpose()?;
        let none = || Error::new(ErrorKind::InvalidOptions, "connect").detail("give it a url or a client");
        let endpoint = Endpoint::of(self.source.as_ref().ok_or_else(none)?)?;
        let namespace = namespace.or_else(|| endpoint.namespace().cloned()).unwrap_or_default();
        Ok((endpoint, namespace))
    }

    pub(crate) fn confirmation(&self) -> Option<Confirmation> {
        let (replicas, within) = self.replicas;
        Confirmation::of(replicas, within)
    }
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            source: None,
            namespace: None,
            command_timeout: DEFAULT_COMMAND_TIMEOUT,
            replicas: (0, Duration::ZERO),
            group_commit: true,
        }
    }
}

/// Checks that a setting is within its bounds.
///
/// # Errors
/// [`InvalidOptions`](ErrorKind::InvalidOptions), with the name of the setting and the bounds, when it is not.
pub fn check_setting(name: &str, value: Duration, least: Duration, most: Duration) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let detail = format!("a {name} of {value:?} is outside {least:?} to {most:?}");
    Err(Error::new(ErrorKind::InvalidOptions, "connect").detail(detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> ConnectionSettings {
        ConnectionSettings {
            source: Some(Source::Url("redis://h?namespace=a".into())),
            ..ConnectionSettings::default()
        }
    }

    #[test]
    fn settings_at_their_bounds_are_taken_and_beyond_them_refused() {
        let ms = Duration::from_millis(1);
        let command_timeout = |command_timeout| ConnectionSettings { command_timeout, ..settings() };
        let replicas = |count, within| ConnectionSettings { replicas: (count, within), ..settings() };
        for taken in [
            command_timeout(ms),
            command_timeout(Duration::from_secs(60)),
            replicas(1, ms),
            replicas(1, Duration::from_secs(10)),
            replicas(0, Duration::ZERO),
        ] {
            assert!(taken.check().is_ok(), "{taken:?}");
        }
        for refused in [
            command_timeout(ms / 2),
            command_timeout(Duration::from_secs(60) + ms),
            replicas(1, ms / 2),
            replicas(1, Duration::from_secs(10) + ms),
        ] {
            assert_eq!(refused.check().unwrap_err().kind(), ErrorKind::InvalidOptions, "{refused:?}");
        }
    }

    #[test]
    fn the_namespace_of_the_settings_wins_over_that_of_the_url() {
        let namespace = |settings: ConnectionSettings| settings.check().unwrap().1.to_string();
        assert_eq!(namespace(settings()), "a");
        assert_eq!(namespace(ConnectionSettings { namespace: Some("b".into()), ..settings() }), "b");
        let nowhere = ConnectionSettings::default().check().unwrap_err();
        assert_eq!(nowhere.kind(), ErrorKind::InvalidOptions);
    }
}
