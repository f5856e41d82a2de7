use leasehold_core::{Capabilities, Engine};

use crate::backend::EtcdBackend;

/// Locks and reader/writer locks in etcd: each key has a line, in which holders are first and waiters behind them, in the order
/// in which they came.
///
/// As a [`Locker`](crate::Locker) it is the write side, and all there is for who needs no readers. Clones share the connection
/// and the waiters of this process.
#[derive(Clone, Debug)]
pub struct Etcd {
    engine: Engine<EtcdBackend>,
}

impl Etcd {
    /// What this backend promises beyond mutual exclusion. Nothing needs to be connected.
    pub fn claims() -> Capabilities {
        EtcdBackend::claims()
    }

    /// Closes the locker within 7.5 s: guards are lost, what they held is released, and waiters get an error. See
    /// [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

leasehold_core::backed!(Etcd, EtcdBackend);
