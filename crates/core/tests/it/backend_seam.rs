//! What the engine asks of a backend, beyond what the suite can see from outside.

use std::time::Duration;

use leasehold_core::{Clock, Engine, EngineOptions, LockKey, LockOptions, LockerExt};
use leasehold_testkit::{faulty_memory, test};

/// There has to be time for a second try, and a driver has to know by itself that nobody waits any more.
#[test(paused)]
async fn a_renewal_is_given_less_than_a_third_of_the_shortest_lease_of_its_batch() {
    let clock = Clock::tokio();
    let store = faulty_memory(&clock);
    let engine = Engine::with(store.clone(), EngineOptions::new().clock(clock));
    let mut guards = Vec::new();
    // Of about the same length, so that some of them are due together.
    for (key, ttl) in [("a", 30_000), ("b", 30_010), ("c", 30_020), ("d", 10_000)] {
        let options = LockOptions::new().ttl(Duration::from_millis(ttl));
        guards.push(engine.acquire(&LockKey::new(key).unwrap(), &options).await.unwrap().unwrap());
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    guards[0].renew().await.unwrap();
    let asked = store.faults.renewals();
    assert!(asked.iter().any(|(leases, _)| leases.len() > 1), "no batch had more than one lease: {asked:?}");
    for (leases, within) in asked {
        let shortest = *leases.iter().min().unwrap();
        assert!(within < shortest / 3 && within > shortest / 5, "{within:?} for {leases:?}");
    }
}
