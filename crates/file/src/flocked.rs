//! Files and the kernel's locks on them.

use std::fs::{File, TryLockError};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::result::Result as Either;
use std::time::Duration;

use leasehold_core::{Mode, Result};
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::fault::{failed, refused, unavailable};
use crate::folder::Spot;

/// Which file it is, whatever it is called. Not used again as long as somebody has it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    pub(crate) inode: u64,
}

impl Identity {
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "these have another type on every system")]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }

    /// What `path` leads to now.
    pub(crate) fn found_at(path: &Path) -> Result<Option<Self>> {
        match rustix::fs::lstat(path) {
            Ok(stat) => Ok(Some(Self::of(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(cause) => Err(failed("look at", path, cause.into())),
        }
    }
}

/// An open regular file. It is not locked any more once this is dropped.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) identity: Identity,
}

impl Opened {
    /// For reading and writing. `None`: it is not there or, given `create`, its directory is not.
    pub(crate) fn at(spot: &Spot, create: bool) -> Result<Option<Self>> {
        let Some(file) = spot.open(create)? else { return Ok(None) };
        let stat = rustix::fs::fstat(&file).map_err(|cause| failed("look at", spot, cause.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused(spot, "is not a regular file; move it away"));
        }
        Ok(Some(Self { file, identity: Identity::of(&stat) }))
    }

    /// Whether the path leads to this file: if not, its lock means nothing. The whole path is looked at, because each
    /// directory on the way may have been replaced.
    pub(crate) fn is_at(&self, spot: &Spot) -> Result<bool> {
        Ok(Identity::found_at(spot.path())? == Some(self.identity))
    }

    /// Locks it, or gives it back: another open file holds a lock that is in the way.
    pub(crate) fn attempt(self, mode: Mode, spot: &Spot) -> Result<Either<Flocked, Self>> {
        let locked = match mode {
            Mode::Exclusive => self.file.try_lock(),
            Mode::Shared => self.file.try_lock_shared(),
        };
        match locked {
            Ok(()) => Ok(Ok(Flocked(self))),
            Err(TryLockError::WouldBlock) => Ok(Err(self)),
            Err(TryLockError::Error(cause)) => Err(failed("lock", spot, cause)),
        }
    }

    /// What is in it, as far as we could have written it.
    pub(crate) fn read(&self, spot: &Spot) -> Result<Vec<u8>> {
        const LONGEST: usize = 32 * 1024;
        let mut bytes = vec![0; LONGEST];
        let mut length = 0;
        while length < LONGEST {
            let more = self.file.read_at(&mut bytes[length..], length as u64);
            match more.map_err(|cause| failed("read", spot, cause))? {
                0 => break,
                more => length += more,
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Overwrites a part of it.
    pub(crate) fn write(&self, bytes: &[u8], at: u64, spot: &Spot) -> Result<()> {
        self.file.write_all_at(bytes, at).map_err(|cause| failed("write", spot, cause))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Closing alone would leave it locked as long as a child that was forked meanwhile has the file open, too.
        let _ = self.file.unlock();
    }
}

/// An open file that the kernel has locked for us, until this is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Flocked(pub(crate) Opened);

impl Flocked {
    /// Waits for an exclusive lock that others hold for microseconds only, unless they were stopped.
    pub(crate) async fn soon(opened: Opened, spot: &Spot) -> Result<Self> {
        const YIELDS: u32 = 20;
        const PAUSES: u32 = 200;
        let mut waiting = opened;
        for turn in 0..YIELDS + PAUSES {
            waiting = match waiting.attempt(Mode::Exclusive, spot)? {
                Ok(locked) => return Ok(locked),
                Err(busy) => busy,
            };
            if turn < YIELDS {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        Err(unavailable(spot, "is locked by a process that does not go on; was it stopped?"))
    }

    /// Keeps the file open for the next time.
    pub(crate) fn unlock(self, spot: &Spot) -> Result<Opened> {
        self.0.file.unlock().map_err(|cause| failed("unlock", spot, cause))?;
        Ok(self.0)
    }
}
