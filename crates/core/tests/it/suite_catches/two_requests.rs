//! Steps of two requests to the store, of which the second does not ask whether what the first saw is still true.

use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{Attempt, Backend, Claim, FencingToken, GrantRef, Holders, LeaseStatus, LockKey, Renewal, Result};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, Downgrades, Forces, Releases, Renews};

catches! {
    RenewsInTwoRequests Renews(renews),
    ReleasesInTwoRequests Releases(releases),
    ForcesInTwoRequests Forces(forces),
    DowngradesInTwoRequests Downgrades(downgrades),
    ClaimsAnEndedLeaseInTwoRequests Claims::default() => c01_of_claims_at_one_moment_one_is_granted,
}

/// The first request, and the way to the second.
async fn sees(client: &Client, key: &LockKey, epoch: Option<u64>) -> Result<bool> {
    let seen = client.store.inspect(key).await?.holders;
    tokio::time::sleep(Duration::from_millis(rand::random_range(1..=3))).await;
    Ok(seen.iter().any(|holder| holder.token.map(FencingToken::epoch) == epoch))
}

/// The second request.
async fn writes(client: &Client, claim: &Claim) -> Result<Attempt> {
    loop {
        client.store.force_release(&claim.key, None).await?;
        match client.store.try_acquire(claim).await? {
            Attempt::AHEAD_OF_THE_CLOCK => tokio::time::sleep(Duration::from_millis(1)).await,
            answer => return Ok(answer),
        }
    }
}

async fn renews(client: Client, renewals: Vec<Renewal>) -> Vec<Result<LeaseStatus>> {
    let mut answers = Vec::new();
    for Renewal { grant, ttl } in renewals {
        let claim = Claim { owner: grant.owner, ..Claim::new(&grant.key, grant.mode, ttl) };
        answers.push(match sees(&client, &grant.key, grant.epoch).await {
            Ok(true) => writes(&client, &claim).await.map(|_| LeaseStatus::Held),
            Ok(false) => Ok(LeaseStatus::NotHeld),
            Err(error) => Err(error),
        });
    }
    answers
}

async fn releases(client: Client, grant: GrantRef) -> Result<LeaseStatus> {
    if grant.epoch.is_none() {
        return client.store.release(&grant).await;
    }
    if !sees(&client, &grant.key, grant.epoch).await? {
        return Ok(LeaseStatus::NotHeld);
    }
    client.store.force_release(&grant.key, None).await?;
    Ok(LeaseStatus::Held)
}

async fn downgrades(client: Client, (writer, claim): (GrantRef, Claim)) -> Result<Attempt> {
    if !sees(&client, &writer.key, writer.epoch).await? {
        return client.store.downgrade(&writer, &claim).await;
    }
    writes(&client, &claim).await
}

async fn forces(client: Client, (key, only): (LockKey, Option<u64>)) -> Result<Holders> {
    if only.is_some() && !sees(&client, &key, only).await? {
        return Ok(Holders::new(&key, Vec::new()));
    }
    client.store.force_release(&key, None).await
}

/// Knows the keys that had a lease.
#[derive(Default)]
struct Claims(Mutex<HashSet<LockKey>>);

#[async_trait]
impl Double for Claims {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let is_new = self.0.lock().unwrap().insert(claim.key.clone());
        if is_new || !client.store.inspect(&claim.key).await?.holders.is_empty() {
            return client.store.try_acquire(claim).await;
        }
        sees(client, &claim.key, None).await?;
        writes(client, claim).await
    }
}
