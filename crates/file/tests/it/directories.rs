//! Where locks may be, and for whom the files are.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use crate::support::{directory, file, may, open};
use leasehold_file::{Admin, Error, ErrorKind, FileBackend, FileLocks, LockKey, LockerExt, RwLockerExt};
use leasehold_testkit::{shows_nothing, test, this_program};

/// Somebody who is neither us nor the super-user.
const STRANGER: u32 = 65_534;

fn refused(directory: &Path) -> Error {
    let error = FileLocks::open(directory).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    assert!(error.to_string().contains(&directory.display().to_string()), "{error}");
    error
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(below(&path));
        }
        all.push(path);
    }
    all
}

#[test]
async fn directories_and_files_are_for_their_owner_alone() {
    let directory = directory();
    let root = directory.path().join("a/b");
    let locks = FileLocks::open(&root).unwrap();
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
fn a_directory_that_others_can_write_to_is_refused() {
    let directory = directory();
    for mode in [0o770, 0o702, 0o777, 0o1777] {
        set_mode(directory.path(), mode);
        let error = refused(directory.path());
        assert!(error.to_string().contains("chmod go-w"), "{error}");
    }
    set_mode(directory.path(), 0o755);
    open(&directory);
    let namespace = directory.path().join("leasehold");
    set_mode(&namespace, 0o770);
    let error = FileLocks::open(directory.path()).map(drop).unwrap_err();
    assert!(error.to_string().contains(&namespace.display().to_string()), "{error}");
}

#[test]
fn a_directory_that_its_owner_cannot_use_is_refused() {
    let directory = directory();
    for mode in [0o500, 0o300, 0o600] {
        set_mode(directory.path(), mode);
        refused(directory.path());
    }
    set_mode(directory.path(), 0o700);
}

#[test]
fn a_directory_or_link_of_another_user_is_refused() {
    let directory = directory();
    let (theirs, link) = (directory.path().join("theirs"), directory.path().join("link"));
    fs::create_dir(&theirs).unwrap();
    set_mode(&theirs, 0o700);
    may("give a directory away", chown(&theirs, Some(STRANGER), None));
    assert!(refused(&theirs).to_string().contains("belongs to user 65534"));
    fs::create_dir(directory.path().join("ours")).unwrap();
    set_mode(&directory.path().join("ours"), 0o700);
    symlink(directory.path().join("ours"), &link).unwrap();
    FileLocks::open(&link).unwrap();
    std::os::unix::fs::lchown(&link, Some(STRANGER), None).unwrap();
    assert!(refused(&link).to_string().contains("symbolic link of another user"));
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error_with_path_and_cause() {
    let directory = directory();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below"), PathBuf::from("/proc/locks-of-ours")] {
        let error = refused(&path);
        assert!(std::error::Error::source(&error).is_some(), "{error:?}");
    }
    assert_eq!(FileLocks::open("").map(drop).unwrap_err().kind(), ErrorKind::InvalidOptions);
}

/// As of cron jobs that start in one second, where the folder is not there yet.
#[test]
fn whoever_else_makes_the_directory_at_the_same_moment_nobody_is_refused() {
    let directory = directory();
    for round in 0..50 {
        let root = directory.path().join(round.to_string()).join("a/b/c");
        let begins = std::sync::Barrier::new(4);
        let open = || {
            begins.wait();
            FileLocks::open(&root).map(drop)
        };
        let opened = std::thread::scope(|scope| [(); 4].map(|()| scope.spawn(open)).map(|one| one.join().unwrap()));
        assert!(opened.iter().all(Result::is_ok), "{opened:?}");
    }
}

#[test]
async fn a_lock_file_that_is_a_symbolic_link_is_refused_in_words() {
    let directory = directory();
    let (elsewhere, locks) = (directory.path().join("elsewhere"), open(&directory));
    fs::write(&elsewhere, "mine").unwrap();
    symlink(&elsewhere, directory.path().join("leasehold/k.lock")).unwrap();
    let key = LockKey::new("k").unwrap();
    let errors = [
        locks.try_lock("k").await.map(drop).unwrap_err(),
        locks.try_read("k").await.map(drop).unwrap_err(),
        locks.inspect(&key).await.map(drop).unwrap_err(),
        locks.force_release(&key).await.map(drop).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
        assert!(error.to_string().contains("k.lock is a symbolic link; move it away"), "{error}");
    }
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
}

#[test]
async fn links_to_one_directory_lead_to_the_same_locks() {
    let directory = directory();
    let locks = open(&directory);
    let link = directory.path().join("link");
    symlink(directory.path(), &link).unwrap();
    let _held = locks.lock("k").await.unwrap();
    assert!(FileLocks::open(&link).unwrap().try_lock("k").await.unwrap().is_none());
}

#[test]
async fn namespaces_are_apart_also_where_case_is_folded() {
    let directory = directory();
    let mut held = Vec::new();
    for namespace in ["a", "A", "..", "a/b", "é", &"x".repeat(255)] {
        let locks = FileLocks::builder().directory(directory.path()).namespace(namespace).open().unwrap();
        held.push(locks.try_lock("k").await.unwrap().expect("nobody has it in this namespace"));
    }
    let names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut folded: Vec<_> = names.map(|name| name.to_lowercase()).collect();
    folded.sort();
    folded.dedup();
    assert_eq!(folded.len(), held.len());
    for wrong in [String::new(), "x".repeat(256)] {
        let error = FileBackend::open(directory.path(), &wrong).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
    }
}

#[test]
async fn a_url_and_a_builder_open_the_same_locks() {
    let directory = directory();
    let path = directory.path().display();
    let built = FileLocks::builder().directory(directory.path()).namespace("jobs").open().unwrap();
    let _held = built.lock("k").await.unwrap();
    for url in [format!("file:{path}?namespace=jobs"), format!("file://{path}?namespace=jobs")] {
        assert!(FileLocks::connect(&url).await.unwrap().try_lock("k").await.unwrap().is_none(), "{url}");
    }
    assert!(FileLocks::connect(&format!("file:{path}")).await.unwrap().try_lock("k").await.unwrap().is_some());
    for wrong in ["redis://localhost", "file:/d?ttl=3", "file://elsewhere/d"] {
        let error = FileLocks::connect(wrong).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
    }
    let error = FileLocks::connect(&format!("file:{path}?namespace=")).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
}

/// What the test below asks of a process with another environment.
#[test]
fn helper() {
    if crate::support::role().is_none() {
        shows_nothing("another test runs it in processes of their own");
    }
    crate::support::say(&FileLocks::default_dir().unwrap().display().to_string());
}

/// A cron job has neither a runtime directory nor the variables of a login session.
#[test]
fn the_default_is_the_same_in_every_environment_of_a_user() {
    let directory = directory();
    let ours = FileLocks::default_dir().unwrap().display().to_string();
    for variables in [&[][..], &["XDG_RUNTIME_DIR"], &["XDG_STATE_HOME", "HOME"], &["TMPDIR", "USER"]] {
        let mut helper = this_program("directories::helper");
        helper.env_clear();
        helper.envs(variables.iter().map(|name| (name, directory.path())));
        let mut helper = crate::support::Helper::run(&mut helper, "default", directory.path());
        assert_eq!(helper.hear().unwrap(), ours, "{variables:?}");
    }
}

#[test]
fn a_directory_that_has_to_exist_is_not_made() {
    let directory = directory();
    let looked_at = |path: &Path| FileLocks::builder().directory(path).existing().open();
    let missing = directory.path().join("missing");
    for (path, named) in [(missing.as_path(), missing.clone()), (directory.path(), directory.path().join("leasehold"))]
    {
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
    if cleaned.map_err(|_| ()).is_ok_and(|status| status.success()) && !stray.exists() {
        assert!(file(&directory, "k.lock").exists());
        assert_eq!(held.loss(), None);
        assert!(open(&directory).try_lock("k").await.unwrap().is_none());
    } else {
        shows_nothing("systemd-tmpfiles does not clean up here");
    }
}
