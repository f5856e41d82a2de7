use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use rand::Rng;

use super::context::{AMPLE, TestContext, eventually, once, patient, soon};
use crate::conformance::direct::WITHIN;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{Busy, Capability, Claim, ErrorKind, GrantRef, LockGuard, LockKey, LockOptions, Mode, Renewal, Wait};

pub(super) type Waiter = tokio::task::JoinHandle<crate::Result<Option<LockGuard>>>;

pub(super) fn wait_in_background(client: &Arc<TestClient>, key: &LockKey, wait: Wait) -> Waiter {
    let (client, key) = (Arc::clone(client), key.clone());
    tokio::spawn(async move { client.acquire(&key, &LockOptions::new().wait(wait)).await })
}

/// Ends when the contender has sent more claims for the key than `before`.
pub(super) async fn asks(client: &TestClient, key: &LockKey, before: usize) -> Verdict {
    eventually("a claim is sent", || async { Ok(client.faults.count(Op::TryAcquire, key) > before) }).await
}

pub(super) async fn c07_a_cancelled_attempt_gives_back_what_it_wins(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for _ in 0..20 {
        let key = context.key();
        ours.faults.next(Op::TryAcquire, Fault::Delay(Duration::from_millis(10)), 1);
        let leaves_after = Duration::from_micros(rand::rng().random_range(0..12_000));
        let granted = tokio::time::timeout(leaves_after, ours.acquire(&key, &patient())).await;
        drop(granted);
        ours.faults.heal();
        theirs.finds_it_free(&key).await?;
    }
    Ok(())
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

/// With its lease of 30 s, a grant that nobody heard of would outlast every wait here.
pub(super) async fn c07_a_lost_reply_leaves_nothing(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    ours.faults.next(Op::TryAcquire, Fault::LoseReply, 1);
    let error = ours.try_once(&key).await.err().map(|error| error.kind());
    ensure!(error == Some(ErrorKind::Indeterminate), "a lost reply was reported as {error:?}");
    theirs.finds_it_free(&key).await?;
    // Nor does it block a waiter of its own.
    let before = ours.faults.count(Op::TryAcquire, &key);
    ours.faults.next(Op::TryAcquire, Fault::LoseReply, 1);
    let guard = ours.take(&key, &patient()).await?;
    ensure!(ours.faults.count(Op::TryAcquire, &key) > before + 1, "the reply was not lost");
    guard.release().await?;
    theirs.finds_it_free(&key).await
}

pub(super) async fn c07_the_wait_limit_leaves_nothing(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    ours.take(&context.key(), &patient()).await?.release().await?;
    ours.faults.next(Op::TryAcquire, Fault::Delay(Duration::from_millis(1500)), 1);
    let limit = LockOptions::new().wait(Wait::UpTo(Duration::from_millis(100)));
    match ours.acquire(&key, &limit).await {
        Ok(granted) => ensure!(granted.is_some(), "nobody held it"),
        Err(error) => ensure!(error.is_transient(), "{error}"),
    }
    theirs.finds_it_free(&key).await
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

pub(super) async fn c10_try_does_not_take_an_own_release_for_another_holder(context: TestContext) -> Verdict {
    const TRIP: Duration = Duration::from_millis(50);
    let (ours, key) = (context.client().await?, context.key());
    ours.faults.always(Op::Release, Fault::Delay(TRIP));
    for round in 0..3 {
        drop(ours.take(&key, &patient()).await?);
        ensure!(ours.try_once(&key).await?.is_some(), "round {round}: nobody else held it after a drop");
    }
    ours.faults.next(Op::TryAcquire, Fault::Delay(TRIP), 1);
    let cancelled = tokio::time::timeout(TRIP / 5, ours.take(&key, &patient())).await;
    ensure!(cancelled.is_err(), "the wait was over before it was cancelled");
    ensure!(ours.try_once(&key).await?.is_some(), "nobody else held it after a wait that was cancelled");
    Ok(())
}

pub(super) async fn c10_try_answers_while_others_wait(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), context.client().await?, context.key());
    let guard = theirs.take(&key, &patient()).await?;
    let waiter = wait_in_background(&ours, &key, Wait::UpTo(AMPLE));
    asks(&ours, &key, 0).await?;
    let answer = soon("try answers beside a waiter", ours.try_once(&key)).await??;
    ensure!(answer.is_none(), "a try overtook a waiter");
    guard.release().await?;
    ensure!(waiter.await??.is_some(), "the waiter was not served");
    Ok(())
}

pub(super) async fn c10_a_failing_store_is_an_error(context: TestContext) -> Verdict {
    let (ours, key) = (Arc::new(context.client().await?), context.key());
    for kind in [ErrorKind::Unavailable, ErrorKind::Backend] {
        ours.faults.next(Op::TryAcquire, Fault::Refuse(kind), 1);
        let answer = ours.try_once(&key).await.err().map(|error| error.kind());
        ensure!(answer == Some(kind), "{kind:?} was reported as {answer:?}");
    }
    // And so it is for those behind the first of a process, who ask nothing themselves.
    ours.faults.always(Op::TryAcquire, Fault::Refuse(ErrorKind::Unavailable));
    let before = ours.faults.count(Op::TryAcquire, &key);
    let head = wait_in_background(&ours, &key, Wait::UpTo(AMPLE));
    asks(&ours, &key, before).await?;
    let tried = soon("a try behind the head", ours.try_once(&key)).await?;
    ensure!(tried.is_err(), "a try behind a failing head said {tried:?}");
    let limited = LockOptions::new().wait(Wait::UpTo(Duration::from_millis(100)));
    let waited = soon("a wait behind the head", ours.acquire(&key, &limited)).await?;
    ensure!(waited.is_err(), "a wait behind a failing head said {waited:?}");
    ours.faults.heal();
    ensure!(head.await??.is_some(), "the head did not ride it out");
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

pub(super) async fn c11_the_wait_limit_is_kept(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = theirs.take(&key, &patient()).await?;
    let limit = Duration::from_millis(300);
    let began = ours.clock.now();
    let waiting = ours.acquire(&key, &LockOptions::new().wait(Wait::UpTo(limit))).await;
    let waited = ours.clock.now().since(began);
    ensure!(matches!(waiting, Ok(None)), "{waiting:?}");
    ensure!(waited >= limit, "gave up after {waited:?} of {limit:?}");
    // A busy machine may take a while; more is another limit than the one that was asked for.
    ensure!(waited < limit * 10, "gave up only after {waited:?} of {limit:?}");
    drop(guard);
    Ok(())
}

/// How long a wait of 100 ms took while the store was silent, and its answer.
async fn waits_on_silence(client: &TestClient, key: &LockKey) -> Result<(Duration, Option<ErrorKind>), Failure> {
    client.faults.always(Op::TryAcquire, Fault::Hang);
    let began = client.clock.now();
    let limit = LockOptions::new().wait(Wait::UpTo(Duration::from_millis(100)));
    let answer = soon("the limit is kept", client.acquire(key, &limit)).await?;
    let waited = client.clock.now().since(began);
    client.faults.heal();
    Ok((waited, answer.err().map(|error| error.kind())))
}

pub(super) async fn c11_the_limit_is_kept_while_the_store_is_silent(context: TestContext) -> Verdict {
    let (ours, slowed) = (context.client().await?, context.client().await?);
    // The first wait of a locker, which knows of no round trip yet.
    let (waited, _) = waits_on_silence(&ours, &context.key()).await?;
    ensure!(waited < Duration::from_millis(1600), "a wait of 100 ms took {waited:?}");
    ours.take(&context.key(), &patient()).await?.release().await?;
    let (_, kind) = waits_on_silence(&ours, &context.key()).await?;
    ensure!(kind == Some(ErrorKind::Indeterminate), "a silent store was reported as {kind:?}");
    // A slow answer does not lengthen the wait after it.
    let slow = Duration::from_secs(1);
    slowed.faults.next(Op::TryAcquire, Fault::Delay(slow), 1);
    slowed.try_once(&context.key()).await?;
    let (waited, _) = waits_on_silence(&slowed, &context.key()).await?;
    ensure!(waited < slow * 2, "a wait of 100 ms after an answer of {slow:?} took {waited:?}");
    Ok(())
}

pub(super) async fn c12_transient_faults_are_ridden_out(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    for fault in [Fault::Refuse(ErrorKind::Unavailable), Fault::LoseReply] {
        ours.faults.next(Op::TryAcquire, fault, 3);
        let before = ours.faults.count(Op::TryAcquire, &key);
        ours.take(&key, &patient()).await?.release().await?;
        let sent = ours.faults.count(Op::TryAcquire, &key) - before;
        ensure!(sent > 3, "granted with the {sent}. claim, of which three failed");
    }
    Ok(())
}

pub(super) async fn c12_attempts_back_off_during_an_outage(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    ours.faults.always(Op::TryAcquire, Fault::Refuse(ErrorKind::Unavailable));
    let limit = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(1)));
    let kind = soon("the limit is kept", ours.acquire(&key, &limit)).await?.err().map(|error| error.kind());
    ensure!(kind == Some(ErrorKind::Unavailable), "an outage beyond the limit was told as {kind:?}");
    // Without a pause it is thousands; with one of a constant 20 ms about 50.
    let sent = ours.faults.count(Op::TryAcquire, &key);
    ensure!((2..=30).contains(&sent), "{sent} attempts within a second");
    Ok(())
}

pub(super) async fn c12_a_permanent_fault_ends_the_wait_at_once(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    ours.faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Backend), 1);
    let options = LockOptions::new().wait(Wait::Forever);
    let kind = soon("the wait ends", ours.acquire(&key, &options)).await?.err().map(|error| error.kind());
    ensure!(kind == Some(ErrorKind::Backend), "{kind:?}");
    ensure!(ours.faults.count(Op::TryAcquire, &key) == 1, "it was tried again");
    Ok(())
}

pub(super) async fn c13_lost_signals_do_not_cost_liveness(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), context.client().await?, context.key());
    ours.faults.always(Op::Notification, Fault::Hang);
    let guard = theirs.take(&key, &patient()).await?;
    let waiter = wait_in_background(&ours, &key, Wait::UpTo(AMPLE));
    asks(&ours, &key, 1).await?;
    guard.release().await?;
    ensure!(waiter.await??.is_some(), "without signals the waiter was not served");
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

pub(super) async fn c13_only_the_head_talks_to_the_store(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), context.client().await?, context.key());
    let guard = theirs.take(&key, &patient()).await?;
    ours.faults.always(Op::TryAcquire, Fault::Delay(Duration::from_millis(5)));
    let mut waiters = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let (ours, key) = (Arc::clone(&ours), key.clone());
        waiters.spawn(async move { Ok::<_, Failure>(ours.take(&key, &patient()).await?.release().await?) });
    }
    asks(&ours, &key, 3).await?;
    guard.release().await?;
    while let Some(served) = waiters.join_next().await {
        served??;
    }
    let most = ours.faults.most_at_once(Op::TryAcquire);
    ensure!(most == 1, "{most} claims of one process were under way at once");
    Ok(())
}
