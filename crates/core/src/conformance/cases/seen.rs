//! What an operator is shown.

use std::time::Duration;

use super::admin::listed;
use super::context::{SHORT, TestContext, past, patient, soon};
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Claim, LockKey, LossReason, Mode, ReadGuard};

const LEASE: Duration = Duration::from_secs(60);

async fn reads(client: &TestClient, key: &LockKey, label: &str) -> Result<ReadGuard, Failure> {
    let guard = client.acquire_read(key, &patient().ttl(SHORT).label(label).reason(format!("{label}'s"))).await?;
    guard.ok_or_else(|| Failure(format!("{key} could not be read")))
}

pub(super) async fn c25_held_since_is_when_the_lease_was_granted(context: TestContext) -> Verdict {
    /// Far more than a clock and its epochs differ.
    const PAUSE: Duration = Duration::from_millis(200);
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let since = async || {
        let seen = theirs.admin.inspect(&key).await?;
        let listed = listed(&theirs, key.as_str()).await?.remove(&key).unwrap_or_default();
        let [holder] = &seen.holders[..] else { return Err(Failure(format!("{seen:?}"))) };
        ensure!(listed.first().map(|listed| listed.granted_at) == Some(holder.granted_at), "{seen:?} and {listed:?}");
        Ok(holder.granted_at)
    };
    let mut grants = Vec::new();
    for _ in 0..2 {
        let guard = ours.take(&key, &patient().ttl(LEASE)).await?;
        let Some(granted) = since().await? else { return Ok(()) };
        tokio::time::sleep(PAUSE).await;
        guard.renew().await?;
        let renewed = since().await?;
        ensure!(renewed == Some(granted), "held since {granted:?}, and after a renewal since {renewed:?}");
        grants.push(granted);
        guard.release().await?;
    }
    let apart = grants[1].duration_since(grants[0]).unwrap_or_default();
    ensure!(apart >= PAUSE / 2, "two leases {PAUSE:?} and more apart were granted {apart:?} apart");
    Ok(())
}

pub(super) async fn c25_who_waits_in_the_store_is_counted(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let waiters = async || Ok::<_, Failure>(theirs.admin.inspect(&key).await?.waiters);
    ensure!(waiters().await? == Some(0), "nobody waits for a free key: {:?}", waiters().await?);
    ours.claims(&key, Mode::Exclusive, LEASE).await?;
    let mut claims = Vec::new();
    for count in 0..=2 {
        let (inspected, page) = (waiters().await?, theirs.admin.list(key.as_str(), None).await?);
        ensure!(inspected == Some(count), "{count} wait, and {inspected:?} are counted");
        // A store that scans may need another page.
        let listed = page.keys.first().map(|held| held.waiters);
        ensure!(listed.is_none_or(|listed| listed == Some(count)), "{count} wait, and {listed:?} are listed");
        let claim = Claim { waits: true, ..Claim::new(&key, Mode::Exclusive, LEASE) };
        let attempt = ours.store.try_acquire(&claim).await?;
        ensure!(matches!(attempt, Attempt::Queued { .. }), "a claim that waits was told {attempt:?}");
        claims.push(claim);
    }
    ours.store.release(&claims[1].grant(None)).await?;
    ensure!(waiters().await? == Some(2), "one of three gave up, and {:?} are counted", waiters().await?);
    Ok(())
}

pub(super) async fn c25_force_release_frees_readers_too(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guards = [reads(&ours, &key, "one").await?, reads(&theirs, &key, "two").await?];
    let taken = context.client().await?.admin.force_release(&key).await?.holders;
    ensure!(taken.len() == guards.len(), "taken by force from {taken:?}");
    let writer = ours.take(&key, &past(Duration::ZERO)).await?;
    for guard in &guards {
        let reason = soon("the reader is told", guard.lost()).await?;
        ensure!(matches!(reason, LossReason::ForceReleased | LossReason::Stolen), "{reason:?}");
    }
    ensure!(writer.is_held(), "the writer was lost with the readers: {:?}", writer.loss());
    Ok(())
}
