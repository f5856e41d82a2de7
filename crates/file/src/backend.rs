use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Cursor, GrantRef, Holders, LeaseStatus, LockKey, Page, Renewal,
    Result, SharedBackend,
};

use crate::dir_options::DirOptions;
use crate::error::BACKEND;
use crate::store::Store;
use crate::{acquire, admin, downgrade, renew};

/// The [`Backend`] behind [`FileLocks`](crate::FileLocks): the locks of one namespace in one directory.
#[derive(Debug)]
pub struct FileBackend {
    pub(crate) store: Store,
}

impl FileBackend {
    /// Opens the locks of `namespace` in `directory`, and creates the directory if it does not exist.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) if the directory's name is empty, or the namespace is empty
    /// or longer than 255 bytes. [`Backend`](crate::ErrorKind::Backend) if the directory cannot be created or written,
    /// belongs to another user, can be written to or moved by other users, or is on a file system that is not known to be of
    /// this machine alone.
    pub fn open(directory: impl AsRef<Path>, namespace: &str) -> Result<Self> {
        Self::open_on(directory.as_ref(), namespace, DirOptions::default())
    }

    pub(crate) fn open_on(directory: &Path, namespace: &str, options: DirOptions) -> Result<Self> {
        Ok(Self { store: Store::open(directory, namespace, options)? })
    }

    /// The capabilities, which are the same for every directory.
    pub(crate) fn claims() -> Capabilities {
        Capabilities::new(BACKEND)
            .with(Capability::Shared)
            .with(Capability::Fencing)
            .with(Capability::CrossProcess)
            .with(Capability::ForceNotice)
            .with(Capability::LocalHandoff)
            .without(
                Capability::Lease,
                "the kernel frees the lock when the holder's process ends; a stopped process keeps it",
            )
            .without(Capability::Wakeup, "the kernel tells nobody that a lock was freed")
            .without(Capability::CrossHost, "network file systems are not supported")
            .without(Capability::WriterIntent, "a waiting writer is known to its own process only")
            .without(Capability::Detach, "a kernel lock cannot be carried to another process")
            .without(Capability::Reentrancy, "a locker contends with itself")
    }
}

#[async_trait]
impl Backend for FileBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        acquire::try_acquire(&self.store, claim).await
    }

    async fn renew(&self, renewals: &[Renewal], _within: Duration) -> Vec<Result<LeaseStatus>> {
        renew::renew(&self.store, renewals)
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        let mut held = self.store.held();
        if held.get(&grant.owner).is_none_or(|ours| ours.key != grant.key) {
            return Ok(LeaseStatus::NotHeld);
        }
        let Some(ours) = held.remove(&grant.owner) else { return Ok(LeaseStatus::NotHeld) };
        drop(held);
        // Whatever the answer is, also an error, this process does not hold the grant afterwards.
        let status = ours.status();
        if !matches!(status, Ok(LeaseStatus::NotHeld | LeaseStatus::ForceReleased)) {
            ours.free(&self.store.idle);
        }
        status
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        downgrade::downgrade(&self.store, writer, claim).await
    }

    fn releases_in_place(&self) -> bool {
        true
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        admin::inspect(&self.store, key)
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        admin::list(&self.store, prefix, after)
    }

    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        admin::force_release(&self.store, key, only).await
    }

    async fn close(&self) {
        self.store.close();
    }
}

impl SharedBackend for FileBackend {}
