use std::collections::HashSet;
use std::time::Duration;

use super::context::{SHORT, TestContext, eventually, once, patient, soon};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Op, TestClient};
use crate::{Attempt, Claim, GrantRef, Guard, LeaseStatus, LockGuard, LockKey, LossReason, Mode, ReleaseOutcome};

/// So many levels of one session, none of which may have to wait.
async fn levels(ours: &TestClient, key: &LockKey, depth: usize, ttl: Duration) -> Result<Vec<LockGuard>, Failure> {
    let mut guards = Vec::new();
    for level in 1..=depth {
        let guard = ours.acquire(key, &once().ttl(ttl)).await?;
        guards.push(guard.ok_or_else(|| Failure(format!("level {level} was refused")))?);
    }
    Ok(guards)
}

async fn gives_back(guard: LockGuard) -> Verdict {
    let outcome = guard.release().await?;
    ensure!(outcome == ReleaseOutcome::Released, "a level that was held was {outcome:?}");
    Ok(())
}

const LONG: Duration = Duration::from_secs(30);

pub(super) async fn c27_a_session_reenters_at_once_and_counts(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let mut guards = levels(&ours, &key, 5, LONG).await?;
    gives_back(guards.swap_remove(0)).await?;
    guards.extend(levels(&ours, &key, 1, LONG).await?);
    ensure!(guards.iter().all(Guard::is_held), "one of five levels is not held");
    let tokens: HashSet<_> = guards.iter().map(Guard::fencing_token).collect();
    ensure!(tokens.len() == 1, "the levels of one epoch have the tokens {tokens:?}");
    while let Some(guard) = guards.pop() {
        theirs.finds_it_held(&key).await?;
        gives_back(guard).await?;
        ensure!(guards.iter().all(Guard::is_held), "giving back one level took another");
    }
    let next = theirs.try_once(&key).await?;
    let next = next.ok_or_else(|| Failure("the key is not free after its last level".into()))?.fencing_token();
    ensure!(next.is_none() || tokens.iter().all(|old| next > *old), "{next:?} after {tokens:?}");
    // Closing gives back each level that is left.
    let key = context.key();
    let _held = levels(&ours, &key, 4, LONG).await?;
    soon("closing", ours.store.close()).await?;
    theirs.finds_it_free(&key).await
}

pub(super) async fn c27_a_level_is_claimed_and_released_once_in_the_store(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let claim = || Claim::new(&key, Mode::Exclusive, Duration::from_secs(60));
    let (outer, inner) = (claim(), claim());
    let mut answers = Vec::new();
    for claim in [&outer, &inner, &inner, &outer, &inner] {
        answers.push(ours.store.try_acquire(claim).await?);
    }
    let Attempt::Granted { epoch } = answers[0] else { return Err(Failure(format!("{answers:?}"))) };
    ensure!(answers.iter().all(|answer| *answer == answers[0]), "the levels of one epoch: {answers:?}");
    let grant = |claim: &Claim| GrantRef { key: key.clone(), owner: claim.owner, mode: claim.mode, epoch };
    for (level, held) in [(&inner, LeaseStatus::Held), (&inner, LeaseStatus::NotHeld)] {
        let said = ours.store.release(&grant(level)).await?;
        ensure!(said == held, "the store said {said:?} and not {held:?}");
        theirs.finds_it_held(&key).await?;
    }
    ensure!(ours.store.release(&grant(&outer)).await? == LeaseStatus::Held, "the last level was gone");
    ensure!(ours.store.renew(&grant(&outer), LONG).await? != LeaseStatus::Held, "a freed epoch was renewed");
    theirs.finds_it_free(&key).await
}

/// A level may be left in the store of what a session has lost.
pub(super) async fn c27_a_session_does_not_join_a_lease_that_it_lost(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let left = Claim::new(&key, Mode::Exclusive, SHORT);
    let Attempt::Granted { epoch } = ours.store.try_acquire(&left).await? else {
        return Err(Failure("a free key was refused".into()));
    };
    let again = || Claim { lost: epoch, ..Claim::new(&key, Mode::Exclusive, LONG) };
    // What is older than what was lost is not joined either.
    let newer = Claim { lost: epoch.map(|epoch| epoch + 1), ..again() };
    for claim in [again(), newer, Claim { owner: left.owner, ..again() }] {
        match ours.store.try_acquire(&claim).await? {
            Attempt::HeldBy { retry_in: Some(left), .. } if left <= SHORT => {}
            answer => return Err(Failure(format!("to a session that lost {epoch:?} the store said {answer:?}"))),
        }
    }
    // It was not prolonged by those who asked, nor is it kept by them.
    eventually("what was lost ends", || async { Ok(theirs.admin.inspect(&key).await?.holders.is_empty()) }).await?;
    let claim = again();
    let answer = ours.store.try_acquire(&claim).await?;
    let Attempt::Granted { epoch: next } = answer else { return Err(Failure(format!("then it said {answer:?}"))) };
    ensure!(next > epoch, "after {epoch:?} came {next:?}");
    let deeper = ours.store.try_acquire(&again()).await?;
    ensure!(deeper == answer, "a newer epoch is not joined: {deeper:?} after {answer:?}");
    theirs.admin.force_release(&key).await?;
    Ok(())
}

pub(super) async fn c27_a_short_level_does_not_shorten_the_lease(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for [outer, inner] in [[SHORT, LONG], [LONG, SHORT]] {
        let key = context.key();
        let outer = ours.take(&key, &patient().ttl(outer)).await?;
        let inner = ours.take(&key, &once().ttl(inner)).await?;
        // A renewal would make good again what the claim of the inner level has shortened.
        for renews in [false, true] {
            if renews {
                outer.renew().await?;
                inner.renew().await?;
            }
            let seen = theirs.admin.inspect(&key).await?;
            let left = seen.holders.first().and_then(|holder| holder.remaining).unwrap_or_default();
            // The guards' deadline must come before that of the store, which was read first.
            let believed = outer.remaining().max(inner.remaining());
            ensure!(left >= believed, "the store frees it in {left:?}, the guards believe in {believed:?}");
            ensure!(left > SHORT, "{left:?} left of {LONG:?}");
        }
    }
    Ok(())
}

/// What a level asked for ends with it: the others go on as they would without.
pub(super) async fn c27_a_level_without_renewal_is_not_renewed_on_after_another_had_it(
    context: TestContext,
) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for inner_renews in [true, false] {
        let key = context.key();
        let outer = ours.take(&key, &patient().ttl(SHORT).renew(!inner_renews)).await?;
        let inner = ours.take(&key, &once().ttl(SHORT).renew(inner_renews)).await?;
        let (renewing, rest) = if inner_renews { (inner, outer) } else { (outer, inner) };
        let renewals = || ours.faults.count(Op::Renew, &key);
        eventually("it is renewed for the level that asked for it", || async { Ok(renewals() >= 2) }).await?;
        gives_back(renewing).await?;
        // One may be under way.
        let sent = renewals();
        let promised = rest.remaining();
        ensure!(!promised.is_zero() && promised <= SHORT, "{promised:?} left of {SHORT:?}");
        let reason = soon("the lease of the level that is left runs out", rest.lost()).await?;
        ensure!(reason == LossReason::Expired, "{reason:?}");
        ensure!(renewals() <= sent + 1, "{} renewals for a level that asked for none", renewals() - sent);
        theirs.finds_it_free(&key).await?;
    }
    Ok(())
}
