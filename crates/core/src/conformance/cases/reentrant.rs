use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use rand::Rng;

use super::context::{AMPLE, BRIEF, SHORT, TestContext, eventually, once, patient, soon};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{
    Attempt, Claim, ErrorKind, FencingToken, GrantRef, Guard, LeaseStatus, LockGuard, LockKey, LockOptions, LossReason,
    Mode, ReleaseOutcome, Wait,
};

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
    Ok(())
}

pub(super) async fn c27_the_inner_guard_may_outlive_the_outer(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let outer = ours.take(&key, &patient().ttl(SHORT)).await?;
    let inner = ours.take(&key, &once().ttl(SHORT)).await?;
    gives_back(outer).await?;
    let before = ours.faults.count(Op::Renew, &key);
    // More than a lease.
    eventually("renewals go on", || async { Ok(ours.faults.count(Op::Renew, &key) >= before + 4) }).await?;
    theirs.finds_it_held(&key).await?;
    inner.renew().await?;
    gives_back(inner).await?;
    theirs.finds_it_free(&key).await
}

pub(super) async fn c27_the_last_level_frees_the_key(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for _ in 0..5 {
        let key = context.key();
        let mut guards = levels(&ours, &key, 4, LONG).await?;
        while guards.len() > 1 {
            let guard = guards.swap_remove(rand::rng().random_range(0..guards.len()));
            if rand::rng().random() {
                gives_back(guard).await?;
            } else {
                drop(guard);
            }
            theirs.finds_it_held(&key).await?;
        }
        drop(guards);
        theirs.finds_it_free(&key).await?;
    }
    Ok(())
}

/// Tasks of one session overlap, and never those of two.
pub(super) async fn c27_other_sessions_are_excluded_throughout(context: TestContext) -> Verdict {
    let (inside, key) = (Arc::new(Mutex::new([0_usize; 4])), context.key());
    let mut tasks = tokio::task::JoinSet::new();
    for session in 0..4 {
        let client = Arc::new(context.client().await?);
        for _ in 0..3 {
            let (client, key, inside) = (Arc::clone(&client), key.clone(), Arc::clone(&inside));
            tasks.spawn(async move {
                for _ in 0..5 {
                    let outer = client.take(&key, &LockOptions::new().wait(Wait::UpTo(AMPLE * 2))).await?;
                    let entered = {
                        let mut inside = inside.lock().unwrap_or_else(PoisonError::into_inner);
                        inside[session] += 1;
                        *inside
                    };
                    let alone = entered.iter().enumerate().all(|(who, count)| who == session || *count == 0);
                    ensure!(alone, "session {session} overlaps another: {entered:?}");
                    let inner = client.take(&key, &once()).await?;
                    gives_back(outer).await?;
                    inside.lock().unwrap_or_else(PoisonError::into_inner)[session] -= 1;
                    gives_back(inner).await?;
                }
                Ok(())
            });
        }
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    context.client().await?.finds_it_free(&key).await
}

pub(super) async fn c27_a_reentry_does_not_wait_behind_others(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, Arc::new(context.client().await?), context.key());
    let outer = ours.take(&key, &patient()).await?;
    let waiter = {
        let (theirs, key) = (Arc::clone(&theirs), key.clone());
        tokio::spawn(async move { theirs.acquire(&key, &patient()).await })
    };
    eventually("another session waits", || async { Ok(theirs.faults.count(Op::TryAcquire, &key) > 0) }).await?;
    let inner = soon("the re-entry", ours.take(&key, &patient())).await??;
    gives_back(outer).await?;
    ensure!(!waiter.is_finished(), "another session was served while a level was left");
    gives_back(inner).await?;
    ensure!(waiter.await??.is_some(), "the other session was not served");
    Ok(())
}

pub(super) async fn c27_a_loss_reaches_every_level(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let mut guards = levels(&ours, &key, 4, SHORT).await?;
    let given_back = guards.pop().ok_or_else(|| Failure("no level".into()))?;
    let not_lost = given_back.lost();
    gives_back(given_back).await?;
    theirs.admin.force_release(&key).await?;
    let successor = theirs.take(&key, &patient()).await?;
    for guard in &guards {
        let reason = soon("every level is told", guard.lost()).await?;
        ensure!(matches!(reason, LossReason::ForceReleased | LossReason::Stolen), "{reason:?}");
        ensure!(!guard.is_held() && guard.remaining().is_zero(), "a level is held past the loss of all");
    }
    ensure!(not_lost.now_or_never().is_none(), "a level that was given back was told of a later loss");
    for guard in guards {
        let outcome = guard.release().await?;
        ensure!(matches!(outcome, ReleaseOutcome::AlreadyLost(_)), "a lost level was {outcome:?}");
    }
    gives_back(successor).await
}

pub(super) async fn c27_no_fresh_lease_begins_under_a_lost_guard(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let mut guards = levels(&ours, &key, 3, SHORT).await?;
    theirs.admin.force_release(&key).await?;
    soon("the loss is told", guards[0].lost()).await?;
    while !guards.is_empty() {
        for options in [once(), patient()] {
            let answer = soon("the answer", ours.acquire(&key, &options)).await?;
            let kind = answer.as_ref().err().map(crate::Error::kind);
            ensure!(matches!(kind, Some(ErrorKind::Lost(_))), "under {} lost guards: {answer:?}", guards.len());
        }
        let seen = theirs.admin.inspect(&key).await?;
        ensure!(seen.holders.is_empty(), "under lost guards the key is held: {seen:?}");
        guards.pop();
    }
    ours.finds_it_free(&key).await
}

/// The store has forgotten the epoch, and the session does not know that yet.
pub(super) async fn c27_a_reentry_that_finds_the_lease_gone_is_a_loss(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let outer = ours.take(&key, &patient()).await?;
    theirs.admin.force_release(&key).await?;
    ensure!(outer.is_held(), "its first renewal is ten seconds away");
    let answer = ours.try_once(&key).await;
    let kind = answer.as_ref().err().map(crate::Error::kind);
    ensure!(matches!(kind, Some(ErrorKind::Lost(_))), "a fresh lease passed for a level of the old: {answer:?}");
    ensure!(!outer.is_held(), "the outer guard was not told");
    theirs.finds_it_free(&key).await
}

pub(super) async fn c27_a_level_whose_reply_was_lost_counts_once(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for waits in [true, false] {
        let key = context.key();
        let outer = ours.take(&key, &patient()).await?;
        ours.faults.next(Op::TryAcquire, Fault::LoseReply, 1);
        if waits {
            let inner = ours.take(&key, &patient()).await?;
            ensure!(ours.faults.count(Op::TryAcquire, &key) > 2, "the reply was not lost");
            gives_back(inner).await?;
        } else {
            let kind = ours.try_once(&key).await.err().map(|error| error.kind());
            ensure!(kind == Some(ErrorKind::Indeterminate), "a lost reply was reported as {kind:?}");
        }
        ensure!(outer.is_held(), "a lost reply ended the outer guard");
        gives_back(outer).await?;
        // A level that nobody knows of would keep it for the lease of 30 s.
        theirs.finds_it_free(&key).await?;
    }
    Ok(())
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

pub(super) async fn c27_an_earlier_epoch_of_the_same_session_is_over(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let earlier = ours.take(&key, &patient()).await?;
    let owner = ours.faults.steps(Op::TryAcquire, &key).last().map(|step| step.owner);
    let owner = owner.ok_or_else(|| Failure("no claim was seen".into()))?;
    let epoch = earlier.fencing_token().map(FencingToken::epoch);
    let stale = GrantRef { key: key.clone(), owner, mode: Mode::Exclusive, epoch };
    gives_back(earlier).await?;
    theirs.finds_it_free(&key).await?;
    let guard = ours.take(&key, &patient()).await?;
    ensure!(ours.store.renew(&stale, LONG * 10).await? != LeaseStatus::Held, "an earlier epoch was renewed");
    ensure!(ours.store.release(&stale).await? != LeaseStatus::Held, "an earlier level was released");
    theirs.finds_it_held(&key).await?;
    gives_back(guard).await
}

pub(super) async fn c27_the_lease_is_renewed_once_for_all_levels(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let began = ours.clock.now();
    let guards = levels(&ours, &key, 5, SHORT).await?;
    eventually("it is renewed", || async { Ok(ours.faults.count(Op::Renew, &key) >= 6) }).await?;
    let (sent, lasted) = (ours.faults.count(Op::Renew, &key), ours.clock.now().since(began));
    // One after each third of the lease, however long that took on this machine.
    let due = lasted.as_millis() / (SHORT / 3).as_millis();
    ensure!(sent as u128 <= due + 1, "{sent} renewals for five levels in {lasted:?} of a lease of {SHORT:?}");
    ensure!(guards.iter().all(Guard::is_held), "a level was lost");
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

/// And ends with its level.
pub(super) async fn c27_the_shortest_max_hold_applies_to_all_levels(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let outer = ours.take(&key, &patient()).await?;
    let (began, cap) = (ours.clock.now(), BRIEF * 4);
    gives_back(ours.take(&key, &once().max_hold(cap)).await?).await?;
    ensure!(outer.remaining() > cap, "{:?} left of {LONG:?}", outer.remaining());
    ours.clock.reach(began.plus(cap * 2)).await;
    ensure!(outer.is_held(), "lost by the cap of a level that was given back: {:?}", outer.loss());
    let inner = ours.take(&key, &once().max_hold(BRIEF)).await?;
    for guard in [outer, inner] {
        let reason = soon("every level is told", guard.lost()).await?;
        ensure!(reason == LossReason::MaxHold, "{reason:?}");
        theirs.finds_it_free(&key).await?;
        let outcome = guard.release().await?;
        ensure!(outcome == ReleaseOutcome::AlreadyLost(LossReason::MaxHold), "{outcome:?}");
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

pub(super) async fn c27_closing_gives_back_every_level(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let mut guards = levels(&ours, &key, 4, LONG).await?;
    gives_back(guards.swap_remove(0)).await?;
    soon("closing", ours.store.close()).await?;
    for guard in &guards {
        let reason = soon("every level is told", guard.lost()).await?;
        ensure!(reason == LossReason::Shutdown, "{reason:?}");
    }
    theirs.finds_it_free(&key).await
}
