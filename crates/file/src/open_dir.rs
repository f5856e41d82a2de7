use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold_core::Result;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::dir_options::DirOptions;
use crate::error::{NOTHING_THERE, failed, refused};
use crate::file_id::FileId;
use crate::trust;

#[cfg(any(target_os = "linux", target_os = "android"))]
const NOATIME: OFlags = OFlags::NOATIME;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const NOATIME: OFlags = OFlags::empty();

/// An open directory that belongs to this user and that no other user can write to. Files in it are reached through the
/// open descriptor, so that a directory that another user puts at the same path receives nothing.
#[derive(Debug)]
pub(crate) struct OpenDir {
    pub(crate) fd: OwnedFd,
    path: PathBuf,
    id: FileId,
    /// Whether the files in it stay open in programs that this process starts.
    inherited: bool,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum For {
    /// Looking, which has to be possible where nothing can be written.
    Reading,
    Writing,
    /// Writing, also if it does not exist yet.
    Creating,
}

/// The path of a file or directory below an open directory. It is opened relative to that directory's descriptor.
#[derive(Clone, Debug)]
pub(crate) struct PathAt {
    dir: Arc<OpenDir>,
    /// The whole path. It is used for comparisons and messages, and never for opening.
    path: PathBuf,
}

impl OpenDir {
    /// Opens an existing directory, and refuses one that other users could write to.
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>> {
        let fd = rustix::fs::open(path, Self::HOW, Mode::empty());
        Self::of(fd.map_err(|cause| failed("open", path, cause.into()))?, path.to_owned(), false)
    }

    /// Opens the directory `name` in this one.
    pub(crate) fn below(self: &Arc<Self>, name: &str, options: DirOptions) -> Result<Arc<Self>> {
        let path = self.path_to(name);
        if options.creates {
            path.create_dir()?;
        } else if !path.exists()? {
            return Err(refused(&path, NOTHING_THERE));
        }
        let fd = rustix::fs::openat(&self.fd, name, Self::HOW | OFlags::NOFOLLOW, Mode::empty());
        // A symbolic link, too, is no directory.
        Self::of(fd.map_err(|cause| failed("open", &path, cause.into()))?, path.path, options.inherited)
    }

    const HOW: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    fn of(fd: OwnedFd, path: PathBuf, inherited: bool) -> Result<Arc<Self>> {
        let stat = rustix::fs::fstat(&fd).map_err(|cause| failed("look at", &path, cause.into()))?;
        trust::refuse_others_directory(&stat, &path)?;
        // What cleans up old files (systemd-tmpfiles) passes over a directory that it cannot lock. It is no harm if it has
        // locked this one just now.
        let _ = rustix::fs::flock(&fd, FlockOperation::NonBlockingLockShared);
        Ok(Arc::new(Self { fd, path, id: FileId::of(&stat), inherited }))
    }

    /// Whether the path still leads to this directory.
    pub(crate) fn is_in_place(&self) -> Result<bool> {
        Ok(FileId::found_at(&self.path)? == Some(self.id))
    }

    pub(crate) fn path_to(self: &Arc<Self>, name: &str) -> PathAt {
        PathAt { dir: Arc::clone(self), path: self.path.join(name) }
    }
}

impl PathAt {
    pub(crate) fn full(&self) -> &Path {
        &self.path
    }

    pub(crate) fn below(&self, name: &str) -> Self {
        Self { dir: Arc::clone(&self.dir), path: self.path.join(name) }
    }

    /// The path with another ending (extension) in place of its own.
    pub(crate) fn with_ending(&self, ending: &str) -> Self {
        Self { dir: Arc::clone(&self.dir), path: self.path.with_extension(ending) }
    }

    /// Opens the file, without following symbolic links. `None` if the file does not exist or, if it is to be created, its
    /// directory does not exist.
    pub(crate) fn open(&self, purpose: For) -> Result<Option<File>> {
        let purpose = match purpose {
            For::Reading => OFlags::RDONLY,
            For::Writing => OFlags::RDWR,
            For::Creating => OFlags::RDWR | OFlags::CREATE,
        };
        // Without NONBLOCK, opening a pipe at this path would wait for its other end.
        let mut how = purpose | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        how.set(OFlags::CLOEXEC, !self.dir.inherited);
        let open = |how| rustix::fs::openat(&self.dir.fd, self.relative(), how, Mode::RUSR | Mode::WUSR);
        // Each acquisition reads the file, and nobody asks when that was. Only the owner of the file may say so.
        let opened = open(how | NOATIME).or_else(|cause| if cause == Errno::PERM { open(how) } else { Err(cause) });
        match opened {
            Ok(fd) => Ok(Some(fd.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP) => Err(refused(self, "is a symbolic link; move it away")),
            Err(Errno::ISDIR | Errno::NXIO) => Err(refused(self, "is not a regular file; move it away")),
            Err(cause) => Err(failed("open", self, cause.into())),
        }
    }

    pub(crate) fn exists(&self) -> Result<bool> {
        let found = rustix::fs::statat(&self.dir.fd, self.relative(), AtFlags::SYMLINK_NOFOLLOW);
        self.told("look at", found.map(drop), &[Errno::NOENT])
    }

    /// Renames the file to `other`, and replaces what is there. Returns false if the file does not exist.
    pub(crate) fn rename_to(&self, other: &Self) -> Result<bool> {
        let renamed = rustix::fs::renameat(&self.dir.fd, self.relative(), &other.dir.fd, other.relative());
        self.told("rename", renamed, &[Errno::NOENT])
    }

    /// Gives the file the other name, too. Returns false if the file does not exist, or the other name does.
    pub(crate) fn link_to(&self, other: &Self) -> Result<bool> {
        let (from, to) = (&self.dir.fd, &other.dir.fd);
        let linked = rustix::fs::linkat(from, self.relative(), to, other.relative(), AtFlags::empty());
        self.told("link", linked, &[Errno::NOENT, Errno::EXIST])
    }

    /// Removes the file. Does nothing if it does not exist or cannot be removed.
    pub(crate) fn remove(&self) {
        let _ = rustix::fs::unlinkat(&self.dir.fd, self.relative(), AtFlags::empty());
    }

    /// Creates a directory with mode 0700. Does nothing if something exists at the path.
    pub(crate) fn create_dir(&self) -> Result<()> {
        let made = rustix::fs::mkdirat(&self.dir.fd, self.relative(), Mode::RWXU);
        self.told("create", made, &[Errno::EXIST]).map(drop)
    }

    /// Whether it was done. `unless`: the causes that are an answer, and no error.
    fn told(&self, doing: &str, done: rustix::io::Result<()>, unless: &[Errno]) -> Result<bool> {
        match done {
            Ok(()) => Ok(true),
            Err(cause) if unless.contains(&cause) => Ok(false),
            Err(cause) => Err(failed(doing, self, cause.into())),
        }
    }

    /// The names in the directory at this path; none if it does not exist.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let cannot = |cause: Errno| failed("list", self, cause.into());
        let how = OpenDir::HOW | OFlags::NOFOLLOW;
        let fd = match rustix::fs::openat(&self.dir.fd, self.relative(), how, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(Vec::new()),
            Err(cause) => return Err(cannot(cause)),
        };
        let mut names = Vec::new();
        for entry in Dir::new(fd).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            // This crate writes UTF-8 names only.
            names.extend(entry.file_name().to_str().ok().filter(|name| ![".", ".."].contains(name)).map(str::to_owned));
        }
        Ok(names)
    }

    /// The path relative to the open directory.
    fn relative(&self) -> &OsStr {
        let whole = self.path.as_os_str().as_bytes();
        let name = whole.get(self.dir.path.as_os_str().len() + 1..).unwrap_or_default();
        OsStr::from_bytes(if name.is_empty() { b"." } else { name })
    }
}

impl AsRef<Path> for PathAt {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}
