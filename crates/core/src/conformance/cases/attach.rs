//! Detached locks: one client attaches each.

use std::time::Duration;

use super::context::{TestContext, eventually, once, patient};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{ErrorKind, ReleaseOutcome};

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
    let detached =
        ours.take(&key, &patient().ttl(Duration::from_secs(600))).await?.detach().map_err(|error| error.kind());
    ensure!(detached == Err(ErrorKind::Unsupported), "without attach, a detach said {detached:?}");
    eventually("it is released", || async { Ok(ours.store.steps().inspect(&key).await?.holders.is_empty()) }).await
}

pub(super) async fn c28_of_two_who_attach_at_once_one_has_the_lock(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for (one, other) in [(&ours, &theirs), (&theirs, &theirs)] {
        for _ in 0..10 {
            let key = context.key();
            let handed = ours.take(&key, &patient()).await?.detach()?;
            let options = once();
            let attached = futures::join!(one.locker.attach(&handed, &options), other.locker.attach(&handed, &options));
            let ((Some(guard), None) | (None, Some(guard))) = (attached.0?, attached.1?) else {
                return Err(Failure("a detached lock was attached by both, or by neither".into()));
            };
            ensure!(guard.is_held(), "the one who attached it lost it: {:?}", guard.loss());
            ours.finds_it_held(&key).await?;
            ensure!(guard.release().await? == ReleaseOutcome::Released, "the attached lock was gone");
            ours.finds_it_free(&key).await?;
        }
    }
    Ok(())
}
