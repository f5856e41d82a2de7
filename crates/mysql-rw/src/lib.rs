#![doc = include_str!("../README.md")]

// In reading order: the steps,
mod backend;
// how a writer gets in,
mod writers;
// how readers do,
mod readers;
// how the one becomes the other,
mod step_down;
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
use crate::step_down::StepDown;

/// A reader/writer lock in two tables of MySQL or MariaDB: a row per key, and a row with a lease per reader.
///
/// As a [`Locker`] it is the writers' side.
/// Cloning gives another handle on the same connections and the same queue.
#[derive(Clone, Debug)]
pub struct MysqlRw {
    engine: Engine<MysqlRwBackend>,
    /// For readers that were writers: a queue of their own, for in the other they would wait behind who waits for them.
    stepped_down: Engine<StepDown>,
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
        collected.map_err(|error| error.backend(MysqlRwBackend::NAME))
    }

    /// Makes a reader of a writer, without a moment in which the key could go to another writer.
    ///
    /// The reader has a lease, a token and an owner of its own; of `options`, the wait is of no matter.
    ///
    /// # Errors
    /// [`ErrorKind::Lost`] if it was lost before; else as for [`Locker::acquire`]. Either way the guard is gone, and
    /// what it held is released.
    ///
    /// # Cancel safety
    /// Dropping the future releases the lock, at once or when the lease is over.
    pub async fn downgrade(&self, guard: LockGuard, options: &LockOptions) -> Result<ReadGuard> {
        let key = guard.key().clone();
        let error = |kind| Error::new(kind, "downgrade").backend(MysqlRwBackend::NAME).key(&key);
        if let Some(reason) = guard.loss() {
            return Err(error(ErrorKind::Lost(reason)));
        }
        let writer = guard.hand_off().ok_or_else(|| error(ErrorKind::Lost(LossReason::Expired)))?;
        self.stepped_down.backend().announce(&writer)?;
        let failed = match self.stepped_down.acquire_read(&key, &options.clone().wait(Wait::Never)).await {
            Ok(Some(reader)) => return Ok(reader),
            Ok(None) => error(ErrorKind::Lost(LossReason::Stolen)),
            Err(failed) => failed,
        };
        // Taken back, to be released with all the patience that a guard's release has.
        drop(self.engine.adopt(&writer, options).await);
        Err(failed)
    }

    /// Refuses: two readers that both waited to become the writer would wait for each other for ever. Release, then
    /// [`write`](RwLockerExt::write), and look again at what was read.
    ///
    /// # Errors
    /// Always [`ErrorKind::Unsupported`].
    pub fn upgrade(&self, guard: &ReadGuard) -> Result<LockGuard> {
        let why = "two readers that wait to become the writer wait for each other; release, then write";
        Err(Error::new(ErrorKind::Unsupported, "upgrade").backend(MysqlRwBackend::NAME).key(guard.key()).detail(why))
    }

    /// Ends it within 7.5 s; see [`Engine::close`].
    pub async fn close(&self) {
        // Both have to release before the connections end.
        tokio::join!(self.stepped_down.wind_up(), self.engine.wind_up());
        self.engine.close().await;
    }

    pub(crate) fn with(backend: MysqlRwBackend, settings: Settings) -> Self {
        let stepped_down = Engine::with(StepDown::new(backend.clone()), settings.clone());
        Self { stepped_down, engine: Engine::with(backend, settings) }
    }
}

impl From<MysqlRwBackend> for MysqlRw {
    fn from(backend: MysqlRwBackend) -> Self {
        Self::with(backend, Settings::new())
    }
}

impl Backed for MysqlRw {
    type Backend = MysqlRwBackend;
    fn engine(&self) -> &Engine<MysqlRwBackend> {
        &self.engine
    }
}
