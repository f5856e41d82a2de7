//! Readers beside writers, broken.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{
    Attempt, Backend, Claim, FencingToken, GrantRef, LeaseStatus, LockKey, Mode, OwnerId, Renewal, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, asks, claims, releases, renews};

catches! {
    LooksForWritersBeforeItInserts claims(looks_for_writers_before_it_inserts),
    StoresFortyReaders claims(stores_forty_readers) => c01_each_of_many_readers_excludes_writers,
    ReadersExcludeReaders asks(|claim| claim.mode = Mode::Exclusive),
    OneReaderRenewsAll renews(one_reader_renews_all),
    TryLeavesAMark try_leaves_a_mark(),
    CountsReadersTwice claims(counts_readers_twice) => c02_a_claim_is_idempotent_for_its_owner,
    StrangersReleaseReaders releases(strangers_release_readers) => c02_a_stranger_can_neither_renew_nor_release,
}

/// Grants every claim: each under a key of its own.
async fn beside(client: &Client, claim: &Claim) -> Result<Attempt> {
    let key = LockKey::new(format!("beside-{}", &claim.owner.to_hex()))?;
    client.claim(&Claim { key, ..claim.clone() }).await
}

async fn modes(client: &Client, key: &LockKey) -> Result<Vec<Mode>> {
    Ok(client.holders(key).await?.into_iter().map(|holder| holder.mode).collect())
}

/// Readers insert a row of their own after a look at the writer's, with no lock on a row that both have in common.
async fn looks_for_writers_before_it_inserts(client: Client, claim: Claim) -> Result<Attempt> {
    if claim.mode == Mode::Exclusive || modes(&client, &claim.key).await?.contains(&Mode::Exclusive) {
        return client.claim(&claim).await;
    }
    tokio::time::sleep(Duration::from_millis(2)).await;
    match client.claim(&claim).await? {
        Attempt::Busy { .. } => beside(&client, &claim).await,
        attempt => Ok(attempt),
    }
}

/// Grants what no longer fits into the entry of the key.
async fn stores_forty_readers(client: Client, claim: Claim) -> Result<Attempt> {
    let readers = modes(&client, &claim.key).await?.iter().filter(|mode| **mode == Mode::Shared).count();
    if claim.mode == Mode::Shared && readers >= 40 {
        return Ok(Attempt::Granted { epoch: Some(FencingToken::epoch_at(client.clock.since_1970())) });
    }
    client.claim(&claim).await
}

/// One lease for all readers, which each of them prolongs.
async fn one_reader_renews_all(client: Client, renewals: Vec<Renewal>) -> Vec<Result<LeaseStatus>> {
    for Renewal { grant, ttl } in renewals.iter().filter(|renewal| renewal.grant.mode == Mode::Shared) {
        let readers = client.granted(&grant.key).into_iter().filter(|grant| grant.mode == Mode::Shared);
        client.renew(&readers.map(|grant| Renewal { grant, ttl: *ttl }).collect::<Vec<_>>()).await;
    }
    client.renew(&renewals).await
}

/// A writer that is told that the key is busy holds the next reader back, although it does not wait.
fn try_leaves_a_mark() -> Double {
    let marks: Arc<Mutex<HashSet<LockKey>>> = Arc::default();
    claims(move |client: Client, claim: Claim| {
        let marks = Arc::clone(&marks);
        async move {
            if claim.mode == Mode::Shared && marks.lock().unwrap().remove(&claim.key) {
                return Ok(Attempt::Busy { retry_in: None });
            }
            let attempt = client.claim(&claim).await?;
            if claim.mode == Mode::Exclusive && !claim.waits && matches!(attempt, Attempt::Busy { .. }) {
                marks.lock().unwrap().insert(claim.key);
            }
            Ok(attempt)
        }
    })
}

/// A counter that every claim increments, also one that is repeated.
async fn counts_readers_twice(client: Client, claim: Claim) -> Result<Attempt> {
    let before = modes(&client, &claim.key).await?.len();
    let attempt = client.claim(&claim).await?;
    if claim.mode == Mode::Shared && modes(&client, &claim.key).await?.len() == before {
        let another = Claim { owner: OwnerId::random(), ..claim };
        // Where the key was granted a moment ago, epochs may be ahead of the clock for another moment.
        while !matches!(client.claim(&another).await?, Attempt::Granted { .. }) {
            tokio::task::yield_now().await;
        }
    }
    Ok(attempt)
}

/// A counter of readers that anybody's release decrements.
async fn strangers_release_readers(client: Client, grant: GrantRef) -> Result<LeaseStatus> {
    if grant.mode == Mode::Shared && modes(&client, &grant.key).await? == [Mode::Shared] {
        client.store.force_release(&grant.key, None).await?;
        return Ok(LeaseStatus::Held);
    }
    client.store.release(&grant).await
}
