use std::path::{Path, PathBuf};

use leasehold_core::Result;

use crate::address::{self, Address};
use crate::backend::FileBackend;
use crate::locker::FileLocks;

/// Settings for opening [`FileLocks`]. [`FileLocks::builder`] creates one.
#[derive(Clone, Debug)]
#[must_use]
pub struct FileLocksBuilder {
    directory: Option<PathBuf>,
    namespace: String,
}

impl FileLocksBuilder {
    /// Sets the directory that contains the lock files. The default is [`FileLocks::default_dir`].
    pub fn directory(self, directory: impl Into<PathBuf>) -> Self {
        Self { directory: Some(directory.into()), ..self }
    }

    /// Sets the namespace, which separates these locks from those of other namespaces in the same directory. It has
    /// 1 to 255 bytes; the default is `leasehold`.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// Opens the directory, and creates it if it does not exist.
    ///
    /// # Errors
    /// The same as for [`FileBackend::open`].
    pub fn open(self) -> Result<FileLocks> {
        let directory = self.directory.map_or_else(FileLocks::default_dir, Ok)?;
        Ok(FileBackend::open(directory, &self.namespace)?.into())
    }
}

impl Default for FileLocksBuilder {
    fn default() -> Self {
        Self { directory: None, namespace: "leasehold".to_owned() }
    }
}

impl FileLocks {
    /// Opens the locks in `directory`, and creates the directory if it does not exist. All processes that open the same
    /// directory contend for the same locks.
    ///
    /// # Errors
    /// The same as for [`FileBackend::open`].
    pub fn open(directory: impl AsRef<Path>) -> Result<Self> {
        Self::builder().directory(directory.as_ref()).open()
    }

    /// Opens the locks that `url` names: `file:DIR` or `file:///DIR`, or `file:` for the
    /// [default directory](Self::default_dir). The query `?namespace=NAME` selects a namespace. Percent-encoding in the
    /// directory and the namespace is decoded.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) if the URL has another form; otherwise the same as for
    /// [`FileBackend::open`].
    #[allow(clippy::unused_async, reason = "the same signature as on stores that take a connection")]
    pub async fn connect(url: &str) -> Result<Self> {
        let Address { directory, namespace } = Address::parse(url)?;
        let builder = Self::builder();
        let builder = FileLocksBuilder { directory, namespace: namespace.unwrap_or(builder.namespace) };
        builder.open()
    }

    /// Creates a builder, for opening locks with settings other than the directory.
    pub fn builder() -> FileLocksBuilder {
        FileLocksBuilder::default()
    }

    /// The directory that is used when none is named: `.local/state/leasehold` in the home directory that the system's
    /// user database gives for this user. If there is no such home directory, or it belongs to another user, it is
    /// `/tmp/leasehold-UID`. Environment variables have no influence.
    ///
    /// # Errors
    /// [`Unavailable`](crate::ErrorKind::Unavailable) if the user database cannot be read.
    pub fn default_dir() -> Result<PathBuf> {
        address::default_dir()
    }
}
