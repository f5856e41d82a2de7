use std::sync::Arc;
use std::time::Duration;

use futures::future::{join_all, try_join_all};

use super::context::{TestContext, past, patient};
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Capability, Claim, Clock, FencingToken, GuardMode, Mode};

pub(super) fn token<M: GuardMode>(guard: &crate::Guard<M>) -> Result<FencingToken, Failure> {
    guard.fencing_token().ok_or_else(|| Failure("fencing is claimed and the guard has no token".into()))
}

pub(super) async fn c04_tokens_grow_across_release(context: TestContext) -> Verdict {
    let (key, mut newest) = (context.key(), FencingToken::from(0));
    // Also of a client that has just connected, after another has closed.
    for _ in 0..3 {
        let client = context.client().await?;
        for _ in 0..2 {
            let guard = client.take(&key, &patient()).await?;
            ensure!(token(&guard)? > newest, "{:?} after {newest:?}", token(&guard)?);
            newest = token(&guard)?;
            guard.release().await?;
        }
        client.store.close().await;
    }
    Ok(())
}

pub(super) async fn c04_tokens_grow_across_expiry(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let stale = ours.take(&key, &patient().ttl(context.brief_ttl()).renew(false)).await?;
    let successor = theirs.take(&key, &past(context.brief_ttl())).await?;
    ensure!(token(&successor)? > token(&stale)?, "{:?} after {:?}", token(&successor)?, token(&stale)?);
    Ok(())
}

/// A store that forgot everything (a restart without persistence, a fail-over to an empty node) goes on above what it
/// has given only if it begins at its clock.
pub(super) async fn c04_an_empty_store_begins_at_its_clock(context: TestContext) -> Verdict {
    const A_DAY: Duration = Duration::from_secs(24 * 3600);
    let empty = TestContext::new_namespace();
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

/// None is given twice. Epochs that outran the clock would come again after the store forgot them. The store's clock is not known here, but how much
/// time has passed is: a new key begins at that clock, or a millisecond ahead of it.
pub(super) async fn c04_epochs_grow_no_faster_than_the_clock(context: TestContext) -> Verdict {
    const FOR: Duration = Duration::from_millis(500);
    // For clocks of several servers that differ.
    const SLACK: Duration = Duration::from_millis(100);
    let (clients, key) = (context.clients(8, 4).await?, context.key());
    let clock = Clock::system();
    let begun = clock.now();
    let claim = || Claim::new(&key, Mode::Exclusive, Duration::from_secs(60));
    let claim_and_release = async |client: &TestClient| {
        let claim = claim();
        let Attempt::Granted { epoch } = client.store.try_acquire(&claim).await? else { return Ok(None) };
        client.store.release(&claim.grant(epoch)).await?;
        Ok::<_, Failure>(epoch)
    };
    let first = claim_and_release(&clients[0]).await?;
    let busy = async |client: &Arc<TestClient>| {
        let mut given = Vec::new();
        while clock.now().since(begun) < FOR {
            given.extend(claim_and_release(client).await?);
            tokio::task::yield_now().await;
        }
        ensure!(given.is_sorted_by(|earlier, later| earlier < later), "one client got {given:?}");
        Ok::<_, Failure>(given)
    };
    let mut given = try_join_all(clients.iter().map(busy)).await?.concat();
    given.sort_unstable();
    ensure!(given.is_sorted_by(|one, next| one < next), "an epoch was given twice: {given:?}");
    let newest = given.pop();
    let passed = FencingToken::epoch_at(clock.now().since(begun) + SLACK) + FencingToken::MOST_AHEAD;
    let latest = first.map(|first| first + passed);
    ensure!(newest <= latest, "{newest:?} was given, and the clock allowed {latest:?}");
    // Nor do claims that are refused use them up.
    let held = clients[0].claims(&key, Mode::Exclusive, Duration::from_secs(60)).await?;
    let waits = !context.subject.capabilities().has(Capability::Queue);
    let refused = (0..400).map(|number| {
        let claim = Claim { waits, ..claim() };
        let client = &clients[number % clients.len()];
        async move { client.store.steps().try_acquire(&claim).await }
    });
    join_all(refused).await;
    clients[0].store.release(&held).await?;
    let next = clients[0].store.steps().try_acquire(&claim()).await?;
    ensure!(next != Attempt::AHEAD_OF_THE_CLOCK, "claims that were refused used up the epochs of the key");
    Ok(())
}
