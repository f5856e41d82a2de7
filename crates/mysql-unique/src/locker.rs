use std::time::Duration;

use leasehold_core::{Capabilities, Engine, Result};

use crate::admin;
use crate::backend::MysqlUniqueBackend;

/// Exclusive locks in one table of MySQL or MariaDB: each key has one row, which is claimed by one conditional statement
/// and kept when the lock is released.
///
/// Clones share the connections and the waiters of this process.
#[derive(Clone, Debug)]
pub struct MysqlUnique {
    engine: Engine<MysqlUniqueBackend>,
}

impl MysqlUnique {
    /// What this backend promises beyond mutual exclusion, without the advisory queue. Nothing needs to be connected.
    pub fn claims() -> Capabilities {
        MysqlUniqueBackend::claims()
    }

    /// Deletes the rows of this namespace whose key is free and was granted last longer than `older_than` ago, and
    /// answers how many. The user needs the right to `DELETE`. No lock depends on it.
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
        deleted.map_err(|error| error.with_backend(MysqlUniqueBackend::NAME))
    }

    /// Closes the locker within 7.5 s: guards are lost, what they held is released, and waiters get an error. See
    /// [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

leasehold_core::backed!(MysqlUnique, MysqlUniqueBackend);
