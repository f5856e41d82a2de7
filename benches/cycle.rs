//! What the engine itself costs: cycles of acquire and release where the store costs nothing or next to nothing.
//!
//! `cargo bench -p leasehold-benches --bench cycle`

use std::time::Duration;

use divan::Bencher;
use leasehold_core::{Clock, LockGuard, LockKey, LockOptions, LockerExt, Memory};
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Nobody else wants the key.
#[divan::bench]
fn memory_uncontended(bencher: Bencher<'_, '_>) {
    // By turns, because a store grants one key 16,000 times a second at most.
    let keys: Vec<String> = (0..128).map(|number| format!("turns/{number}")).collect();
    let (runtime, locks, mut keys) = (runtime(), Memory::new(), keys.iter().cycle());
    let mut cycle = || {
        let key = keys.next().expect("they begin anew");
        runtime.block_on(async { locks.lock(key.as_str()).await?.release().await })
    };
    bencher.bench_local(&mut cycle);
}

/// From guard to guard inside the process, without the store: so many waiters, all served once.
#[divan::bench(args = [2, 8, 64])]
fn memory_handed_over(bencher: Bencher<'_, '_>, waiters: usize) {
    let (runtime, locks) = (runtime(), Memory::new());
    let key = LockKey::new("k").expect("a key");
    let options = LockOptions::new();
    bencher.counter(divan::counter::ItemsCount::new(waiters)).bench_local(|| {
        runtime.block_on(async {
            let first = locks.lock(key.as_str()).await?;
            // All of them queue before the first lets go.
            let served = futures::future::try_join_all((0..waiters).map(|_| async {
                let guard = locks.acquire(&key, &options).await?.expect("granted: nobody gives up");
                guard.release().await
            }));
            futures::future::try_join(served, first.release()).await
        })
    });
}

/// One round of the keeper: so many leases, all due at once.
#[divan::bench(args = [1_000, 100_000])]
fn memory_leases_renewed(bencher: Bencher<'_, '_>, held: usize) {
    const LEASE: Duration = Duration::from_secs(30);
    let clock = Clock::system();
    let (runtime, locks) = (runtime(), Memory::with_clock(clock.clone()));
    let keys: Vec<LockKey> = (0..held).map(|number| LockKey::new(format!("held/{number}")).expect("a key")).collect();
    let options = LockOptions::new().ttl(LEASE);
    let take = keys.iter().map(|key| locks.acquire(key, &options));
    let guards: Vec<LockGuard> = runtime.block_on(async {
        let grants = futures::future::join_all(take).await;
        grants.into_iter().map(|grant| grant.expect("memory does not fail").expect("nobody else wants it")).collect()
    });
    bencher.counter(divan::counter::ItemsCount::new(held)).bench_local(|| {
        clock.advance(LEASE / 3 + Duration::from_millis(20));
        runtime.block_on(async {
            for guard in &guards {
                while guard.remaining() < LEASE * 3 / 4 {
                    yield_now().await;
                }
            }
        });
    });
}
