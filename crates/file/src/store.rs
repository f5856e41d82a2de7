use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold_core::{Claim, Clock, OwnerId, Result};

use crate::dir_options::DirOptions;
use crate::file_id::FileId;
use crate::grant::Grant;
use crate::idle_files::IdleFiles;
use crate::key_files::KeyFiles;
use crate::lock_directory::LockDirectory;
use crate::record::{ReaderFiles, Record};
use crate::sessions::{Liveness, LivenessCache, Sessions};

/// The directory of one namespace, and what this process has open in it. Every operation of the backend works on it.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) directory: LockDirectory,
    pub(crate) sessions: Sessions,
    pub(crate) clock: Clock,
    pub(crate) idle: IdleFiles,
    pid: u32,
    /// The grants of this process. Each has an open file of its own, so that it excludes others in this process, too.
    held: Mutex<HashMap<OwnerId, Grant>>,
}

impl Store {
    pub(crate) fn open(directory: &Path, namespace: &str, options: DirOptions) -> Result<Self> {
        let directory = LockDirectory::open(directory, namespace, options)?;
        let sessions = Sessions::new(directory.sessions());
        Ok(Self {
            directory,
            sessions,
            clock: Clock::system(),
            // A file that is open elsewhere, too, must not be locked again: that would be the lock of both.
            idle: IdleFiles::new(if options.inherited { 0 } else { IdleFiles::MOST }),
            pid: std::process::id(),
            held: Mutex::default(),
        })
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, HashMap<OwnerId, Grant>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the directory at the configured path anew if it is not the one that is open, under the same conditions as
    /// the first time. Returns true if it was opened anew.
    pub(crate) fn reopen_if_replaced(&self) -> Result<bool> {
        let reopened = self.directory.reopen_if_replaced()?;
        if reopened {
            self.idle.clear();
            // If the session's file cannot be created there, only `inspect` and `list` are wrong.
            let _ = self.sessions.move_to(&self.directory.sessions());
        }
        Ok(reopened)
    }

    /// The id of this process's session, which begins with the first call.
    pub(crate) fn session(&self) -> Result<Arc<str>> {
        let (session, began) = self.sessions.current()?;
        if began {
            // What cannot be removed now is removed when the next session begins.
            let _ = self.remove_dead_records();
        }
        Ok(session)
    }

    /// The record of a holder that `inspect` and `list` show.
    pub(crate) fn record<'c>(&self, claim: &'c Claim, session: &'c str, epoch: u64, lock_file: FileId) -> Record<'c> {
        Record {
            session: session.into(),
            mode: claim.mode,
            pid: self.pid,
            label: claim.label.as_deref().map(Into::into),
            reason: claim.reason.as_deref().map(Into::into),
            epoch,
            since: self.clock.unix_millis(),
            file: lock_file.inode,
        }
    }

    /// Drops all grants of this process, closes the idle files and ends the session.
    pub(crate) fn close(&self) {
        self.held().clear();
        self.idle.clear();
        self.sessions.end();
    }

    /// Removes the records of processes that were killed. They count for nothing; this only keeps the directory tidy.
    fn remove_dead_records(&self) -> Result<()> {
        let mut liveness = LivenessCache::default();
        let dead = self.sessions.dead(&mut liveness)?;
        if dead.is_empty() {
            return Ok(());
        }
        for name in self.directory.names()? {
            if name.ends_with(KeyFiles::READERS) {
                let readers = ReaderFiles(self.directory.path_to(&name));
                readers.remove_if(|session| Ok(self.sessions.liveness(session, &mut liveness)? == Liveness::Dead))?;
            }
        }
        self.sessions.remove(&dead);
        Ok(())
    }
}
