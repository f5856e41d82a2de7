//! Files and the kernel's locks on them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::result::Result as Either;
use std::time::Duration;

use leasehold_core::{Mode, Result};
use rustix::fs::{FileType, OFlags, Stat};
use rustix::io::Errno;

use crate::fault::{failed, refused, unavailable};

/// No symbolic link is followed to somebody else's file, and no pipe that lies there makes us wait.
const FLAGS: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

/// Which file it is, whatever it is called. Not used again as long as somebody has it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    pub(crate) inode: u64,
}

impl Identity {
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "these have another type on every system")]
    fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }

    /// What `path` names now.
    pub(crate) fn at(path: &Path) -> Result<Option<Self>> {
        match rustix::fs::lstat(path) {
            Ok(stat) => Ok(Some(Self::of(&stat))),
            Err(Errno::NOENT) => Ok(None),
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
    pub(crate) fn at(path: &Path, create: bool) -> Result<Option<Self>> {
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(create).truncate(false).mode(0o600).custom_flags(FLAGS);
        let file = match how.open(path) {
            Ok(file) => file,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => return Err(failed("open", path, cause)),
        };
        let stat = rustix::fs::fstat(&file).map_err(|cause| failed("look at", path, cause.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(refused(path, "is not a regular file; move it away"));
        }
        Ok(Some(Self { file, identity: Identity::of(&stat) }))
    }

    /// Whether `path` names this file: if not, its lock means nothing.
    pub(crate) fn is_at(&self, path: &Path) -> Result<bool> {
        Ok(Identity::at(path)? == Some(self.identity))
    }

    /// Whether any path names this file: removing and replacing a file take its name away.
    pub(crate) fn has_a_name(&self, path: &Path) -> Result<bool> {
        let stat = rustix::fs::fstat(&self.file).map_err(|cause| failed("look at", path, cause.into()))?;
        Ok(stat.st_nlink > 0)
    }

    /// Locks it, or gives it back: another open file holds a lock that is in the way.
    pub(crate) fn attempt(self, mode: Mode, path: &Path) -> Result<Either<Flocked, Self>> {
        let locked = match mode {
            Mode::Exclusive => self.file.try_lock(),
            Mode::Shared => self.file.try_lock_shared(),
        };
        match locked {
            Ok(()) => Ok(Ok(Flocked(self))),
            Err(TryLockError::WouldBlock) => Ok(Err(self)),
            Err(TryLockError::Error(cause)) => Err(failed("lock", path, cause)),
        }
    }

    /// What is in it, as far as we could have written it.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>> {
        const LONGEST: usize = 32 * 1024;
        let mut bytes = vec![0; LONGEST];
        let mut length = 0;
        while length < LONGEST {
            let more = self.file.read_at(&mut bytes[length..], length as u64);
            match more.map_err(|cause| failed("read", path, cause))? {
                0 => break,
                more => length += more,
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Overwrites a part of it.
    pub(crate) fn write(&self, bytes: &[u8], at: u64, path: &Path) -> Result<()> {
        self.file.write_all_at(bytes, at).map_err(|cause| failed("write", path, cause))
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
    pub(crate) async fn soon(opened: Opened, path: &Path) -> Result<Self> {
        const YIELDS: u32 = 20;
        const PAUSES: u32 = 200;
        let mut waiting = opened;
        for turn in 0..YIELDS + PAUSES {
            waiting = match waiting.attempt(Mode::Exclusive, path)? {
                Ok(locked) => return Ok(locked),
                Err(busy) => busy,
            };
            if turn < YIELDS {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        Err(unavailable(path, "is locked by a process that does not go on; was it stopped?"))
    }

    /// Keeps the file open for the next time.
    pub(crate) fn unlock(self, path: &Path) -> Result<Opened> {
        self.0.file.unlock().map_err(|cause| failed("unlock", path, cause))?;
        Ok(self.0)
    }
}
