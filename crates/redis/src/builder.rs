/// Writes the methods of a builder over its field `connection`, a [`ConnectionSettings`](crate::ConnectionSettings), into
/// the `impl` block in which it stands, so that they are documented once. Without arguments it writes all methods of a
/// backend on one Redis; with the names of some, those.
///
/// ```
/// # use leasehold_redis::ConnectionSettings;
/// #[derive(Default)]
/// pub struct Builder {
///     connection: ConnectionSettings,
/// }
///
/// impl Builder {
///     leasehold_redis::connection_settings!();
/// }
///
/// let builder = Builder::default().url("redis://127.0.0.1").namespace("shop");
/// assert_eq!(builder.connection.namespace.as_deref(), Some("shop"));
/// ```
#[macro_export]
macro_rules! connection_settings {
    () => {
        $crate::connection_settings!(
            url, client, namespace, command_timeout, confirm_replicas, group_commit
        );
    };
    ($($name:ident),+) => {
        $($crate::connection_settings!(@$name);)+
    };
    (@url) => {
        /// Where the server is: `redis://[[user]:password@]host[:port][/database][?namespace=…]`.
        ///
        /// Also `redis-sentinel://host[:port]?sentinelServiceName=…`, with `&node=host:port` for further Sentinels and
        /// `&sentinelUsername=…&sentinelPassword=…` where they want their own; and `redis-cluster://host[:port]`, with
        /// `?node=host:port` for further nodes to start from. With TLS `rediss…`, and with `?cacert=FILE` and
        /// `?cert=FILE&key=FILE` roots and a certificate of one's own; `valkey…` and `valkeys…` mean the same.
        pub fn url(mut self, url: impl Into<String>) -> Self {
            self.connection.source = Some($crate::Source::Url(url.into()));
            self
        }
    };
    (@client) => {
        /// A client that the caller made, connected and will close, instead of a URL.
        pub fn client(mut self, client: $crate::fred::clients::Client) -> Self {
            self.connection.source = Some($crate::Source::Client(client));
            self
        }
    };
    (@namespace) => {
        /// Keeps the keys of programs that share a Redis apart: 1 to 64 bytes. Wins over the URL's; default `leasehold`.
        pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
            self.connection.namespace = Some(namespace.into());
            self
        }
    };
    (@command_timeout) => {
        /// How long a command may take, from 1 ms to a minute; default 1 s. Renewals take at most a quarter of the lease.
        pub fn command_timeout(mut self, limit: std::time::Duration) -> Self {
            self.connection.command_timeout = limit;
            self
        }
    };
    (@confirm_replicas) => {
        /// Grants and renews only what so many replicas have within that time, from 1 ms to 10 s; by default none is asked.
        /// For a renewal the time is a sixteenth of the lease at most: replicas that are farther away than that lose every lock.
        ///
        /// Replication is asynchronous: without this, a fail-over can forget a grant that was just made, and a primary that
        /// is cut off goes on renewing what its successor grants to others. With it neither happens, as long as the replica
        /// that is promoted is one that confirmed: for certain if all do. A grant that falls short is given back, and the
        /// attempt fails with [`Unavailable`](leasehold_core::ErrorKind::Unavailable), which a waiting acquire rides out; a
        /// renewal that falls short is tried again until the guard's deadline. Each grant takes one more round trip (it is
        /// renewed, with `WAIT` behind that on the same connection), and each batch of renewals one to each primary. Meanwhile the
        /// connection does nothing else: attempts at one moment that all fall short add up, and the last of them fail with
        /// [`Indeterminate`](leasehold_core::ErrorKind::Indeterminate).
        pub fn confirm_replicas(mut self, replicas: u32, within: std::time::Duration) -> Self {
            self.connection.replicas = (replicas, within);
            self
        }
    };
    (@group_commit) => {
        /// Whether acquisitions and releases that come in while others are on their way to the same server are sent together,
        /// as one script (group commit); default yes.
        ///
        /// It carries several times as many of them over the connection, and changes nothing for one that comes alone. In a
        /// Cluster each is sent alone.
        pub fn group_commit(mut self, group_commit: bool) -> Self {
            self.connection.group_commit = group_commit;
            self
        }
    };
}
