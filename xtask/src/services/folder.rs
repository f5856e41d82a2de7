//! The folder of one run's servers: private, and removed at the end, or by a later run when there was no end.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_testkit::launch::place;

const PREFIX: &str = "leasehold-test-";
static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Removed when dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    // Held as long as the run lives, also when this program is killed: a folder whose lock is free is nobody's.
    _lock: File,
}

impl Folder {
    pub(super) fn create() -> Result<Self, String> {
        let parent = place();
        remove_stale(&parent);
        Self::create_in(&parent).map_err(|e| format!("a folder in {}: {e}", parent.display()))
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        // Gets its name when it is locked, so that no other run takes it for a stale one.
        let name = format!("{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let unlocked = parent.join(format!("leasehold-new-{name}"));
        DirBuilder::new().mode(0o700).create(&unlocked)?;
        let lock = File::create(unlocked.join("lock"))?;
        lock.lock()?;
        let path = parent.join(format!("{PREFIX}{name}"));
        fs::rename(unlocked, &path)?;
        Ok(Self { path, _lock: lock })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(failure) = fs::remove_dir_all(&self.path) {
            eprintln!("{} stays: {failure}", self.path.display());
        }
    }
}

/// What cannot be looked at or removed is somebody else's, and stays.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let lock = is_ours.then(|| File::open(entry.path().join("lock")));
        if lock.and_then(Result::ok).is_some_and(|lock| lock.try_lock().is_ok()) {
            drop(fs::remove_dir_all(entry.path()));
        }
    }
}
