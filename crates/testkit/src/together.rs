use std::collections::HashSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use leasehold_core::{
    Admin, Attempt, Backend, Claim, ErrorKind, FencingToken, GrantRef, LockKey, LockOptions, Locker, LockerExt,
    LossReason, Mode, ReleaseOutcome, RwLocker, RwLockerExt, Wait,
};
use tokio::task::{JoinSet, yield_now};

/// Claims 32 keys at one moment, each for two owners, and answers the grants: one of each key.
pub async fn claim_each_for_two(store: &impl Backend) -> Vec<GrantRef> {
    let claim = |number: usize| {
        let key = LockKey::new(format!("k/{}", number % 32)).expect("a key");
        Claim::new(&key, Mode::Exclusive, Duration::from_secs(60))
    };
    let claims: Vec<_> = (0..64).map(claim).collect();
    let attempts = join_all(claims.iter().map(|claim| store.try_acquire(claim))).await;
    let granted = claims.iter().zip(attempts).filter_map(|(claim, attempt)| match attempt.expect("an answer") {
        Attempt::Granted { epoch } => Some(claim.grant(epoch)),
        _ => None,
    });
    let granted: Vec<_> = granted.collect();
    let keys: HashSet<_> = granted.iter().map(|grant| &grant.key).collect();
    assert_eq!((granted.len(), keys.len()), (32, 32), "a key goes to both, or to none");
    granted
}

/// Who has a key: readers count up, and writers take a thousand away. No token is given twice.
#[derive(Debug, Default)]
struct Inside {
    count: AtomicI64,
    tokens: Mutex<HashSet<Option<FencingToken>>>,
}

impl Inside {
    async fn stay(&self, is_writer: bool, token: Option<FencingToken>) {
        let weight = if is_writer { -1000 } else { 1 };
        let before = self.count.fetch_add(weight, Ordering::SeqCst);
        assert!(if is_writer { before == 0 } else { before >= 0 }, "{before} are inside; a writer: {is_writer}");
        yield_now().await;
        self.count.fetch_sub(weight, Ordering::SeqCst);
        let mut tokens = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(tokens.insert(token), "{token:?} was given twice");
    }
}

/// Has so many tasks of these clients, one after the other, take one key so often each, and release it. No two have it at the same
/// time, or under one token.
pub async fn crowd<L: Locker + Clone + 'static>(clients: &[L], key: &str, tasks: usize, times: usize) {
    let (inside, mut all) = (Arc::<Inside>::default(), JoinSet::new());
    for client in clients.iter().cycle().take(tasks) {
        let (client, key, inside) = (client.clone(), key.to_owned(), Arc::clone(&inside));
        all.spawn(async move {
            for _ in 0..times {
                let guard = client.lock(key.as_str()).await.expect("it becomes free");
                inside.stay(true, guard.fencing_token()).await;
                guard.release().await.expect("an answer");
            }
        });
    }
    all.join_all().await;
}

/// The same with two readers for each writer, which has it beside nobody.
pub async fn crowd_of_both<L: RwLocker + Clone + 'static>(clients: &[L], key: &str, tasks: usize, times: usize) {
    let (inside, mut all) = (Arc::<Inside>::default(), JoinSet::new());
    for (number, client) in clients.iter().cycle().take(tasks).enumerate() {
        let (client, key, inside) = (client.clone(), key.to_owned(), Arc::clone(&inside));
        all.spawn(async move {
            for _ in 0..times {
                if number % 3 == 0 {
                    let guard = client.write(key.as_str()).await.expect("it becomes free");
                    inside.stay(true, guard.fencing_token()).await;
                    guard.release().await.expect("an answer");
                } else {
                    let guard = client.read(key.as_str()).await.expect("it becomes free");
                    inside.stay(false, guard.fencing_token()).await;
                    guard.release().await.expect("an answer");
                }
            }
        });
    }
    all.join_all().await;
}

/// A lease that is not prolonged, as short as these can be.
fn brief(locks: &impl Locker) -> LockOptions {
    let ttl = locks.capabilities().shortest_ttl().max(Duration::from_millis(300));
    LockOptions::new().ttl(ttl).renew(false).wait(Wait::UpTo(Duration::from_secs(20)))
}

/// All that a lock does, once, by two clients.
pub async fn whole_life<L: Locker + Admin>(ours: &L, theirs: &L, name: &str) {
    let key = LockKey::new(name).expect("a key");
    let options = LockOptions::new().label("who").reason("why");
    let first = ours.acquire(&key, &options).await.expect("an answer").expect("it is free");
    assert!(theirs.try_lock(name).await.expect("an answer").is_none());
    let seen = theirs.inspect(&key).await.expect("an answer");
    assert_eq!(seen.holders[0].label.as_deref(), Some("who"));
    assert_eq!(theirs.list(name, None).await.expect("an answer").keys.len(), 1);
    first.renew().await.expect("it is held");
    let newest = first.fencing_token();
    first.release().await.expect("an answer");
    let stale = theirs.acquire(&key, &brief(theirs)).await.expect("an answer").expect("it was released");
    assert!(stale.fencing_token() > newest);
    let taken_over = ours.lock(name).await.expect("its lease ends");
    assert!(taken_over.fencing_token() > stale.fencing_token());
    assert_eq!(stale.lost().await, LossReason::Expired);
    assert_eq!(theirs.force_release(&key).await.expect("an answer").holders.len(), 1);
    let error = taken_over.renew().await.expect_err("it was released by force");
    assert_eq!(error.kind(), ErrorKind::Lost(LossReason::ForceReleased));
    let last = theirs.lock(name).await.expect("it was freed");
    assert!(last.fencing_token() > taken_over.fencing_token());
    let handed = last.detach().expect("it is held");
    let attached =
        ours.attach(&handed, &LockOptions::new()).await.expect("an answer").expect("it was left to the store");
    assert!(theirs.attach(&handed, &LockOptions::new()).await.expect("an answer").is_none());
    attached.release().await.expect("an answer");
}

/// Who is admitted to a free key, a read key and a written key, within a client and across clients.
pub async fn readers_life<L: RwLocker + Admin>(ours: &L, theirs: &L, name: &str) {
    let key = LockKey::new(name).expect("a key");
    let first = ours.try_read(name).await.expect("an answer").expect("free: it can be read");
    let second = theirs.try_read(name).await.expect("an answer").expect("read: it can be read");
    assert!(second.fencing_token() > first.fencing_token());
    for client in [ours, theirs] {
        assert!(client.try_write(name).await.expect("an answer").is_none(), "read: it cannot be written");
        assert!(client.try_read(name).await.expect("an answer").is_some(), "a try to write leaves no mark");
    }
    second.renew().await.expect("it is held");
    for reader in [first, second] {
        assert_eq!(reader.release().await.expect("an answer"), ReleaseOutcome::Released);
    }
    let writer = theirs.write(name).await.expect("it was released");
    for client in [ours, theirs] {
        assert!(client.try_read(name).await.expect("an answer").is_none(), "written: it cannot be read");
        assert!(client.try_write(name).await.expect("an answer").is_none(), "written: it cannot be written");
    }
    let reader = writer.downgrade(&LockOptions::new()).await.expect("it is held");
    assert_eq!(ours.list(name, None).await.expect("an answer").keys[0].holders[0].mode, Mode::Shared);
    reader.release().await.expect("an answer");
    let dies = ours.acquire_read(&key, &brief(ours)).await.expect("an answer").expect("it was released");
    let writer = theirs.write(name).await.expect("its lease ends");
    assert!(writer.fencing_token() > dies.fencing_token());
    assert_eq!(dies.lost().await, LossReason::Expired);
    writer.release().await.expect("an answer");
    let evicted = ours.read(name).await.expect("it was released");
    theirs.force_release(&key).await.expect("an answer");
    // Its lease has half a minute left, and a turn of the readers, as one that is far away books it, is over soon.
    let patience = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(15)));
    let last = theirs.acquire(&key, &patience).await.expect("an answer");
    let last = last.expect("an evicted reader is in nobody's way");
    let error = evicted.renew().await.expect_err("it was released by force");
    assert_eq!(error.kind(), ErrorKind::Lost(LossReason::ForceReleased));
    // A guard that is dropped at the end of a process may be released too late.
    last.release().await.expect("an answer");
}
