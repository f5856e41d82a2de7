use leasehold_core::{Backed, Capabilities, Engine, EngineOptions};

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

    pub(crate) fn with(backend: NewStoreBackend, options: EngineOptions) -> Self {
        Self { engine: Engine::with(backend, options) }
    }
}

impl From<NewStoreBackend> for NewStore {
    fn from(backend: NewStoreBackend) -> Self {
        Self::with(backend, EngineOptions::new())
    }
}

impl Backed for NewStore {
    type Backend = NewStoreBackend;
    fn engine(&self) -> &Engine<NewStoreBackend> {
        &self.engine
    }
}
