//! Several processes on one directory, some of which are stopped or killed.

use std::io::BufRead;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{Helper, directory, file, key, open, patient, say, token};
use leasehold_file::{Admin, ErrorKind, FileLocks, Guard, LockerExt, RwLockerExt, core::GuardMode};
use leasehold_testkit::{shows_nothing, test};
use rustix::process::Signal;

/// What a helper process does; nothing in the tests' own process.
#[test]
async fn helper() {
    let Some((role, directory)) = crate::support::role() else {
        shows_nothing("other tests run it in processes of their own")
    };
    if role == "default" {
        return say(&FileLocks::default_dir().unwrap().display().to_string());
    }
    let locks = FileLocks::open(&directory).unwrap();
    match &*role {
        "write" => serve(&locks.acquire(&key("k"), &patient()).await.unwrap().unwrap()),
        "read" => serve(&locks.acquire_read(&key("k"), &patient()).await.unwrap().unwrap()),
        "full disk" => on_a_full_disk(&locks, &directory.join("filler")).await,
        other => panic!("no such role: {other}"),
    }
}

fn serve<M: GuardMode>(guard: &Guard<M>) {
    say(&format!("holds {}", token(guard)));
    for _question in std::io::stdin().lock().lines() {
        say(&guard.is_held().to_string());
    }
}

#[test]
async fn a_killed_holder_frees_the_key_at_once() {
    let directory = directory();
    let locks = open(&directory);
    for role in ["write", "read"] {
        let mut helper = Helper::start(role, directory.path());
        let theirs = helper.holds();
        assert!(locks.try_lock("k").await.unwrap().is_none());
        assert_eq!(locks.inspect(&key("k")).await.unwrap().holders.len(), 1);
        helper.kill();
        assert_eq!(locks.inspect(&key("k")).await.unwrap().holders, [], "a dead holder is shown");
        let guard = locks.try_lock("k").await.unwrap().expect("the kernel has freed it");
        assert!(token(&guard) > theirs);
        let _ = guard.release().await.unwrap();
    }
}

#[test]
async fn what_killed_processes_left_behind_is_swept() {
    let directory = directory();
    for _ in 0..3 {
        let mut helper = Helper::start("read", directory.path());
        helper.holds();
        helper.kill();
    }
    let count = |name: &str| std::fs::read_dir(file(&directory, name)).unwrap().count();
    assert_eq!((count("k.readers"), count("sessions")), (1, 1));
    let locks = open(&directory);
    assert!(locks.try_read("k").await.unwrap().is_some());
    assert_eq!(count("sessions"), 1);
}

#[test]
async fn a_stopped_holder_keeps_the_key() {
    let directory = directory();
    let locks = open(&directory);
    let mut helper = Helper::start("write", directory.path());
    helper.holds();
    helper.signal(Signal::STOP);
    let wait = Duration::from_millis(600);
    assert_eq!(locks.lock_for("k", wait).await.map(drop).unwrap_err().kind(), ErrorKind::TimedOut);
    helper.signal(Signal::CONT);
    assert_eq!(helper.ask_whether_it_holds(), "true");
}

#[test]
async fn a_child_does_not_inherit_the_lock() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let writer = ours.lock("w").await.unwrap();
    let reader = ours.read("r").await.unwrap();
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let _ = writer.release().await.unwrap();
    let _ = reader.release().await.unwrap();
    assert!(theirs.try_lock("w").await.unwrap().is_some());
    assert!(theirs.try_lock("r").await.unwrap().is_some());
    // Nor by outliving its parent.
    let mut helper = Helper::run(
        Command::new("sh")
            .args(["-c", r#"sleep 300 & echo ":: $!"; exec "$0" --exact processes::helper --nocapture"#])
            .arg(std::env::current_exe().unwrap()),
        "write",
        directory.path(),
    );
    let orphan: i32 = helper.hear().unwrap().parse().unwrap();
    helper.holds();
    helper.kill();
    assert!(theirs.try_lock("k").await.unwrap().is_some());
    rustix::process::kill_process(rustix::process::Pid::from_raw(orphan).unwrap(), Signal::KILL).unwrap();
    drop(child.stdin.take());
    child.wait().unwrap();
}

/// On a file system of its own, which only a child in a mount namespace of its own can have.
#[test]
async fn a_full_disk_is_an_error_and_no_grant() {
    let directory = directory();
    let script = r#"mount -t tmpfs -o size=64k,mode=700 tmpfs "$1" && echo ":: mounted" && exec "$0" --exact processes::helper --nocapture"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--user", "--map-root-user", "--", "sh", "-c", script]);
    command.arg(std::env::current_exe().unwrap()).arg(directory.path());
    if !leasehold_testkit::launch::is_root() {
        shows_nothing("in a name space of an ordinary user the root of the file system is another user's");
    }
    let mut helper = Helper::run(&mut command, "full disk", directory.path());
    if helper.hear().is_none() {
        shows_nothing("no file system may be mounted here");
    }
    assert_eq!(helper.hear().as_deref(), Some("stood it"));
}

async fn on_a_full_disk(locks: &FileLocks, filler: &Path) {
    let before = locks.lock("old").await.unwrap();
    let old = token(&before);
    let _ = before.release().await.unwrap();
    let mut full = std::fs::OpenOptions::new().append(true).create(true).open(filler).unwrap();
    while std::io::Write::write_all(&mut full, &[0; 1024]).is_ok() {}
    for (refused, kind) in [
        (locks.try_lock("new").await.map(drop), "a new lock file"),
        (locks.try_read("new").await.map(drop), "a new lock file, shared"),
        (locks.try_read("old").await.map(drop), "a reader's file"),
    ] {
        let error = refused.expect_err(kind);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{kind}: {error}");
        assert!(std::error::Error::source(&error).is_some(), "{kind}: {error:?}");
    }
    assert!(locks.list("", None).await.unwrap().keys.is_empty(), "a grant that was none is shown");
    // What is there already takes no room, once the clock has passed the count.
    let again = locks.acquire(&key("old"), &patient()).await.unwrap().expect("the refused reader gave the lock back");
    assert!(token(&again) > old);
    let _ = again.release().await.unwrap();
    drop(full);
    std::fs::remove_file(filler).unwrap();
    assert!(locks.try_lock("new").await.unwrap().is_some());
    say("stood it");
}
