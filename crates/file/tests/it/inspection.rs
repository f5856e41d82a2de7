//! Looking at locks without being in the way.

use leasehold_testkit::test;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{directory, file, open, patient, soon, token};
use leasehold_file::{Admin, Backed, Cursor, FileLocks, LockKey, LockOptions, Locker, LockerExt, Mode, RwLockerExt};

fn key(key: &str) -> LockKey {
    LockKey::new(key).unwrap()
}

#[test]
async fn whoever_looks_is_never_taken_for_a_holder() {
    let directory = directory();
    let (locks, admin) = (open(&directory), open(&directory));
    let done = Arc::new(AtomicBool::new(false));
    let looker = std::thread::spawn({
        let done = Arc::clone(&done);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        move || {
            let mut times = 0_u32;
            while !done.load(Ordering::Relaxed) {
                runtime.block_on(async {
                    assert!(admin.inspect(&key("k")).await.unwrap().holders.len() <= 1);
                    assert!(admin.list("", None).await.unwrap().keys.len() <= 1);
                });
                times += 1;
            }
            times
        }
    });
    for _ in 0..2000 {
        let writer = locks.try_lock("k").await.unwrap().expect("only the looker is there");
        let _ = writer.release().await.unwrap();
        let reader = locks.try_read("k").await.unwrap().expect("only the looker is there");
        let _ = reader.release().await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    assert!(looker.join().unwrap() > 0);
}

#[test]
async fn every_reader_is_shown_with_what_it_said() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let mut guards = Vec::new();
    for number in 0..10 {
        let options = LockOptions::new().label(format!("reader {number}")).reason("a \"report\"\n");
        let locks = if number % 2 == 0 { &ours } else { &theirs };
        guards.push(locks.acquire_read(&key("k"), &options).await.unwrap().unwrap());
    }
    let seen = ours.inspect(&key("k")).await.unwrap().holders;
    assert_eq!(seen.len(), guards.len());
    for (number, (holder, guard)) in seen.iter().zip(&guards).enumerate() {
        assert_eq!((holder.mode, holder.remaining), (Mode::Shared, None));
        assert_eq!(holder.label.as_deref(), Some(&*format!("reader {number}")));
        assert_eq!(holder.reason.as_deref(), Some("a \"report\"\n"));
        assert_eq!(holder.token.map(u64::from), Some(token(guard)));
    }
    for guard in guards {
        let _ = guard.release().await.unwrap();
    }
    assert_eq!(theirs.inspect(&key("k")).await.unwrap().holders, []);
    assert_eq!(std::fs::read_dir(file(&directory, "k.readers")).unwrap().count(), 0);
}

#[test]
async fn the_files_tell_a_person_who_it_is() {
    let directory = directory();
    let locks = open(&directory);
    let options = LockOptions::new().label("nightly");
    let _held = locks.acquire(&key("k"), &options).await.unwrap().unwrap();
    let text = std::fs::read_to_string(file(&directory, "k.lock")).unwrap();
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
    let sessions = std::fs::read_dir(file(&directory, "sessions")).unwrap();
    for session in sessions {
        std::fs::remove_file(session.unwrap().path()).unwrap();
    }
    // Another process that begins tidies up after the dead.
    let _third = open(&directory).lock("other").await.unwrap();
    let modes = async || {
        let keys = theirs.list("", None).await.unwrap().keys;
        keys.iter().flat_map(|key| key.holders.iter().map(|holder| holder.mode)).collect::<Vec<_>>()
    };
    assert_eq!(theirs.inspect(&key("k")).await.unwrap().holders[0].token, held.fencing_token());
    assert_eq!(theirs.inspect(&key("r")).await.unwrap().holders[0].token, reader.fencing_token());
    assert_eq!(modes().await, [Mode::Exclusive, Mode::Exclusive, Mode::Shared]);
    soon("the next renewal", async {
        while std::fs::read_dir(file(&directory, "sessions")).unwrap().count() < 2 {
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
    let record = std::fs::read(file(&directory, "k.lock")).unwrap();
    held.release().await.unwrap();
    std::fs::write(file(&directory, "k.lock"), record).unwrap();
    ours.close().await;
    assert_eq!(std::fs::read_dir(file(&directory, "sessions")).unwrap().count(), 0);
    assert!(theirs.inspect(&key("k")).await.unwrap().holders.is_empty());
    assert!(theirs.list("", None).await.unwrap().keys.is_empty());
}

#[test]
async fn a_locker_that_was_closed_left_nothing_to_see() {
    let directory = directory();
    let (ours, theirs) = (open(&directory), open(&directory));
    let (_writer, _reader) = (ours.lock("w").await.unwrap(), ours.read("r").await.unwrap());
    assert_eq!(theirs.list("", None).await.unwrap().keys.len(), 2);
    ours.close().await;
    assert!(theirs.list("", None).await.unwrap().keys.is_empty());
    assert!(theirs.try_lock("w").await.unwrap().is_some() && theirs.try_lock("r").await.unwrap().is_some());
    assert_eq!(std::fs::read_dir(file(&directory, "sessions")).unwrap().count(), 1);
}

#[test]
async fn a_guard_that_is_dropped_when_no_runtime_is_left_frees_its_key() {
    let directory = directory();
    let theirs = open(&directory);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let path = directory.path().to_owned();
    let _ours = std::thread::spawn(move || {
        let ours = FileLocks::open(path).unwrap();
        let guard = runtime.block_on(ours.lock("k")).unwrap();
        drop(runtime);
        drop(guard);
        ours
    })
    .join()
    .unwrap();
    assert!(theirs.try_lock("k").await.unwrap().is_some());
}

#[test]
async fn a_listing_goes_on_where_its_page_ended() {
    let directory = directory();
    let locks = open(&directory);
    let mut held = BTreeSet::new();
    let mut guards = Vec::new();
    for number in 0..230 {
        // Every third with a name that is a digest.
        let key = key(&format!("job/{number}{}", if number % 3 == 0 { "é".repeat(100) } else { String::new() }));
        guards.push(locks.lock(&key).await.unwrap());
        held.insert(key);
    }
    let _ = locks.lock("job").await.unwrap().release().await.unwrap();
    let _other = locks.lock("other").await.unwrap();
    let mut seen = BTreeSet::new();
    let (mut after, mut pages) = (None::<Cursor>, 0);
    loop {
        let page = locks.list("job/", after.as_ref()).await.unwrap();
        pages += 1;
        for found in page.keys {
            assert!(seen.insert(found.key.clone()), "{:?} twice", found.key);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!((seen, pages), (held, 3));
}

#[test]
async fn it_claims_what_its_engine_says() {
    let directory = directory();
    assert_eq!(open(&directory).capabilities(), FileLocks::claims());
    assert!(format!("{:?}", open(&directory).engine()).contains("leasehold"));
}
