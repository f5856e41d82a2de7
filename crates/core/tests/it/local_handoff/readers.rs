use std::time::Duration;

use leasehold_core::{Engine, LocalHandoff, LockKey, LockOptions, ReadGuard, RwLockerExt};
use leasehold_testkit::{FaultyMemory, test};

use crate::local_handoff::bench::{Bench, LEASE, bench, engine, token};

async fn read(engine: &Engine<FaultyMemory>) -> ReadGuard {
    engine.acquire_read(&LockKey::new("k").unwrap(), &LockOptions::new().ttl(LEASE)).await.unwrap().unwrap()
}

impl Bench {
    async fn reader(&self) -> tokio::task::JoinHandle<ReadGuard> {
        let engine = self.engine.clone();
        let reader = tokio::spawn(async move { read(&engine).await });
        tokio::task::yield_now().await;
        reader
    }
}

#[test(paused)]
async fn readers_that_queue_together_ride_on_one_grant() {
    let bench = bench(LocalHandoff::new());
    let writer = bench.take().await;
    let mut readers = Vec::new();
    for _ in 0..10 {
        readers.push(bench.reader().await);
    }
    let later = bench.waiter().await;
    writer.release().await.unwrap();
    let mut guards = Vec::new();
    for reader in readers {
        guards.push(reader.await.unwrap());
    }
    assert_eq!(bench.claims(), 2, "one grant for the writer, one for all readers");
    let mut tokens: Vec<_> = guards.iter().map(|guard| guard.fencing_token().unwrap()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 10);
    // Each is a guard of its own: the store's grant ends with the last of them.
    while let Some(guard) = guards.pop() {
        assert!(guard.is_held() && !later.is_finished());
        guard.release().await.unwrap();
    }
    drop(later.await.unwrap());
}

#[test(paused)]
async fn no_reader_rides_on_a_grant_that_is_older_than_its_wish() {
    let bench = bench(LocalHandoff::new());
    let elsewhere = engine(&bench.store, LocalHandoff::off());
    bench.late(Duration::from_secs(1));
    let first = bench.reader().await;
    let other = read(&elsewhere).await;
    let second = bench.reader().await;
    drop(first.await.unwrap());
    let second = second.await.unwrap();
    assert!(second.fencing_token() > other.fencing_token(), "it came after the other had its token");
}

#[test(paused)]
async fn a_reader_that_ends_gives_nothing_to_one_that_came_after_others_elsewhere() {
    let bench = bench(LocalHandoff::new());
    let elsewhere = engine(&bench.store, LocalHandoff::off());
    let first = bench.reader().await.await.unwrap();
    let other = read(&elsewhere).await;
    bench.late(Duration::from_secs(1));
    let second = bench.reader().await;
    first.release().await.unwrap();
    let second = second.await.unwrap();
    assert!(second.fencing_token() > other.fencing_token(), "it came after the other had its token");
}

#[test(paused)]
async fn a_reader_that_cannot_ride_asks_for_itself() {
    let bench = bench(LocalHandoff::new());
    let writer = bench.take().await;
    let first = bench.reader().await;
    let engine = bench.engine.clone();
    let brief = tokio::spawn(async move { engine.read_for("k", Duration::from_secs(60)).await.unwrap() });
    tokio::task::yield_now().await;
    let third = bench.reader().await;
    drop(writer);
    let (first, brief, third) = (first.await.unwrap(), brief.await.unwrap(), third.await.unwrap());
    assert_eq!(bench.claims(), 3);
    assert!(first.is_held() && brief.is_held() && third.is_held());
}

#[test(paused)]
async fn a_rider_that_left_uses_up_no_number_and_keeps_nothing() {
    let bench = bench(LocalHandoff::new());
    let writer = bench.take().await;
    let readers = [bench.reader().await, bench.reader().await, bench.reader().await];
    readers[1].abort();
    drop(writer);
    let [first, _, third] = readers;
    let (first, third) = (first.await.unwrap(), third.await.unwrap());
    let numbers = [&first, &third].map(|guard| token(guard).1);
    assert_eq!(numbers, [0, 1]);
    drop((first, third));
    drop(bench.take().await);
}
