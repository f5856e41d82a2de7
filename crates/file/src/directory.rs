use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use leasehold_core::{Error, ErrorKind, LockKey, Result};
use rustix::process::geteuid;

use crate::fault::{BACKEND, failed, refused, unavailable};
use crate::flocked::{Flocked, Opened};
use crate::name;

/// Where the locks of one namespace are: a folder of its own in a directory that nobody else can write to.
#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    folder: PathBuf,
}

/// The files of one key.
#[derive(Debug)]
pub(crate) struct Place {
    /// The file that is locked.
    pub(crate) lock: PathBuf,
    /// The key as the file has it.
    pub(crate) key: String,
}

impl Directory {
    /// Creates what is missing, and refuses what is not safe.
    pub(crate) fn open(root: &Path, namespace: &str) -> Result<Self> {
        let wrong = |why: &str| Error::new(ErrorKind::InvalidOptions, "open locks").backend(BACKEND).detail(why);
        if !(1..=LockKey::MAX_BYTES).contains(&namespace.len()) {
            return Err(wrong("a namespace takes 1 to 255 bytes"));
        }
        if root.as_os_str().is_empty() {
            return Err(wrong("the directory has no name"));
        }
        // A later change of the working directory must not change which locks these are.
        let root = std::path::absolute(root).map_err(|cause| failed("find", root, cause))?;
        let folder = root.join(name::stem(&name::encode(namespace)));
        let directory = Self { root, folder };
        directory.prepare()?;
        Ok(directory)
    }

    /// Also for when it was cleaned away.
    pub(crate) fn prepare(&self) -> Result<()> {
        for path in [&self.root, &self.folder] {
            create(path)?;
            check(path)?;
        }
        refuse_network(&self.root)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.folder.join("sessions")
    }

    pub(crate) fn place(&self, key: &LockKey) -> Place {
        let key = name::encode(key.as_str());
        Place { lock: self.folder.join(name::stem(&key) + Place::LOCK), key }
    }

    /// Waits for the right to replace lock files here, held until this is dropped.
    pub(crate) async fn replacing(&self) -> Result<Flocked> {
        let path = self.folder.join("replacing");
        let opened = Opened::at(&path, true)?.ok_or_else(|| unavailable(&path, "was removed just now"))?;
        let replacing = Flocked::soon(opened, &path).await?;
        if replacing.0.is_at(&path)? { Ok(replacing) } else { Err(unavailable(&path, "was removed just now")) }
    }
}

impl Place {
    /// The ending of lock files.
    pub(crate) const LOCK: &str = ".lock";
    /// The ending of the folders of readers.
    pub(crate) const READERS: &str = ".readers";

    /// See [`Turn`](crate::turn::Turn).
    pub(crate) fn count(&self) -> PathBuf {
        self.lock.with_extension("count")
    }

    /// See [`Readers`](crate::record::Readers).
    pub(crate) fn readers(&self) -> PathBuf {
        self.lock.with_extension(&Self::READERS[1..])
    }

    /// What takes the place of the lock file when it is released by force.
    pub(crate) fn fresh(&self) -> PathBuf {
        self.lock.with_extension("new")
    }
}

/// Creates a directory for us alone, unless it is there.
pub(crate) fn create(path: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|cause| failed("create", path, cause))
}

fn check(path: &Path) -> Result<()> {
    let look = |result: io::Result<Metadata>| result.map_err(|cause| failed("look at", path, cause));
    let us = geteuid().as_raw();
    let named = look(fs::symlink_metadata(path))?;
    if named.is_symlink() && named.uid() != us && named.uid() != 0 {
        return Err(refused(path, "is a symbolic link of another user; name a directory of your own"));
    }
    let directory = look(fs::metadata(path))?;
    if directory.uid() != us {
        return Err(refused(path, &format!("belongs to user {}, not to us ({us})", directory.uid())));
    }
    if directory.mode() & 0o022 != 0 {
        return Err(refused(path, "can be written to by others; run chmod go-w on it or name another directory"));
    }
    if directory.mode() & 0o700 != 0o700 {
        return Err(refused(path, "cannot be read, written and entered by its owner; run chmod u+rwx on it"));
    }
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn refuse_network(path: &Path) -> Result<()> {
    let found = rustix::fs::statfs(path).map_err(|cause| failed("look at", path, cause.into()))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the constants have 32 bits")]
    match network(found.f_type as u32) {
        Some(name) => Err(refused(path, &format!("is on {name}: network file systems are not supported"))),
        None => Ok(()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn refuse_network(_path: &Path) -> Result<()> {
    Ok(())
}

/// The file systems on which another machine, or another kernel, may hold the same lock without ours knowing.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x00c3_6400 => "Ceph",
        0x0102_1997 => "9P",
        0x0bd0_0bd0 => "Lustre",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x786f_4256 => "a shared folder of VirtualBox",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn network_file_systems_are_told_from_local_ones() {
        for magic in [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x00c3_6400, 0x0102_1997] {
            assert!(network(magic).is_some(), "{magic:x}");
        }
        // ext4, tmpfs, btrfs, XFS, ZFS, overlayfs
        for magic in [0xef53, 0x0102_1994, 0x9123_683e, 0x5846_5342, 0x2fc1_2fc1, 0x794c_7630] {
            assert_eq!(network(magic), None, "{magic:x}");
        }
    }

    #[test]
    fn the_files_of_a_key_differ_in_their_endings() {
        let dir = tempfile::tempdir().unwrap();
        let directory = Directory::open(dir.path(), "n").unwrap();
        let place = directory.place(&LockKey::new("a.b").unwrap());
        let files = [&place.lock, &place.count(), &place.readers(), &place.fresh()];
        let names = files.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names, ["a%2Eb.lock", "a%2Eb.count", "a%2Eb.readers", "a%2Eb.new"]);
    }
}
