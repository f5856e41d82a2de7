//! Steps of two requests to the store, of which the second does not ask whether what the first saw is still true.

use std::time::Duration;

use leasehold_core::{Attempt, Backend, Claim, FencingToken, LeaseStatus, LockKey, Renewal, Result};

use crate::suite_catches::catches;
use crate::suite_catches::double::{self, Client};

catches! {
    RenewsInTwoRequests double::renews(renews),
    ClaimsAnEndedLeaseInTwoRequests double::claims(claims_what_has_ended)
        => c01_of_claims_at_one_moment_one_is_granted,
}

/// The first request, and the way to the second.
async fn sees(client: &Client, key: &LockKey, epoch: Option<u64>) -> Result<bool> {
    let seen = client.holders(key).await?;
    tokio::time::sleep(Duration::from_millis(rand::random_range(1..=3))).await;
    Ok(seen.iter().any(|holder| holder.token.map(FencingToken::epoch) == epoch))
}

/// The second request.
async fn writes(client: &Client, claim: &Claim) -> Result<Attempt> {
    client.store.force_release(&claim.key, None).await?;
    client.claim_in_time(claim).await
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

async fn claims_what_has_ended(client: Client, claim: Claim) -> Result<Attempt> {
    if client.granted(&claim.key).is_empty() || !client.holders(&claim.key).await?.is_empty() {
        return client.claim(&claim).await;
    }
    sees(&client, &claim.key, None).await?;
    writes(&client, &claim).await
}
