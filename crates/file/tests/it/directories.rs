//! Where locks may be, and for whom the files are.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use crate::support::{Helper, STRANGER, below, directory, file, may, open, set_mode};
use leasehold_file::{ErrorKind, FileBackend, FileLocks, LockerExt, RwLockerExt};
use leasehold_testkit::{shows_nothing, test, this_program};

/// Opening `directory` is refused, and the error names the path at which the fault is.
fn refused(directory: &Path, at: &Path, says: &str) {
    let error = FileLocks::open(directory).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    assert!(error.to_string().contains(&at.display().to_string()), "{}: {error}", at.display());
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
async fn directories_and_files_are_for_their_owner_alone() {
    let directory = directory();
    let locks = FileLocks::open(directory.path().join("a/b")).unwrap();
    let _writer = locks.lock("w").await.unwrap();
    let _reader = locks.read("r").await.unwrap();
    let all = below(directory.path());
    assert!(all.len() >= 8, "{all:?}");
    for path in all {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, expected, "{}", path.display());
    }
}

#[test]
fn a_directory_that_others_can_write_to_or_its_owner_cannot_use_is_refused() {
    let directory = directory();
    let (parent, link) = (directory.path().join("parent"), directory.path().join("link"));
    let locks = parent.join("a/locks");
    FileLocks::open(&locks).unwrap();
    symlink(&locks, &link).unwrap();
    let (open, closed) = ("run chmod go-w on it", "run chmod u+rwx on it");
    let (namespace, below) = (locks.join("leasehold"), parent.join("a"));
    for (path, mode, says) in [
        (&locks, 0o770, open),
        (&locks, 0o702, open),
        (&locks, 0o1777, open),
        (&namespace, 0o770, open),
        // Others could put another directory in its place.
        (&below, 0o757, open),
        (&parent, 0o775, open),
        (&parent, 0o777, open),
        (&locks, 0o500, closed),
        (&locks, 0o600, closed),
        // Only the super-user can open it, and is told what to do.
        (&locks, 0o300, ""),
    ] {
        let before = fs::metadata(path).unwrap().mode();
        set_mode(path, mode);
        for way in [&locks, &link] {
            let at = path
                .strip_prefix(&locks)
                .map_or(path.clone(), |rest| way.components().chain(rest.components()).collect());
            refused(way, &at, says);
        }
        set_mode(path, before);
        FileLocks::open(&locks).unwrap();
    }
    for (path, mode) in [(&locks, 0o755), (&parent, 0o755), (&parent, 0o1777), (&below, 0o1775)] {
        set_mode(path, mode);
        FileLocks::open(&locks).unwrap();
    }
}

#[test]
fn a_directory_or_link_of_another_user_is_refused() {
    let directory = directory();
    let path = |name: &str| directory.path().join(name);
    let give = |name: &str| may("give a directory away", lchown(path(name), Some(STRANGER), None));
    for name in ["theirs/ours", "ours/ours"] {
        FileLocks::open(path(name)).unwrap();
    }
    symlink(path("ours"), path("link")).unwrap();
    FileLocks::open(path("link/locks")).unwrap();
    give("link");
    refused(&path("link"), &path("link"), "is a symbolic link of another user");
    refused(&path("link/locks"), &path("link"), "is a symbolic link of another user");
    give("theirs");
    refused(&path("theirs"), &path("theirs"), "belongs to user 65534");
    refused(&path("theirs/ours"), &path("theirs"), "belongs to user 65534");
    chown(path("ours/ours"), Some(STRANGER), None).unwrap();
    refused(&path("ours/ours"), &path("ours/ours"), "belongs to user 65534");
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_with_path_and_cause() {
    let directory = directory();
    let path = |name: &str| directory.path().join(name);
    fs::write(path("file"), "").unwrap();
    symlink(path("b"), path("a")).unwrap();
    symlink(path("a"), path("b")).unwrap();
    for path in [path("file"), path("file/below"), path("a/below"), PathBuf::from("/proc/locks-of-ours")] {
        let error = FileLocks::open(&path).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
        assert!(std::error::Error::source(&error).is_some(), "{error:?}");
    }
    assert_eq!(FileLocks::open("").map(drop).unwrap_err().kind(), ErrorKind::InvalidOptions);
}

#[test]
async fn every_way_to_a_directory_leads_to_the_same_locks() {
    let directory = directory();
    let link = directory.path().join("link");
    symlink(directory.path(), &link).unwrap();
    let path = directory.path().display();
    let built = FileLocks::builder().directory(directory.path()).namespace("jobs").open().unwrap();
    let _held = built.lock("k").await.unwrap();
    let others = [format!("file:{path}"), format!("file:{path}?namespace=JOBS"), format!("file:{path}?namespace=..")];
    let same = [directory.path(), link.as_path()].map(|path| format!("file:{}?namespace=jobs", path.display()));
    for url in same.into_iter().chain([format!("file://{path}?namespace=jobs")]) {
        assert!(FileLocks::connect(&url).await.unwrap().try_lock("k").await.unwrap().is_none(), "{url}");
    }
    for url in others {
        assert!(FileLocks::connect(&url).await.unwrap().try_lock("k").await.unwrap().is_some(), "{url}");
    }
    for wrong in ["redis://localhost", "file:/d?ttl=3", "file://elsewhere/d", &format!("file:{path}?namespace=")] {
        let error = FileLocks::connect(wrong).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
    }
    let error = FileBackend::open(directory.path(), &"x".repeat(256)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOptions);
}

/// A cron job has neither a runtime directory nor the variables of a login session.
#[test]
fn the_default_is_the_same_in_every_environment_of_a_user() {
    let directory = directory();
    let ours = FileLocks::default_dir().unwrap().display().to_string();
    for variables in [&[][..], &["XDG_RUNTIME_DIR"], &["XDG_STATE_HOME", "HOME"], &["TMPDIR", "USER"]] {
        let mut helper = this_program("processes::helper");
        helper.env_clear();
        helper.envs(variables.iter().map(|name| (name, directory.path())));
        let mut helper = Helper::run(&mut helper, "default", directory.path());
        assert_eq!(helper.hear().unwrap(), ours, "{variables:?}");
    }
}

#[test]
fn a_directory_that_has_to_exist_is_not_made() {
    let directory = directory();
    let looked_at = |path: &Path| FileLocks::builder().directory(path).existing().open();
    let missing = directory.path().join("missing");
    for (path, named) in [(missing.as_path(), &missing), (directory.path(), &directory.path().join("leasehold"))] {
        let error = looked_at(path).map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains(&named.display().to_string()), "{error}");
        assert!(below(directory.path()).is_empty(), "nothing is made");
    }
    open(&directory);
    looked_at(directory.path()).unwrap();
}

/// Lock files are not written to for as long as they are held, and look old.
#[test]
async fn what_cleans_up_old_files_leaves_those_of_locks_in_use_alone() {
    let directory = directory();
    let locks = open(&directory);
    let (held, stray) = (locks.lock("k").await.unwrap(), directory.path().join("stray"));
    fs::write(&stray, "").unwrap();
    let rules = directory.path().with_extension("conf");
    fs::write(&rules, format!("d {} 0700 - - 0\n", directory.path().display())).unwrap();
    let cleaned = std::process::Command::new("systemd-tmpfiles").arg("--clean").arg(&rules).status();
    fs::remove_file(&rules).unwrap();
    if !cleaned.is_ok_and(|status| status.success()) || stray.exists() {
        shows_nothing("systemd-tmpfiles does not clean up here");
    }
    assert!(file(&directory, "k.lock").exists());
    assert_eq!(held.loss(), None);
    assert!(open(&directory).try_lock("k").await.unwrap().is_none());
}
