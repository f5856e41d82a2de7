use std::time::Duration;

use super::context::{BRIEF, SHORT, TestContext, eventually, once, patient, soon};
use crate::conformance::verdict::{Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{ErrorKind, LockKey, LockOptions, LossReason, ReleaseOutcome, Wait};

/// Watches for twice the lease that nothing more is sent for the key.
async fn stays_silent(client: &TestClient, key: &LockKey, ttl: Duration) -> Verdict {
    let before = client.faults.count(Op::Renew, key);
    tokio::time::sleep(ttl * 2).await;
    let after = client.faults.count(Op::Renew, key);
    ensure!(after == before, "{} renewals after the end", after - before);
    Ok(())
}

async fn renewals(client: &TestClient, key: &LockKey, at_least: usize) -> Verdict {
    eventually("renewals are sent", || async { Ok(client.faults.count(Op::Renew, key) >= at_least) }).await
}

pub(super) async fn c16_renewal_outlives_the_lease(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    let began = ours.clock.now();
    while ours.clock.now().since(began) < SHORT * 3 {
        theirs.finds_it_held(&key).await?;
        ensure!(guard.is_held(), "lost: {:?}", guard.loss());
        tokio::time::sleep(SHORT / 10).await;
    }
    ensure!(guard.remaining() <= SHORT, "{:?} left of {SHORT:?}", guard.remaining());
    ensure!(guard.release().await? == ReleaseOutcome::Released, "a renewed lock was gone");
    Ok(())
}

pub(super) async fn c16_renewal_begins_after_a_third(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let before = ours.clock.now();
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    renewals(&ours, &key, 1).await?;
    let after = ours.clock.now().since(before);
    ensure!(after >= SHORT / 3, "renewed after {after:?} of {SHORT:?}");
    ensure!(guard.is_held(), "renewed too late: {:?}", guard.loss());
    Ok(())
}

pub(super) async fn c16_renewal_can_be_switched_off(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let guard = ours.take(&key, &context.brief()).await?;
    soon("the lease runs out", guard.lost()).await?;
    ensure!(ours.faults.count(Op::Renew, &key) == 0, "renewed although switched off");
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

pub(super) async fn c17_no_renewal_after_release(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    renewals(&ours, &key, 1).await?;
    guard.release().await?;
    stays_silent(&ours, &key, SHORT).await
}

pub(super) async fn c17_no_renewal_after_drop(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    drop(ours.take(&key, &patient().ttl(context.brief_ttl() * 2)).await?);
    stays_silent(&ours, &key, context.brief_ttl() * 2).await
}

pub(super) async fn c17_no_renewal_after_loss(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient().ttl(context.brief_ttl() * 2)).await?;
    theirs.admin.force_release(&key).await?;
    soon("the loss is told", guard.lost()).await?;
    stays_silent(&ours, &key, context.brief_ttl() * 2).await
}

pub(super) async fn c18_max_hold_ends_renewal_and_is_told(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let cap = SHORT * 2;
    let began = ours.clock.now();
    let guard = ours.take(&key, &patient().ttl(SHORT).max_hold(cap)).await?;
    let reason = soon("the cap is told", guard.lost()).await?;
    let held = ours.clock.now().since(began);
    ensure!(reason == LossReason::MaxHold, "{reason:?} after {held:?}");
    ensure!(held >= cap, "told after {held:?} of {cap:?}");
    ensure!(ours.faults.count(Op::Renew, &key) > 0, "it was not renewed until the cap");
    stays_silent(&ours, &key, SHORT).await
}

pub(super) async fn c18_a_capped_hold_is_released_like_any_other(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient().max_hold(BRIEF)).await?;
    soon("the cap is told", guard.lost()).await?;
    let outcome = guard.release().await?;
    ensure!(outcome == ReleaseOutcome::AlreadyLost(LossReason::MaxHold), "{outcome:?}");
    // Not only when the lease of 30 s runs out.
    theirs.finds_it_free(&key).await
}

pub(super) async fn c19_bad_leases_are_refused_before_anything_is_sent(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let too_short = context.subject.capabilities().shortest_ttl().saturating_sub(Duration::from_millis(1));
    for ttl in [Duration::ZERO, too_short, Duration::from_secs(25 * 3600), Duration::MAX] {
        let kind = ours.acquire(&key, &once().ttl(ttl)).await.err().map(|error| error.kind());
        ensure!(kind == Some(ErrorKind::InvalidOptions), "a lease of {ttl:?} gave {kind:?}");
    }
    ensure!(ours.faults.all_steps() == 0, "something was sent");
    Ok(())
}

pub(super) async fn c19_the_longest_lease_is_granted(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let options = LockOptions::new().ttl(LockOptions::MAX_TTL).wait(Wait::Never);
    let guard = ours.take(&key, &options).await?;
    ensure!(guard.is_held(), "lost at once: {:?}", guard.loss());
    guard.release().await?;
    ours.finds_it_free(&key).await
}
