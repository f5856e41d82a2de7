//! The agent's socket in the file system.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, flock};
use rustix::process::umask;

/// A socket that this process has made, and removes at its end.
pub(crate) struct Socket {
    path: PathBuf,
    inode: Option<u64>,
}

/// Listens at `path`, for the user and the group of this process. A socket that no process listens at is replaced.
pub(crate) fn bind(path: &Path) -> io::Result<(UnixListener, Socket)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Of two agents that start at once, the second would remove the socket of the first.
    let folder = File::open(folder)?;
    flock(&folder, FlockOperation::LockExclusive)?;
    remove_stale(path)?;
    // A mode that is set afterwards would leave a moment in which anybody can connect.
    let before = umask(Mode::from_raw_mode(0o117));
    let listener = UnixListener::bind(path);
    umask(before);
    Ok((listener?, Socket { path: path.to_owned(), inode: inode(path) }))
}

fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let in_use = |why: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, why.to_owned()));
    if !found.file_type().is_socket() {
        return in_use("it is not a socket");
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
        Ok(_) => in_use("another agent listens there"),
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Somebody may have removed it, and another agent serve there.
        if inode(&self.path) == self.inode {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn inode(path: &Path) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|found| found.ino())
}
