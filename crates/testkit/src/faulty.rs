use std::time::Duration;

use leasehold_core::conformance::Faulty;
use leasehold_core::{Clock, MemoryBackend};

/// A store in memory whose steps go wrong as a test wants. Clones are the same store, with the same faults.
pub type FaultyMemory = Faulty<MemoryBackend>;

/// A store in memory with which nothing goes wrong yet.
pub fn faulty_memory(clock: &Clock) -> FaultyMemory {
    let store = MemoryBackend::new(clock.clone());
    // A key of a store that is not new can be granted 17 times while the clock of a test stands still.
    clock.advance(Duration::from_millis(2));
    Faulty::new(store).remote()
}
