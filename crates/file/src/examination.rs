use std::path::{Path, PathBuf};

use leasehold_core::{Error, Finding, Result};
use rustix::fs::{Mode, OFlags, Stat, StatVfs, StatVfsMountFlags};
use rustix::process::geteuid;

use crate::address::{Address, default_dir};
use crate::backend::FileBackend;
use crate::error::failed;
use crate::locker::FileLocks;
use crate::{admin, trust};

/// Checks the directory of a URL: its file system, who may write to it, and whether there is room. Of a directory that is not there
/// yet, the first one on the way to it that is.
pub(crate) fn examine(url: &str) -> Result<Vec<Finding>> {
    let Address { directory: named, is_local, .. } = Address::parse(url)?;
    let named = named.map_or_else(default_dir, Ok)?;
    let path = std::path::absolute(&named).map_err(|cause| failed("find", &named, cause))?;
    let there = path.ancestors().find(|step| step.symlink_metadata().is_ok()).unwrap_or(&path);
    let how = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    let open = rustix::fs::open(there, how, Mode::empty());
    let open = open.map_err(|cause| failed("open", there, cause.into()))?;
    let stat = rustix::fs::fstat(&open).map_err(|cause| failed("look at", there, cause.into()))?;
    let room = rustix::fs::fstatvfs(&open).map_err(|cause| failed("look at", there, cause.into()))?;
    let mut findings = vec![
        file_system(&path, is_local, trust::refuse_unless_local(&open, there).is_ok(), &room),
        directory(&path, there, &stat),
        space(there, &room),
    ];
    // What keeps the directory from being opened, another check has found.
    if let Ok(backend) = FileLocks::builder().url(url)?.existing().backend() {
        findings.extend(foreign(&backend)?);
    }
    Ok(findings)
}

/// Looks for files under the names of lock files that are none: their keys are refused.
fn foreign(backend: &FileBackend) -> Result<Vec<Finding>> {
    let (id, (looked, foreign)) = ("foreign-entry", admin::foreign(&backend.store)?);
    if foreign.is_empty() {
        return Ok(vec![Finding::well(id, format!("nobody else's among {looked} lock files"))]);
    }
    let tell = |(name, why): &(String, Error)| {
        let path = quoted(backend.store.directory.path_to(name).full());
        Finding::warning(id, format!("{why}, so that nobody can lock its key")).cure(format!("mv {path} {path}.moved"))
    };
    let more = |others| format!("{others} more files are no lock files");
    Ok(Finding::first_of(foreign.iter().map(tell).collect(), more, "move the others away, and ask again"))
}

/// `is_local`: the URL says that the file system is of this machine alone. `is_known`: its type says so.
fn file_system(path: &Path, is_local: bool, is_known: bool, room: &StatVfs) -> Finding {
    let (id, shown) = ("file-system", path.display());
    if room.f_flag.contains(StatVfsMountFlags::RDONLY) {
        Finding::error(id, format!("{shown} is mounted read-only: locks can be looked at, and none can be taken"))
            .cure("mount it so that it can be written to, or name another directory: --backend file:/DIRECTORY")
    } else if is_known {
        Finding::well(id, format!("{shown} is on a file system of this machine alone"))
    } else if is_local {
        Finding::well(id, format!("the URL says that {shown} is of this machine alone"))
    } else {
        let why = format!("{shown} is on a file system that may be of several machines, which lock it apart");
        Finding::error(id, why).cure("--backend file:/DIRECTORY, on a local disk; or a store for several machines")
    }
}

fn directory(path: &Path, there: &Path, stat: &Stat) -> Finding {
    if there != path {
        return Finding::well("directory", format!("{} does not exist yet: the first lock makes it", path.display()));
    }
    match trust::check_path(path).and_then(|()| trust::refuse_others_directory(stat, path)) {
        Ok(()) => Finding::well("directory", format!("nobody else can write to {}", path.display())),
        Err(error) => Finding::error("directory", error.to_string()).cure(change_of_mode(path, stat)),
    }
}

/// What ends that others can write to the directory, or to one on the way to it, or that its owner cannot.
fn change_of_mode(path: &Path, stat: &Stat) -> String {
    use std::os::unix::fs::MetadataExt;
    let steps: Vec<PathBuf> = path.ancestors().map(Path::to_path_buf).collect();
    let is_open = |step: &&PathBuf| {
        let mode = std::fs::metadata(step).map_or(0, |found| found.mode());
        mode & 0o022 != 0 && (*step == path || mode & 0o1000 == 0)
    };
    match steps.iter().find(is_open) {
        Some(step) => format!("chmod go-w {}", quoted(step)),
        None if stat.st_uid == geteuid().as_raw() && stat.st_mode & 0o700 != 0o700 => {
            format!("chmod u+rwx {}", quoted(path))
        }
        None => "--backend file:/DIRECTORY, in a directory of your own".to_owned(),
    }
}

/// The path as one word of a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    if plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

fn space(path: &Path, room: &StatVfs) -> Finding {
    let shown = path.display();
    let left = |free: u64, all: u64| all == 0 || free > all / 100;
    if room.f_bavail == 0 || (room.f_files > 0 && room.f_favail == 0) {
        Finding::error(
            "space",
            format!("the file system of {shown} is full: no lock can be taken on a key for the first time"),
        )
        .cure("make room, or name another directory: --backend file:/DIRECTORY")
    } else if !left(room.f_bavail, room.f_blocks) || !left(room.f_favail, room.f_files) {
        Finding::warning("space", format!("less than 1 % of the file system of {shown} is free"))
            .cure("make room, or name another directory: --backend file:/DIRECTORY")
    } else {
        Finding::well("space", format!("there is room in the file system of {shown}"))
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::Health;

    use super::*;

    /// Of a file system with so many free of a thousand blocks, and of a thousand files.
    fn room(blocks: u64, files: u64) -> StatVfs {
        let here = rustix::fs::open("/", OFlags::RDONLY, Mode::empty()).unwrap();
        let mut room = rustix::fs::fstatvfs(here).unwrap();
        (room.f_blocks, room.f_bavail, room.f_files, room.f_favail) = (1000, blocks, 1000, files);
        room
    }

    #[test]
    fn a_full_file_system_is_an_error_and_one_that_is_nearly_full_a_warning() {
        for (blocks, files, health) in [
            (500, 500, Health::Well),
            (11, 11, Health::Well),
            (10, 500, Health::Warning),
            (500, 10, Health::Warning),
            (0, 500, Health::Error),
            (500, 0, Health::Error),
        ] {
            assert_eq!(space(Path::new("/d"), &room(blocks, files)).health, health, "{blocks} {files}");
        }
        // As of a file system that counts no files.
        assert_eq!(space(Path::new("/d"), &StatVfs { f_files: 0, ..room(500, 0) }).health, Health::Well);
    }

    #[test]
    fn of_a_directory_that_is_not_there_yet_the_findings_say_so_and_nothing_is_made() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("not/there");
        let findings = examine(&format!("file:{}", path.display())).unwrap();
        assert!(findings.iter().all(|finding| finding.health == Health::Well), "{findings:?}");
        assert!(findings.iter().any(|finding| finding.text.contains("does not exist yet")), "{findings:?}");
        assert!(!place.path().join("not").exists());
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted(Path::new("/var/lib/x-1_2.d")), "/var/lib/x-1_2.d");
        assert_eq!(quoted(Path::new("/a b/it's")), "'/a b/it'\\''s'");
    }
}
