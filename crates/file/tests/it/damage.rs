//! Lock files that were removed, replaced, torn, or are something else.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::process::Command;
use std::time::Duration;

use crate::support::{directory, file, open, patient, soon, token};
use leasehold_file::{
    Admin, ErrorKind, FileLocks, LockKey, LockOptions, LockerExt, LossReason, ReleaseOutcome, RwLockerExt,
};
use leasehold_testkit::{corpus, corpus_line, test};

fn key(key: &str) -> LockKey {
    LockKey::new(key).unwrap()
}

async fn next_token(locks: &FileLocks) -> u64 {
    let guard = soon("a grant", locks.lock("k")).await.unwrap();
    let token = token(&guard);
    let _ = guard.release().await.unwrap();
    token
}

#[test]
async fn a_holder_whose_file_was_removed_is_told() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let first = ours.acquire(&key("k"), &patient()).await.unwrap().unwrap();
    fs::remove_file(file(&directory, "k.lock")).unwrap();
    let second = soon("a grant on a new file", theirs.lock("k")).await.unwrap();
    assert!(token(&second) > token(&first));
    assert_eq!(soon("the loss", first.lost()).await, LossReason::Stolen);
    drop(first);
    second.renew().await.unwrap();
    assert!(ours.try_lock("k").await.unwrap().is_none());
}

#[test]
async fn a_holder_whose_file_was_replaced_is_told_and_releases_nothing_of_the_successor() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let first = ours.lock("k").await.unwrap();
    fs::write(file(&directory, "other"), "").unwrap();
    fs::rename(file(&directory, "other"), file(&directory, "k.lock")).unwrap();
    let second = soon("a grant on the new file", theirs.lock("k")).await.unwrap();
    assert!(token(&second) > token(&first));
    let outcome = first.release().await.unwrap();
    assert_eq!(outcome, ReleaseOutcome::AlreadyLost(LossReason::Stolen));
    assert!(ours.try_lock("k").await.unwrap().is_none());
    second.renew().await.unwrap();
}

#[test]
async fn a_file_that_was_kept_open_is_not_taken_for_the_one_that_replaced_it() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    next_token(&ours).await;
    fs::remove_file(file(&directory, "k.lock")).unwrap();
    let held = theirs.lock("k").await.unwrap();
    assert!(ours.try_lock("k").await.unwrap().is_none());
    let _ = held.release().await.unwrap();
    // And the other way round: one that is locked for ever does not stand for a new one that is free.
    let held = theirs.lock("k").await.unwrap();
    assert!(ours.try_lock("k").await.unwrap().is_none());
    fs::remove_file(file(&directory, "k.lock")).unwrap();
    assert!(ours.try_lock("k").await.unwrap().is_some());
    drop(held);
}

#[test]
async fn a_waiter_notices_that_the_file_it_waits_for_is_gone() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let held = ours.lock("k").await.unwrap();
    let waiter = tokio::spawn({
        let theirs = theirs.clone();
        async move { theirs.lock("k").await }
    });
    assert!(theirs.try_lock("k").await.unwrap().is_none());
    fs::remove_file(file(&directory, "k.lock")).unwrap();
    let second = soon("the waiter", waiter).await.unwrap().unwrap();
    assert!(token(&second) > token(&held));
}

#[test]
async fn tokens_grow_although_the_file_is_removed_again_and_again() {
    let directory = directory();
    let locks = open(&directory);
    let mut newest = 0;
    for round in 0..100 {
        // So often within a millisecond that the count runs ahead of the clock.
        for _ in 0..=round % 7 * 10 {
            let token = next_token(&locks).await;
            assert!(token > newest, "{token} after {newest} in round {round}");
            newest = token;
        }
        fs::remove_file(file(&directory, "k.lock")).unwrap();
    }
}

#[test]
async fn a_lock_file_of_another_version_is_refused_with_what_to_do_and_left_alone() {
    let directory = directory();
    let locks = open(&directory);
    next_token(&locks).await;
    let path = file(&directory, "k.lock");
    for version in [1, 3, 10] {
        let theirs = format!("leasehold{version} 00000001763712345678 and more\n-\nk\n-\n");
        fs::write(&path, &theirs).unwrap();
        for error in [locks.try_lock("k").await.unwrap_err(), locks.try_read("k").await.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Backend);
            let told = format!("is of version {version}, and this program knows version 2");
            assert!(error.to_string().contains(&told), "{error}");
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), theirs);
    }
    fs::remove_file(&path).unwrap();
    next_token(&locks).await;
}

#[test]
async fn a_damaged_count_never_repeats_or_goes_back() {
    let directory = directory();
    let locks = open(&directory);
    let path = file(&directory, "k.lock");
    let digits = |damage: &[u8]| fs::OpenOptions::new().write(true).open(&path).unwrap().write_all_at(damage, 11);
    let length = |length| fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length);
    let damages: [(&str, &dyn Fn()); 9] = [
        ("empty", &|| length(0).unwrap()),
        ("cut in the magic", &|| length(5).unwrap()),
        ("cut in the count", &|| length(30).unwrap()),
        ("cut in the check", &|| length(65).unwrap()),
        ("zeros", &|| fs::write(&path, [0; 4096]).unwrap()),
        ("no digits", &|| digits(b"not a number at all!").unwrap()),
        ("smaller", &|| digits(b"00000000000000000001").unwrap()),
        ("as large as can be", &|| digits(b"18446744073709551615").unwrap()),
        ("larger than any number", &|| digits(b"99999999999999999999").unwrap()),
    ];
    let mut newest = 0;
    for (name, damage) in damages {
        for hot in [1, 500] {
            for _ in 0..hot {
                newest = next_token(&locks).await;
            }
            damage();
            let read = locks.read("k").await.unwrap();
            assert!(token(&read) > newest, "{} after {newest}: {name}", token(&read));
            newest = token(&read);
            let _ = read.release().await.unwrap();
            damage();
            let after = next_token(&locks).await;
            assert!(after > newest, "{after} after {newest}: {name}");
        }
    }
    assert_eq!(locks.inspect(&key("k")).await.unwrap().holders, []);
}

#[test]
async fn a_file_of_another_key_or_of_nobody_is_refused_and_left_alone() {
    let directory = directory();
    let locks = open(&directory);
    next_token(&locks).await;
    fs::copy(file(&directory, "k.lock"), file(&directory, "other.lock")).unwrap();
    fs::write(file(&directory, "notes.lock"), "buy milk").unwrap();
    for (name, says) in [("other", "is the lock file of the key \"k\""), ("notes", "is not a lock file")] {
        let before = fs::read(file(&directory, &format!("{name}.lock"))).unwrap();
        let errors = [
            locks.lock(name).await.map(drop).unwrap_err(),
            locks.read(name).await.map(drop).unwrap_err(),
            locks.inspect(&key(name)).await.map(drop).unwrap_err(),
            locks.force_release(&key(name)).await.map(drop).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
        assert_eq!(fs::read(file(&directory, &format!("{name}.lock"))).unwrap(), before);
    }
    // They do not keep the others from being listed.
    let held = locks.lock("k").await.unwrap();
    let page = locks.list("", None).await.unwrap();
    assert_eq!(page.keys.iter().map(|found| &found.key).collect::<Vec<_>>(), [held.key()]);
}

#[test]
async fn two_keys_of_one_digest_would_be_refused() {
    let directory = directory();
    let locks = open(&directory);
    let (one, two) = ("é".repeat(100), format!("{}e", "é".repeat(100)));
    for key in [&one, &two] {
        let _ = locks.lock(key.as_str()).await.unwrap().release().await.unwrap();
    }
    let names = fs::read_dir(file(&directory, "")).unwrap().map(|entry| entry.unwrap().path());
    let mut digests: Vec<_> =
        names.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with('~')).collect();
    digests.retain(|path| path.extension().is_some_and(|ending| ending == "lock"));
    assert_eq!(digests.len(), 2);
    fs::copy(&digests[0], &digests[1]).unwrap();
    let outcomes = [locks.lock(one.as_str()).await.map(drop), locks.lock(two.as_str()).await.map(drop)];
    let refused: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    assert_eq!(refused.iter().map(leasehold_file::Error::kind).collect::<Vec<_>>(), [ErrorKind::Backend]);
}

#[test]
async fn what_is_no_regular_file_is_refused() {
    let directory = directory();
    let locks = open(&directory);
    let elsewhere = directory.path().join("elsewhere");
    fs::write(&elsewhere, "").unwrap();
    symlink(&elsewhere, file(&directory, "link.lock")).unwrap();
    symlink("/no/such/file", file(&directory, "dangling.lock")).unwrap();
    fs::create_dir(file(&directory, "folder.lock")).unwrap();
    let made = Command::new("mkfifo").arg(file(&directory, "pipe.lock")).status().unwrap();
    assert!(made.success());
    for name in ["link", "dangling", "folder", "pipe"] {
        let error = soon("an answer", locks.lock(name)).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
        assert!(error.to_string().contains(&format!("{name}.lock")), "{error}");
        assert!(error.to_string().ends_with("; move it away"), "{error}");
    }
    assert!(locks.list("", None).await.unwrap().keys.is_empty(), "they are no locks");
    assert_eq!(fs::read(&elsewhere).unwrap(), b"");
}

#[test]
async fn a_directory_that_was_cleaned_away_is_made_again() {
    let directory = directory();
    let locks = FileLocks::open(directory.path().join("locks")).unwrap();
    let before = next_token(&locks).await;
    fs::remove_dir_all(directory.path().join("locks")).unwrap();
    let guard = soon("a grant", locks.lock("k")).await.unwrap();
    assert!(token(&guard) > before);
    let other = FileLocks::open(directory.path().join("locks")).unwrap();
    assert!(other.try_lock("k").await.unwrap().is_none());
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
    for reader in downgrading.join_all().await {
        assert!(reader.unwrap().is_held());
    }
}

#[test]
fn a_downgrade_that_is_dropped_on_a_runtime_that_rests_frees_the_key() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
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

fn wait_for<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// Lock files of a holder and of nobody, as they are, and what else may stand there.
fn contents(directory: &tempfile::TempDir, locks: &FileLocks) -> String {
    let content = || corpus_line(&fs::read(file(directory, "k.lock")).unwrap());
    let (held, free) = wait_for(async {
        let guard = locks.lock("k").await.unwrap();
        let held = content();
        let _ = guard.release().await.unwrap();
        (held, content())
    });
    [&held, &free, include_str!("../../corpus/lock-files.txt")].join("\n")
}

#[test]
fn whatever_is_written_into_the_file_of_a_held_key_nobody_else_is_granted_it() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let contents = contents(&directory, &ours);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let key = key("k");
    let held = runtime.block_on(ours.acquire(&key, &LockOptions::new().renew(false))).unwrap().unwrap();
    corpus(&contents, |content| {
        // In place: it stays the file that is locked.
        fs::write(file(&directory, "k.lock"), content).unwrap();
        runtime.block_on(async {
            match theirs.try_lock("k").await {
                Ok(granted) => assert!(granted.is_none(), "it is held"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Backend, "{error}"),
            }
            let _ = (theirs.inspect(&key).await, theirs.list("", None).await);
        });
    });
    drop(held);
}

#[test]
fn whatever_is_in_the_file_of_a_free_key_its_token_grows_or_it_is_refused() {
    let directory = directory();
    let locks = open(&directory);
    let contents = contents(&directory, &locks);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let last = std::cell::Cell::new(0);
    corpus(&contents, |content| {
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
