use leasehold_core::{EngineOptions, Error, ErrorKind, LocalHandoff, Result};
use leasehold_mysql::{ConnectionSettings, Opened, Pool, connection_settings};

use crate::backend::MysqlRwBackend;
use crate::locker::MysqlRw;
use crate::sql::{LOCKS, READERS, readers_of};
use crate::store::Store;

/// The name of the table unless another is named.
pub(crate) const TABLE_NAME: &str = "leasehold_rw";

/// The settings of a [`MysqlRw`]: a URL or a pool, and what differs from the defaults. Nothing is checked or sent before
/// [`connect`](Self::connect).
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct MysqlRwBuilder {
    connection: ConnectionSettings,
    local_handoff: LocalHandoff,
}

impl MysqlRwBuilder {
    connection_settings!();

    /// Connects, and checks that both tables exist and are as they should be.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) for settings that cannot be used;
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the server cannot be reached;
    /// [`Backend`](crate::ErrorKind::Backend) if the server refuses, or a table is missing or not as it should be.
    pub async fn connect(self) -> Result<MysqlRw> {
        let options = EngineOptions::new().local_handoff(self.local_handoff);
        Ok(MysqlRw::with(self.backend().await?, options))
    }

    /// Connects as [`connect`](Self::connect) does, but without an engine around the backend: for wrappers, and for the
    /// conformance suite.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub async fn backend(self) -> Result<MysqlRwBackend> {
        let opened = self.open().await?;
        let readers = readers_of(&opened.table)?;
        let checked = async {
            LOCKS.check(&opened.sessions, &opened.table).await?;
            READERS.check(&opened.sessions, &readers).await
        };
        if let Err(refused) = checked.await {
            opened.sessions.close().await;
            return Err(refused.with_backend(MysqlRwBackend::NAME));
        }
        Ok(MysqlRwBackend { store: Store::new(opened, &readers) })
    }

    /// Creates both tables unless they exist. The user needs the right to `CREATE`; see "Server requirements".
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub async fn migrate(self) -> Result<()> {
        let opened = self.open().await?;
        let readers = readers_of(&opened.table)?;
        let migrated = async {
            LOCKS.migrate(&opened.sessions, &opened.table).await?;
            READERS.migrate(&opened.sessions, &readers).await
        };
        let migrated = migrated.await;
        opened.sessions.close().await;
        migrated.map_err(|refused| refused.with_backend(MysqlRwBackend::NAME))
    }

    async fn open(self) -> Result<Opened> {
        let opened = self.connection.open(TABLE_NAME).await?;
        if opened.advisory_queue.is_some() {
            // Readers would come one at a time.
            let why = "there is no advisory queue here: it wakes one waiter at a time, and readers go together";
            return Err(Error::new(ErrorKind::InvalidOptions, "connect").detail(why));
        }
        Ok(opened)
    }
}

/// For wrappers that collect the connection settings for several backends.
impl From<ConnectionSettings> for MysqlRwBuilder {
    fn from(connection: ConnectionSettings) -> Self {
        Self { connection, ..Self::default() }
    }
}

impl MysqlRw {
    /// Connects to `mysql://user:password@host/database?namespace=…&table=…`, and checks that both tables exist and are as
    /// they should be.
    ///
    /// # Errors
    /// The errors of [`MysqlRwBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// A builder, for settings other than the defaults.
    pub fn builder() -> MysqlRwBuilder {
        MysqlRwBuilder::default()
    }

    /// Connects to the server of a pool of the caller's; see [`MysqlRwBuilder::pool`].
    ///
    /// # Errors
    /// The errors of [`MysqlRwBuilder::connect`].
    pub async fn from_pool(pool: Pool) -> Result<Self> {
        Self::builder().pool(pool).connect().await
    }

    /// Creates the tables that this URL names unless they exist; see [`MysqlRwBuilder::migrate`].
    ///
    /// # Errors
    /// The errors of [`MysqlRwBuilder::connect`].
    pub async fn migrate(url: &str) -> Result<()> {
        Self::builder().url(url).migrate().await
    }
}
