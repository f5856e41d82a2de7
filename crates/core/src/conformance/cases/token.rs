use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;

use super::context::{TestContext, past, patient};
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Claim, Clock, FencingToken, GuardMode, Mode, OwnerId};

pub(super) fn token<M: GuardMode>(guard: &crate::Guard<M>) -> Result<FencingToken, Failure> {
    guard.fencing_token().ok_or_else(|| Failure("fencing is claimed and the guard has no token".into()))
}

pub(super) async fn c01_a_queue_position_names_the_epoch_of_the_holder(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = theirs.take(&key, &patient()).await?;
    let before = token(&guard)?;
    let claim = Claim { waits: true, ..Claim::new(&key, Mode::Exclusive, Duration::from_secs(3600)) };
    for _ in 0..2 {
        let Attempt::Queued { epoch_of_holder: Some(epoch), .. } = ours.store.try_acquire(&claim).await? else {
            return Err(Failure("a claim that waits was not told the number of who holds the key".into()));
        };
        ensure!(FencingToken::of_epoch(epoch) == before, "{epoch} was told, and {before:?} is held");
    }
    guard.release().await?;
    let Attempt::Granted { epoch: Some(epoch) } = ours.store.try_acquire(&claim).await? else {
        return Err(Failure("the first in the queue was not granted the key when it became free".into()));
    };
    ensure!(FencingToken::of_epoch(epoch) > before, "{epoch} was granted after {before:?}");
    ours.store.release(&claim.grant(Some(epoch))).await?;
    Ok(())
}

pub(super) async fn c04_tokens_grow_across_release(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let mut newest = FencingToken::from(0);
    for client in [&ours, &ours, &theirs, &theirs, &ours] {
        let guard = client.take(&key, &patient()).await?;
        ensure!(token(&guard)? > newest, "{:?} after {newest:?}", token(&guard)?);
        newest = token(&guard)?;
        guard.release().await?;
    }
    Ok(())
}

pub(super) async fn c04_tokens_grow_across_expiry(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let stale = ours.take(&key, &context.brief()).await?;
    let successor = theirs.take(&key, &past(context.brief_ttl())).await?;
    ensure!(token(&successor)? > token(&stale)?, "{:?} after {:?}", token(&successor)?, token(&stale)?);
    Ok(())
}

pub(super) async fn c04_tokens_grow_across_force_release(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let old = ours.take(&key, &patient()).await?;
    theirs.admin.force_release(&key).await?;
    let new = theirs.take(&key, &patient()).await?;
    ensure!(token(&new)? > token(&old)?, "{:?} after {:?}", token(&new)?, token(&old)?);
    Ok(())
}

pub(super) async fn c04_tokens_grow_across_reconnect(context: TestContext) -> Verdict {
    let key = context.key();
    let mut newest = FencingToken::from(0);
    for _ in 0..3 {
        let client = context.client().await?;
        let guard = client.take(&key, &patient()).await?;
        ensure!(token(&guard)? > newest, "{:?} after {newest:?}", token(&guard)?);
        newest = token(&guard)?;
        guard.release().await?;
        client.store.close().await;
    }
    Ok(())
}

pub(super) async fn c04_concurrent_tokens_are_unique_and_in_order(context: TestContext) -> Verdict {
    let key = context.key();
    let issued = Arc::new(std::sync::Mutex::new(Vec::new()));
    let mut tasks = tokio::task::JoinSet::new();
    for client in context.clients(9, 3).await? {
        let (key, issued) = (key.clone(), Arc::clone(&issued));
        tasks.spawn(async move {
            for _ in 0..5 {
                let guard = client.take(&key, &patient()).await?;
                // Written down while held, so the order of the list is the order of the grants.
                issued.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(token(&guard)?);
                guard.release().await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    let issued = issued.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    ensure!(issued.len() == 45, "{} tokens", issued.len());
    ensure!(issued.is_sorted_by(|a, b| a < b), "not strictly growing: {issued:?}");
    Ok(())
}

pub(super) async fn c04_readers_have_tokens_too(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let writer = ours.take(&key, &patient()).await?;
    let mut newest = token(&writer)?;
    writer.release().await?;
    let mut readers = Vec::new();
    for client in [&ours, &theirs, &ours, &theirs] {
        let reader = client.acquire_read(&key, &patient()).await?;
        let reader = reader.ok_or_else(|| Failure("a reader was refused beside readers".into()))?;
        ensure!(token(&reader)? > newest, "{:?} after {newest:?}", token(&reader)?);
        newest = token(&reader)?;
        readers.push(reader);
    }
    for reader in readers {
        reader.release().await?;
    }
    let writer = theirs.take(&key, &patient()).await?;
    ensure!(token(&writer)? > newest, "{:?} after {newest:?}", token(&writer)?);
    Ok(())
}

pub(super) async fn c04_tokens_fit_into_53_bits(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    ensure!(token(&guard)?.get() < 1 << 53, "{:?} does not survive JSON and Lua", token(&guard)?);
    Ok(())
}

/// A store that forgot everything (a restart without persistence, a fail-over to an empty node) goes on above what it
/// has given only if it begins at its clock.
pub(super) async fn c04_an_empty_store_begins_at_its_clock(context: TestContext) -> Verdict {
    const A_DAY: Duration = Duration::from_secs(24 * 3600);
    let empty = format!("{}-{}", TestContext::namespace(), OwnerId::random().to_hex());
    let ours = context.client_in(&empty, Clock::system()).await?;
    let guard = ours.take(&context.key(), &patient()).await?;
    let epoch = token(&guard)?.epoch();
    let now = Clock::system().since_1970();
    let [least, most] = [now.saturating_sub(A_DAY), now.saturating_add(A_DAY)].map(FencingToken::epoch_at);
    let today = least..=most;
    ensure!(
        today.contains(&epoch),
        "the first epoch of an empty store is {epoch}, and its clock says one of {today:?}"
    );
    Ok(())
}

/// Epochs that outran the clock would come again after the store forgot them. The store's clock is not known here, but how much
/// time has passed is: a new key begins at that clock, or a millisecond ahead of it.
pub(super) async fn c04_epochs_grow_no_faster_than_the_clock(context: TestContext) -> Verdict {
    const FOR: Duration = Duration::from_millis(500);
    // For clocks of several servers that differ.
    const SLACK: Duration = Duration::from_millis(100);
    let (clients, key) = (context.clients(8, 8).await?, context.key());
    let clock = Clock::system();
    let begun = clock.now();
    let claim_and_release = async |client: &TestClient| {
        let claim = Claim::new(&key, Mode::Exclusive, Duration::from_secs(60));
        let Attempt::Granted { epoch } = client.store.try_acquire(&claim).await? else { return Ok(None) };
        client.store.release(&claim.grant(epoch)).await?;
        Ok::<_, Failure>(epoch)
    };
    let first = claim_and_release(&clients[0]).await?;
    let busy = async |client: &Arc<TestClient>| {
        let mut newest = None;
        while clock.now().since(begun) < FOR {
            newest = claim_and_release(client).await?.max(newest);
            tokio::task::yield_now().await;
        }
        Ok::<_, Failure>(newest)
    };
    let newest = try_join_all(clients.iter().map(busy)).await?.into_iter().max().flatten();
    let passed = FencingToken::epoch_at(clock.now().since(begun) + SLACK) + FencingToken::MOST_AHEAD;
    let latest = first.map(|first| first + passed);
    ensure!(newest <= latest, "{newest:?} was given, and the clock allowed {latest:?}");
    Ok(())
}
