//! Many callers, and many keys.

use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{Clock, Engine, EngineOptions, LocalHandoff, LockOptions, LockerExt, RwLockerExt};
use leasehold_testkit::{Fault, Op, faulty_memory, test};

use crate::surroundings::key;

#[test(paused)]
async fn readers_who_wait_for_a_writer_are_all_served_when_it_ends() {
    let clock = Clock::tokio();
    let store = faulty_memory(&clock);
    // Some release while the claims of others are under way.
    for number in 0..500 {
        store.faults.next(Op::TryAcquire, Fault::Slow(Duration::from_millis(number % 5)), 1);
    }
    let locks = Engine::with(store.clone(), EngineOptions::new().clock(clock).local_handoff(LocalHandoff::off()));
    let writer = locks.acquire(&key(), &LockOptions::new()).await.unwrap().unwrap();
    let readers = join_all((0..250).map(|_| {
        let locks = locks.clone();
        tokio::spawn(async move {
            let guard = locks.acquire_read(&key(), &LockOptions::new()).await.unwrap().unwrap();
            guard.release().await.unwrap();
        })
    }));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let released = tokio::time::Instant::now();
    writer.release().await.unwrap();
    for reader in readers.await {
        reader.unwrap();
    }
    // On the clock that stands still while anybody has something to do: a pause for each of them adds up to much more.
    assert!(released.elapsed() < Duration::from_secs(2), "{:?}", released.elapsed());
}
