use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::context::{AMPLE, SHORT, TestContext, past, patient};
use crate::conformance::process::Holder;
use crate::conformance::verdict::{Verdict, ensure};
use crate::{Capability, LockOptions, ReleaseOutcome, Wait};

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

pub(super) async fn c03_an_unrenewed_holder_frees_the_key(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &context.brief()).await?;
    let began = theirs.clock.now();
    let brief = context.brief_ttl();
    theirs.take(&key, &past(brief)).await?.release().await?;
    let waited = theirs.clock.now().since(began);
    ensure!(!guard.is_held(), "the first guard still believes in a lease of {brief:?} after {waited:?}");
    Ok(())
}

pub(super) async fn c03_a_killed_holder_frees_the_key(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let role = TestContext::role(&key, SHORT);
    let mut theirs = Holder::start(context.subject.as_ref(), &role).await?;
    ours.finds_it_held(&key).await?;
    let answer = theirs.ask().await?;
    ensure!(answer == "held", "the other process says {answer}");
    theirs.kill().await?;
    ours.finds_it_free(&key).await
}
