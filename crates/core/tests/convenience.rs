//! What `LockerExt` and the traits promise beyond the backend.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{
    Clock, Error, ErrorKind, Guard, GuardMode, LockKey, LockOptions, Locker, LockerExt, LossReason, Memory,
    ReleaseOutcome, RwLocker, RwLockerExt, Wait,
};

fn is_send_sync_static<T: Send + Sync + 'static>(_: &T) {}

#[tokio::test]
async fn lockers_work_as_trait_objects_in_spawned_tasks() {
    let locks: Arc<dyn RwLocker> = Arc::new(Memory::new());
    let writers: Arc<dyn Locker> = locks.clone();
    let token = tokio::spawn(async move {
        let guard = writers.lock("k").await.unwrap();
        is_send_sync_static(&guard);
        guard.fencing_token()
    });
    assert!(token.await.unwrap().is_some());
    assert!(locks.read_for("k", Duration::from_secs(10)).await.unwrap().is_held());
}

#[tokio::test]
async fn lock_for_tells_a_timeout_with_the_key() {
    let locks = Memory::new();
    let _held = locks.lock("k").await.unwrap();
    let error = locks.lock_for("k", Duration::from_millis(20)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let text = error.to_string();
    assert!(text.starts_with("acquire \"k\" on memory: held by another for the whole wait"), "{text}");
    assert!(text.contains("the holder's lease lasts for another "), "{text}");
    assert!(!error.is_transient());
}

#[tokio::test]
async fn who_tries_in_vain_may_ask_how_long_the_key_is_held() {
    let locks: Arc<dyn RwLocker> = Arc::new(Memory::new());
    let (key, lease) = (LockKey::new("k").unwrap(), Duration::from_secs(60));
    let held = locks.lock_with("k", &LockOptions::new().ttl(lease)).await.unwrap();
    let once = LockOptions::new().wait(Wait::Never);
    let busy = [
        locks.acquire_or_busy(&key, &once).await.unwrap().unwrap_err(),
        locks.acquire_read_or_busy(&key, &once).await.unwrap().unwrap_err(),
    ];
    assert!(
        busy.iter().all(|busy| busy.remaining.is_some_and(|left| Duration::ZERO < left && left <= lease)),
        "{busy:?}"
    );
    let error = locks.lock_with("k", &once).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    drop(held);
    assert!(locks.acquire_or_busy(&key, &LockOptions::new()).await.unwrap().is_ok());
}

#[test]
fn a_wrapping_locker_can_read_what_is_asked_for() {
    let options = LockOptions::new()
        .ttl(Duration::from_secs(1))
        .wait(Wait::Never)
        .renew(false)
        .max_hold(Duration::from_secs(2))
        .label("who")
        .reason("why");
    assert_eq!((options.get_ttl(), options.get_wait()), (Duration::from_secs(1), Wait::Never));
    assert_eq!((options.get_renew(), options.get_max_hold()), (false, Some(Duration::from_secs(2))));
    assert_eq!((options.get_label(), options.get_reason()), (Some("who"), Some("why")));
}

#[tokio::test]
async fn with_lock_returns_what_the_work_returns_and_frees_the_key() {
    let locks = Memory::new();
    let contender = locks.contender();
    let seen = locks
        .with_lock("k", |token| {
            let contender = contender.clone();
            async move {
                assert!(contender.try_lock("k").await.unwrap().is_none());
                token
            }
        })
        .await
        .unwrap();
    assert!(seen.is_some());
    let next = contender.lock_for("k", Duration::from_secs(10)).await.unwrap();
    assert!(next.fencing_token() > seen);
}

#[tokio::test(start_paused = true)]
async fn with_lock_drops_the_work_when_the_lock_is_lost() {
    let clock = Clock::tokio();
    let locks = Memory::with_clock(clock.clone());
    let (started, has_started) = tokio::sync::oneshot::channel();
    let work = tokio::spawn(async move {
        locks
            .with_lock("k", |_| async move {
                started.send(()).unwrap();
                std::future::pending::<()>().await;
            })
            .await
    });
    has_started.await.unwrap();
    clock.advance(Duration::from_secs(31));
    let error: Error = work.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost(LossReason::Expired));
}

#[tokio::test]
async fn lock_all_takes_every_key_once_or_none() {
    let locks = Memory::new();
    let options = LockOptions::new().wait(Wait::UpTo(Duration::from_millis(20)));
    let guards = locks.lock_all(["c", "a", "b", "a"], &options).await.unwrap().unwrap();
    let keys: Vec<_> = guards.iter().map(|guard| guard.key().as_str()).collect();
    assert_eq!(keys, ["a", "b", "c"]);
    drop(guards);

    let contender = locks.contender();
    let in_the_way = contender.lock("b").await.unwrap();
    assert!(locks.lock_all(["a", "b", "c"], &options).await.unwrap().is_none());
    for free in ["a", "c"] {
        assert!(contender.lock_for(free, Duration::from_secs(10)).await.is_ok(), "{free} was kept");
    }
    in_the_way.release().await.unwrap();
}

#[tokio::test]
async fn lock_all_in_opposite_orders_does_not_deadlock() {
    let locks = Memory::new();
    let options = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(20)));
    let mut tasks = tokio::task::JoinSet::new();
    for turn in 0..10 {
        let (locks, options) = (locks.contender(), options.clone());
        tasks.spawn(async move {
            let keys = if turn % 2 == 0 { ["x", "y"] } else { ["y", "x"] };
            locks.lock_all(keys, &options).await.unwrap().is_some()
        });
    }
    while let Some(served) = tasks.join_next().await {
        assert!(served.unwrap());
    }
}

#[tokio::test]
async fn lock_all_refuses_a_bad_key_before_anything_is_taken() {
    let locks = Memory::new();
    let error = locks.lock_all(["a", ""], &LockOptions::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidKey);
    assert!(locks.try_lock("a").await.unwrap().is_some());
}

#[test]
fn outside_a_runtime_it_is_an_error_and_not_a_panic() {
    let locks = Memory::new();
    let key = LockKey::new("k").unwrap();
    let answer = futures::executor::block_on(locks.acquire(&key, &LockOptions::new()));
    assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unsupported);
}

async fn ends_well<M: GuardMode>(guard: Guard<M>) {
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
}

#[tokio::test]
async fn guards_of_both_modes_are_one_type() {
    let locks = Memory::new();
    ends_well(locks.write("k").await.unwrap()).await;
    ends_well(locks.try_read("k").await.unwrap().unwrap()).await;
    assert!(locks.try_write("k").await.unwrap().is_some());
}
