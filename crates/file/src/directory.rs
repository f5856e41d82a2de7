use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use leasehold_core::{Error, ErrorKind, LockKey, Result};

use crate::fault::{BACKEND, failed, unavailable};
use crate::flocked::{Flocked, Opened};
use crate::folder::{Folder, Spot};
use crate::name;
use crate::trust;

/// Where the locks of one namespace are: a folder of its own in a directory that nobody else can write to, and whose
/// place nobody else can take.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    namespace: String,
    folder: Mutex<Arc<Folder>>,
    /// Those of this process who replace lock files do so in turn, and do not use up the patience of others for a lock.
    replaces: tokio::sync::Mutex<()>,
}

/// The right to replace lock files, until this is dropped.
#[derive(Debug)]
pub(crate) struct Replacing<'d> {
    _file: Flocked,
    _here: tokio::sync::MutexGuard<'d, ()>,
}

/// The files of one key.
#[derive(Debug)]
pub(crate) struct Place {
    /// The file that is locked.
    pub(crate) lock: Spot,
    /// The key as the file has it.
    pub(crate) key: String,
}

impl Directory {
    /// Creates what is missing, and refuses what is not safe.
    pub(crate) fn open(root: &Path, namespace: &str) -> Result<Self> {
        let wrong = |why: &str| Error::new(ErrorKind::InvalidOptions, "open locks").with_backend(BACKEND).detail(why);
        if !(1..=LockKey::MAX_BYTES).contains(&namespace.len()) {
            return Err(wrong("a namespace takes 1 to 255 bytes"));
        }
        if root.as_os_str().is_empty() {
            return Err(wrong("the directory has no name"));
        }
        // A later change of the working directory must not change which locks these are.
        let root = std::path::absolute(root).map_err(|cause| failed("find", root, cause))?;
        let namespace = name::stem(&name::encode(namespace));
        let folder = Mutex::new(prepare(&root, &namespace)?);
        Ok(Self { root, namespace, folder, replaces: tokio::sync::Mutex::default() })
    }

    /// Opens it anew, under the same conditions, if another has taken its place or it was cleaned away. True if so.
    pub(crate) fn follow(&self) -> Result<bool> {
        if self.folder().is_in_place()? {
            return Ok(false);
        }
        let folder = prepare(&self.root, &self.namespace)?;
        *self.folder.lock().unwrap_or_else(PoisonError::into_inner) = folder;
        Ok(true)
    }

    fn folder(&self) -> Arc<Folder> {
        Arc::clone(&self.folder.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn spot(&self, name: &str) -> Spot {
        self.folder().spot(name)
    }

    /// What is in it.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        self.spot("").names()
    }

    pub(crate) fn sessions(&self) -> Spot {
        self.spot("sessions")
    }

    pub(crate) fn place(&self, key: &LockKey) -> Place {
        let key = name::encode(key.as_str());
        Place { lock: self.spot(&(name::stem(&key) + Place::LOCK)), key }
    }

    /// Waits for the right to replace lock files here, held until this is dropped.
    pub(crate) async fn replacing(&self) -> Result<Replacing<'_>> {
        let here = self.replaces.lock().await;
        let spot = self.spot("replacing");
        let opened = Opened::at(&spot, true)?.ok_or_else(|| unavailable(&spot, "was removed just now"))?;
        let replacing = Flocked::soon(opened, &spot).await?;
        if !replacing.0.is_at(&spot)? {
            return Err(unavailable(&spot, "was removed just now"));
        }
        Ok(Replacing { _file: replacing, _here: here })
    }
}

impl Place {
    /// The ending of lock files.
    pub(crate) const LOCK: &str = ".lock";
    /// The ending of the folders of readers.
    pub(crate) const READERS: &str = ".readers";

    /// See [`Turn`](crate::turn::Turn).
    pub(crate) fn count(&self) -> Spot {
        self.lock.with_ending("count")
    }

    /// See [`Readers`](crate::record::Readers).
    pub(crate) fn readers(&self) -> Spot {
        self.lock.with_ending(&Self::READERS[1..])
    }

    /// What takes the place of the lock file when it is released by force.
    pub(crate) fn fresh(&self) -> Spot {
        self.lock.with_ending("new")
    }
}

fn prepare(root: &Path, namespace: &str) -> Result<Arc<Folder>> {
    DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(|cause| failed("create", root, cause))?;
    trust::check_the_way_to(root)?;
    let opened = Folder::open(root)?;
    trust::refuse_network(&opened, root)?;
    opened.below(namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_key_differ_in_their_endings() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path(), "n").unwrap();
        let place = directory.place(&LockKey::new("a.b").unwrap());
        let files = [place.lock.clone(), place.count(), place.readers(), place.fresh()];
        let names = files.map(|spot| spot.path().file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names, ["a%2Eb.lock", "a%2Eb.count", "a%2Eb.readers", "a%2Eb.new"]);
    }
}
