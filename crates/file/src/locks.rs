use std::path::{Path, PathBuf};

use leasehold_core::{Backed, Capabilities, Engine, Result};

use crate::FileBackend;
use crate::address::{self, Address};

/// Locks between the processes of one machine, in files: no server, no daemon.
///
/// It is a [`Locker`](crate::Locker), an [`RwLocker`](crate::RwLocker) and an [`Admin`](crate::Admin). Cloning gives
/// another handle on the same locker.
#[derive(Clone, Debug)]
pub struct FileLocks {
    engine: Engine<FileBackend>,
}

impl FileLocks {
    /// The locks in `directory`, which is created if need be. Whoever opens the same one contends for the same locks.
    ///
    /// # Errors
    /// As for [`FileBackend::open`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::builder().directory(directory.as_ref()).open()
    }

    /// The locks that `url` names: `file:DIR` or `file:///DIR`, or `file:` for [`default_dir`](Self::default_dir);
    /// with `?namespace=NAME` in a namespace. Percent-encoding is undone.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) for another form; else as for [`FileBackend::open`].
    #[allow(clippy::unused_async, reason = "the same signature as on stores that take a connection")]
    pub async fn connect(url: &str) -> Result<Self> {
        let Address { directory, namespace } = Address::parse(url)?;
        let builder = Self::builder();
        let builder = FileLocksBuilder { directory, namespace: namespace.unwrap_or(builder.namespace) };
        builder.open()
    }

    /// For settings beyond the directory.
    pub fn builder() -> FileLocksBuilder {
        FileLocksBuilder { directory: None, namespace: "leasehold".to_owned() }
    }

    /// Where a user's locks are unless they say otherwise: `.local/state/leasehold` in the home directory that the system
    /// knows of them or, if that is not theirs, `/tmp/leasehold-UID`. The environment changes nothing about it.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the system's list of users cannot be asked.
    pub fn default_dir() -> Result<PathBuf> {
        address::default_dir()
    }

    /// What it promises beyond mutual exclusion, before any directory was opened.
    pub fn claims() -> Capabilities {
        FileBackend::claims()
    }

    /// Ends it; see [`Engine::close`](leasehold_core::Engine::close).
    pub async fn close(&self) {
        self.engine.close().await;
    }
}

impl From<FileBackend> for FileLocks {
    fn from(backend: FileBackend) -> Self {
        Self { engine: Engine::new(backend) }
    }
}

impl Backed for FileLocks {
    type Backend = FileBackend;
    fn engine(&self) -> &Engine<FileBackend> {
        &self.engine
    }
}

/// Settings of [`FileLocks`].
#[derive(Clone, Debug)]
#[must_use]
pub struct FileLocksBuilder {
    directory: Option<PathBuf>,
    namespace: String,
}

impl FileLocksBuilder {
    /// Where the locks are. Default: [`FileLocks::default_dir`].
    pub fn directory(self, directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..self }
    }

    /// Keeps these locks apart from those of other namespaces in the directory. 1 to 255 bytes; default `leasehold`.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// Opens them.
    ///
    /// # Errors
    /// As for [`FileBackend::open`].
    pub fn open(self) -> Result<FileLocks> {
        let directory = self.directory.map_or_else(FileLocks::default_dir, Ok)?;
        Ok(FileBackend::open(directory, &self.namespace)?.into())
    }
}
