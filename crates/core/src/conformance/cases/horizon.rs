//! What a guard believes of its lease, beside what the store does about it.

use std::time::Duration;

use super::context::{MARGIN, TestContext, past, patient};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{Attempt, Claim, Clock, Guard, GuardMode, LeaseStatus, LockKey, Mode};

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

pub(super) async fn c05_nobody_is_granted_before_the_guard_gives_up(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let lease = uneven(&context);
    let guard = ours.take(&key, &patient().ttl(lease).renew(false)).await?;
    is_granted_only_after(&guard, &theirs, lease).await
}

pub(super) async fn c05_nobody_is_granted_before_a_renewed_guard_gives_up(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let lease = uneven(&context);
    let guard = ours.take(&key, &patient().ttl(lease).renew(false)).await?;
    tokio::time::sleep(lease / 2).await;
    guard.renew().await?;
    // From here on it is silent.
    is_granted_only_after(&guard, &theirs, lease).await
}

pub(super) async fn c05_no_writer_is_granted_before_a_reader_gives_up(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let lease = uneven(&context);
    let guard = ours.acquire_read(&key, &patient().ttl(lease).renew(false)).await?;
    let guard = guard.ok_or_else(|| Failure(format!("{key} could not be read")))?;
    tokio::time::sleep(lease / 2).await;
    guard.renew().await?;
    is_granted_only_after(&guard, &theirs, lease).await
}

pub(super) async fn c05_a_renewals_deadline_runs_from_before_the_request(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let (lease, delay) = (Duration::from_secs(20), Duration::from_millis(600));
    let guard = ours.take(&key, &patient().ttl(lease).renew(false)).await?;
    ours.faults.next(Op::Renew, Fault::Delay(delay), 1);
    guard.renew().await?;
    let left = guard.remaining();
    ensure!(left <= lease.saturating_sub(delay), "{left:?} left of {lease:?} after a reply {delay:?} late");
    Ok(())
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

pub(super) async fn c08_a_lease_lasts_as_long_for_every_client(context: TestContext) -> Verdict {
    let clock = Clock::system();
    clock.advance(Duration::from_secs(3600));
    let (ahead, on_time, key) = (context.client_at(clock).await?, context.client().await?, context.key());
    let brief = context.brief_ttl();
    lease_lasts_as_long_as_it_says(&ahead, &on_time, &key, brief).await?;
    lease_lasts_as_long_as_it_says(&on_time, &ahead, &key, brief).await
}
