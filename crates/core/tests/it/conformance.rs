//! The shared suite on the memory backend.

use async_trait::async_trait;
use leasehold_core::conformance::{Fixture, Suite};
use leasehold_core::{Backend, Capabilities, Clock, MemoryBackend, Result};

struct Memory(MemoryBackend);

pub(crate) fn suite() -> Suite {
    Suite::shared([("", Memory(MemoryBackend::new(Clock::system())))])
}

#[async_trait]
impl Fixture for Memory {
    type Backend = MemoryBackend;

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn connect(&self, namespace: &str) -> Result<MemoryBackend> {
        Ok(self.0.namespace(namespace))
    }
}
