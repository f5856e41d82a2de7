use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rand::Rng;

use super::context::{AMPLE, TestContext, eventually, once, patient, soon};
use crate::conformance::direct::WITHIN;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Op, TestClient};
use crate::{Busy, Capability, Claim, GrantRef, LockGuard, LockKey, LockOptions, Mode, Renewal, Wait};

pub(super) type Waiter = tokio::task::JoinHandle<crate::Result<Option<LockGuard>>>;

pub(super) fn wait_in_background(client: &Arc<TestClient>, key: &LockKey, wait: Wait) -> Waiter {
    let (client, key) = (Arc::clone(client), key.clone());
    tokio::spawn(async move { client.acquire(&key, &LockOptions::new().wait(wait)).await })
}

/// Ends when the contender has sent more claims for the key than `before`.
pub(super) async fn asks(client: &TestClient, key: &LockKey, before: usize) -> Verdict {
    eventually("a claim is sent", || async { Ok(client.faults.count(Op::TryAcquire, key) > before) }).await
}

/// It keeps no connection, and no place in a queue of requests.
pub(super) async fn c07_a_request_that_is_given_up_leaves_nothing(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    let (steps, capabilities) = (ours.store.steps(), context.subject.capabilities());
    let claim = Claim::new(&context.key(), Mode::Exclusive, AMPLE);
    let (grant, renewal) = (claim.grant(None), Renewal { grant: claim.grant(None), ttl: AMPLE });
    let reads = Claim::new(&claim.key, Mode::Shared, AMPLE);
    for number in 0..800 {
        let asked: BoxFuture<'_, ()> = match number % 8 {
            0 => Box::pin(steps.try_acquire(&claim).map(drop)),
            1 => Box::pin(steps.renew(std::slice::from_ref(&renewal), WITHIN).map(drop)),
            2 => Box::pin(steps.release(&grant).map(drop)),
            3 => Box::pin(steps.inspect(&claim.key).map(drop)),
            4 => Box::pin(steps.list(claim.key.as_str(), None).map(drop)),
            5 if capabilities.has(Capability::Wakeup) => Box::pin(ours.store.subscribe(&claim.key).map(drop)),
            6 if capabilities.has(Capability::Detach) => {
                Box::pin(steps.take_over(&grant, reads.owner, AMPLE).map(drop))
            }
            7 if capabilities.has(Capability::Shared) => Box::pin(steps.downgrade(&grant, &reads).map(drop)),
            _ => Box::pin(steps.force_release(&claim.key, None).map(drop)),
        };
        give_up(asked, number / 8 % 8).await;
    }
    ours.finds_it_free(&context.key()).await
}

/// Polls a request so many times, and drops it.
async fn give_up<T>(mut asked: BoxFuture<'_, T>, after: u32) {
    for _ in 0..=after {
        if futures::poll!(&mut asked).is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

pub(super) async fn c07_a_cancelled_wait_leaves_no_trace(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), context.client().await?, context.key());
    let guard = theirs.take(&key, &patient()).await?;
    let waiter = wait_in_background(&ours, &key, Wait::Forever);
    asks(&ours, &key, 0).await?;
    waiter.abort();
    ensure!(waiter.await.is_err(), "the waiter was not cancelled");
    guard.release().await?;
    theirs.finds_it_free(&key).await?;
    ours.finds_it_free(&key).await
}

pub(super) async fn c10_try_answers_none_while_held(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let zero = LockOptions::new().wait(Wait::UpTo(Duration::ZERO));
    let guard = theirs.take(&key, &zero).await?;
    for options in [once(), zero] {
        let before = ours.faults.count(Op::TryAcquire, &key);
        let answer = soon("try answers", ours.acquire(&key, &options)).await??;
        ensure!(answer.is_none() && guard.is_held(), "{answer:?}");
        let sent = ours.faults.count(Op::TryAcquire, &key) - before;
        ensure!(sent == 1, "a wait of {:?} sent {sent} claims", options.wait);
    }
    Ok(())
}

/// Elsewhere, and beside the holder.
pub(super) async fn c10_busy_tells_what_is_left_of_the_lease(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let lease = Duration::from_secs(30);
    let guard = theirs.take(&key, &patient().ttl(lease)).await?;
    let reenters = context.subject.capabilities().has(Capability::Reentrancy);
    for client in [&ours, if reenters { &ours } else { &theirs }] {
        match client.locker.acquire_or_busy(&key, &once()).await? {
            Err(Busy { remaining: Some(left) }) => {
                ensure!(!left.is_zero() && left <= lease, "{left:?} left of {lease:?}");
            }
            other => ensure!(false, "a caller is told {other:?}"),
        }
    }
    drop(guard);
    Ok(())
}

/// How old it is, what is subscribed to before and beside it, what is told of others before it is asked for, how often it is asked, and
/// who closes, costs no subscription its notification.
pub(super) async fn c13_each_of_many_subscriptions_is_told(context: TestContext) -> Verdict {
    const MANY: usize = 80;
    const OTHERS: usize = 300;
    /// Asked for a moment at a time, as by one who also waits for something else.
    const MOMENT: Duration = Duration::from_millis(2);
    const OLD: Duration = Duration::from_secs(6);
    if context.subject.signals_in_turn() {
        return Ok(());
    }
    let (ours, theirs, leaves) = (context.client().await?, context.client().await?, context.client().await?);
    let (mut held, mut waiting) = (Vec::new(), Vec::new());
    let mut noise = ours.store.subscribe(&context.key()).await?;
    let waits = tokio::spawn(async move { noise.next().await });
    for number in 0..MANY {
        let key = context.key();
        // Some keys nobody has had before, and some were ended by force since.
        let early = if number % 8 == 2 { Some(ours.store.subscribe(&key).await?) } else { None };
        let mut grant = theirs.claims(&key, Mode::Exclusive, AMPLE * 3).await?;
        // One of two subscriptions of one client to one key goes: beside the other, or just before it.
        let mut twin = if number % 4 == 0 { Some(ours.store.subscribe(&grant.key).await?) } else { None };
        if number % 8 == 4 {
            twin = None;
        }
        waiting.push(if let Some(early) = early { early } else { ours.store.subscribe(&key).await? });
        drop(twin);
        if number % 8 == 6 {
            theirs.store.steps().force_release(&key, None).await?;
            grant = theirs.claims(&key, Mode::Exclusive, AMPLE * 3).await?;
        }
        let claim = Claim { waits: true, ..Claim::new(&grant.key, Mode::Exclusive, AMPLE) };
        ours.store.try_acquire(&claim).await?;
        held.push((grant, claim));
    }
    drop(leaves.store.subscribe(&held[0].0.key).await?);
    leaves.store.close().await;
    for subscription in &mut waiting {
        // What came without a reason.
        drop(tokio::time::timeout(MOMENT, subscription.next()).await);
    }
    tokio::time::sleep(OLD).await;
    for (_, claim) in &held {
        // Who waits asks now and again, or is forgotten.
        ours.store.try_acquire(claim).await?;
    }
    for (number, (grant, _)) in held.iter().enumerate() {
        // As after a claim whose answer is not known.
        let epoch = grant.epoch.filter(|_| number % 4 != 1);
        let grant = GrantRef { epoch, ..grant.clone() };
        // It may have freed the key when it is given up.
        let given_up = rand::rng().random_range(0..10);
        match number % 8 {
            3 => drop(tokio::time::timeout(MOMENT * given_up / 5, theirs.store.release(&grant)).await),
            1 | 7 => give_up(Box::pin(theirs.store.release(&grant)), given_up).await,
            _ => {}
        }
        theirs.store.release(&grant).await?;
    }
    for _ in 0..OTHERS.div_ceil(20) {
        let some = (0..20).map(async |_| {
            let grant = theirs.claims(&context.key(), Mode::Exclusive, AMPLE).await?;
            theirs.store.release(&grant).await.map_err(Failure::from)
        });
        futures::future::try_join_all(some).await?;
    }
    waits.abort();
    let limit = ours.clock.now().plus(AMPLE);
    for (number, subscription) in waiting.iter_mut().enumerate() {
        // Also for no longer than it takes to look.
        while subscription.next().now_or_never().is_none()
            && tokio::time::timeout(MOMENT, subscription.next()).await.is_err()
        {
            ensure!(ours.clock.now() < limit, "subscription {number} of {MANY} was told nothing");
        }
    }
    for (_, claim) in &held {
        ours.store.release(&claim.grant(None)).await?;
    }
    Ok(())
}

pub(super) async fn c13_a_waiter_gets_the_key_after_its_release(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), context.client().await?, context.key());
    // A session does not wait for itself.
    let waits_for_itself = !ours.locker.capabilities().has(Capability::Reentrancy);
    for client in std::iter::once(&theirs).chain(waits_for_itself.then_some(&*ours)) {
        let guard = client.take(&key, &patient()).await?;
        // It has no limit (C11).
        let options = LockOptions::new().wait(Wait::Forever);
        let mut waiter = Box::pin(ours.acquire(&key, &options));
        ensure!(futures::poll!(&mut waiter).is_pending(), "the waiter did not wait");
        guard.release().await?;
        ensure!(soon("the waiter is served", waiter).await??.is_some(), "the waiter was not served");
    }
    Ok(())
}
