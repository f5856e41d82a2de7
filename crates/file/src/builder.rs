use std::path::{Path, PathBuf};

use leasehold_core::Result;

use crate::address::{self, Address};
use crate::backend::FileBackend;
use crate::dir_options::DirOptions;
use crate::locker::FileLocks;

/// Settings for opening [`FileLocks`]. [`FileLocks::builder`] creates one.
#[derive(Clone, Debug)]
#[must_use]
pub struct FileLocksBuilder {
    directory: Option<PathBuf>,
    namespace: String,
    options: DirOptions,
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

    /// Sets what a URL says: the directory, the namespace, and whether the file system is local. [`FileLocks::connect`] has
    /// the form.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) if the URL has another form.
    pub fn url(self, url: &str) -> Result<Self> {
        let Address { directory, namespace, is_local } = Address::parse(url)?;
        let options = DirOptions { is_local: self.options.is_local || is_local, ..self.options };
        Ok(Self { directory, namespace: namespace.unwrap_or(self.namespace), options })
    }

    /// Refuses a directory or a namespace that does not exist, instead of creating it: for programs that look at the locks of
    /// others, to which a mistyped directory would look like one in which nothing is held.
    pub fn existing(self) -> Self {
        Self { options: DirOptions { creates: false, ..self.options }, ..self }
    }

    /// Says that the directory's file system is of this machine alone, although its type is not known to be: FUSE, or a disk
    /// that is shared. If that is wrong, programs on two machines may hold one key.
    pub fn local_file_system(self) -> Self {
        Self { options: DirOptions { is_local: true, ..self.options }, ..self }
    }

    /// Lets the programs that this process starts inherit its locks: if this process is killed, its keys stay taken until all of
    /// these programs have ended, too, as with `flock(1)`. A key that is released is free at once, whatever they do.
    ///
    /// A program keeps the keys that were held when it was started, and no others.
    pub fn inherited(self) -> Self {
        Self { options: DirOptions { inherited: true, ..self.options }, ..self }
    }

    /// Opens the directory, and creates it if it does not exist, unless that was [switched off](Self::existing).
    ///
    /// # Errors
    /// The same as for [`FileBackend::open`].
    pub fn open(self) -> Result<FileLocks> {
        self.backend().map(Into::into)
    }

    pub(crate) fn backend(self) -> Result<FileBackend> {
        let directory = self.directory.map_or_else(FileLocks::default_dir, Ok)?;
        FileBackend::open_on(&directory, &self.namespace, self.options)
    }
}

impl Default for FileLocksBuilder {
    fn default() -> Self {
        Self { directory: None, namespace: "leasehold".to_owned(), options: DirOptions::default() }
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

    /// Opens the locks that `url` names: `file:/DIR` or `file:///DIR`, or `file:` for the
    /// [default directory](Self::default_dir). The query `?namespace=NAME` selects a namespace, and `?filesystem=local` says
    /// that the file system [is of this machine alone](FileLocksBuilder::local_file_system). Percent-encoding in the
    /// directory and the namespace is decoded.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) if the URL has another form; otherwise the same as for
    /// [`FileBackend::open`].
    #[allow(clippy::unused_async, reason = "the same signature as on stores that take a connection")]
    pub async fn connect(url: &str) -> Result<Self> {
        Self::builder().url(url)?.open()
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
