use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::context::{SHORT, TestContext, patient, soon};
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Capability, Holder, LockKey, LossReason, Mode};

/// Everything that a listing shows, page by page.
pub(super) async fn listed(client: &TestClient, prefix: &str) -> Result<BTreeMap<LockKey, Vec<Holder>>, Failure> {
    let mut keys = BTreeMap::new();
    let mut after = None;
    // Far more pages than keys: a cursor that does not move on must not loop for ever.
    for _ in 0..10_000 {
        let page = client.admin.list(prefix, after.as_ref()).await?;
        for holders in page.keys {
            ensure!(!holders.holders.is_empty(), "{:?} is listed and held by nobody", holders.key);
            keys.insert(holders.key, holders.holders);
        }
        after = page.next;
        if after.is_none() {
            return Ok(keys);
        }
    }
    Err(Failure("the listing does not end".into()))
}

pub(super) async fn c25_inspect_shows_the_holder(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let lease = Duration::from_secs(30);
    let guard = ours.take(&key, &patient().ttl(lease).label("the tester").reason("a check")).await?;
    let seen = theirs.admin.inspect(&key).await?;
    let [holder] = &seen.holders[..] else { return Err(Failure(format!("{seen:?}"))) };
    ensure!(holder.mode == Mode::Exclusive, "{holder:?}");
    ensure!(holder.label.as_deref() == Some("the tester") && holder.reason.as_deref() == Some("a check"), "{holder:?}");
    ensure!(holder.token == guard.fencing_token(), "{holder:?} and {:?}", guard.fencing_token());
    let leased = context.subject.capabilities().has(Capability::Lease);
    let left = holder.remaining.is_some_and(|left| !left.is_zero() && left <= lease);
    ensure!(left || !leased, "{:?} left of {lease:?}", holder.remaining);
    Ok(())
}

pub(super) async fn c25_a_free_key_has_no_holders(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    ensure!(ours.admin.inspect(&key).await?.holders.is_empty(), "a fresh key has holders");
    ours.take(&key, &patient()).await?.release().await?;
    let seen = ours.admin.inspect(&key).await?;
    ensure!(seen.holders.is_empty(), "after its release: {seen:?}");
    Ok(())
}

pub(super) async fn c25_list_pages_through_held_keys(context: TestContext) -> Verdict {
    let (ours, theirs) = (context.client().await?, context.client().await?);
    let stem = context.key();
    let mut guards = Vec::new();
    let mut held = BTreeSet::new();
    for number in 0..150 {
        let key = LockKey::new(format!("{stem}/{number}"))?;
        guards.push(ours.take(&key, &patient()).await?);
        held.insert(key);
    }
    let seen: BTreeSet<_> = listed(&theirs, stem.as_str()).await?.into_keys().collect();
    ensure!(seen == held, "{} keys listed, {} held", seen.len(), held.len());
    drop(guards);
    Ok(())
}

pub(super) async fn c25_list_takes_the_prefix_literally(context: TestContext) -> Verdict {
    let ours = context.client().await?;
    let stem = context.key();
    let mut guards = Vec::new();
    for ending in ["%a", "_a", "*a", "?a", "[x]a", "\\a", "{a", "ba"] {
        guards.push(ours.take(&LockKey::new(format!("{stem}{ending}"))?, &patient()).await?);
    }
    for guard in &guards {
        let seen = listed(&ours, guard.key().as_str()).await?;
        ensure!(seen.keys().eq([guard.key()]), "{:?} lists {seen:?}", guard.key());
    }
    let all = listed(&ours, stem.as_str()).await?;
    ensure!(all.len() == guards.len(), "{stem} lists {all:?}");
    Ok(())
}

pub(super) async fn c25_force_release_frees_the_key_and_tells_the_holder(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient().ttl(SHORT).label("the tester")).await?;
    let taken = theirs.admin.force_release(&key).await?;
    ensure!(taken.holders.len() == 1 && taken.holders[0].label.as_deref() == Some("the tester"), "{taken:?}");
    let successor = theirs.take(&key, &patient()).await?;
    let reason = soon("the holder is told", guard.lost()).await?;
    ensure!(matches!(reason, LossReason::ForceReleased | LossReason::Stolen), "{reason:?}");
    drop(guard);
    successor.renew().await?;
    drop(successor);
    let nobody = theirs.admin.force_release(&context.key()).await?;
    ensure!(nobody.holders.is_empty(), "a free key was taken from {nobody:?}");
    Ok(())
}

pub(super) async fn c25_the_holder_learns_that_the_release_was_forced(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    theirs.admin.force_release(&key).await?;
    let reason = soon("the holder is told", guard.lost()).await?;
    ensure!(reason == LossReason::ForceReleased, "{reason:?}");
    Ok(())
}
