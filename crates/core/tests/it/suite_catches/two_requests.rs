//! Steps of two requests to the store, of which the second does not ask whether what the first saw is still true.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{Attempt, Backend, Claim, FencingToken, GrantRef, Holders, LeaseStatus, LockKey, Renewal, Result};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};

catches! {
    RenewsInTwoRequests In::two(Step::Renew),
    ReleasesInTwoRequests In::two(Step::Release),
    ForcesInTwoRequests In::two(Step::Force),
    DowngradesInTwoRequests In::two(Step::Downgrade),
    ClaimsAnEndedLeaseInTwoRequests In::two(Step::Claim) => c01_of_claims_at_one_moment_one_is_granted,
}

#[derive(PartialEq, Eq)]
enum Step {
    Claim,
    Renew,
    Release,
    Force,
    Downgrade,
}

struct In {
    step: Step,
    requests: AtomicU64,
    /// The keys that had a lease.
    known: Mutex<HashSet<LockKey>>,
}

impl In {
    fn two(step: Step) -> Self {
        Self { step, requests: AtomicU64::new(0), known: Mutex::default() }
    }

    /// The first request, and the way to the second.
    async fn sees(&self, client: &Client, key: &LockKey, epoch: Option<u64>) -> Result<bool> {
        let seen = client.store.inspect(key).await?.holders;
        let way = 1 + self.requests.fetch_add(1, Ordering::Relaxed) % 3;
        tokio::time::sleep(Duration::from_millis(way)).await;
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
}

#[async_trait]
impl Double for In {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let is_new = self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(claim.key.clone());
        if self.step != Step::Claim || is_new || !client.store.inspect(&claim.key).await?.holders.is_empty() {
            return client.store.try_acquire(claim).await;
        }
        self.sees(client, &claim.key, None).await?;
        Self::writes(client, claim).await
    }

    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        if self.step != Step::Renew {
            return client.renew(renewals).await;
        }
        let mut answers = Vec::new();
        for Renewal { grant, ttl } in renewals {
            let claim = Claim { owner: grant.owner, ..Claim::new(&grant.key, grant.mode, *ttl) };
            answers.push(match self.sees(client, &grant.key, grant.epoch).await {
                Ok(true) => Self::writes(client, &claim).await.map(|_| LeaseStatus::Held),
                Ok(false) => Ok(LeaseStatus::NotHeld),
                Err(error) => Err(error),
            });
        }
        answers
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        if self.step != Step::Release || grant.epoch.is_none() {
            return client.store.release(grant).await;
        }
        if !self.sees(client, &grant.key, grant.epoch).await? {
            return Ok(LeaseStatus::NotHeld);
        }
        client.store.force_release(&grant.key, None).await?;
        Ok(LeaseStatus::Held)
    }

    async fn downgrade(&self, client: &Client, writer: &GrantRef, claim: &Claim) -> Result<Attempt> {
        if self.step != Step::Downgrade || !self.sees(client, &writer.key, writer.epoch).await? {
            return client.store.downgrade(writer, claim).await;
        }
        Self::writes(client, claim).await
    }

    async fn force_release(&self, client: &Client, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        if self.step != Step::Force || only.is_none() {
            return client.store.force_release(key, only).await;
        }
        if !self.sees(client, key, only).await? {
            return Ok(Holders::new(key, Vec::new()));
        }
        client.store.force_release(key, None).await
    }
}
