#![doc = include_str!("../README.md")]

// In reading order: the steps,
mod backend;
// how a writer gets in,
mod writers;
// how readers do,
mod readers;
// how the one becomes the other,
mod downgrade;
// what an operator sees,
mod operator;
// and what all of it stands on.
mod builder;
mod statements;

use std::time::Duration;

pub use leasehold_core::*;
pub use leasehold_mysql as mysql;

pub use crate::backend::MysqlRwBackend;
pub use crate::builder::MysqlRwBuilder;

/// A reader/writer lock in two tables of MySQL or MariaDB: a row per key, and a row with a lease per reader.
///
/// As a [`Locker`] it is the writers' side.
/// Cloning gives another handle on the same connections and the same queue.
#[derive(Clone, Debug)]
pub struct MysqlRw {
    engine: Engine<MysqlRwBackend>,
}

impl MysqlRw {
    /// Connects, and checks that the tables are there: `mysql://user:password@host/database?namespace=…&table=…`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] for a URL that makes no sense; [`ErrorKind::Unavailable`] if the server cannot be
    /// reached; [`ErrorKind::Backend`] if it refuses, or a table is missing or not as it should be.
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url).connect().await
    }

    /// To connect with other settings.
    pub fn builder() -> MysqlRwBuilder {
        MysqlRwBuilder::default()
    }

    /// On the server of a pool of the caller's; see [`MysqlRwBuilder::pool`].
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn from_pool(pool: mysql::Pool) -> Result<Self> {
        Self::builder().pool(pool).connect().await
    }

    /// What it promises beyond mutual exclusion, before anything is connected.
    pub fn claims() -> Capabilities {
        MysqlRwBackend::claims()
    }

    /// Creates the tables that this URL speaks of, unless they are there. Needs the right to `CREATE`.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub async fn migrate(url: &str) -> Result<()> {
        Self::builder().url(url).migrate().await
    }

    /// Deletes the rows of this namespace whose key is free and was granted last longer than `older_than` ago, and
    /// those of readers that died as long ago, and says how many. Needs the right to `DELETE` from both tables. Nothing
    /// depends on its being run.
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
        collected.map_err(|error| error.with_backend(MysqlRwBackend::NAME))
    }

    /// Refuses: two readers that both waited to become the writer would wait for each other for ever. Release, then
    /// [`write`](RwLockerExt::write), and look again at what was read.
    ///
    /// # Errors
    /// Always [`ErrorKind::Unsupported`].
    pub fn upgrade(&self, guard: &ReadGuard) -> Result<LockGuard> {
        let why = "two readers that wait to become the writer wait for each other; release, then write";
        Err(Error::new(ErrorKind::Unsupported, "upgrade")
            .with_backend(MysqlRwBackend::NAME)
            .key(guard.key())
            .detail(why))
    }

    /// Ends it within 7.5 s; see [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }

    pub(crate) fn with(backend: MysqlRwBackend, settings: EngineOptions) -> Self {
        Self { engine: Engine::with(backend, settings) }
    }
}

impl From<MysqlRwBackend> for MysqlRw {
    fn from(backend: MysqlRwBackend) -> Self {
        Self::with(backend, EngineOptions::new())
    }
}

impl Backed for MysqlRw {
    type Backend = MysqlRwBackend;
    fn engine(&self) -> &Engine<MysqlRwBackend> {
        &self.engine
    }
}
