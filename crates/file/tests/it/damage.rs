//! Lock files that were removed, replaced, torn, or are something else.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::process::Command;
use std::time::Duration;

use crate::support::{directory, file, key, open, patient, refusals, runtime, soon, token};
use leasehold_file::{Admin, ErrorKind, FileLocks, LockOptions, LockerExt, LossReason, ReleaseOutcome, RwLockerExt};
use leasehold_testkit::{corpus, corpus_line, test};
use tempfile::TempDir;

async fn next_token(locks: &FileLocks) -> u64 {
    let guard = soon("a grant", locks.lock("k")).await.unwrap();
    let token = token(&guard);
    let _ = guard.release().await.unwrap();
    token
}

#[test]
async fn a_holder_whose_file_is_gone_is_told_and_releases_nothing_of_the_successor() {
    for (replaced, released) in [(false, false), (false, true), (true, false), (true, true)] {
        let directory = directory();
        let (ours, theirs) = (open(&directory), open(&directory));
        let first = ours.acquire(&key("k"), &patient()).await.unwrap().unwrap();
        if replaced {
            fs::write(file(&directory, "other"), "").unwrap();
            fs::rename(file(&directory, "other"), file(&directory, "k.lock")).unwrap();
        } else {
            fs::remove_file(file(&directory, "k.lock")).unwrap();
        }
        let second = soon("a grant on a new file", theirs.lock("k")).await.unwrap();
        assert!(token(&second) > token(&first));
        if released {
            assert_eq!(first.release().await.unwrap(), ReleaseOutcome::AlreadyLost(LossReason::Stolen));
        } else {
            assert_eq!(soon("the loss", first.lost()).await, LossReason::Stolen);
        }
        second.renew().await.unwrap();
        assert!(ours.try_lock("k").await.unwrap().is_none());
    }
}

#[cfg(target_os = "linux")]
#[test(process)]
async fn taking_away_ones_own_lock_leaves_no_open_file() {
    let open_files = || fs::read_dir("/proc/self/fd").unwrap().count();
    let directory = directory();
    let (locks, mut before) = (open(&directory), 0);
    for round in 0..20 {
        let guard = locks.lock("k").await.unwrap();
        locks.force_release(&key("k")).await.unwrap();
        drop(guard);
        // The first one opens what is kept for the next.
        before = if round == 0 { open_files() } else { before };
    }
    let left = open_files() - before;
    assert!(left < 10, "{left} files were left open by 19 locks that were taken away");
}

#[test]
async fn a_file_that_was_kept_open_is_not_taken_for_the_one_that_replaced_it() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    next_token(&ours).await;
    fs::remove_file(file(&directory, "k.lock")).unwrap();
    let held = theirs.lock("k").await.unwrap();
    assert!(ours.try_lock("k").await.unwrap().is_none());
    // And the other way round: one that is locked for ever does not stand for a new one that is free.
    fs::remove_file(file(&directory, "k.lock")).unwrap();
    assert!(ours.try_lock("k").await.unwrap().is_some());
    drop(held);
}

#[test]
async fn a_damaged_count_never_repeats_or_goes_back() {
    let directory = directory();
    let locks = open(&directory);
    let path = file(&directory, "k.lock");
    let digits = |damage: &[u8]| fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(damage, 11);
    let length = |length| fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length);
    let damages: [(&str, &dyn Fn() -> std::io::Result<()>); 9] = [
        ("empty", &|| length(0)),
        ("cut in the magic", &|| length(5)),
        ("cut in the count", &|| length(30)),
        ("cut in the check", &|| length(65)),
        ("zeros", &|| fs::write(&path, [0; 4096])),
        ("no digits", &|| digits(b"not a number at all!")),
        ("smaller", &|| digits(b"00000000000000000001")),
        ("as large as can be", &|| digits(b"18446744073709551615")),
        ("larger than any number", &|| digits(b"99999999999999999999")),
    ];
    let mut newest = 0;
    // So often within a millisecond, too, that the count runs ahead of the clock.
    for (hot, (name, damage)) in [1, 500].into_iter().flat_map(|hot| damages.iter().map(move |damage| (hot, damage))) {
        for _ in 0..hot {
            newest = next_token(&locks).await;
        }
        damage().unwrap();
        let read = locks.read("k").await.unwrap();
        assert!(token(&read) > newest, "{} after {newest}: {name}", token(&read));
        newest = token(&read);
        let _ = read.release().await.unwrap();
        damage().unwrap();
        let after = next_token(&locks).await;
        assert!(after > newest, "{after} after {newest}: {name}");
    }
    assert_eq!(locks.inspect(&key("k")).await.unwrap().holders, []);
}

#[test]
async fn what_is_not_the_lock_file_of_its_key_is_refused_in_words_and_left_alone() {
    let directory = directory();
    let locks = open(&directory);
    next_token(&locks).await;
    let of_k = fs::read_to_string(file(&directory, "k.lock")).unwrap();
    let of_version = |version: u32| format!("leasehold{version} 00000001763712345678 and more\n-\nk\n-\n");
    for (name, content, says) in [
        ("other", of_k, "is the lock file of the key \"k\"; move it away"),
        ("notes", "buy milk".to_owned(), "is not a lock file; move it away"),
        ("old", of_version(1), "is of version 1, and this program knows version 2"),
        ("new", of_version(3), "is of version 3, and this program knows version 2"),
        ("newest", of_version(10), "is of version 10, and this program knows version 2"),
    ] {
        let path = file(&directory, &format!("{name}.lock"));
        fs::write(&path, &content).unwrap();
        for error in refusals(&locks, name).await {
            assert!(error.kind() == ErrorKind::Backend && error.to_string().contains(says), "{error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    // They do not keep the others from being listed.
    let held = locks.lock("k").await.unwrap();
    let page = locks.list("", None).await.unwrap();
    assert_eq!(page.keys.iter().map(|found| &found.key).collect::<Vec<_>>(), [held.key()]);
}

#[test]
async fn what_is_no_regular_file_is_refused_in_words() {
    let directory = directory();
    let locks = open(&directory);
    let elsewhere = directory.path().join("elsewhere");
    fs::write(&elsewhere, "mine").unwrap();
    symlink(&elsewhere, file(&directory, "link.lock")).unwrap();
    symlink("/no/such/file", file(&directory, "dangling.lock")).unwrap();
    fs::create_dir(file(&directory, "folder.lock")).unwrap();
    let made = Command::new("mkfifo").arg(file(&directory, "pipe.lock")).status().unwrap();
    assert!(made.success());
    for (name, is) in [
        ("link", "a symbolic link"),
        ("dangling", "a symbolic link"),
        ("folder", "not a regular file"),
        ("pipe", "not a regular file"),
    ] {
        let error = soon("an answer", locks.lock(name)).await.map(drop).unwrap_err();
        assert!(error.to_string().ends_with(&format!("{name}.lock is {is}; move it away")), "{error}");
        assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    }
    for error in refusals(&locks, "link").await {
        assert!(error.to_string().contains("link.lock is a symbolic link; move it away"), "{error}");
    }
    assert!(locks.list("", None).await.unwrap().keys.is_empty(), "they are no locks");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine");
}

#[test]
async fn a_writer_that_cannot_become_a_reader_leaves_nobody_as_the_holder() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let writer = ours.lock("k").await.unwrap();
    // Stands for a full disk, and for too many open files.
    fs::create_dir(file(&directory, "k.new")).unwrap();
    assert!(writer.downgrade(&LockOptions::new()).await.is_err());
    let reader = soon("a reader", theirs.read("k")).await.unwrap();
    let seen = ours.inspect(&key("k")).await.unwrap().holders;
    assert_eq!(seen.iter().map(|holder| holder.token).collect::<Vec<_>>(), [reader.fencing_token()]);
    drop(reader);
    assert!(theirs.inspect(&key("k")).await.unwrap().holders.is_empty());
}

#[test]
async fn many_writers_become_readers_at_once() {
    let directory = directory();
    let locks = open(&directory);
    let mut downgrading = tokio::task::JoinSet::new();
    for number in 0..800 {
        let writer = locks.lock(format!("k{number}")).await.unwrap();
        downgrading.spawn(async move { writer.downgrade(&LockOptions::new()).await });
    }
    assert!(downgrading.join_all().await.into_iter().all(|reader| reader.unwrap().is_held()));
}

#[test]
fn a_downgrade_that_is_dropped_on_a_runtime_that_rests_frees_the_key() {
    let (directory, resting) = (directory(), runtime());
    let ours = open(&directory);
    let writer = resting.block_on(ours.lock("k")).unwrap();
    resting.block_on(async {
        let options = LockOptions::new();
        let mut downgrading = Box::pin(writer.downgrade(&options));
        let _polled_once =
            std::future::poll_fn(|context| std::task::Poll::Ready(downgrading.as_mut().poll(context))).await;
    });
    // Nobody drives that one any more.
    let theirs = open(&directory);
    assert!(runtime().block_on(soon("the key", theirs.lock("k"))).is_ok());
}

/// Lock files of a holder and of nobody, as they are, and what else may stand there.
async fn contents(directory: &TempDir, locks: &FileLocks) -> String {
    let content = || corpus_line(&fs::read(file(directory, "k.lock")).unwrap());
    let guard = locks.lock("k").await.unwrap();
    let held = content();
    let _ = guard.release().await.unwrap();
    [&held, &content(), include_str!("../../corpus/lock-files.txt")].join("\n")
}

#[test]
fn whatever_is_written_into_the_file_of_a_held_key_nobody_else_is_granted_it() {
    let (directory, runtime) = (directory(), runtime());
    let (ours, theirs) = (open(&directory), open(&directory));
    let contents = runtime.block_on(contents(&directory, &ours));
    let held = runtime.block_on(ours.acquire(&key("k"), &LockOptions::new().renew(false))).unwrap().unwrap();
    corpus(&contents, |content| {
        // In place: it stays the file that is locked.
        fs::write(file(&directory, "k.lock"), content).unwrap();
        runtime.block_on(async {
            match theirs.try_lock("k").await {
                Ok(granted) => assert!(granted.is_none(), "it is held"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Backend, "{error}"),
            }
            let _ = (theirs.inspect(&key("k")).await, theirs.list("", None).await);
        });
    });
    drop(held);
}

#[test]
fn whatever_is_in_the_file_of_a_free_key_its_token_grows_or_it_is_refused() {
    let (directory, runtime) = (directory(), runtime());
    let locks = open(&directory);
    let last = Cell::new(0);
    corpus(&runtime.block_on(contents(&directory, &locks)), |content| {
        fs::write(file(&directory, "k.lock"), content).unwrap();
        runtime.block_on(async {
            match locks.try_lock("k").await {
                Ok(granted) => {
                    let guard = granted.expect("nobody holds it");
                    let (now, before) = (token(&guard), last.replace(token(&guard)));
                    assert!(now > before, "its token {now} is no larger than {before}");
                    let _ = guard.release().await.unwrap();
                    // A count that was lost gives an epoch of up to a millisecond from now, and nobody restores an old file
                    // sooner.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Backend, "{error}"),
            }
        });
    });
}
