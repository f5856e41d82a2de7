use std::path::Path;

use leasehold_core::Result;
use rustix::fs::Stat;
use rustix::io::Errno;

use crate::error::failed;

/// Identifies a file or directory independently of its path. The kernel does not use it again while the file is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    pub(crate) inode: u64,
}

impl FileId {
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss, reason = "these have another type on every system")]
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { device: stat.st_dev as u64, inode: stat.st_ino as u64 }
    }

    /// The id of what is at `path` now. `None` if nothing is there.
    pub(crate) fn found_at(path: &Path) -> Result<Option<Self>> {
        match rustix::fs::lstat(path) {
            Ok(stat) => Ok(Some(Self::of(&stat))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(cause) => Err(failed("look at", path, cause.into())),
        }
    }
}
