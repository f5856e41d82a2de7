//! Detached locks: one process attaches each, and late requests of the previous owner do it no harm.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use super::context::{TestContext, eventually, once, patient};
use crate::conformance::process::{Holder, Role};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{DetachedLock, ErrorKind, GrantRef, LeaseStatus, LockGuard, LockKey, OwnerId, ReleaseOutcome, Result};

const LONG: Duration = Duration::from_secs(600);

/// A lock that was taken and detached, as the message that carries it has it.
async fn detached(client: &TestClient, key: &LockKey) -> Result<(DetachedLock, String), Failure> {
    let text = client.take(key, &patient()).await?.detach()?.expose();
    Ok((text.parse()?, text))
}

fn one_of<T>(attached: Vec<Option<T>>) -> Result<T, Failure> {
    let mut guards: Vec<_> = attached.into_iter().flatten().collect();
    let guard = guards.pop().filter(|_| guards.is_empty());
    guard.ok_or_else(|| Failure(format!("a detached lock was attached {} times", guards.len())))
}

pub(super) async fn c28_a_detached_lock_is_attached_once(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    let token = guard.fencing_token();
    let handed = guard.detach()?;
    let first = theirs.locker.attach(&handed, &once()).await?;
    let first = first.ok_or_else(|| Failure("a detached lock was not attached".into()))?;
    ensure!(first.fencing_token() == token, "attaching changed {token:?} to {:?}", first.fencing_token());
    // As when the message that carries it comes twice, while the lock is held and afterwards.
    for first in [Some(first), None] {
        for client in [&ours, &theirs] {
            let second = client.locker.attach(&handed, &once()).await?;
            ensure!(second.is_none(), "{second:?} beside or after {first:?}");
        }
        if let Some(first) = first {
            ensure!(first.is_held(), "the one who attached it lost it: {:?}", first.loss());
            ensure!(first.release().await? == ReleaseOutcome::Released, "the attached lock was gone");
        }
    }
    ours.finds_it_free(&key).await
}

/// Else nobody could renew or release it.
pub(super) async fn c28_what_nobody_could_attach_is_released(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let detached = ours.take(&key, &patient().ttl(LONG)).await?.detach().map_err(|error| error.kind());
    ensure!(detached == Err(ErrorKind::Unsupported), "without attach, a detach said {detached:?}");
    eventually("it is released", || async { Ok(ours.store.steps().inspect(&key).await?.holders.is_empty()) }).await
}

pub(super) async fn c28_of_two_who_attach_at_once_one_has_the_lock(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for (one, other) in [(&ours, &theirs), (&theirs, &theirs)] {
        for _ in 0..10 {
            let key = context.key();
            let (handed, _) = detached(&ours, &key).await?;
            let options = once();
            let attached = futures::join!(one.locker.attach(&handed, &options), other.locker.attach(&handed, &options));
            let guard: LockGuard = one_of(vec![attached.0?, attached.1?])?;
            ensure!(guard.is_held(), "the one who attached it lost it: {:?}", guard.loss());
            ours.finds_it_held(&key).await?;
            ensure!(guard.release().await? == ReleaseOutcome::Released, "the attached lock was gone");
            ours.finds_it_free(&key).await?;
        }
    }
    Ok(())
}

pub(super) async fn c28_of_two_processes_that_attach_at_once_one_has_the_lock(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let (handed, text) = detached(&ours, &key).await?;
    let role = Role { attaches: Some(text), ..TestContext::role(&key, LONG) };
    let start = || Holder::try_start(context.subject.as_ref(), &role);
    let (one, other) = futures::join!(start(), start());
    let mut holder = one_of(vec![one?, other?])?;
    ensure!(holder.ask().await? == "held", "the process that attached it lost it");
    ensure!(ours.locker.attach(&handed, &once()).await?.is_none(), "it was attached once more");
    ours.finds_it_held(&key).await?;
    holder.kill().await
}

pub(super) async fn c28_the_previous_owner_can_neither_renew_nor_release(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for &mode in context.modes() {
        let old = ours.claims(&context.key(), mode, LONG).await?;
        let new = GrantRef { owner: OwnerId::random(), ..old.clone() };
        let taken = theirs.store.steps().take_over(&old, new.owner, LONG).await?;
        ensure!(taken == LeaseStatus::Held, "{mode}: taking it over said {taken:?}");
        // As by a renewal that was under way when it was detached, and by a message that came twice.
        let again = [
            ("renewed", ours.store.renew(&old, LONG).await?),
            ("released", ours.store.release(&old).await?),
            ("taken over once more", theirs.store.steps().take_over(&old, OwnerId::random(), LONG).await?),
        ];
        for (what, held) in again {
            ensure!(held != LeaseStatus::Held, "{mode}: it was {what} by the old owner");
        }
        let held = theirs.store.release(&new).await?;
        ensure!(held == LeaseStatus::Held, "{mode}: the new owner lost it: {held:?}");
        theirs.finds_it_free(&old.key).await?;
    }
    Ok(())
}

/// A waiter of the same process behind an attached lock, with the same options.
pub(super) async fn c28_the_next_holder_after_an_attached_lock_has_its_own_texts(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let [first, second] = ["first", "second"].map(|text| patient().label(text).reason(text));
    let shown = async || {
        let holders = theirs.admin.inspect(&key).await?.holders;
        Ok::<_, Failure>(holders.into_iter().flat_map(|holder| [holder.label, holder.reason]).collect::<Vec<_>>())
    };
    let texts = |text: &str| vec![Some(text.to_owned()); 2];
    let handed = ours.take(&key, &first).await?.detach()?;
    let attached = theirs.locker.attach(&handed, &second).await?;
    let attached = attached.ok_or_else(|| Failure("a detached lock was not attached".into()))?;
    let before = shown().await?;
    ensure!(before == texts("first"), "the attached lock is shown with {before:?}");
    let mut next = Box::pin(theirs.take(&key, &second));
    ensure!((&mut next).now_or_never().is_none(), "a held lock was granted");
    attached.release().await?;
    let next = next.await?;
    let after = shown().await?;
    ensure!(after == texts("second"), "who came next is shown with {after:?}");
    next.release().await?;
    Ok(())
}

/// What was taken over for nobody is given back, long before the lease could have ended.
pub(super) async fn c28_an_attach_that_fails_or_is_cancelled_leaves_nothing(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, Arc::new(context.client().await?), context.key());
    let is_free = || async { Ok(ours.store.steps().inspect(&key).await?.holders.is_empty()) };
    let (handed, _) = detached(&ours, &key).await?;
    theirs.faults.next(Op::TakeOver, Fault::LoseReply, 1);
    let error = theirs.locker.attach(&handed, &once()).await.err().map(|error| error.kind());
    ensure!(error == Some(ErrorKind::Indeterminate), "a lost answer was told as {error:?}");
    eventually("what was taken over is given back after a lost answer", is_free).await?;
    ensure!(ours.locker.attach(&handed, &once()).await?.is_none(), "it was attached after that");
    let (handed, _) = detached(&ours, &key).await?;
    theirs.faults.next(Op::TakeOver, Fault::KeepReply, 1);
    let before = theirs.faults.count(Op::TakeOver, &key);
    let attaching = tokio::spawn({
        let theirs = Arc::clone(&theirs);
        async move { theirs.locker.attach(&handed, &once()).await }
    });
    eventually("it is taken over", || async { Ok(theirs.faults.count(Op::TakeOver, &key) > before) }).await?;
    attaching.abort();
    let _ = attaching.await;
    theirs.faults.heal();
    eventually("what was taken over is given back after it was cancelled", is_free).await
}

pub(super) async fn c28_an_attached_lock_is_renewed_and_learns_of_its_loss(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let (handed, _) = detached(&ours, &key).await?;
    let guard = theirs.locker.attach(&handed, &once()).await?;
    let guard = guard.ok_or_else(|| Failure("a detached lock was not attached".into()))?;
    guard.renew().await?;
    ours.admin.force_release(&key).await?;
    let error = guard.renew().await.err().map(|error| error.kind());
    ensure!(matches!(error, Some(ErrorKind::Lost(_))), "renewing a lock that was taken away said {error:?}");
    ours.finds_it_free(&key).await
}
