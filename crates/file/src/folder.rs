use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use leasehold_core::Result;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use crate::fault::failed;
use crate::flocked::Identity;
use crate::trust;

/// A directory of ours that is held open, so that whatever takes its place at its path gets nothing of ours.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    identity: Identity,
}

/// A file or directory below a folder, to be got at through that folder and nothing else.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    folder: Arc<Folder>,
    /// For comparing and for messages, and never for opening: where it ought to be.
    path: PathBuf,
}

impl Folder {
    /// A directory of ours alone, which is there.
    pub(crate) fn open(path: &Path) -> Result<Arc<Self>> {
        let fd = rustix::fs::open(path, Self::HOW, Mode::empty());
        Self::of(fd.map_err(|cause| failed("open", path, cause.into()))?, path.to_owned())
    }

    /// One below this one, which is created if need be.
    pub(crate) fn below(self: &Arc<Self>, name: &str) -> Result<Arc<Self>> {
        let spot = self.spot(name);
        spot.create_folder()?;
        let fd = rustix::fs::openat(&self.fd, name, Self::HOW | OFlags::NOFOLLOW, Mode::empty());
        // A symbolic link, too, is no directory.
        Self::of(fd.map_err(|cause| failed("open", &spot, cause.into()))?, spot.path)
    }

    const HOW: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    fn of(fd: OwnedFd, path: PathBuf) -> Result<Arc<Self>> {
        let stat = rustix::fs::fstat(&fd).map_err(|cause| failed("look at", &path, cause.into()))?;
        trust::is_ours_alone(&stat, &path)?;
        Ok(Arc::new(Self { fd, path, identity: Identity::of(&stat) }))
    }

    /// Whether its path still leads to it.
    pub(crate) fn is_in_place(&self) -> Result<bool> {
        Ok(Identity::found_at(&self.path)? == Some(self.identity))
    }

    pub(crate) fn spot(self: &Arc<Self>, name: &str) -> Spot {
        Spot { folder: Arc::clone(self), path: self.path.join(name) }
    }

    pub(crate) fn as_fd(&self) -> &OwnedFd {
        &self.fd
    }
}

impl Spot {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn below(&self, name: &str) -> Self {
        Self { folder: Arc::clone(&self.folder), path: self.path.join(name) }
    }

    /// The same name with another ending.
    pub(crate) fn with_ending(&self, ending: &str) -> Self {
        Self { folder: Arc::clone(&self.folder), path: self.path.with_extension(ending) }
    }

    /// For reading and writing, without following links. `None`: it is not there or, given `create`, its directory is
    /// not.
    pub(crate) fn open(&self, create: bool) -> Result<Option<File>> {
        // No pipe that lies there makes us wait.
        let mut how = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        how.set(OFlags::CREATE, create);
        match rustix::fs::openat(&self.folder.fd, self.name(), how, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => Ok(Some(fd.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(cause) => Err(failed("open", self, cause.into())),
        }
    }

    pub(crate) fn is_there(&self) -> Result<bool> {
        match rustix::fs::statat(&self.folder.fd, self.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(cause) => Err(failed("look at", self, cause.into())),
        }
    }

    /// Gives it the place of another. False if it is not there.
    pub(crate) fn replace(&self, other: &Self) -> Result<bool> {
        match rustix::fs::renameat(&self.folder.fd, self.name(), &other.folder.fd, other.name()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(cause) => Err(failed("rename", self, cause.into())),
        }
    }

    /// Removes a file, if it is there and can be removed.
    pub(crate) fn remove(&self) {
        let _ = rustix::fs::unlinkat(&self.folder.fd, self.name(), AtFlags::empty());
    }

    /// Creates a directory for us alone, unless it is there.
    pub(crate) fn create_folder(&self) -> Result<()> {
        match rustix::fs::mkdirat(&self.folder.fd, self.name(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(cause) => Err(failed("create", self, cause.into())),
        }
    }

    /// What is in a directory; nothing, if there is none.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let cannot = |cause: Errno| failed("list", self, cause.into());
        let fd = match rustix::fs::openat(&self.folder.fd, self.name(), Folder::HOW | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(Vec::new()),
            Err(cause) => return Err(cannot(cause)),
        };
        let mut names = Vec::new();
        for entry in Dir::new(fd).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            // What is not text is not ours.
            names.extend(entry.file_name().to_str().ok().filter(|name| ![".", ".."].contains(name)).map(str::to_owned));
        }
        Ok(names)
    }

    fn name(&self) -> &OsStr {
        let whole = self.path.as_os_str().as_bytes();
        let name = whole.get(self.folder.path.as_os_str().len() + 1..).unwrap_or_default();
        OsStr::from_bytes(if name.is_empty() { b"." } else { name })
    }
}

impl AsRef<Path> for Spot {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}
