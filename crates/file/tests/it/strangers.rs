//! Other users of the machine, who may do what they can to the places around our directory.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{directory, may, open, patient, soon};
use leasehold_file::{Admin, ErrorKind, FileLocks, LockKey, LockerExt, LossReason, ReleaseOutcome, RwLockerExt};
use leasehold_testkit::test;
use tempfile::TempDir;

/// Somebody who is neither us nor the super-user.
const STRANGER: u32 = 65_534;

fn key(key: &str) -> LockKey {
    LockKey::new(key).unwrap()
}

/// A directory in a place where everybody may put things, as in `/tmp`.
fn public() -> (TempDir, PathBuf) {
    let public = directory();
    fs::set_permissions(public.path(), Permissions::from_mode(0o1777)).unwrap();
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

/// Without going through links.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let below = |entry: fs::DirEntry| match entry.file_type().unwrap() {
        kind if kind.is_dir() => files_below(&entry.path()),
        kind if kind.is_symlink() => Vec::new(),
        _ => vec![entry.path()],
    };
    entries.flat_map(below).collect()
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
        let free = key("k");
        for error in [
            locks.try_lock("k").await.map(drop).unwrap_err(),
            locks.try_read("r").await.map(drop).unwrap_err(),
            locks.inspect(&free).await.map(drop).unwrap_err(),
            locks.list("", None).await.map(drop).unwrap_err(),
            locks.force_release(&free).await.map(drop).unwrap_err(),
            FileLocks::open(&ours).map(drop).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
            assert!(error.to_string().contains("user 65534") || error.to_string().contains("another user"), "{error}");
        }
        assert_eq!(soon("the loss", held.lost()).await, LossReason::Stolen);
        drop(held);
        let old = ours.with_extension("old");
        let strays: Vec<_> = files_below(public.path()).into_iter().filter(|path| !path.starts_with(&old)).collect();
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

#[test]
fn a_place_in_which_others_can_move_our_directory_is_refused() {
    let directory = directory();
    let (parent, link) = (directory.path().join("parent"), directory.path().join("link"));
    let below = parent.join("a/locks");
    fs::create_dir_all(&below).unwrap();
    fs::set_permissions(&below, Permissions::from_mode(0o700)).unwrap();
    symlink(&below, &link).unwrap();
    let mode = |mode| fs::set_permissions(&parent, Permissions::from_mode(mode)).unwrap();
    for (bits, safe) in [(0o755, true), (0o775, false), (0o757, false), (0o777, false), (0o1777, true), (0o1775, true)]
    {
        mode(bits);
        for path in [&below, &link] {
            let opened = FileLocks::open(path);
            assert_eq!(opened.is_ok(), safe, "{bits:o}: {opened:?}");
            if let Err(error) = opened {
                assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
                assert!(error.to_string().contains(&parent.display().to_string()), "{error}");
                assert!(error.to_string().contains("chmod go-w"), "{error}");
            }
        }
    }
    if chown(&parent, Some(STRANGER), None).is_ok() {
        let error = FileLocks::open(&below).map(drop).unwrap_err();
        assert!(error.to_string().contains("belongs to user 65534"), "{error}");
    }
}

#[test]
fn a_link_of_another_user_on_the_way_is_refused() {
    let (public, _) = public();
    let (real, link) = (public.path().join("real"), public.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    FileLocks::open(link.join("locks")).unwrap();
    may("give a link away", std::os::unix::fs::lchown(&link, Some(STRANGER), None));
    let error = FileLocks::open(link.join("locks")).map(drop).unwrap_err();
    assert!(error.to_string().contains("symbolic link of another user"), "{error}");
}

#[test]
async fn a_ring_of_links_is_an_error() {
    let directory = directory();
    symlink(directory.path().join("b"), directory.path().join("a")).unwrap();
    symlink(directory.path().join("a"), directory.path().join("b")).unwrap();
    let error = FileLocks::open(directory.path().join("a/locks")).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    drop(open(&directory));
}
