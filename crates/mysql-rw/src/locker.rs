use std::time::Duration;

use leasehold_core::{Capabilities, Engine, Error, ErrorKind, LockGuard, ReadGuard, Result};

use crate::admin;
use crate::backend::MysqlRwBackend;

/// A reader/writer lock in two tables of MySQL or MariaDB: each key has one row, and each reader has a row with a lease of
/// its own.
///
/// As a [`Locker`](crate::Locker) it is the write side. Clones share the connections and the waiters of this process.
#[derive(Clone, Debug)]
pub struct MysqlRw {
    engine: Engine<MysqlRwBackend>,
}

impl MysqlRw {
    /// What this backend promises beyond mutual exclusion. Nothing needs to be connected.
    pub fn claims() -> Capabilities {
        MysqlRwBackend::claims()
    }

    /// Deletes the rows of this namespace whose key is free and was granted last longer than `older_than` ago, and the
    /// rows of readers whose lease ran out as long ago, and answers how many. The user needs the right to `DELETE` from
    /// both tables. No lock depends on it.
    ///
    /// Tokens keep growing: the server's clock is past those of the deleted rows by `older_than`. Less than
    /// 5 seconds, which is more than a claim may wait in the server, counts as 5 seconds; a week is a good choice.
    ///
    /// # Errors
    /// The errors of [`Locker::acquire_or_busy`](crate::Locker::acquire_or_busy).
    ///
    /// # Cancel safety
    /// Dropping the future leaves some of the rows.
    pub async fn gc(&self, older_than: Duration) -> Result<u64> {
        let deleted = admin::gc(&self.engine.backend().store, older_than).await;
        deleted.map_err(|error| error.with_backend(MysqlRwBackend::NAME))
    }

    /// Always an error: two readers that both wait to become the writer would wait for each other for ever. Release the
    /// reader, call [`write`](crate::RwLockerExt::write), and read again what the lock protects.
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

    /// Closes the locker within 7.5 s: guards are lost, what they held is released, and waiters get an error. See
    /// [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

leasehold_core::backed!(MysqlRw, MysqlRwBackend);
