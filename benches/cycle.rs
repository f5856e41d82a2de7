//! What the engine itself costs: cycles of acquire and release where the store costs nothing or next to nothing.
//!
//! `cargo bench -p leasehold-benches`

use divan::Bencher;
use leasehold_core::{LockKey, LockOptions, Locker, LockerExt, Memory};
use leasehold_file::FileLocks;
use tokio::runtime::{Builder, Runtime};

fn main() {
    divan::main();
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Nobody else wants the key.
#[divan::bench]
fn memory_uncontended(bencher: Bencher<'_, '_>) {
    let (runtime, locks) = (runtime(), Memory::new());
    bencher.bench_local(|| runtime.block_on(async { locks.lock("k").await?.release().await }));
}

/// The same, with a system call or two.
#[divan::bench]
fn file_uncontended(bencher: Bencher<'_, '_>) {
    let runtime = runtime();
    let folder = tempfile::tempdir().expect("a folder");
    let locks = FileLocks::open(folder.path().join("locks")).expect("a store");
    bencher.bench_local(|| runtime.block_on(async { locks.lock("k").await?.release().await }));
}

/// From guard to guard inside the process, without the store: so many waiters, all served once.
#[divan::bench(args = [8, 64, 512])]
fn memory_handed_over(bencher: Bencher<'_, '_>, waiters: usize) {
    let (runtime, locks) = (runtime(), Memory::new());
    let key = LockKey::new("k").expect("a key");
    let options = LockOptions::new();
    bencher.counter(divan::counter::ItemsCount::new(waiters)).bench_local(|| {
        runtime.block_on(futures::future::join_all((0..waiters).map(|_| async {
            let guard = locks.acquire(&key, &options).await?.expect("granted: nobody gives up");
            guard.release().await
        })))
    });
}

/// With so many leases in the keeper's agenda.
#[divan::bench(args = [0, 1_000, 100_000])]
fn memory_beside_held_leases(bencher: Bencher<'_, '_>, held: usize) {
    let (runtime, locks) = (runtime(), Memory::new());
    let guards =
        runtime.block_on(futures::future::join_all((0..held).map(|number| locks.lock(format!("held/{number}")))));
    bencher.bench_local(|| runtime.block_on(async { locks.lock("k").await?.release().await }));
    drop(guards);
}
