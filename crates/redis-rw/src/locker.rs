use leasehold_core::{Capabilities, Engine};

use crate::backend::RedisRwBackend;

/// Reader/writer locks on one Redis: a single server, the primary of a Sentinel set, or a Cluster. Each reader has a lease and a
/// fencing token of its own.
///
/// `RedisRw` is an [`RwLocker`](crate::RwLocker), and so a [`Locker`](crate::Locker), and an [`Admin`](crate::Admin). Clones share one connection, which ends with
/// [`close`](Self::close) or with the last clone and guard.
#[derive(Clone, Debug)]
pub struct RedisRw {
    engine: Engine<RedisRwBackend>,
}

impl RedisRw {
    /// The capabilities of this backend with its default settings, without connecting.
    pub fn claims() -> Capabilities {
        RedisRwBackend::claims()
    }

    /// Closes the locker and all its clones: guards are lost with the reason
    /// [`Shutdown`](leasehold_core::LossReason::Shutdown), and their leases are released. The connection is closed, unless it
    /// is a client of the caller. Ends within three times the
    /// [`command_timeout`](crate::RedisRwBuilder::command_timeout). See [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

leasehold_core::backed!(RedisRw, RedisRwBackend);
