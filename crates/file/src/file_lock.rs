use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::result::Result as Either;
use std::time::Duration;

use leasehold_core::{Mode, Result};
use rustix::fs::FileType;

use crate::error::{REMOVED, failed, refused, unavailable};
use crate::file_id::FileId;
use crate::open_dir::{For, PathAt};

/// An open regular file. Dropping it also gives up the kernel's lock on it.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) handle: File,
    pub(crate) id: FileId,
}

impl OpenFile {
    /// Opens the file at `path`. `None` if the file does not exist or, if it is to be created, its directory does not exist.
    pub(crate) fn at(path: &PathAt, purpose: For) -> Result<Option<Self>> {
        let Some(handle) = path.open(purpose)? else { return Ok(None) };
        let stat = rustix::fs::fstat(&handle).map_err(|cause| failed("look at", path, cause.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused(path, "is not a regular file; move it away"));
        }
        Ok(Some(Self { handle, id: FileId::of(&stat) }))
    }

    /// Opens the file at `path`, and creates it if it does not exist.
    pub(crate) fn create(path: &PathAt) -> Result<Self> {
        Self::at(path, For::Creating)?.ok_or_else(|| unavailable(path, REMOVED))
    }

    /// Whether `path` leads to this file. If not, a lock on this file protects nothing. The whole path is resolved,
    /// because each directory on the way may have been replaced.
    pub(crate) fn is_at(&self, path: &PathAt) -> Result<bool> {
        Ok(FileId::found_at(path.full())? == Some(self.id))
    }

    /// Locks the file. The inner error is the file itself: another open file holds a lock that excludes this one.
    pub(crate) fn try_lock(self, mode: Mode, path: &PathAt) -> Result<Either<FileLock, Self>> {
        let locked = match mode {
            Mode::Exclusive => self.handle.try_lock(),
            Mode::Shared => self.handle.try_lock_shared(),
        };
        match locked {
            Ok(()) => Ok(Ok(FileLock { file: self })),
            Err(TryLockError::WouldBlock) => Ok(Err(self)),
            Err(TryLockError::Error(cause)) => Err(failed("lock", path, cause)),
        }
    }

    /// Reads the content, up to 32 KiB: this crate writes no longer file.
    pub(crate) fn read(&self, path: &PathAt) -> Result<Vec<u8>> {
        const LONGEST: usize = 32 * 1024;
        let mut bytes = vec![0; LONGEST];
        let mut length = 0;
        while length < LONGEST {
            let more = self.handle.read_at(&mut bytes[length..], length as u64);
            match more.map_err(|cause| failed("read", path, cause))? {
                0 => break,
                more => length += more,
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Overwrites the bytes from offset `at` on.
    pub(crate) fn write(&self, bytes: &[u8], at: u64, path: &PathAt) -> Result<()> {
        self.handle.write_all_at(bytes, at).map_err(|cause| failed("write", path, cause))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        // Closing alone would leave it locked as long as a child that was forked meanwhile has the file open, too.
        let _ = self.handle.unlock();
    }
}

/// The kernel's lock on an open file. It ends when this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct FileLock {
    pub(crate) file: OpenFile,
}

impl FileLock {
    /// Waits for an exclusive lock that other processes hold for microseconds only, unless they are stopped. Fails as
    /// unavailable after about 200 ms.
    pub(crate) async fn wait(opened: OpenFile, path: &PathAt) -> Result<Self> {
        const YIELDS: u32 = 20;
        const PAUSES: u32 = 200;
        let mut waiting = opened;
        for tries in 0..YIELDS + PAUSES {
            waiting = match waiting.try_lock(Mode::Exclusive, path)? {
                Ok(locked) => return Ok(locked),
                Err(busy) => busy,
            };
            if tries < YIELDS {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        Err(unavailable(path, "is locked by a process that does not go on; was it stopped?"))
    }

    /// Gives up the lock, and keeps the file open.
    pub(crate) fn unlock(self, path: &PathAt) -> Result<OpenFile> {
        self.file.handle.unlock().map_err(|cause| failed("unlock", path, cause))?;
        Ok(self.file)
    }
}
