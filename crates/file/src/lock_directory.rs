use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use leasehold_core::{Error, ErrorKind, LockKey, Result};

use crate::dir_options::DirOptions;
use crate::error::{BACKEND, NOTHING_THERE, REMOVED, failed, refused, unavailable};
use crate::file_id::FileId;
use crate::file_lock::{FileLock, OpenFile};
use crate::key_files::KeyFiles;
use crate::name;
use crate::open_dir::{OpenDir, PathAt};
use crate::trust;

/// The directory of the locks of one namespace. It is a subdirectory of the directory that the user named. Other users
/// can neither write to it nor put another directory in its place.
#[derive(Debug)]
pub(crate) struct LockDirectory {
    root: PathBuf,
    namespace: String,
    options: DirOptions,
    open: Mutex<Arc<OpenDir>>,
    /// Orders the replacements of lock files by this process, so that they do not use up each other's tries for the
    /// replacement lock.
    replaces: tokio::sync::Mutex<()>,
}

impl LockDirectory {
    /// Opens the directory, and refuses it if other users could change it.
    pub(crate) fn open(root: &Path, namespace: &str, options: DirOptions) -> Result<Self> {
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
        let open = Mutex::new(prepare(&root, &namespace, options)?);
        Ok(Self { root, namespace, options, open, replaces: tokio::sync::Mutex::default() })
    }

    /// Opens the directory at the path anew, under the same conditions, if it is not the one that is open: it was moved
    /// or removed. Returns true if it was opened anew.
    pub(crate) fn reopen_if_replaced(&self) -> Result<bool> {
        if self.current().is_in_place()? {
            return Ok(false);
        }
        let opened = prepare(&self.root, &self.namespace, self.options)?;
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = opened;
        Ok(true)
    }

    fn current(&self) -> Arc<OpenDir> {
        Arc::clone(&self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn path_to(&self, name: &str) -> PathAt {
        self.current().path_to(name)
    }

    /// The names of everything in the directory.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        self.path_to("").names()
    }

    /// The path of the directory of [`Sessions`](crate::sessions::Sessions).
    pub(crate) fn sessions(&self) -> PathAt {
        self.path_to("sessions")
    }

    pub(crate) fn key_files(&self, key: &LockKey) -> KeyFiles {
        let key = name::encode(key.as_str());
        KeyFiles { lock: self.path_to(&(name::stem(&key) + KeyFiles::LOCK)), key }
    }

    /// Waits for the right to replace lock files in this directory, which ends when both are dropped.
    pub(crate) async fn lock_replacement(&self) -> Result<(FileLock, tokio::sync::MutexGuard<'_, ()>)> {
        let here = self.replaces.lock().await;
        let path = self.path_to("replacing");
        let locked = FileLock::wait(OpenFile::create(&path)?, &path).await?;
        if !locked.file.is_at(&path)? {
            return Err(unavailable(&path, REMOVED));
        }
        Ok((locked, here))
    }
}

fn prepare(root: &Path, namespace: &str, options: DirOptions) -> Result<Arc<OpenDir>> {
    if options.creates {
        DirBuilder::new().recursive(true).mode(0o700).create(root).map_err(|cause| failed("create", root, cause))?;
    } else if FileId::found_at(root)?.is_none() {
        return Err(refused(root, NOTHING_THERE));
    }
    trust::check_path(root)?;
    let opened = OpenDir::open(root)?;
    if !options.is_local {
        trust::refuse_unless_local(&opened.fd, root)?;
    }
    opened.below(namespace, options)
}
