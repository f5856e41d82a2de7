use std::time::Duration;

use leasehold_core::{Capabilities, Engine, Result};

use crate::admin;
use crate::backend::PostgresBackend;

/// Locks and reader/writer locks in a schema of a `PostgreSQL` database: each key has one row, and each reader has a row with a
/// lease of its own.
///
/// As a [`Locker`](crate::Locker) it is the write side, and all there is for who needs no readers. Clones share the connections
/// and the waiters of this process.
#[derive(Clone, Debug)]
pub struct Postgres {
    engine: Engine<PostgresBackend>,
}

impl Postgres {
    /// What this backend promises beyond mutual exclusion. Nothing needs to be connected.
    pub fn claims() -> Capabilities {
        PostgresBackend::claims()
    }

    /// Deletes the rows of this namespace whose key is free and was granted last longer than `older_than` ago, and the
    /// rows of readers whose lease ran out as long ago, and answers how many. The user needs the right to `DELETE` from
    /// both tables. No lock depends on it.
    ///
    /// Tokens keep growing: the server's clock is past those of the deleted rows by `older_than`. Less than 5 seconds counts
    /// as 5 seconds; a week is a good choice.
    ///
    /// # Errors
    /// The errors of [`Locker::acquire_or_busy`](crate::Locker::acquire_or_busy).
    ///
    /// # Cancel safety
    /// Dropping the future leaves some of the rows.
    pub async fn gc(&self, older_than: Duration) -> Result<u64> {
        let deleted = admin::gc(&self.engine.backend().store, older_than).await;
        deleted.map_err(|error| error.with_backend(PostgresBackend::NAME))
    }

    /// Closes the locker within 7.5 s: guards are lost, what they held is released, and waiters get an error. See
    /// [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

leasehold_core::backed!(Postgres, PostgresBackend);
