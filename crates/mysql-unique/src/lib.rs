#![doc = include_str!("../README.md")]

mod backend;
mod builder;
mod statements;

use std::time::Duration;

pub use leasehold_core::*;
pub use leasehold_mysql as mysql;

pub use crate::backend::MysqlUniqueBackend;
pub use crate::builder::MysqlUniqueBuilder;

/// Locks in one table of MySQL or MariaDB: a row per key, kept for ever, claimed by one conditional statement.
///
/// Cloning gives another handle on the same connections and the same queue.
#[derive(Clone, Debug)]
pub struct MysqlUnique {
    engine: Engine<MysqlUniqueBackend>,
}

impl MysqlUnique {
    /// Connects, and checks that the table is there: `mysql://user:password@host/database?namespace=…&table=…`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] for a URL that makes no sense; [`ErrorKind::Unavailable`] if the server cannot be
    /// reached; [`ErrorKind::Backend`] if it refuses, or the table is missing or not as it should be.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// To connect with other settings.
    pub fn builder() -> MysqlUniqueBuilder {
        MysqlUniqueBuilder::default()
    }

    /// On the server of a pool of the caller's; see [`MysqlUniqueBuilder::pool`].
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn from_pool(pool: mysql::Pool) -> Result<Self> {
        Self::builder().pool(pool).connect().await
    }

    /// What it promises beyond mutual exclusion, before anything is connected, and without the doorbell.
    pub fn claims() -> Capabilities {
        MysqlUniqueBackend::claims()
    }

    /// Creates the table that this URL speaks of, unless it is there. Needs the right to `CREATE`.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn migrate(url: &str) -> Result<()> {
        Self::builder().url(url).migrate().await
    }

    /// Deletes the rows of this namespace whose key is free and was granted last longer than `older_than` ago, and
    /// says how many. Needs the right to `DELETE`. Nothing depends on its being run.
    ///
    /// Tokens keep growing: the server's clock is past those of the deleted rows by `older_than`, of which less than a
    /// second counts as a second. A week is a good choice.
    ///
    /// # Errors
    /// As for [`Locker::acquire`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves some of the rows.
    pub async fn gc(&self, older_than: Duration) -> Result<u64> {
        let collected = self.engine.backend().collect(older_than).await;
        collected.map_err(|error| error.with_backend(MysqlUniqueBackend::NAME))
    }

    /// Ends it within 7.5 s; see [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }

    pub(crate) fn with(backend: MysqlUniqueBackend, settings: EngineOptions) -> Self {
        Self { engine: Engine::with(backend, settings) }
    }
}

impl From<MysqlUniqueBackend> for MysqlUnique {
    fn from(backend: MysqlUniqueBackend) -> Self {
        Self::with(backend, EngineOptions::new())
    }
}

impl Backed for MysqlUnique {
    type Backend = MysqlUniqueBackend;
    fn engine(&self) -> &Engine<MysqlUniqueBackend> {
        &self.engine
    }
}
