//! What the engine itself costs: cycles of acquire and release where the store costs nothing or next to nothing.
//!
//! `cargo bench -p leasehold-benches --bench cycle`

use std::time::Duration;

use divan::{Bencher, black_box};
use leasehold_core::{Clock, LockGuard, LockKey, LockOptions, LockerExt, Memory};
use leasehold_file::FileLocks;
use leasehold_redis::Namespace;
use tokio::runtime::{Builder, Runtime};
use tokio::task::yield_now;

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Keys by turns, because a store grants one key 16,000 times a second at most.
struct Turns(Vec<String>, usize);

impl Turns {
    fn new(keys: usize) -> Self {
        Self((0..keys).map(|number| format!("turns/{number}")).collect(), 0)
    }

    fn next(&mut self) -> &str {
        self.1 = (self.1 + 1) % self.0.len();
        &self.0[self.1]
    }
}

/// Nobody else wants the key.
#[divan::bench]
fn memory_uncontended(bencher: Bencher<'_, '_>) {
    let (runtime, locks, mut keys) = (runtime(), Memory::new(), Turns::new(128));
    bencher.bench_local(|| runtime.block_on(async { locks.lock(keys.next()).await?.release().await }));
}

/// The same, with a system call or two.
#[divan::bench]
fn file_uncontended(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let folder = tempfile::tempdir().expect("a folder");
    let locks = FileLocks::open(folder.path().join("locks")).expect("a store");
    let mut keys = Turns::new(16);
    bencher.bench_local(|| runtime.block_on(async { locks.lock(keys.next()).await?.release().await }));
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

/// With so many leases in the keeper's agenda.
#[divan::bench(args = [0, 1_000, 100_000])]
fn memory_beside_held_leases(bencher: Bencher<'_, '_>, held: usize) {
    let (runtime, locks) = (runtime(), Memory::new());
    let guards =
        runtime.block_on(futures::future::join_all((0..held).map(|number| locks.lock(format!("held/{number}")))));
    let mut keys = Turns::new(128);
    bencher.bench_local(|| runtime.block_on(async { locks.lock(keys.next()).await?.release().await }));
    drop(guards);
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

/// The names in Redis of what is kept for a key, with and without characters to encode.
#[divan::bench(args = ["invoice/42", "{Straße} 100 %"])]
fn redis_names(bencher: Bencher<'_, '_>, key: &str) {
    let names = Namespace::default();
    let key = LockKey::new(key).expect("a key");
    bencher.bench_local(|| {
        let names = names.of(black_box(&key));
        (names.part("lock"), names.counter())
    });
}

/// From the text that a program has to a key.
#[divan::bench(args = ["invoice/42", "a key that is quite a bit longer than those that most programs use"])]
fn lock_key(key: &str) -> LockKey {
    LockKey::new(black_box(key)).expect("a key")
}
