use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{join_all, try_join_all};

use super::context::{AMPLE, TestContext, outlast, past, patient};
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Capability, Claim, GrantRef, LockKey, LockOptions, Mode, ReleaseOutcome, Semaphore, Wait};

pub(super) async fn c01_a_second_holder_is_excluded(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    ensure!(guard.is_held(), "a fresh guard is not held");
    theirs.finds_it_held(&key).await?;
    // Every acquire is a holder of its own, but for sessions.
    if !context.subject.capabilities().has(Capability::Reentrancy) {
        ours.finds_it_held(&key).await?;
    }
    ensure!(guard.release().await? == ReleaseOutcome::Released, "the release found it gone");
    let guard = theirs.take(&key, &patient()).await?;
    ours.finds_it_held(&key).await?;
    drop(guard);
    Ok(())
}

/// Nor do their tokens fall, whoever hands the key to whom (C4), nor does one of them starve (C14).
pub(super) async fn c01_sixteen_contenders_never_overlap(context: TestContext) -> Verdict {
    const ROUNDS: usize = 5;
    let (inside, overlaps, key) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), context.key());
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = tokio::task::JoinSet::new();
    for client in context.clients(16, 4).await? {
        let key = key.clone();
        let (inside, overlaps, tokens) = (Arc::clone(&inside), Arc::clone(&overlaps), Arc::clone(&tokens));
        tasks.spawn(async move {
            for _ in 0..ROUNDS {
                let guard = client.take(&key, &LockOptions::new().wait(Wait::UpTo(AMPLE * 2))).await?;
                overlaps.fetch_add(inside.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
                // While it is held, so that the order of the list is the order of the grants.
                tokens.lock().unwrap_or_else(PoisonError::into_inner).push(guard.fencing_token());
                tokio::task::yield_now().await;
                inside.fetch_sub(1, Ordering::SeqCst);
                ensure!(guard.release().await? == ReleaseOutcome::Released, "a held lock was gone");
            }
            Ok(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    ensure!(overlaps.load(Ordering::SeqCst) == 0, "{} overlaps", overlaps.load(Ordering::SeqCst));
    let tokens = tokens.lock().unwrap_or_else(PoisonError::into_inner);
    ensure!(tokens.is_sorted_by(|a, b| a < b || b.is_none()), "the tokens do not grow: {tokens:?}");
    Ok(())
}

pub(super) async fn c03_a_killed_holder_frees_the_key(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let mut theirs = context.held_elsewhere(&key).await?;
    ours.finds_it_held(&key).await?;
    let answer = theirs.ask().await?;
    ensure!(answer == "held", "the other process says {answer}");
    theirs.kill().await?;
    ours.finds_it_free(&key).await
}

/// Sends these claims at one moment. Those that were granted; a claim that failed was not.
async fn at_once(clients: &[Arc<TestClient>], key: &LockKey, mode: impl Fn(usize) -> Mode) -> Vec<GrantRef> {
    let claims: Vec<_> =
        (0..clients.len()).map(|number| Claim::new(key, mode(number), Duration::from_secs(60))).collect();
    let attempts = join_all(clients.iter().zip(&claims).map(|(rival, claim)| rival.store.try_acquire(claim))).await;
    let granted = claims.iter().zip(&attempts).filter_map(|(claim, attempt)| match attempt {
        Ok(Attempt::Granted { epoch }) => Some(claim.grant(*epoch)),
        _ => None,
    });
    let granted = granted.collect();
    for (rival, claim) in clients.iter().zip(&claims) {
        let _ = rival.store.release(&claim.grant(None)).await;
    }
    granted
}

pub(super) async fn c01_of_claims_at_one_moment_one_is_granted(context: TestContext) -> Verdict {
    let (clients, brief) = (context.clients(8, 4).await?, context.brief_ttl());
    let ended: Vec<_> = (0..16).map(|_| context.key()).collect();
    let leases = context.subject.capabilities().has(Capability::Lease);
    if leases {
        // The entry of a lease that is over may still be there.
        let claims = ended.iter().map(|key| clients[0].claims_briefly(key, Mode::Exclusive, brief));
        try_join_all(claims).await?;
        outlast(brief).await;
    }
    for &other in context.modes() {
        let fresh: Vec<_> = (0..10).map(|_| context.key()).collect();
        let keys = ended.iter().filter(|_| leases && other == Mode::Exclusive);
        for (round, key) in fresh.iter().chain(keys).enumerate() {
            let mode = |number: usize| if (number + round).is_multiple_of(2) { Mode::Exclusive } else { other };
            let granted = at_once(&clients, key, mode).await;
            let writers = granted.iter().filter(|grant| grant.mode == Mode::Exclusive).count();
            ensure!(writers == 0 || granted.len() == 1, "{} of {} claims: {granted:?}", granted.len(), clients.len());
        }
    }
    // Of claims that all fail, none is granted twice.
    for key in [&context.key(), &ended[0]] {
        clients[0].take(key, &past(brief)).await?.release().await?;
    }
    Ok(())
}

/// One client waits for several keys at once.
pub(super) async fn c30_of_many_contenders_never_more_than_the_permits_are_inside(context: TestContext) -> Verdict {
    const PERMITS: usize = 2;
    let (key, inside) = (context.key(), Arc::new(AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for client in context.clients(6, 3).await? {
        let semaphore = Semaphore::new(Arc::clone(&client.locker), &key, PERMITS)?;
        let inside = Arc::clone(&inside);
        tasks.spawn(async move {
            for _ in 0..4 {
                let permit = semaphore.acquire_with(&patient()).await?;
                let permit = permit.ok_or_else(|| Failure("a contender starved".into()))?;
                let seen = inside.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                ensure!(seen <= PERMITS, "{seen} are inside with {PERMITS} permits");
                permit.release().await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}
