//! What once was broken, beside what the suite covers; what still is stands in `src/conformance/expected-failures.txt`.

use std::time::Duration;

use leasehold_core::{
    Attempt, Backend, Claim, Clock, Engine, EngineOptions, LockKey, LockerExt, Memory, MemoryBackend, Mode,
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
async fn a_lease_in_memory_ends_with_its_ttl_and_not_when_the_store_tidies_up() {
    let clock = Clock::tokio();
    let store = MemoryBackend::new(clock.clone());
    let claim = || Claim::new(&LockKey::new("k").unwrap(), Mode::Exclusive, LEASE / 1000);
    let (first, second) = (claim(), claim());
    assert!(matches!(store.try_acquire(&first).await.unwrap(), Attempt::Granted { .. }));
    clock.advance(LEASE / 1000);
    let answer = store.try_acquire(&second).await.unwrap();
    assert!(matches!(answer, Attempt::Granted { .. }), "the lease is over, and the key is {answer:?}");
}

#[test]
async fn a_store_that_forgot_everything_goes_on_above_what_it_gave() {
    let clock = Clock::system();
    let (before, begun) = (MemoryBackend::new(clock.clone()), clock.now());
    let key = LockKey::new("k").unwrap();
    let mut newest = None;
    while clock.now().since(begun) < Duration::from_millis(500) {
        let claim = Claim::new(&key, Mode::Exclusive, LEASE);
        if let Attempt::Granted { epoch } = before.try_acquire(&claim).await.unwrap() {
            newest = epoch;
            before.release(&claim.grant(epoch)).await.unwrap();
        }
    }
    // Nothing is lost and set up again within a sixteenth of a millisecond.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let after = MemoryBackend::new(Clock::system());
    let first = after.try_acquire(&Claim::new(&key, Mode::Exclusive, LEASE)).await.unwrap();
    let Attempt::Granted { epoch: first } = first else { panic!("an empty store said {first:?}") };
    assert!(first > newest, "{first:?} after {newest:?}");
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
