use std::time::Duration;

use super::context::{SHORT, TestContext, eventually, once, patient, soon};
use crate::conformance::process::Holder;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op};
use crate::{Clock, ErrorKind, GrantRef, LeaseStatus, LossReason, Mode, ReleaseOutcome};

pub(super) async fn c05_the_deadline_runs_from_before_the_request(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let (lease, delay) = (Duration::from_secs(20), Duration::from_millis(600));
    for step in [Op::TryAcquire, Op::Renew] {
        ours.faults.next(step, Fault::Delay(delay), 1);
        let guard = ours.take(&key, &once().ttl(lease).renew(false)).await?;
        if step == Op::Renew {
            guard.renew().await?;
        }
        let left = guard.remaining();
        ensure!(left <= lease.saturating_sub(delay), "{left:?} left of {lease:?}, {step:?} answered {delay:?} late");
        guard.release().await?;
    }
    Ok(())
}

pub(super) async fn c05_a_grant_that_comes_too_late_is_refused(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    ours.faults.next(Op::TryAcquire, Fault::Delay(context.brief_ttl()), 1);
    match ours.acquire(&key, &once().ttl(context.brief_ttl()).renew(false)).await {
        Ok(Some(guard)) => ensure!(!guard.is_held(), "held although the lease ran out before the reply"),
        Ok(None) => ensure!(false, "nobody else held it"),
        Err(error) => ensure!(error.is_transient(), "{error}"),
    }
    ours.finds_it_free(&key).await
}

pub(super) async fn c05_loss_is_told_while_a_renewal_hangs(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    for (fault, least) in [(Fault::Hang, 1), (Fault::Refuse(ErrorKind::Unavailable), 2)] {
        let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
        let before = ours.faults.count(Op::Renew, &key);
        ours.faults.always(Op::Renew, fault);
        let reason = soon("the loss is told", guard.lost()).await?;
        ensure!(reason == LossReason::Unreachable, "{reason:?} by {fault:?}");
        let sent = ours.faults.count(Op::Renew, &key) - before;
        ensure!(sent >= least, "it gave up after {sent} renewals, {fault:?}");
        ours.faults.heal();
        drop(guard);
    }
    Ok(())
}

pub(super) async fn c05_is_held_compares_clocks_at_the_point_of_use(context: TestContext) -> Verdict {
    let clock = Clock::system();
    let (ours, key) = (context.client_at(clock.clone()).await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    ensure!(guard.is_held(), "a fresh guard is not held");
    // As after a suspend: no task has run between the jump and the question.
    clock.advance(Duration::from_secs(31));
    ensure!(!guard.is_held() && guard.remaining().is_zero(), "held {:?} past its lease", guard.remaining());
    let reason = soon("the loss is told", guard.lost()).await?;
    ensure!(guard.loss() == Some(reason), "{reason:?} and {:?}", guard.loss());
    Ok(())
}

pub(super) async fn c05_a_stopped_holder_learns_of_its_loss_first(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let role = TestContext::role(&key, SHORT);
    let mut theirs = Holder::start(context.subject.as_ref(), &role).await?;
    theirs.stop()?;
    let successor = ours.take(&key, &patient()).await?;
    if let Some(token) = successor.fencing_token() {
        ensure!(token.get() > theirs.token, "token {token} after {}", theirs.token);
    }
    theirs.resume()?;
    let answer = theirs.ask().await?;
    ensure!(answer.starts_with("lost"), "the stopped holder says {answer}");
    ensure!(successor.release().await? == ReleaseOutcome::Released, "the successor lost its lock");
    Ok(())
}

/// Nobody renews it (C16), and both its renewal and its release say why they are too late (C9, C20).
pub(super) async fn c06_a_lease_that_ran_out_is_expired(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let guard = ours.take(&key, &context.brief()).await?;
    let reason = soon("the loss is told", guard.lost()).await?;
    ensure!(reason == LossReason::Expired, "{reason:?}");
    let again = soon("the loss is told to late listeners", guard.lost()).await?;
    ensure!(again == reason, "{again:?} after {reason:?}");
    ensure!(ours.faults.count(Op::Renew, &key) == 0, "renewed although switched off");
    let renewed = guard.renew().await.map_err(|error| error.kind());
    ensure!(renewed == Err(ErrorKind::Lost(reason)), "renewing a lost guard said {renewed:?}");
    let outcome = guard.release().await?;
    ensure!(outcome == ReleaseOutcome::AlreadyLost(reason), "{outcome:?}");
    // A store may count a lease for longer than its holder.
    eventually("the store is told", || async { Ok(ours.faults.count(Op::Release, &key) == 1) }).await
}

pub(super) async fn c06_a_grant_that_vanished_is_stolen(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    let step = ours.faults.steps(Op::TryAcquire, &key).pop().ok_or_else(|| Failure("no claim was seen".into()))?;
    // As if an operator had deleted it by hand.
    let grant = GrantRef { key: key.clone(), owner: step.owner, mode: Mode::Exclusive, epoch: None };
    let released = ours.store.release(&grant).await?;
    ensure!(released == LeaseStatus::Held, "the grant could not be taken away: {released:?}");
    let reason = soon("the loss is told", guard.lost()).await?;
    ensure!(reason == LossReason::Stolen, "{reason:?}");
    Ok(())
}

pub(super) async fn c06_closing_is_shutdown(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    soon("closing", ours.store.close()).await?;
    let reason = soon("the loss is told", guard.lost()).await?;
    ensure!(reason == LossReason::Shutdown, "{reason:?}");
    let refused = ours.try_once(&key).await.err().map(|error| error.kind());
    ensure!(refused == Some(ErrorKind::Closed), "a closed locker said {refused:?}");
    theirs.finds_it_free(&key).await
}
