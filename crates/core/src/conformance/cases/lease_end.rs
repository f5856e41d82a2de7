//! What a guard believes of its lease, beside what the store does about it.

use std::time::Duration;

use super::context::{MARGIN, TestContext, past, patient};
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Capability, Claim, Clock, Guard, GuardMode, LeaseStatus, LockKey, Mode, ReleaseOutcome};

/// A lease that is not a whole number of seconds, which a store may round to.
fn uneven(context: &TestContext) -> Duration {
    context.brief_ttl() + Duration::from_millis(1400)
}

/// Asks the store for the key until it is granted, which must be after the guard has given up hope, and soon.
async fn is_granted_only_after<M: GuardMode>(guard: &Guard<M>, next: &TestClient, lease: Duration) -> Verdict {
    let clock = Clock::system();
    let limit = clock.now().plus(lease + MARGIN);
    loop {
        let claim = Claim::new(guard.key(), Mode::Exclusive, lease);
        if let Attempt::Granted { epoch } = next.store.try_acquire(&claim).await? {
            let (held, left) = (guard.is_held(), guard.remaining());
            next.store.release(&claim.grant(epoch)).await?;
            ensure!(!held, "another was granted while the guard had {left:?} left of {lease:?}");
            return Ok(());
        }
        ensure!(clock.now() < limit, "a lease of {lease:?} still stands in the way {MARGIN:?} after its end");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// With half of its lease over. After that it is silent.
async fn is_renewed_once<M: GuardMode>(guard: &Guard<M>, lease: Duration) -> Verdict {
    tokio::time::sleep(lease / 2).await;
    Ok(guard.renew().await?)
}

pub(super) async fn c05_nobody_is_granted_before_the_guard_gives_up(context: TestContext) -> Verdict {
    let (ours, theirs, lease) = (context.client().await?, context.client().await?, uneven(&context));
    let options = patient().ttl(lease).renew(false);
    let granted = async || ours.take(&context.key(), &options).await;
    let is_read = async {
        if !context.subject.capabilities().has(Capability::Shared) {
            return Ok(());
        }
        let key = context.key();
        let guard = ours.acquire_read(&key, &options).await?;
        let guard = guard.ok_or_else(|| Failure(format!("{key} could not be read")))?;
        is_renewed_once(&guard, lease).await?;
        is_granted_only_after(&guard, &theirs, lease).await
    };
    let is_renewed = async {
        let guard = granted().await?;
        is_renewed_once(&guard, lease).await?;
        is_granted_only_after(&guard, &theirs, lease).await
    };
    let is_not_renewed = async { is_granted_only_after(&granted().await?, &theirs, lease).await };
    futures::try_join!(is_not_renewed, is_renewed, is_read).map(|_| ())
}

async fn lease_lasts_as_long_as_it_says(from: &TestClient, to: &TestClient, key: &LockKey, brief: Duration) -> Verdict {
    let lease = Duration::from_secs(600);
    let grant = from.claims(key, Mode::Exclusive, lease).await?;
    to.finds_it_held(key).await?;
    to.sees_left(key, lease).await?;
    let held = from.store.renew(&grant, lease).await?;
    ensure!(held == LeaseStatus::Held, "the renewal said {held:?}");
    to.finds_it_held(key).await?;
    from.store.release(&grant).await?;
    from.claims_briefly(key, Mode::Exclusive, brief).await?;
    to.take(key, &past(brief)).await?.release().await?;
    Ok(())
}

pub(super) async fn c08_a_client_an_hour_off_behaves_like_any_other(context: TestContext) -> Verdict {
    let clock = Clock::system();
    clock.advance(Duration::from_secs(3600));
    let (ahead, on_time, key) = (context.client_at(clock).await?, context.client().await?, context.key());
    let leases = context.subject.capabilities().has(Capability::Lease);
    for [one, other] in [[&ahead, &on_time], [&on_time, &ahead]] {
        let guard = one.take(&key, &patient()).await?;
        other.finds_it_held(&key).await?;
        ensure!(guard.is_held(), "a client that is off, or stands beside one, lost its lock");
        guard.release().await?;
        if leases {
            lease_lasts_as_long_as_it_says(one, other, &key, context.brief_ttl()).await?;
        }
    }
    Ok(())
}

pub(super) async fn c05_a_stopped_holder_learns_of_its_loss_first(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let mut theirs = context.held_elsewhere(&key).await?;
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
