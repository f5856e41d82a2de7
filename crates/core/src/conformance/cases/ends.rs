//! However a lease ends, it ends once: all its guards are told, who waits here goes on, and nothing else is touched.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;

use super::context::{MARGIN, TestContext, eventually, once, patient, soon};
use super::waiting::{asks, wait_in_background};
use crate::conformance::direct::WITHIN;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op};
use crate::{
    Capability, Claim, Error, ErrorKind, LockOptions, LossReason, Mode, Notification, ReleaseOutcome, Renewal, Wait,
};

/// A ttl longer than any case: a waiter that is granted meanwhile was not granted because a lease ended.
const LONG: Duration = Duration::from_secs(600);

pub(super) async fn c06_after_closing_no_guard_is_created(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), context.client().await?, context.key());
    ours.faults.next(Op::TryAcquire, Fault::KeepReply, 1);
    let acquiring = wait_in_background(&ours, &key, Wait::UpTo(MARGIN));
    asks(&ours, &key, 0).await?;
    let closing = tokio::spawn({
        let ours = Arc::clone(&ours);
        async move { ours.store.close().await }
    });
    // It refuses from now on, and waits for what is under way.
    let refuses = || async { Ok(ours.try_once(&context.key()).await.is_err()) };
    eventually("closing has begun", refuses).await?;
    ours.faults.heal();
    soon("closing", closing).await??;
    if let Ok(Some(guard)) = soon("the acquire ends", acquiring).await?? {
        let reason = guard.loss();
        ensure!(reason == Some(LossReason::Shutdown), "a closed locker gave a guard, lost: {reason:?}");
    }
    theirs.finds_it_free(&key).await
}

pub(super) async fn c06_closing_ends_while_the_store_is_silent(context: TestContext) -> Verdict {
    let (ours, theirs) = (Arc::new(context.client().await?), context.client().await?);
    let long = patient().ttl(LONG);
    let [here, there, asked, dropped] = [context.key(), context.key(), context.key(), context.key()];
    let guard = ours.take(&here, &long).await?;
    let _theirs = theirs.take(&there, &long).await?;
    let released = ours.take(&dropped, &long).await?;
    let mut waiters = vec![wait_in_background(&ours, &there, Wait::Forever)];
    asks(&ours, &there, 0).await?;
    if !ours.locker.capabilities().has(Capability::Reentrancy) {
        waiters.push(wait_in_background(&ours, &here, Wait::Forever));
    }
    ours.faults.always(Op::Release, Fault::Hang);
    ours.faults.always(Op::TryAcquire, Fault::Hang);
    waiters.push(wait_in_background(&ours, &asked, Wait::Forever));
    asks(&ours, &asked, 0).await?;
    drop(released);
    soon("closing", ours.store.close()).await?;
    for waiter in waiters {
        let answer = soon("a waiter is answered", waiter).await??.err().map(|error| error.kind());
        ensure!(answer == Some(ErrorKind::Closed), "{answer:?}");
    }
    let reason = guard.loss();
    ensure!(reason == Some(LossReason::Shutdown), "{reason:?}");
    Ok(())
}

pub(super) async fn c06_closing_waits_for_a_release_under_way(context: TestContext) -> Verdict {
    let (ours, key) = (Arc::new(context.client().await?), context.key());
    let guard = ours.take(&key, &patient()).await?;
    ours.faults.next(Op::Release, Fault::KeepReply, 1);
    let releasing = tokio::spawn(guard.release());
    eventually("it is released", || async { Ok(ours.faults.count(Op::Release, &key) > 0) }).await?;
    let closing = tokio::spawn({
        let ours = Arc::clone(&ours);
        async move { ours.store.close().await }
    });
    let refuses = || async { Ok(ours.try_once(&context.key()).await.is_err()) };
    eventually("closing has begun", refuses).await?;
    ensure!(!closing.is_finished(), "it did not wait");
    ours.faults.heal();
    let outcome = soon("the release ends", releasing).await???;
    ensure!(outcome == ReleaseOutcome::Released, "{outcome:?}");
    soon("closing", closing).await??;
    Ok(())
}

pub(super) async fn c06_after_closing_no_step_is_carried_out(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let capabilities = context.subject.capabilities();
    let wakes = capabilities.has(Capability::Wakeup);
    let heard = if wakes { Some(ours.store.subscribe(&key).await?) } else { None };
    let kept = ours.claims(&context.key(), Mode::Exclusive, LONG).await?;
    let under_way = join_all((0..32).map(|_| ours.store.steps().inspect(&key)));
    let (under_way, ()) = soon("closing", async { futures::join!(under_way, ours.store.close()) }).await?;
    for error in under_way.into_iter().filter_map(Result::err) {
        let is_told = matches!(error.kind(), ErrorKind::Closed | ErrorKind::Indeterminate);
        ensure!(is_told, "a step that was under way was told {error:?}");
    }
    let claim = Claim::new(&key, Mode::Exclusive, LONG);
    let claimed = soon("a claim after closing ends", ours.store.try_acquire(&claim)).await?;
    if claimed.is_ok() && !capabilities.has(Capability::CrossHost) {
        // A store that is in this process, or in files, needs no closing.
        return Ok(());
    }
    let steps = ours.store.steps();
    let renewals = [(); 2].map(|()| Renewal { grant: kept.clone(), ttl: LONG });
    let asked = async {
        let mut told = vec![
            ("a claim", claimed.err()),
            ("a look", steps.inspect(&key).await.err()),
            ("a listing", steps.list(key.as_str(), None).await.err()),
            ("a forced release", steps.force_release(&kept.key, None).await.err()),
            ("a release", steps.release(&kept).await.err()),
        ];
        told.extend(steps.renew(&renewals, WITHIN).await.into_iter().map(|answer| ("a renewal", answer.err())));
        if wakes {
            told.push(("a subscription", ours.store.subscribe(&key).await.err()));
        }
        if capabilities.has(Capability::Detach) {
            told.push(("a take-over", steps.take_over(&kept, claim.owner, LONG).await.err()));
        }
        if capabilities.has(Capability::Shared) {
            let reads = Claim::new(&kept.key, Mode::Shared, LONG);
            told.push(("a downgrade", steps.downgrade(&kept, &reads).await.err()));
        }
        told
    };
    let told = soon("steps after closing end", asked).await?;
    for (step, error) in &told {
        let kind = error.as_ref().map(Error::kind);
        ensure!(kind == Some(ErrorKind::Closed), "{step} after closing was told {error:?}");
    }
    let renewed = told.iter().filter(|(step, _)| *step == "a renewal").count();
    ensure!(renewed == renewals.len(), "two renewals after closing had {renewed} answers");
    if let Some(mut heard) = heard {
        // And does not begin again.
        for _ in 0..2 {
            while soon("a subscription ends with its client", heard.next()).await? != Notification::Ended {}
        }
    }
    // The lease of a closed client goes on.
    if capabilities.has(Capability::Lease) {
        theirs.finds_it_held(&kept.key).await?;
    }
    theirs.finds_it_free(&key).await
}

pub(super) async fn c25_force_release_spares_a_later_grant(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), context.client().await?, context.key());
    let old = theirs.take(&key, &patient()).await?;
    let waiter = wait_in_background(&ours, &key, Wait::UpTo(MARGIN));
    asks(&ours, &key, 0).await?;
    ours.faults.next(Op::ForceRelease, Fault::KeepReply, 1);
    let forcing = tokio::spawn({
        let (ours, key) = (Arc::clone(&ours), key.clone());
        async move { ours.admin.force_release(&key).await }
    });
    let next = waiter.await??.ok_or_else(|| Failure("the waiter was not served".into()))?;
    ours.faults.heal();
    soon("force-release ends", forcing).await???;
    ensure!(next.is_held(), "who was granted after the force-release lost it: {:?}", next.loss());
    drop(old);
    next.release().await?;
    theirs.finds_it_free(&key).await
}

/// A waiter behind a guard of its own locker is served although that guard ends by something else than a release.
pub(super) async fn c13_however_a_lock_ends_who_waits_here_goes_on(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    let detaches = context.subject.capabilities().has(Capability::Detach);
    for detached in [false, true].into_iter().filter(|detached| detaches || !detached) {
        let key = context.key();
        let guard = ours.take(&key, &patient().ttl(LONG)).await?;
        let options = LockOptions::new().wait(Wait::UpTo(MARGIN));
        let mut waiting = Box::pin(ours.acquire(&key, &options));
        ensure!(futures::poll!(&mut waiting).is_pending(), "a held key was granted");
        let began = ours.clock.now();
        let ends = async {
            if detached {
                let handed = guard.detach()?;
                let attached = theirs.locker.attach(&handed, &once()).await?;
                attached.ok_or_else(|| Failure(format!("{key} was not attached")))?.release().await?;
            } else {
                theirs.admin.force_release(&key).await?;
                guard.release().await?;
            }
            Ok::<_, Failure>(())
        };
        let (served, ended) = futures::join!(waiting, ends);
        ended?;
        let waited = ours.clock.now().since(began);
        // At the end of its wait it tries once more in any case.
        let is_served = served?.is_some() && waited < MARGIN / 2;
        ensure!(is_served, "who waited behind its holder slept for {waited:?} on a free key, detached: {detached}");
    }
    Ok(())
}
