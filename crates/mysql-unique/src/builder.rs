use leasehold_core::{EngineOptions, LocalHandoff, Result};
use leasehold_mysql::{ConnectionSettings, Pool, connection_settings};

use crate::backend::MysqlUniqueBackend;
use crate::locker::MysqlUnique;
use crate::sql::TABLE;
use crate::store::Store;

/// The name of the table unless another is named.
pub(crate) const TABLE_NAME: &str = "leasehold_locks";

/// The settings of a [`MysqlUnique`]: a URL or a pool, and what differs from the defaults. Nothing is checked or sent
/// before [`connect`](Self::connect).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MysqlUniqueBuilder {
    connection: ConnectionSettings,
    local_handoff: LocalHandoff,
}

impl MysqlUniqueBuilder {
    connection_settings!();

    /// Whether waiters queue in the server, and are woken by it, instead of polling; see [`AdvisoryQueue`]. Off by default.
    ///
    /// The queue takes a connection for each key that is waited for, and for each that is held after a wait: at most as
    /// many as `pool_max` says, beside the connections of the pool.
    ///
    /// [`AdvisoryQueue`]: leasehold_mysql::AdvisoryQueue
    pub fn advisory_queue(self, wanted: bool) -> Self {
        Self { connection: self.connection.advisory_queue(wanted), ..self }
    }

    /// Connects, and checks that the table exists and is as it should be.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) for settings that cannot be used;
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the server cannot be reached;
    /// [`Backend`](crate::ErrorKind::Backend) if the server refuses, or the table is missing or not as it should be.
    pub async fn connect(self) -> Result<MysqlUnique> {
        let options = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(MysqlUnique::with(self.backend().await?, options))
    }

    /// Connects as [`connect`](Self::connect) does, but without an engine around the backend: for wrappers, and for the
    /// conformance suite.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub async fn backend(self) -> Result<MysqlUniqueBackend> {
        let opened = self.connection.open(TABLE_NAME).await?;
        if let Err(refused) = TABLE.check(&opened.sessions, &opened.table).await {
            opened.sessions.close().await;
            return Err(refused.with_backend(MysqlUniqueBackend::NAME));
        }
        Ok(MysqlUniqueBackend { store: Store::new(opened) })
    }

    /// Creates the table unless it exists. The user needs the right to `CREATE`; see "Server requirements".
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub async fn migrate(self) -> Result<()> {
        let opened = self.connection.open(TABLE_NAME).await?;
        let migrated = TABLE.migrate(&opened.sessions, &opened.table).await;
        opened.sessions.close().await;
        migrated.map_err(|refused| refused.with_backend(MysqlUniqueBackend::NAME))
    }
}

/// For wrappers that collect the connection settings for several backends.
impl From<ConnectionSettings> for MysqlUniqueBuilder {
    fn from(connection: ConnectionSettings) -> Self {
        Self { connection, ..Self::default() }
    }
}

impl MysqlUnique {
    /// Connects to `mysql://user:password@host/database?namespace=…&table=…`, and checks that the table exists and is as
    /// it should be.
    ///
    /// # Errors
    /// The errors of [`MysqlUniqueBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// A builder, for settings other than the defaults.
    pub fn builder() -> MysqlUniqueBuilder {
        MysqlUniqueBuilder::default()
    }

    /// Connects to the server of a pool of the caller's; see [`MysqlUniqueBuilder::pool`].
    ///
    /// # Errors
    /// The errors of [`MysqlUniqueBuilder::connect`].
    pub async fn from_pool(pool: Pool) -> Result<Self> {
        Self::builder().pool(pool).connect().await
    }

    /// Creates the table that this URL names unless it exists; see [`MysqlUniqueBuilder::migrate`].
    ///
    /// # Errors
    /// The errors of [`MysqlUniqueBuilder::connect`].
    pub async fn migrate(url: &str) -> Result<()> {
        Self::builder().url(url).migrate().await
    }
}
