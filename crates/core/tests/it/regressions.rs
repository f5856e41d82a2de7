//! What once was broken, beside what the suite covers; what still is stands in `src/conformance/expected-failures.txt`.

use std::time::Duration;

use leasehold_core::{
    Backend, Claim, Clock, Engine, EngineOptions, LockKey, LockOptions, LockerExt, Memory, MemoryBackend, Mode,
};
use leasehold_testkit::{Fault, Op, faulty_memory, test};

const LEASE: Duration = Duration::from_secs(30);

#[test]
async fn with_lock_tells_a_loss_in_the_last_poll_of_the_work() {
    let clock = Clock::system();
    let locks = Memory::with_clock(clock.clone());
    // As when the process is stopped in the middle of its last step.
    let done = locks.with_lock("k", |_| async move { clock.advance(LEASE * 2) }).await;
    assert!(done.is_err(), "the work ended under a lost lock, and that was told as success");
}

#[test(paused)]
async fn a_listener_that_never_comes_does_not_keep_a_waiter() {
    let clock = Clock::tokio();
    let store = faulty_memory(&clock);
    store.faults.always(Op::Subscribe, Fault::Hang);
    let engine = || Engine::with(store.clone(), EngineOptions::new().clock(clock.clone()));
    let (ours, theirs) = (engine(), engine());
    let guard = theirs.lock("k").await.unwrap();
    let waiting = tokio::spawn({
        let ours = ours.clone();
        async move { ours.lock_for("k", LEASE * 100).await }
    });
    tokio::time::sleep(LEASE / 2).await;
    guard.release().await.unwrap();
    let served = tokio::time::timeout(LEASE, waiting).await;
    assert!(served.is_ok(), "it still waits for its ear, and polls no more");
}

#[test]
async fn a_driver_is_told_that_a_renewal_is_of_use_for_less_than_a_third_of_the_lease() {
    let store = faulty_memory(&Clock::system());
    let guard = store.engine().lock_with("k", &LockOptions::new().ttl(LEASE)).await.unwrap();
    guard.renew().await.unwrap();
    assert_eq!(store.faults.renewals(), [(vec![LEASE], LEASE / 4)]);
}

#[test(paused)]
async fn a_store_in_memory_forgets_what_expired() {
    let clock = Clock::tokio();
    let store = MemoryBackend::new(clock.clone());
    let claim = Claim::new(&LockKey::new("left-to-its-lease").unwrap(), Mode::Exclusive, LEASE);
    store.try_acquire(&claim).await.unwrap();
    clock.advance(LEASE * 100);
    store.try_acquire(&Claim::new(&LockKey::new("another").unwrap(), Mode::Exclusive, LEASE)).await.unwrap();
    assert!(!format!("{store:?}").contains("left-to-its-lease"), "the store grows with every key that expires");
}

#[test(paused)]
async fn a_try_takes_a_free_key_however_often_it_was_granted_before() {
    // Its clock stands still, so that the store may grant the key a few times only and then has to be asked again.
    let locks = Memory::with_clock(Clock::tokio());
    for _ in 0..100 {
        let guard = locks.try_lock("k").await.unwrap().expect("nobody holds the key");
        guard.release().await.unwrap();
    }
}
