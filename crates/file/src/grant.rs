use std::os::unix::fs::FileExt;

use leasehold_core::{LeaseStatus, LockKey, Result};

use crate::file_lock::FileLock;
use crate::idle_files::IdleFiles;
use crate::key_files::KeyFiles;
use crate::lock_file;
use crate::open_dir::PathAt;
use crate::record::ReaderFile;

/// A grant of this process: the kernel's lock on the lock file, and the holder's record.
///
/// Dropping it frees the key. A record in the lock file stays there: it counts for nothing if the file is no longer
/// the key's lock file, or the session that it names has ended.
#[derive(Debug)]
pub(crate) struct Grant {
    pub(crate) key: LockKey,
    pub(crate) epoch: u64,
    path: PathAt,
    holder_at: u64,
    // The order in which fields are dropped matters: see `free`.
    record: RecordLocation,
    pub(crate) lock: FileLock,
}

/// Where the record of a holder is.
#[derive(Debug)]
pub(crate) enum RecordLocation {
    /// In the lock file.
    LockFile,
    /// In a file of its own, which is removed when this is dropped.
    ReaderFile(#[expect(dead_code, reason = "it is there to be dropped")] ReaderFile),
}

impl Grant {
    pub(crate) fn new(key: LockKey, files: KeyFiles, lock: FileLock, epoch: u64, record: RecordLocation) -> Self {
        Self { key, epoch, holder_at: lock_file::holder_at(&files.key), path: files.lock, record, lock }
    }

    pub(crate) fn is_writer(&self) -> bool {
        matches!(self.record, RecordLocation::LockFile)
    }

    /// Whether the locked file is still the key's lock file.
    pub(crate) fn is_in_place(&self) -> Result<bool> {
        self.lock.file.is_at(&self.path)
    }

    /// Whether this process still holds the key and, if not, whether an operator released it by force.
    pub(crate) fn status(&self) -> Result<LeaseStatus> {
        if self.is_in_place()? {
            return Ok(LeaseStatus::Held);
        }
        let mut mark = [0];
        let read = self.lock.file.handle.read_at(&mut mark, lock_file::MARK_AT);
        let forced = read.is_ok() && mark == [lock_file::FORCED];
        Ok(if forced { LeaseStatus::ForceReleased } else { LeaseStatus::NotHeld })
    }

    /// Frees the key, and keeps the file open for the next grant.
    pub(crate) fn free(self, idle: &IdleFiles) {
        if self.is_writer() {
            // If this write fails, `inspect` shows the old holder until the next grant; the key is free all the same.
            let _ = self.lock.file.write(&[lock_file::NOBODY], self.holder_at, &self.path);
        }
        // The record goes before the lock, so that nobody finds the key free and a holder's record beside it.
        drop(self.record);
        if let Ok(opened) = self.lock.unlock(&self.path) {
            idle.keep(self.path, opened);
        }
    }
}
