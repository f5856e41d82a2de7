use std::time::Duration;

use super::context::{BRIEF, SHORT, TestContext, eventually, once, patient, soon};
use crate::conformance::verdict::{Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{ErrorKind, LockKey, LockOptions, LossReason, ReleaseOutcome};

/// Watches for longer than a lease that nothing more is sent for these keys.
async fn stays_silent(client: &TestClient, keys: &[LockKey]) -> Verdict {
    let sent = || keys.iter().map(|key| client.faults.count(Op::Renew, key)).collect::<Vec<_>>();
    let before = sent();
    tokio::time::sleep(SHORT * 2).await;
    let after = sent();
    ensure!(after == before, "{after:?} renewals, and {before:?} at the end");
    Ok(())
}

async fn renewals(client: &TestClient, key: &LockKey, at_least: usize) -> Verdict {
    eventually("renewals are sent", || async { Ok(client.faults.count(Op::Renew, key) >= at_least) }).await
}

pub(super) async fn c16_renewal_outlives_the_lease(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let began = ours.clock.now();
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    renewals(&ours, &key, 1).await?;
    let first = ours.clock.now().since(began);
    ensure!(first >= SHORT / 3, "renewed after {first:?} of {SHORT:?}");
    while ours.clock.now().since(began) < SHORT * 3 {
        theirs.finds_it_held(&key).await?;
        ensure!(guard.is_held(), "lost: {:?}", guard.loss());
        tokio::time::sleep(SHORT / 10).await;
    }
    ensure!(guard.remaining() <= SHORT, "{:?} left of {SHORT:?}", guard.remaining());
    ensure!(guard.release().await? == ReleaseOutcome::Released, "a renewed lock was gone");
    Ok(())
}

pub(super) async fn c16_a_failed_renewal_is_not_a_loss(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    for fault in [Fault::Refuse(ErrorKind::Unavailable), Fault::LoseReply, Fault::Refuse(ErrorKind::Backend)] {
        let guard = ours.take(&key, &patient().ttl(SHORT * 2)).await?;
        let before = ours.faults.count(Op::Renew, &key);
        ours.faults.next(Op::Renew, fault, 1);
        renewals(&ours, &key, before + 3).await?;
        theirs.finds_it_held(&key).await?;
        ensure!(guard.release().await? == ReleaseOutcome::Released, "lost after {fault:?}");
    }
    Ok(())
}

pub(super) async fn c17_no_renewal_after_release_drop_or_loss(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    let keys = [context.key(), context.key(), context.key()];
    let options = patient().ttl(SHORT);
    let released = ours.take(&keys[0], &options).await?;
    let dropped = ours.take(&keys[1], &options).await?;
    let lost = ours.take(&keys[2], &options).await?;
    for key in &keys {
        renewals(&ours, key, 1).await?;
    }
    released.release().await?;
    drop(dropped);
    theirs.admin.force_release(&keys[2]).await?;
    soon("the loss is told", lost.lost()).await?;
    stays_silent(&ours, &keys).await
}

pub(super) async fn c18_max_hold_ends_renewal_and_frees_the_key(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    // The key is free although the guard is kept, and not because the lease of 30 s runs out.
    let (key, began) = (context.key(), ours.clock.now());
    let guard = ours.take(&key, &patient().max_hold(BRIEF)).await?;
    soon("the cap is told", guard.lost()).await?;
    ensure!(ours.clock.now().since(began) >= BRIEF, "told before its end");
    theirs.finds_it_free(&key).await?;
    let outcome = guard.release().await?;
    ensure!(outcome == ReleaseOutcome::AlreadyLost(LossReason::MaxHold), "{outcome:?}");
    // It was renewed until then, and not any more.
    let key = context.key();
    let guard = ours.take(&key, &patient().ttl(SHORT).max_hold(SHORT * 2)).await?;
    let reason = soon("the cap is told", guard.lost()).await?;
    ensure!(reason == LossReason::MaxHold, "{reason:?}");
    ensure!(ours.faults.count(Op::Renew, &key) > 0, "it was not renewed until the cap");
    stays_silent(&ours, &[key]).await
}

pub(super) async fn c19_bad_leases_are_refused_before_anything_is_sent(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let too_short = context.subject.capabilities().shortest_ttl().saturating_sub(Duration::from_millis(1));
    let ttls = [Duration::ZERO, too_short, LockOptions::MAX_TTL + Duration::from_secs(3600), Duration::MAX];
    let too_long = "x".repeat(LockOptions::MAX_TEXT_BYTES + 1);
    let texts = [once().label(too_long.clone()), once().reason(too_long)];
    for options in ttls.map(|ttl| once().ttl(ttl)).into_iter().chain(texts) {
        let kind = ours.acquire(&key, &options).await.err().map(|error| error.kind());
        ensure!(kind == Some(ErrorKind::InvalidOptions), "options with a lease of {:?} gave {kind:?}", options.ttl);
    }
    ensure!(ours.faults.all_steps() == 0, "something was sent");
    Ok(())
}
