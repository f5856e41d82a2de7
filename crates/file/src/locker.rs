use leasehold_core::{Capabilities, Engine};

use crate::backend::FileBackend;

/// Locks between the processes of one machine, in files. No server and no daemon is needed.
///
/// `FileLocks` is a [`Locker`](crate::Locker), an [`RwLocker`](crate::RwLocker) and an [`Admin`](crate::Admin). A clone
/// is another handle on the same locker.
#[derive(Clone, Debug)]
pub struct FileLocks {
    engine: Engine<FileBackend>,
}

impl FileLocks {
    /// The capabilities of this backend, without opening a directory.
    pub fn claims() -> Capabilities {
        FileBackend::claims()
    }

    /// Closes the locker and all its handles; see [`Engine::close`](leasehold_core::Engine::close).
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

leasehold_core::backed!(FileLocks, FileBackend);
