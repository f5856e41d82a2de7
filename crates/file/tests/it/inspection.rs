//! Looking at locks without being in the way.

use leasehold_testkit::test;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{directory, file, key, open, patient, runtime, soon};
use leasehold_file::{Admin, LockOptions, LockerExt, Mode, RwLockerExt};

#[test]
fn whoever_looks_is_never_taken_for_a_holder() {
    let directory = directory();
    let (locks, admin) = (open(&directory), open(&directory));
    let (done, key) = (AtomicBool::new(false), key("k"));
    let look = async || {
        while !done.load(Ordering::Relaxed) {
            assert!(admin.inspect(&key).await.unwrap().holders.len() <= 1);
            assert!(admin.list("", None).await.unwrap().keys.len() <= 1);
        }
    };
    let take_turns = async || {
        for _ in 0..2000 {
            let writer = locks.try_lock(&key).await.unwrap().expect("only the looker is there");
            let _ = writer.release().await.unwrap();
            let reader = locks.try_read(&key).await.unwrap().expect("only the looker is there");
            let _ = reader.release().await.unwrap();
        }
    };
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| runtime().block_on(look()));
        let turns = scope.spawn(|| runtime().block_on(take_turns())).join();
        done.store(true, Ordering::Relaxed);
        assert!(watcher.join().is_ok() && turns.is_ok());
    });
}

#[test]
async fn the_files_tell_a_person_who_it_is() {
    let directory = directory();
    let locks = open(&directory);
    let _held = locks.acquire(&key("k"), &LockOptions::new().label("nightly")).await.unwrap().unwrap();
    let text = fs::read_to_string(file(&directory, "k.lock")).unwrap();
    let pid = format!("\"pid\":{}", std::process::id());
    for part in ["\"mode\":\"exclusive\"", "\"label\":\"nightly\"", "\"since\":", &pid] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
async fn a_holder_is_shown_again_after_its_session_was_cleaned_away() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let held = ours.acquire(&key("k"), &patient()).await.unwrap().unwrap();
    let reader = ours.acquire_read(&key("r"), &patient().ttl(LockOptions::MAX_TTL)).await.unwrap().unwrap();
    let sessions = || fs::read_dir(file(&directory, "sessions")).unwrap().map(|session| session.unwrap().path());
    for session in sessions() {
        fs::remove_file(session).unwrap();
    }
    // Another process that begins tidies up after the dead.
    let _third = open(&directory).lock("other").await.unwrap();
    let keys = theirs.list("", None).await.unwrap().keys;
    let modes: Vec<_> = keys.iter().flat_map(|key| key.holders.iter().map(|holder| holder.mode)).collect();
    assert_eq!(modes, [Mode::Exclusive, Mode::Exclusive, Mode::Shared]);
    assert_eq!(theirs.inspect(&key("k")).await.unwrap().holders[0].token, held.fencing_token());
    assert_eq!(theirs.inspect(&key("r")).await.unwrap().holders[0].token, reader.fencing_token());
    soon("the next renewal", async {
        while sessions().count() < 2 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop((held, reader));
    assert!(theirs.inspect(&key("k")).await.unwrap().holders.is_empty());
    assert!(theirs.inspect(&key("r")).await.unwrap().holders.is_empty());
}

/// The record of a holder that was killed stays until the next grant of its key, and the file of its session does not.
#[test]
async fn a_holder_that_is_dead_is_not_shown_after_its_session_was_cleaned_away() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let held = ours.lock("k").await.unwrap();
    let record = fs::read(file(&directory, "k.lock")).unwrap();
    held.release().await.unwrap();
    fs::write(file(&directory, "k.lock"), record).unwrap();
    ours.close().await;
    assert_eq!(fs::read_dir(file(&directory, "sessions")).unwrap().count(), 0);
    assert!(theirs.inspect(&key("k")).await.unwrap().holders.is_empty());
    assert!(theirs.list("", None).await.unwrap().keys.is_empty());
}

#[test]
async fn a_key_whose_file_is_named_after_a_digest_is_listed_by_its_prefix() {
    let directory = directory();
    let locks = open(&directory);
    let [long, other] = ["job", "other"].map(|prefix| key(&format!("{prefix}/{}", "é".repeat(100))));
    let _held = [locks.lock(&long).await.unwrap(), locks.lock(&other).await.unwrap()];
    let page = locks.list("job/", None).await.unwrap();
    assert_eq!(page.keys.into_iter().map(|found| found.key).collect::<Vec<_>>(), [long]);
}
