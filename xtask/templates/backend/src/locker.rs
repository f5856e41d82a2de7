use leasehold_core::{Capabilities, Engine};

use crate::backend::NewStoreBackend;

/// Exclusive locks in new-store.
///
/// Clones share the connection and the waiters of this process.
#[derive(Clone, Debug)]
pub struct NewStore {
    engine: Engine<NewStoreBackend>,
}

impl NewStore {
    /// What this backend promises beyond mutual exclusion. Nothing needs to be connected.
    pub fn claims() -> Capabilities {
        NewStoreBackend::claims()
    }

    /// Closes the locker within three times what the store is given to answer (a second): guards are lost, what they held is
    /// released, and waiters get an error. See [`Engine::close`].
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

leasehold_core::backed!(NewStore, NewStoreBackend);
