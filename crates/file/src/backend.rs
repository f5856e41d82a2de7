use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Capability, Claim, Clock, Cursor, GrantRef, Holders, LeaseStatus, LockKey, OwnerId,
    Page, Renewal, Result, SharedBackend,
};

use crate::directory::Directory;
use crate::fault::BACKEND;
use crate::idle::IdleFiles;
use crate::presence::Grant;
use crate::session::Sessions;

/// The store-level steps of [`FileLocks`](crate::FileLocks): one directory, one namespace.
#[derive(Debug)]
pub struct FileBackend {
    pub(crate) directory: Directory,
    pub(crate) sessions: Sessions,
    pub(crate) clock: Clock,
    pub(crate) pid: u32,
    pub(crate) idle: IdleFiles,
    /// What this process holds: each with an open file of its own, so that it excludes others in this process, too.
    held: Mutex<HashMap<OwnerId, Grant>>,
}

impl FileBackend {
    /// The locks of `namespace` in `directory`, which is created if need be.
    ///
    /// # Errors
    /// [`InvalidOptions`](crate::ErrorKind::InvalidOptions) for an empty name;
    /// [`Backend`](crate::ErrorKind::Backend) for a directory that cannot be created or written, that others can
    /// write to or move, that is another user's, or that is on a network file system.
    pub fn open(directory: impl AsRef<Path>, namespace: &str) -> Result<Self> {
        let directory = Directory::open(directory.as_ref(), namespace)?;
        let sessions = Sessions::new(directory.sessions());
        Ok(Self {
            directory,
            sessions,
            clock: Clock::system(),
            pid: std::process::id(),
            idle: IdleFiles::default(),
            held: Mutex::default(),
        })
    }

    /// What it promises; the same for every directory.
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

    pub(crate) fn held(&self) -> MutexGuard<'_, HashMap<OwnerId, Grant>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Backend for FileBackend {
    fn capabilities(&self) -> Capabilities {
        Self::claims()
    }

    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.claim(claim).await
    }

    async fn renew(&self, renewals: &[Renewal], _within: Duration) -> Vec<Result<LeaseStatus>> {
        // If it cannot be mended, only those who inspect are misled.
        let _ = self.sessions.mend();
        renewals.iter().map(|renewal| self.look_after(&renewal.grant)).collect()
    }

    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.let_go(grant)
    }

    async fn downgrade(&self, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        self.writer_to_reader(writer, claim).await
    }

    fn releases_in_place(&self) -> bool {
        true
    }

    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.look_at(key)
    }

    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.page(prefix, after)
    }

    async fn force_release(&self, key: &LockKey) -> Result<Holders> {
        self.take_away(key).await
    }

    async fn close(&self) {
        self.held().clear();
        self.idle.clear();
        self.sessions.end();
    }
}

impl SharedBackend for FileBackend {}
