use std::os::unix::fs::FileExt;

use leasehold_core::{Mode, Result};

use crate::counter::Counter;
use crate::error::{REMOVED, failed, refused, unavailable};
use crate::file_lock::{FileLock, OpenFile};
use crate::lock_file::{self, Content};
use crate::name;
use crate::open_dir::PathAt;
use crate::record::ReaderFiles;

/// The paths of the files of one key.
#[derive(Debug)]
pub(crate) struct KeyFiles {
    /// The lock file, which the kernel locks.
    pub(crate) lock: PathAt,
    /// The encoded key, as it is written in the lock file.
    pub(crate) key: String,
}

impl KeyFiles {
    /// The ending of lock files.
    pub(crate) const LOCK: &str = ".lock";
    /// The ending of the directories of reader files.
    pub(crate) const READERS: &str = ".readers";

    /// The file of the [`CounterLock`](crate::counter_lock::CounterLock).
    pub(crate) fn counter(&self) -> PathAt {
        self.lock.with_ending("count")
    }

    pub(crate) fn readers(&self) -> ReaderFiles {
        ReaderFiles(self.lock.with_ending(&Self::READERS[1..]))
    }

    /// The file that replaces the lock file at a forced release or a downgrade.
    pub(crate) fn replacement(&self) -> PathAt {
        self.lock.with_ending("new")
    }

    /// A second name of the lock file while one grant is released by force.
    pub(crate) fn kept(&self) -> PathAt {
        self.lock.with_ending("kept")
    }

    /// Parses the content of a lock file, and refuses that of another key.
    pub(crate) fn parse<'b>(&self, bytes: &'b [u8]) -> Result<Content<'b>> {
        let Some(content) = Content::parse(bytes) else {
            let why = match Counter::version(bytes) {
                Some(version) => format!(
                    "is of version {version}, and this program knows version 2: run a program of that version, or remove \
                     the file while nobody uses this directory"
                ),
                None => "is not a lock file; move it away".to_owned(),
            };
            return Err(refused(&self.lock, &why));
        };
        match content.key {
            Some(key) if key != self.key => {
                let other = name::decode(key);
                let other = other.map_or_else(|| "something else".to_owned(), |other| format!("the key {other:?}"));
                Err(refused(&self.lock, &format!("is the lock file of {other}; move it away while nobody uses either")))
            }
            _ => Ok(content),
        }
    }

    /// Reads the counter in the lock file, and whether the key is written behind it.
    pub(crate) fn read_counter(&self, locked: &FileLock) -> Result<(Option<Counter>, bool)> {
        let mut head = [0; lock_file::HEAD];
        let read = locked.file.handle.read_at(&mut head, 0).map_err(|cause| failed("read", &self.lock, cause))?;
        let content = self.parse(&head[..read])?;
        Ok((content.counter, content.key.is_some()))
    }

    /// Creates the [replacement](Self::replacement) of the lock file. It is locked by us, has its full size, so that the
    /// counter fits into it even when the disk is full, and has no counter that could be read.
    pub(crate) fn create_replacement(&self) -> Result<FileLock> {
        let path = self.replacement();
        let Ok(new) = OpenFile::create(&path)?.try_lock(Mode::Exclusive, &path)? else {
            return Err(unavailable(&path, "is being used by another"));
        };
        new.file.handle.set_len(0).map_err(|cause| failed("write", &path, cause))?;
        new.file.write(&lock_file::render(None, &self.key, None), 0, &path)?;
        Ok(new)
    }

    /// Gives the replacement the name of the lock file.
    pub(crate) fn replace(&self) -> Result<()> {
        let new = self.replacement();
        if new.rename_to(&self.lock)? { Ok(()) } else { Err(unavailable(new, REMOVED)) }
    }
}
