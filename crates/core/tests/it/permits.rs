//! What a semaphore promises (C30).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Admin, Capabilities, Clock, ErrorKind, LockGuard, LockKey, LockOptions, Locker, LockerExt, Memory, OrBusy, Result,
    Semaphore, Wait,
};
use leasehold_testkit::{Fault, Op, PATIENCE, eventually, faulty_memory, test};
use tokio::time::timeout;

fn brief() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_millis(20)))
}

fn once() -> LockOptions {
    LockOptions::new().wait(Wait::Never)
}

/// Two programs with a semaphore of so many permits.
fn both(permits: usize) -> [Semaphore<Memory>; 2] {
    let here = Memory::new();
    [here.contender(), here].map(|locks| Semaphore::new(locks, "s", permits).unwrap())
}

async fn all_of(semaphore: &Semaphore<Memory>) -> Vec<LockGuard> {
    semaphore.acquire_many(semaphore.permits(), &LockOptions::new()).await.unwrap().unwrap()
}

#[test]
async fn there_are_as_many_permits_as_were_asked_for_and_whoever_waits_has_whichever_comes_free() {
    let [ours, theirs] = both(3);
    let mut held = all_of(&theirs).await;
    assert!(ours.try_acquire().await.unwrap().is_none());
    assert!(ours.acquire_with(&brief()).await.unwrap().is_none());
    for slot in theirs.slots() {
        let freed = held.swap_remove(held.iter().position(|permit| permit.key() == slot).unwrap());
        let token = freed.fencing_token();
        let mut waits = Box::pin(ours.acquire());
        assert!(futures::poll!(&mut waits).is_pending());
        freed.release().await.unwrap();
        let granted = timeout(PATIENCE, waits).await.unwrap().unwrap();
        assert!(granted.key() == slot && granted.fencing_token() > token, "{granted:?} after {slot} with {token:?}");
        held.push(granted);
    }
    // Of permits that come free at one moment a waiter keeps one, and one who left none.
    let waits = tokio::spawn({
        let ours = ours.clone();
        async move { ours.acquire().await }
    });
    assert!(timeout(Duration::from_millis(20), ours.acquire()).await.is_err());
    drop(held);
    let kept = timeout(PATIENCE, waits).await.unwrap().unwrap().unwrap();
    let others = timeout(PATIENCE, theirs.acquire_many(2, &LockOptions::new())).await.unwrap().unwrap();
    assert!(others.is_some() && kept.is_held() && theirs.try_acquire().await.unwrap().is_none());
}

#[test]
async fn several_permits_are_granted_all_or_none_and_callers_who_want_several_do_not_block_each_other() {
    let [ours, theirs] = both(3);
    let one = theirs.acquire().await.unwrap();
    for options in [once(), brief()] {
        assert!(ours.acquire_many(3, &options).await.unwrap().is_none());
    }
    drop(timeout(PATIENCE, theirs.acquire_many(2, &LockOptions::new())).await.unwrap().unwrap().unwrap());
    drop(one);
    let store = faulty_memory(&Clock::system());
    // So that both have one permit before either has two.
    store.faults.always(Op::TryAcquire, Fault::Slow(Duration::from_millis(5)));
    let gather = async || {
        let semaphore = Semaphore::new(store.engine(), "s", 2).unwrap();
        let permits =
            timeout(PATIENCE, semaphore.acquire_many(2, &LockOptions::new())).await.unwrap().unwrap().unwrap();
        assert!(permits[0].key() != permits[1].key() && permits.iter().all(LockGuard::is_held), "{permits:?}");
    };
    for _ in 0..4 {
        tokio::join!(gather(), gather());
    }
}

#[test(paused)]
async fn a_permit_that_was_lost_while_the_others_were_waited_for_is_not_granted() {
    let here = Memory::with_clock(Clock::tokio());
    let held = Semaphore::new(here.contender(), "s", 1).unwrap().acquire().await.unwrap();
    let wanting = Semaphore::new(here, "s", 2).unwrap();
    let options = LockOptions::new().ttl(Duration::from_secs(1)).renew(false);
    let (gathered, _) = tokio::join!(wanting.acquire_many(2, &options), async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        held.release().await.unwrap()
    });
    assert!(matches!(gathered.unwrap_err().kind(), ErrorKind::Lost(_)));
}

#[test]
async fn a_store_that_fails_is_no_semaphore_whose_permits_are_taken() {
    let store = faulty_memory(&Clock::system());
    let [ours, theirs, others] = [(); 3].map(|()| Semaphore::new(store.engine(), "s", 2).unwrap());
    for kind in [ErrorKind::Unavailable, ErrorKind::Backend] {
        store.faults.always(Op::TryAcquire, Fault::Refuse(kind));
        assert_eq!(ours.try_acquire().await.unwrap_err().kind(), kind);
        assert_eq!(ours.acquire_with(&brief()).await.unwrap_err().kind(), kind);
    }
    store.faults.heal();
    store.faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Unavailable), 3);
    drop(ours.acquire().await.unwrap());
    let _all = theirs.acquire_many(2, &LockOptions::new()).await.unwrap().unwrap();
    store.faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Unavailable), 1);
    let tried = others.try_acquire().await.map_err(|error| error.kind());
    assert!(matches!(tried, Err(ErrorKind::Unavailable)), "the slot that could not be asked may be free: {tried:?}");
}

#[test]
async fn a_semaphore_that_cannot_be_is_refused_before_anything_is_sent() {
    const LONGEST: usize = Semaphore::<Memory>::MAX_KEY_BYTES;
    const MOST: usize = Semaphore::<Memory>::MAX_PERMITS;
    let here = Memory::new();
    let refused =
        |length: usize, permits| Semaphore::new(here.clone(), "k".repeat(length), permits).unwrap_err().kind();
    for permits in [0, MOST + 1, usize::MAX] {
        assert_eq!(refused(1, permits), ErrorKind::InvalidOptions, "{permits} permits");
    }
    for length in [0, LONGEST + 1, LockKey::MAX_BYTES] {
        assert_eq!(refused(length, 3), ErrorKind::InvalidKey, "a key of {length} bytes");
    }
    let longest = Semaphore::new(here.clone(), "k".repeat(LONGEST), MOST).unwrap();
    here.fail_next(1, ErrorKind::Backend);
    for count in [0, MOST + 1] {
        assert_eq!(longest.acquire_many(count, &once()).await.unwrap_err().kind(), ErrorKind::InvalidOptions);
    }
    assert_eq!(longest.try_acquire().await.unwrap_err().kind(), ErrorKind::Backend, "something was sent before");
    assert_eq!(all_of(&longest).await.len(), MOST);
}

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
    let _two = ours.acquire_many(2, &once()).await.unwrap().expect("all are free");
    assert!(theirs.acquire_many(2, &once()).await.unwrap().is_some(), "two of four are free");
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
