//! Connecting within a wait, and blocking calls.

use leasehold_testkit::test;
use std::cell::Cell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use leasehold_core::{
    Admin, Error, ErrorKind, LockKey, LockOptions, LockerExt, LossReason, Memory, ReleaseOutcome, Result, Wait,
    blocking, connect_within,
};
use tokio::time::Instant;

const LONG: Duration = Duration::from_secs(60);

#[test(paused)]
async fn a_store_that_comes_up_within_the_wait_is_connected_to() {
    let (started, attempts) = (Instant::now(), Cell::new(0));
    let connect = || async {
        attempts.set(attempts.get() + 1);
        if started.elapsed() < LONG / 2 { Err(Error::new(ErrorKind::Unavailable, "connect")) } else { Ok("connected") }
    };
    assert_eq!(connect_within(Wait::UpTo(LONG), connect).await.unwrap(), "connected");
    assert!(started.elapsed() < LONG / 2 + Duration::from_secs(2), "{:?}", started.elapsed());
    assert!((10..1000).contains(&attempts.get()), "{} attempts", attempts.get());
}

#[test(paused)]
async fn the_last_error_comes_when_the_wait_is_over_and_what_no_wait_can_cure_at_once() {
    for (wait, kind, most, waited) in [
        (Wait::Never, ErrorKind::Unavailable, 1, Duration::ZERO),
        (Wait::UpTo(Duration::ZERO), ErrorKind::Unavailable, 1, Duration::ZERO),
        (Wait::UpTo(LONG), ErrorKind::Unavailable, 1000, LONG),
        (Wait::Forever, ErrorKind::Backend, 1, Duration::ZERO),
    ] {
        let (started, attempts) = (Instant::now(), Cell::new(0));
        let connect = || async {
            attempts.set(attempts.get() + 1);
            Err::<(), _>(Error::new(kind, "connect"))
        };
        assert_eq!(connect_within(wait, connect).await.unwrap_err().kind(), kind);
        assert!(attempts.get() <= most, "{wait:?}: {} attempts", attempts.get());
        assert!(started.elapsed() >= waited && started.elapsed() <= waited + Duration::from_millis(2), "{wait:?}");
    }
}

#[test]
fn threads_take_turns_and_leases_are_renewed_while_they_block() {
    let memory = Memory::new();
    let locks = blocking::Locks::connect(|| async { Ok(memory.clone()) }).unwrap();
    let guard = locks.lock_with("k", &LockOptions::new().ttl(Duration::from_secs(3))).unwrap();
    assert!(locks.try_lock("k").unwrap().is_none());
    assert!(locks.try_lock_or_busy("k").unwrap().unwrap_err().remaining.is_some());
    assert_eq!(locks.lock_for("k", Duration::from_millis(20)).unwrap_err().kind(), ErrorKind::TimedOut);
    let (begun, begins) = mpsc::channel();
    let waiter = thread::spawn({
        let locks = locks.clone();
        move || {
            begun.send(()).unwrap();
            locks.lock_for("k", LONG).map(|guard| guard.fencing_token())
        }
    });
    begins.recv().unwrap();
    let mut left = guard.remaining();
    while guard.remaining() <= left {
        left = guard.remaining();
        assert!(guard.is_held(), "{:?}", guard.loss());
        assert_eq!(guard.wait_lost(Duration::from_millis(5)).unwrap(), None);
    }
    let token = guard.fencing_token();
    assert_eq!(guard.release().unwrap(), ReleaseOutcome::Released);
    assert!(waiter.join().unwrap().unwrap() > token);
}

#[test]
fn a_blocking_guard_ends_in_each_of_the_ways() -> Result<()> {
    let locks = blocking::Locks::new(Memory::new())?;
    let handle = locks.with_lock("k", |guard| {
        assert!(guard.is_held());
        guard
    })?;
    assert!(!handle.is_held());
    let lost = locks.with_lock("k", |guard| {
        locks.block_on(locks.locker().force_release(guard.key())).unwrap().unwrap();
    });
    assert!(matches!(lost.unwrap_err().kind(), ErrorKind::Lost(_)));
    let guard = locks.lock("k")?;
    locks.block_on(locks.locker().contender().force_release(guard.key()))??;
    assert!(guard.renew().is_err());
    assert_eq!(guard.wait_lost(LONG)?, Some(LossReason::ForceReleased));
    drop(guard);
    let reader = locks.lock("k")?.downgrade(&LockOptions::new())?;
    let another = locks.read_for("k", LONG)?;
    assert!(locks.try_lock("k")?.is_none() && locks.try_read("k")?.is_some());
    drop((reader, another));
    let detached = locks.lock("k")?.detach().unwrap();
    let attached = locks.block_on(async {
        use leasehold_core::Locker;
        locks.locker().attach(&detached, &LockOptions::new()).await
    })??;
    drop(attached);
    assert!(locks.try_lock("k")?.is_some());
    Ok(())
}

#[test]
async fn a_blocking_call_within_a_runtime_is_an_error_and_not_a_panic() {
    let memory = Memory::new();
    let locks = blocking::Locks::new(memory.clone()).unwrap();
    let refused = [
        locks.lock("k").map(drop).unwrap_err(),
        locks.try_lock("k").map(drop).unwrap_err(),
        blocking::Locks::connect(|| async { Ok(Memory::new()) }).map(drop).unwrap_err(),
        locks.block_on(async {}).unwrap_err(),
    ];
    assert!(refused.iter().all(|error| error.kind() == ErrorKind::Unsupported), "{refused:?}");
    let moved = locks.clone();
    let guard = thread::spawn(move || moved.lock("k")).join().unwrap().unwrap();
    assert_eq!(guard.renew().unwrap_err().kind(), ErrorKind::Unsupported);
    // Its release goes on in the background.
    drop(guard);
    assert!(memory.lock_for("k", LONG).await.is_ok());
    let moved = locks.clone();
    let guard = thread::spawn(move || moved.lock("k")).join().unwrap().unwrap();
    assert_eq!(guard.release().unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(memory.lock_for("k", LONG).await.is_ok());
    let key = LockKey::new("k").unwrap();
    assert!(memory.inspect(&key).await.unwrap().holders.is_empty());
}
