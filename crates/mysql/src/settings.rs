use std::fmt;

use leasehold_core::{BoxFuture, Error, ErrorKind, Namespace, Result};
use mysql_async::Pool;

use crate::advisory_queue::queue::AdvisoryQueue;
use crate::names::TableName;
use crate::server::address::{Address, OwnParameters};
use crate::server::sessions::Sessions;

/// The connection settings that every builder of a MySQL backend has: the server, the namespace and the table.
///
/// [`connection_settings!`](crate::connection_settings) gives a builder the methods for them.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct ConnectionSettings {
    server: Option<Server>,
    namespace: Option<String>,
    table: Option<String>,
    advisory_queue: bool,
    group_commit: Option<bool>,
}

#[derive(Clone)]
enum Server {
    Url(String),
    Pool(Pool),
}

/// What [`ConnectionSettings::open`] makes of the connection settings.
#[derive(Debug)]
pub struct Opened {
    /// The connections. Nothing has been sent on them.
    pub sessions: Sessions,
    /// The namespace of the keys.
    pub namespace: Namespace,
    /// The table of the keys.
    pub table: TableName,
    /// The queue of waiters in the server, if the settings ask for it.
    pub advisory_queue: Option<AdvisoryQueue>,
    /// Whether claims and releases that come in at the same time are sent together; see [`GroupCommit`](crate::GroupCommit).
    pub group_commit: bool,
}

impl ConnectionSettings {
    /// The server, as `mysql://user:password@host:port/database?namespace=…&table=…&advisory_queue=…&group_commit=…`.
    ///
    /// The URL may also have the parameters of the driver, and for TLS `ssl_ca=`, `ssl_cert=` and `ssl_key=`, each the
    /// path of a PEM file. On a network a password needs TLS, or `allow_public_key_retrieval=true`; see the README. An `@` anywhere
    /// but before the host is written `%40`.
    pub fn url(self, url: impl Into<String>) -> Self {
        Self { server: Some(Server::Url(url.into())), ..self }
    }

    /// The server of this pool, reached by connections of our own with the pool's options. The pool is asked for one
    /// connection, once, and gets it back as it was.
    pub fn pool(self, pool: Pool) -> Self {
        Self { server: Some(Server::Pool(pool)), ..self }
    }

    /// The namespace of the keys, instead of the URL's: 1 to 64 bytes without NUL.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// The table of the keys, instead of the URL's; see [`TableName::new`].
    pub fn table(self, table: impl Into<String>) -> Self {
        Self { table: Some(table.into()), ..self }
    }

    /// Whether waiters queue in the server; see [`AdvisoryQueue`]. `advisory_queue=true` in the URL asks for it, too.
    pub fn advisory_queue(self, wanted: bool) -> Self {
        Self { advisory_queue: wanted, ..self }
    }

    /// Whether claims and releases that come in at the same time are sent together, instead of what the URL says;
    /// `group_commit=false` in the URL turns it off, too.
    pub fn group_commit(self, wanted: bool) -> Self {
        Self { group_commit: Some(wanted), ..self }
    }

    /// Checks the settings, and makes the connections of them. `default_table` is used if neither the settings nor the
    /// URL name a table. Only a pool is asked for a connection; for a URL nothing is sent.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] for settings that cannot be used, and for a pool whose connection left the address for
    /// a local socket; and the errors of connecting, for a pool.
    pub fn open(self, default_table: &'static str) -> BoxFuture<'static, Result<Opened>> {
        Box::pin(async move {
            let address = match &self.server {
                Some(Server::Url(url)) => Some(Address::parse(url)?),
                Some(Server::Pool(_)) | None => None,
            };
            let in_url = address.as_ref().map_or_else(OwnParameters::default, |address| address.own.clone());
            let namespace = self.namespace.as_deref().map(Namespace::new).transpose()?;
            let namespace = namespace.or(in_url.namespace).unwrap_or_default();
            let table = self.table.as_deref().map(TableName::new).transpose()?.or(in_url.table);
            let table = table.map_or_else(|| TableName::new(default_table), Ok)?;
            let queues = self.advisory_queue || in_url.advisory_queue.unwrap_or(false);
            let group_commit = self.group_commit.or(in_url.group_commit).unwrap_or(true);
            let sessions = match (&self.server, &address) {
                (Some(Server::Pool(pool)), _) => Sessions::like(pool).await?,
                (_, Some(address)) => Sessions::new(address),
                _ => return Err(Error::new(ErrorKind::InvalidOptions, "connect").detail("neither a URL nor a pool")),
            };
            let advisory_queue = queues.then(|| AdvisoryQueue::new(&sessions, &namespace, &table));
            Ok(Opened { sessions, namespace, table, advisory_queue, group_commit })
        })
    }
}

/// The methods for the connection settings that the builders of all MySQL backends share. To be invoked inside of
/// `impl XBuilder { … }`, for a builder with the fields `connection: ConnectionSettings` and `local_handoff: LocalHandoff`.
#[macro_export]
macro_rules! connection_settings {
    () => {
        /// The server, as `mysql://user:password@host:port/database`, with parameters for all other settings; see
        /// [`ConnectionSettings::url`](leasehold_mysql::ConnectionSettings::url).
        pub fn url(self, url: impl Into<String>) -> Self {
            Self { connection: self.connection.url(url), ..self }
        }

        /// The server of this pool instead of a URL, reached by connections of our own with the pool's options. The pool
        /// must not belong to another tokio runtime.
        ///
        /// The pool is asked for one connection, once, and gets it back as it was. It is refused if that connection
        /// left the address for a local socket, as the driver does by default: say `prefer_socket(false)` in its options.
        pub fn pool(self, pool: $crate::Pool) -> Self {
            Self { connection: self.connection.pool(pool), ..self }
        }

        /// The namespace, which keeps the keys of two programs in one table apart: 1 to 64 bytes. `leasehold` by default.
        pub fn namespace(self, namespace: impl Into<String>) -> Self {
            Self { connection: self.connection.namespace(namespace), ..self }
        }

        /// The table of the keys: letters, digits and underscores, at most 64. The README says the default, and which
        /// other tables are named after it.
        pub fn table(self, table: impl Into<String>) -> Self {
            Self { connection: self.connection.table(table), ..self }
        }

        /// Whether acquisitions and releases that come in while another is on its way are sent together, by one statement
        /// and one commit (group commit); default yes. `group_commit=false` in the URL turns it off, too.
        ///
        /// It carries several times as many of them, and changes nothing for one that comes alone.
        pub fn group_commit(self, wanted: bool) -> Self {
            Self { connection: self.connection.group_commit(wanted), ..self }
        }

        /// How far a lease may pass from guard to guard inside of this process without asking the server.
        pub fn local_handoff(self, local_handoff: LocalHandoff) -> Self {
            Self { local_handoff, ..self }
        }
    };
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Either may hold a password.
        f.write_str(match self {
            Self::Url(_) => "Url",
            Self::Pool(_) => "Pool",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "mysql://u:canary@h/locks?namespace=a&table=t&advisory_queue=true&group_commit=false&\
                       allow_public_key_retrieval=true";

    async fn opened(settings: ConnectionSettings) -> Opened {
        settings.open("locks").await.expect("settings that can be used")
    }

    #[tokio::test]
    async fn settings_win_over_the_url_and_the_url_over_the_defaults() {
        let in_url = ConnectionSettings::default().url(URL);
        assert!(!format!("{in_url:?}").contains("canary"), "{in_url:?}");
        let in_url = opened(in_url).await;
        assert_eq!((in_url.namespace.as_str(), in_url.table.as_str()), ("a", "t"));
        assert!(in_url.advisory_queue.is_some() && !in_url.group_commit);
        let shown = format!("{in_url:?}");
        assert!(shown.contains("mysql://h:3306/locks") && !shown.contains("canary"), "{shown}");
        let set = ConnectionSettings::default().url(URL).namespace("b").table("s").group_commit(true);
        let set = opened(set).await;
        assert_eq!((set.namespace.as_str(), set.table.as_str(), set.group_commit), ("b", "s", true));
        let plain = || ConnectionSettings::default().url("mysql://u@h/locks");
        let default = opened(plain()).await;
        assert_eq!((default.namespace, default.table.as_str()), (Namespace::default(), "locks"));
        assert!(default.advisory_queue.is_none() && default.group_commit);
        assert!(opened(plain().advisory_queue(true)).await.advisory_queue.is_some());
        assert!(!opened(plain().group_commit(false)).await.group_commit);
    }
}
