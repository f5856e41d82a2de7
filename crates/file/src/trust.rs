//! Checks that no other user can write to the directory of the locks, or put another directory in its place.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use leasehold_core::Result;
use rustix::fs::Stat;
use rustix::process::geteuid;

use crate::error::{failed, refused};

/// Checks every directory and symbolic link on the way to `path`, as `ssh` does for its files: each belongs to this user or
/// root, and no other user can rename what is in it.
pub(crate) fn check_path(path: &Path) -> Result<()> {
    const LINKS: u32 = 40;
    let (mut at, mut ahead, mut links) = (PathBuf::from("/"), steps(path), 0);
    while let Some(step) = ahead.pop() {
        check_what_is_in(&at)?;
        if step == ".." {
            at.pop();
            continue;
        }
        let next = at.join(step);
        let found = fs::symlink_metadata(&next).map_err(|cause| failed("look at", &next, cause))?;
        if !found.is_symlink() {
            at = next;
            continue;
        }
        if !is_trusted(found.uid()) {
            return Err(refused(&next, "is a symbolic link of another user; name a directory of your own"));
        }
        links += 1;
        if links > LINKS {
            return Err(failed("follow", &next, io::Error::from(rustix::io::Errno::LOOP)));
        }
        let target = fs::read_link(&next).map_err(|cause| failed("follow", &next, cause))?;
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        ahead.extend(steps(&target));
    }
    Ok(())
}

/// Refuses a directory that belongs to another user or that others can write to. `directory` is what `fstat` returned for
/// the open directory.
pub(crate) fn refuse_others_directory(directory: &Stat, path: &Path) -> Result<()> {
    let us = geteuid().as_raw();
    if directory.st_uid != us {
        let owner = directory.st_uid;
        return Err(refused(path, &format!("belongs to user {owner}, not to us ({us}); name another directory")));
    }
    if directory.st_mode & 0o022 != 0 {
        return Err(refused(path, "can be written to by others; run chmod go-w on it or name another directory"));
    }
    if directory.st_mode & 0o700 != 0o700 {
        return Err(refused(path, "cannot be read, written and entered by its owner; run chmod u+rwx on it"));
    }
    Ok(())
}

/// The components of a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let steps = path.components().rev().filter(|step| matches!(step, Component::Normal(_) | Component::ParentDir));
    steps.map(|step| step.as_os_str().to_owned()).collect()
}

fn check_what_is_in(parent: &Path) -> Result<()> {
    const STICKY: u32 = 0o1000;
    let found = fs::symlink_metadata(parent).map_err(|cause| failed("look at", parent, cause))?;
    if !is_trusted(found.uid()) {
        let owner = found.uid();
        return Err(refused(
            parent,
            &format!("belongs to user {owner}, who could move what is in it; name another directory"),
        ));
    }
    if found.mode() & 0o022 != 0 && found.mode() & STICKY == 0 {
        return Err(refused(parent, "can be written to by others; run chmod go-w on it or name another directory"));
    }
    Ok(())
}

fn is_trusted(owner: u32) -> bool {
    owner == 0 || owner == geteuid().as_raw()
}

/// Refuses a directory on a file system that may be of several machines, on which each kernel would know its own locks alone.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn refuse_unless_local(dir: impl AsFd, path: &Path) -> Result<()> {
    let found = rustix::fs::fstatfs(dir).map_err(|cause| failed("look at", path, cause.into()))?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the constants have 32 bits")]
    let magic = found.f_type as u32;
    if is_local(magic) {
        return Ok(());
    }
    Err(refused(
        path,
        &format!(
            "is on a file system of the type {magic:#x}, which is not known to be of this machine alone; name another \
             directory, or, if no other machine can reach it, say so: file:/DIR?filesystem=local"
        ),
    ))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn refuse_unless_local(_dir: impl AsFd, _path: &Path) -> Result<()> {
    Ok(())
}

/// Whether a file system of this type is always that of one kernel. What is not listed may be on a network: NFS and SMB as well
/// as whatever FUSE brings (sshfs, a shared folder of a virtual machine).
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_local(magic: u32) -> bool {
    const LOCAL: [u32; 21] = [
        0xef53,      // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683e, // Btrfs
        0x2fc1_2fc1, // ZFS
        0xca45_1a4e, // bcachefs
        0xf2f5_2010, // F2FS
        0x3153_464a, // JFS
        0x5265_4973, // ReiserFS
        0x3434,      // NILFS
        0x0102_1994, // tmpfs
        0x8584_58f6, // ramfs
        0x794c_7630, // overlayfs
        0x6175_6673, // aufs
        0xf15f,      // eCryptfs
        0x4d44,      // FAT
        0x2011_bab0, // exFAT
        0x7366_746e, // NTFS
        0x2405_1905, // UBIFS
        0x72b6,      // JFFS2
        0x7371_7368, // squashfs
        0xe0f5_e1e2, // EROFS
    ];
    LOCAL.contains(&magic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn what_is_not_known_to_be_local_is_refused() {
        // NFS, SMB (three), Ceph, 9P, FUSE with its control files, VirtualBox, GFS2, OCFS2, nothing.
        let foreign = "6969 517b ff534d42 fe534d42 c36400 1021997 65735546 65735543 786f4256 1161970 7461636f 0";
        for magic in foreign.split(' ') {
            assert!(!is_local(u32::from_str_radix(magic, 16).unwrap()), "{magic}");
        }
        // ext4, tmpfs, Btrfs, XFS, ZFS, overlayfs
        for magic in [0xef53, 0x0102_1994, 0x9123_683e, 0x5846_5342, 0x2fc1_2fc1, 0x794c_7630] {
            assert!(is_local(magic), "{magic:x}");
        }
    }
}
