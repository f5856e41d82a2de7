use std::collections::HashSet;
use std::time::Duration;

use super::context::{TestContext, once, past, patient, soon};
use crate::conformance::Op;
use crate::conformance::verdict::{Verdict, ensure};
use crate::{Attempt, Claim, DetachedLock, ErrorKind, GrantRef, LeaseStatus, LockKey, Mode, OwnerId, ReleaseOutcome};

fn claim(key: &LockKey, ttl: Duration) -> Claim {
    Claim::new(key, Mode::Exclusive, ttl)
}

fn grant(claim: &Claim, attempt: Attempt) -> Result<GrantRef, super::Failure> {
    match attempt {
        Attempt::Granted { epoch } => {
            Ok(GrantRef { key: claim.key.clone(), owner: claim.owner, mode: claim.mode, epoch })
        }
        Attempt::Busy { .. } | Attempt::HeldBy { .. } | Attempt::Queued { .. } => {
            Err(super::Failure(format!("{} is busy", claim.key)))
        }
    }
}

const LONG: Duration = Duration::from_secs(60);

pub(super) async fn c02_a_stale_release_spares_the_next_holder(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let stale = ours.take(&key, &context.brief()).await?;
    let stale_owner = ours.faults.steps(Op::TryAcquire, &key).last().map(|step| step.owner);
    let successor = theirs.take(&key, &past(context.brief_ttl())).await?;
    let outcome = stale.release().await?;
    ensure!(matches!(outcome, ReleaseOutcome::AlreadyLost(_)), "the stale release said {outcome:?}");
    // And the same past the engine, which knows from its clock that it is stale.
    let owner = stale_owner.ok_or_else(|| super::Failure("no claim was seen".into()))?;
    let grant = GrantRef { key: key.clone(), owner, mode: Mode::Exclusive, epoch: None };
    let held = ours.store.release(&grant).await?;
    ensure!(held != LeaseStatus::Held, "the store released a successor for a stale owner");
    ours.finds_it_held(&key).await?;
    ensure!(successor.release().await? == ReleaseOutcome::Released, "the successor lost its lock");
    Ok(())
}

pub(super) async fn c02_a_stale_renewal_does_not_prolong_the_successor(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let first = claim(&key, context.brief_ttl());
    let stale = grant(&first, ours.store.try_acquire(&first).await?)?;
    let successor = theirs.take(&key, &past(context.brief_ttl()).ttl(context.brief_ttl()).renew(false)).await?;
    let held = ours.store.renew(&stale, LONG).await?;
    ensure!(held != LeaseStatus::Held, "a stale owner renewed");
    drop(successor);
    ours.finds_it_free(&key).await
}

pub(super) async fn c02_a_stranger_can_neither_renew_nor_release(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    let stranger = GrantRef { key: key.clone(), owner: OwnerId::random(), mode: Mode::Exclusive, epoch: None };
    ensure!(theirs.store.renew(&stranger, LONG).await? != LeaseStatus::Held, "a stranger renewed");
    ensure!(theirs.store.release(&stranger).await? != LeaseStatus::Held, "a stranger released");
    theirs.finds_it_held(&key).await?;
    ensure!(guard.release().await? == ReleaseOutcome::Released, "the holder lost its lock");
    Ok(())
}

pub(super) async fn c02_every_epoch_has_an_owner_of_its_own(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    for _ in 0..5 {
        ours.take(&key, &patient()).await?.release().await?;
    }
    let steps = ours.faults.steps(Op::TryAcquire, &key);
    let owners: HashSet<_> = steps.iter().map(|step| step.owner).collect();
    // A claim may be sent more than once: a new key is granted a second time when the clock has gone on.
    ensure!(owners.len() >= 5, "{} owners in {} claims of 5 grants", owners.len(), steps.len());
    Ok(())
}

pub(super) async fn c02_a_claim_is_idempotent_for_its_owner(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let claim = claim(&key, LONG);
    let first = ours.store.try_acquire(&claim).await?;
    let second = ours.store.try_acquire(&claim).await?;
    ensure!(first == second, "a repeated claim got {second:?} after {first:?}");
    ensure!(ours.store.release(&grant(&claim, first)?).await? == LeaseStatus::Held, "the grant was gone");
    ours.finds_it_free(&key).await
}

/// A waiter asks with one owner until it is served, so that a claim of it that comes late begins another lease.
pub(super) async fn c02_a_renewal_is_of_its_own_grant(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let claim = claim(&key, LONG);
    let first = grant(&claim, ours.store.try_acquire(&claim).await?)?;
    ensure!(ours.store.release(&first).await? == LeaseStatus::Held, "the grant was gone");
    let second = grant(&claim, ours.store.try_acquire(&claim).await?)?;
    ensure!(ours.store.renew(&first, LONG).await? != LeaseStatus::Held, "{first:?} was renewed beside {second:?}");
    ensure!(ours.store.renew(&second, LONG).await? == LeaseStatus::Held, "{second:?} was not renewed");
    ensure!(ours.store.release(&second).await? == LeaseStatus::Held, "the second grant was gone");
    Ok(())
}

pub(super) async fn c02_a_repeated_claim_of_a_reader_counts_once(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let claim = Claim { mode: Mode::Shared, ..claim(&key, LONG) };
    let first = ours.store.try_acquire(&claim).await?;
    let second = ours.store.try_acquire(&claim).await?;
    ensure!(first == second, "a repeated claim got {second:?} after {first:?}");
    let shown = ours.store.steps().inspect(&key).await?.holders;
    ensure!(shown.len() == 1, "{shown:?}");
    ensure!(ours.store.release(&grant(&claim, first)?).await? == LeaseStatus::Held, "the grant was gone");
    theirs.finds_it_free(&key).await
}

pub(super) async fn c02_a_stranger_can_neither_renew_nor_release_a_reader(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let reader = ours.claims(&key, Mode::Shared, LONG).await?;
    for mode in [Mode::Shared, Mode::Exclusive] {
        let stranger = GrantRef { owner: OwnerId::random(), mode, ..reader.clone() };
        let renewed = theirs.store.renew(&stranger, LONG).await?;
        ensure!(renewed != LeaseStatus::Held, "a stranger renewed a reader as {mode:?}");
        let released = theirs.store.release(&stranger).await?;
        ensure!(released != LeaseStatus::Held, "a stranger released a reader as {mode:?}");
        theirs.finds_it_held(&key).await?;
    }
    let released = ours.store.release(&reader).await?;
    ensure!(released == LeaseStatus::Held, "the reader's own release said {released:?}");
    Ok(())
}

pub(super) async fn c02_a_stale_reader_spares_the_next_holder(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let stale = ours.claims(&key, Mode::Shared, LONG).await?;
    ours.store.release(&stale).await?;
    for mode in [Mode::Exclusive, Mode::Shared] {
        let next = theirs.claims(&key, mode, LONG).await?;
        let released = ours.store.release(&stale).await?;
        ensure!(released != LeaseStatus::Held, "a stale reader released the next holder, {mode:?}");
        ours.finds_it_held(&key).await?;
        let released = theirs.store.release(&next).await?;
        ensure!(released == LeaseStatus::Held, "the next holder's own release said {released:?}");
    }
    Ok(())
}

pub(super) async fn c02_a_handed_off_grant_is_attached_and_released_elsewhere(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    let token = guard.fencing_token();
    let text = guard.detach().map(|handed| handed.expose());
    let handed: DetachedLock = text.ok_or_else(|| super::Failure("a held guard was not handed off".into()))?.parse()?;
    ours.finds_it_held(&key).await?;
    let attached = theirs.locker.attach(&handed, &patient()).await?;
    let attached = attached.ok_or_else(|| super::Failure("the grant was not attached".into()))?;
    ensure!(attached.fencing_token() == token, "attaching changed the token");
    ensure!(attached.release().await? == ReleaseOutcome::Released, "the attached lock was gone");
    ensure!(theirs.locker.attach(&handed, &once()).await?.is_none(), "a released grant was attached");
    ours.finds_it_free(&key).await
}

pub(super) async fn c09_renewal_of_a_released_grant_creates_nothing(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let claim = claim(&key, LONG);
    let grant = grant(&claim, ours.store.try_acquire(&claim).await?)?;
    ours.store.release(&grant).await?;
    ensure!(ours.store.renew(&grant, LONG).await? != LeaseStatus::Held, "a released grant was renewed");
    ours.finds_it_free(&key).await
}

pub(super) async fn c09_renewal_of_an_expired_grant_creates_nothing(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &context.brief()).await?;
    let owner = ours.faults.steps(Op::TryAcquire, &key).last().map(|step| step.owner);
    soon("the loss is told", guard.lost()).await?;
    let error = guard.renew().await.err().map(|error| error.kind());
    ensure!(matches!(error, Some(ErrorKind::Lost(_))), "renewing a lost guard said {error:?}");
    // Past the engine, once the store has let it expire too.
    theirs.take(&key, &past(context.brief_ttl())).await?.release().await?;
    let owner = owner.ok_or_else(|| super::Failure("no claim was seen".into()))?;
    let stale = GrantRef { key: key.clone(), owner, mode: Mode::Exclusive, epoch: None };
    ensure!(ours.store.renew(&stale, LONG).await? != LeaseStatus::Held, "an expired grant was renewed");
    theirs.finds_it_free(&key).await
}
