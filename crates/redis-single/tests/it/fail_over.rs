//! A primary whose place another takes, behind Sentinels. The tests start the servers; without `redis-server` they are ignored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_redis_single::{
    ErrorKind, LockGuard, LockKey, LockOptions, LockerExt, LossReason, RedisSingle, ReleaseOutcome, Result,
};
use leasehold_testkit::redis::{Layout, Sentinels, Server, ask};
use leasehold_testkit::{eventually, needs, test};
use tokio::task::JoinSet;
use tokio::time::timeout;

const MINUTE: Duration = Duration::from_secs(60);

/// What a Sentinel sends to an old primary, so that it never learns that it is one.
const STAYS_PRIMARY: [&str; 3] = ["--rename-command", "SLAVEOF", "nobody-knows-this"];
const WANTS_A_REPLICA: [&str; 4] = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"];

/// Whoever asks in the moment of the promotion is thrown out.
async fn is_primary(server: &Server) -> bool {
    let about = ask(server.port(), &[&["INFO", "replication"]]).await;
    about.is_ok_and(|about| about.text().contains("role:master"))
}

async fn has(server: &Server, key: &str) -> bool {
    server.ask(&["EXISTS", &format!("{{leasehold:{key}}}:lock")]).await.number() == 1
}

/// Takes the key again and again, and counts how often somebody else had it meanwhile.
#[derive(Debug, Default)]
struct Contest {
    inside: AtomicUsize,
    overlaps: AtomicUsize,
    grants: AtomicUsize,
    over: AtomicBool,
}

impl Contest {
    async fn take_part(self: Arc<Self>, locks: RedisSingle, hold: Duration) {
        while !self.over.load(Ordering::Acquire) {
            let Ok(guard) = locks.lock_for("contested", Duration::from_secs(1)).await else { continue };
            self.grants.fetch_add(1, Ordering::AcqRel);
            self.overlaps.fetch_add(self.inside.fetch_add(1, Ordering::AcqRel), Ordering::AcqRel);
            let _ = timeout(hold, guard.lost()).await;
            self.inside.fetch_sub(1, Ordering::AcqRel);
            let _ = guard.release().await;
        }
    }

    fn grants(&self) -> usize {
        self.grants.load(Ordering::Acquire)
    }
}

#[test(deep)]
async fn connected_clients_follow_a_planned_fail_over_though_the_old_primary_goes_on() -> Result<()> {
    let layout = Layout { primary: &STAYS_PRIMARY, ..Layout::default() };
    let set = needs("redis-server", Sentinels::start_as(layout).await);
    let (locks, waiting) = (RedisSingle::connect(&set.url()).await?, RedisSingle::connect(&set.url()).await?);
    let options = LockOptions::new().ttl(Duration::from_secs(3));
    let held = locks.acquire(&LockKey::new("held")?, &options).await?.unwrap();
    let waiter = tokio::spawn(async move { waiting.lock("held").await });
    eventually("it waits", async || set.primary.ask(&["EXISTS", "{leasehold:held}:queue"]).await.number() == 1).await;
    assert_eq!(set.primary.ask(&["WAIT", "1", "10000"]).await.number(), 1);
    set.fail_over().await;
    eventually("the replica is promoted", async || is_primary(&set.replica).await).await;
    eventually("the client goes to the new primary", async || {
        let Ok(guard) = locks.lock("k").await else { return false };
        let there = has(&set.replica, "k").await;
        guard.release().await.is_ok() && there
    })
    .await;
    assert!(is_primary(&set.primary).await, "the old one goes on");
    held.renew().await?;
    assert_eq!(held.release().await?, ReleaseOutcome::Released);
    let next = timeout(MINUTE, waiter).await.expect("the waiter is served").expect("no panic")?;
    assert!(has(&set.replica, "held").await);
    next.renew().await
}

#[test(deep)]
async fn a_primary_that_refuses_to_write_without_replicas_is_left_for_its_successor() -> Result<()> {
    let primary = [&STAYS_PRIMARY[..], &WANTS_A_REPLICA].concat();
    let set = needs("redis-server", Sentinels::start_as(Layout { primary: &primary, ..Layout::default() }).await);
    let locks = RedisSingle::connect(&set.url()).await?;
    set.replica.pause();
    let refused = async || locks.try_lock("k").await.is_err_and(|error| error.kind() == ErrorKind::Unavailable);
    eventually("it refuses", refused).await;
    set.replica.resume();
    eventually("it writes again", async || locks.try_lock("k").await.is_ok()).await;
    set.fail_over().await;
    let there = async || locks.lock("other").await.is_ok() && has(&set.replica, "other").await;
    // It takes a second or two; by itself the driver stays for half a minute.
    let goes = eventually("the client goes to the new primary", there);
    timeout(Duration::from_secs(15), goes).await.expect("it does not wait for the old one to end");
    assert!(is_primary(&set.primary).await);
    Ok(())
}

/// As the README advises.
async fn safe(url: &str) -> Result<RedisSingle> {
    RedisSingle::builder().url(url).confirm_replicas(1, Duration::from_millis(300)).connect().await
}

#[test(deep)]
async fn nobody_holds_beside_another_while_a_fail_over_is_planned() -> Result<()> {
    let layout = Layout { primary: &WANTS_A_REPLICA, replicas: &WANTS_A_REPLICA, ..Layout::default() };
    let set = needs("redis-server", Sentinels::start_as(layout).await);
    let (contest, mut contestants) = (Arc::new(Contest::default()), JoinSet::new());
    for _ in 0..3 {
        contestants.spawn(Arc::clone(&contest).take_part(safe(&set.url()).await?, Duration::from_millis(2)));
    }
    eventually("locks are granted", async || contest.grants() > 50).await;
    set.fail_over().await;
    eventually("the replica is promoted", async || is_primary(&set.replica).await).await;
    for _ in 0..3 {
        contestants.spawn(Arc::clone(&contest).take_part(safe(&set.url()).await?, Duration::from_millis(2)));
    }
    // Neither grants anything before the old one has become the replica of the new one.
    let before = contest.grants();
    eventually("locks are granted again", async || contest.grants() > before + 100).await;
    assert!(!is_primary(&set.primary).await);
    contest.over.store(true, Ordering::Release);
    contestants.join_all().await;
    assert_eq!(contest.overlaps.load(Ordering::Acquire), 0, "in {} grants", contest.grants());
    Ok(())
}

#[test(deep)]
async fn nobody_holds_beside_a_holder_who_is_cut_off_together_with_the_primary() -> Result<()> {
    let layout = Layout {
        primary: &WANTS_A_REPLICA,
        replicas: &WANTS_A_REPLICA,
        count: 2,
        can_be_cut: true,
        ..Layout::default()
    };
    let set = needs("redis-server", Sentinels::start_as(layout).await);
    let (inside, outside) = (safe(&set.primary.url()).await?, safe(&set.url()).await?);
    let key = LockKey::new("held")?;
    let options = LockOptions::new().ttl(Duration::from_secs(6));
    let held = inside.acquire(&key, &options).await?.unwrap();
    let contest = Arc::new(Contest::default());
    let mut contestants = JoinSet::new();
    for locks in [safe(&set.primary.url()).await?, safe(&set.url()).await?] {
        contestants.spawn(Arc::clone(&contest).take_part(locks, Duration::from_millis(2)));
    }
    eventually("locks are granted", async || contest.grants() > 50).await;
    set.cut_off();
    // The holder hears nothing of it, and the others get the key only when its lease is over.
    let next = timeout(MINUTE, outside.lock("held")).await.expect("the lease ends")?;
    assert!(!held.is_held());
    assert_eq!(held.loss(), Some(LossReason::Unreachable));
    assert!(is_primary(&set.primary).await, "the old one goes on");
    let before = contest.grants();
    eventually("locks are granted again", async || contest.grants() > before + 50).await;
    contest.over.store(true, Ordering::Release);
    contestants.join_all().await;
    assert_eq!(contest.overlaps.load(Ordering::Acquire), 0, "in {} grants", contest.grants());
    next.renew().await
}

#[test(deep)]
async fn a_renewal_that_no_replica_has_does_not_count() -> Result<()> {
    let set = needs("redis-server", Sentinels::start().await);
    let locks = safe(&set.primary.url()).await?;
    let options = LockOptions::new().ttl(Duration::from_secs(3));
    let mut guards: Vec<LockGuard> = Vec::new();
    for number in 0..3 {
        guards.push(locks.acquire(&LockKey::new(format!("k{number}"))?, &options).await?.unwrap());
    }
    let waits = set.primary.calls("wait").await;
    eventually("they are renewed", async || set.primary.calls("pexpire").await >= 12).await;
    assert!(guards.iter().all(LockGuard::is_held));
    let (waits, renewals) = (set.primary.calls("wait").await - waits, set.primary.calls("pexpire").await);
    assert!(waits > 0 && waits < renewals, "{waits} confirmations of {renewals} renewals");
    set.replica.pause();
    eventually("the replica is known to be silent", async || guards[0].renew().await.is_err()).await;
    let error = guards[0].renew().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("0 of 1 replicas"), "{error}");
    for guard in &guards {
        let lost = timeout(MINUTE, guard.lost()).await.expect("they are lost at the deadline");
        assert_eq!(lost, LossReason::Unreachable);
    }
    set.replica.resume();
    Ok(())
}
