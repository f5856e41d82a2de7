//! What a semaphore promises beyond the suite.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Admin, Capabilities, Clock, ErrorKind, LockGuard, LockKey, LockOptions, Locker, LockerExt, Memory, OrBusy, Result,
    Semaphore, Wait,
};
use leasehold_testkit::{Fault, Op, PATIENCE, eventually, faulty_memory, test};
use tokio::time::timeout;

#[test]
async fn whoever_gathers_permits_keeps_the_turn_although_a_default_limits_the_time_of_holding() {
    let here = Memory::new();
    let held = Semaphore::new(here.contender(), "s", 1).unwrap().acquire().await.unwrap();
    let hasty = here.with_defaults(LockOptions::new().max_hold(Duration::from_millis(50)));
    let wanting = Semaphore::new(hasty, "s", 2).unwrap();
    let options = LockOptions::new().max_hold(Duration::from_secs(60)).wait(Wait::UpTo(Duration::from_secs(60)));
    let gathering = tokio::spawn(async move { wanting.acquire_many(2, &options).await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    held.release().await.unwrap();
    assert_eq!(gathering.await.unwrap().unwrap().map(|permits| permits.len()), Some(2));
}

#[test]
async fn several_permits_are_there_for_who_asks_when_another_has_got_some() {
    let store = faulty_memory(&Clock::system());
    store.faults.always(Op::Release, Fault::Slow(Duration::from_millis(200)));
    let [ours, theirs] = [store.engine(), store.engine()].map(|locks| Semaphore::new(locks, "s", 4).unwrap());
    let once = LockOptions::new().wait(Wait::Never);
    let _two = ours.acquire_many(2, &once).await.unwrap().expect("all are free");
    assert!(theirs.acquire_many(2, &once).await.unwrap().is_some(), "two of four are free");
}

#[test]
async fn whoever_lost_the_turn_gathers_no_more() {
    let here = Memory::new();
    let _held = Semaphore::new(here.contender(), "s", 1).unwrap().acquire().await.unwrap();
    let wanting = Semaphore::new(here.clone(), "s", 2).unwrap();
    let options = LockOptions::new().ttl(Duration::from_millis(900));
    let gathering = tokio::spawn(async move { wanting.acquire_many(2, &options).await.map(drop) });
    let turn = LockKey::new("s#many").unwrap();
    eventually("it has the turn", async || !here.inspect(&turn).await.unwrap().holders.is_empty()).await;
    here.force_release(&turn).await.unwrap();
    let error = timeout(PATIENCE, gathering).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Lost(_)), "{error}");
}

/// Notes how long each slot is waited for.
#[derive(Clone, Debug)]
struct Noted(Memory, Arc<Mutex<Vec<Duration>>>);

#[async_trait]
impl Locker for Noted {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    async fn acquire_or_busy(&self, key: &LockKey, options: &LockOptions) -> Result<OrBusy<LockGuard>> {
        if let (Wait::UpTo(wait), true) = (options.patience(), key.as_str().contains("#0")) {
            self.1.lock().unwrap().push(wait);
        }
        self.0.acquire_or_busy(key, options).await
    }
}

#[test]
async fn several_permits_have_one_wait_together() {
    const LIMIT: Duration = Duration::from_secs(600);
    const PAUSE: Duration = Duration::from_millis(100);
    let here = Memory::new();
    let held = Semaphore::new(here.contender(), "s", 3).unwrap().acquire_many(3, &LockOptions::new()).await.unwrap();
    let noted = Noted(here, Arc::default());
    let wanting = Semaphore::new(noted.clone(), "s", 3).unwrap();
    let gathering =
        tokio::spawn(async move { wanting.acquire_many(3, &LockOptions::new().wait(Wait::UpTo(LIMIT))).await });
    // It waits for three slots, then for the two that are left, and then for the last.
    let mut waits = Vec::new();
    for (permit, asked) in held.unwrap().into_iter().zip([3, 5, 6]) {
        eventually("it waits", async || noted.1.lock().unwrap().len() == asked).await;
        waits.extend(noted.1.lock().unwrap().last().copied());
        tokio::time::sleep(PAUSE).await;
        permit.release().await.unwrap();
    }
    assert_eq!(gathering.await.unwrap().unwrap().map(|permits| permits.len()), Some(3));
    assert!(waits[0] <= LIMIT && waits[1] + PAUSE <= waits[0] && waits[2] + PAUSE <= waits[1], "{waits:?}");
}
