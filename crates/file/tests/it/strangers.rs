//! Other users of the machine, who may do what they can to the places around our directory.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{STRANGER, below, directory, key, may, patient, refusals, set_mode, soon};
use leasehold_file::{Admin, ErrorKind, FileLocks, LockerExt, LossReason, ReleaseOutcome, RwLockerExt};
use leasehold_testkit::test;
use tempfile::TempDir;

/// A directory in a place where everybody may put things, as in `/tmp`.
fn public() -> (TempDir, PathBuf) {
    let public = directory();
    set_mode(public.path(), 0o1777);
    let ours = public.path().join("ours");
    (public, ours)
}

/// What the stranger does, with the directory as `$0`.
fn stranger_does(script: &str, directory: &Path) {
    let mut shell = Command::new("sh");
    let ended = shell.args(["-c", script]).arg(directory).uid(STRANGER).gid(STRANGER).status();
    let status = may("act as another user", ended);
    assert!(status.success(), "the stranger could not: {script}");
}

/// A cleaner of the public place took our directory for abandoned.
fn cleaned_away(ours: &Path) {
    fs::rename(ours, ours.with_extension("old")).unwrap();
}

#[test]
async fn a_directory_that_another_user_made_in_the_place_of_ours_gets_nothing_of_ours() {
    let traps = [
        "umask 0; mkdir -p \"$0/leasehold/sessions\" \"$0/leasehold/r.readers\"",
        "umask 0; mkdir -p \"$0-elsewhere/leasehold/sessions\"; ln -s \"$0-elsewhere\" \"$0\"",
        "umask 0; mkdir -p \"$0\"; ln -s /tmp \"$0/leasehold\"",
    ];
    for trap in traps {
        let (public, ours) = public();
        let locks = FileLocks::open(&ours).unwrap();
        let held = locks.acquire(&key("held"), &patient().label("secret")).await.unwrap().unwrap();
        drop(locks.lock("k").await.unwrap());
        cleaned_away(&ours);
        stranger_does(trap, &ours);
        let listed = locks.list("", None).await.map(drop).unwrap_err();
        let opened = FileLocks::open(&ours).map(drop).unwrap_err();
        for error in refusals(&locks, "k").await.into_iter().chain([listed, opened]) {
            assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
            assert!(error.to_string().contains("user 65534") || error.to_string().contains("another user"), "{error}");
        }
        assert_eq!(soon("the loss", held.lost()).await, LossReason::Stolen);
        drop(held);
        let old = ours.with_extension("old");
        let mut strays = below(public.path());
        strays.retain(|path| !path.starts_with(&old) && !path.is_dir() && !path.is_symlink());
        assert!(strays.is_empty(), "after {trap}: {strays:?}");
    }
}

#[test]
async fn a_directory_that_was_moved_away_and_made_again_by_us_is_used_again() {
    let directory = directory();
    let root = directory.path().join("locks");
    let (locks, other) = (FileLocks::open(&root).unwrap(), FileLocks::open(&root).unwrap());
    drop(locks.lock("k").await.unwrap());
    cleaned_away(&root);
    let guard = soon("a grant", locks.lock("k")).await.unwrap();
    let reader = soon("a grant", locks.read("r")).await.unwrap();
    for locks in [&other, &FileLocks::open(&root).unwrap()] {
        assert!(locks.try_lock("k").await.unwrap().is_none());
        assert!(locks.try_lock("r").await.unwrap().is_none());
        for name in ["k", "r"] {
            assert_eq!(locks.inspect(&key(name)).await.unwrap().holders.len(), 1, "{name}");
        }
    }
    drop((guard, reader));
}

#[test]
async fn a_holder_whose_directory_was_moved_away_hears_of_it() {
    for writes in [true, false] {
        let directory = directory();
        let root = directory.path().join("locks");
        let locks = FileLocks::open(&root).unwrap();
        let told = locks.acquire(&key("told"), &patient()).await.unwrap().unwrap();
        let released = locks.lock("k").await.unwrap();
        let reader = locks.read("r").await.unwrap();
        cleaned_away(&root);
        if writes {
            FileLocks::open(&root).unwrap().lock("k").await.unwrap().release().await.unwrap();
        }
        assert_eq!(soon("the loss", told.lost()).await, LossReason::Stolen);
        let outcomes = [released.release().await.unwrap(), reader.release().await.unwrap()];
        assert_eq!(outcomes, [ReleaseOutcome::AlreadyLost(LossReason::Stolen); 2]);
    }
}
