//! Readers beside writers, broken.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Claim, Cursor, FencingToken, GrantRef, Holders, LeaseStatus, LockKey, Mode, OwnerId, Page,
    Renewal, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};
use crate::suite_catches::exclusive::TokensOfTheClockAlone;

catches! {
    LooksForWritersBeforeItInserts LooksForWritersBeforeItInserts,
    LetsWritersInLate LetsWritersInLate,
    WritersPassReaders WritersPassReaders,
    StoresFortyReaders StoresFortyReaders => c01_each_of_many_readers_excludes_writers,
    ReadersExcludeReaders ReadersExcludeReaders,
    ForgetsReaders ForgetsReaders,
    OneLeaseForAllReaders OneLeaseForAllReaders,
    OneReaderRenewsAll OneReaderRenewsAll::default(),
    DrawsEarly DrawsEarly::default(),
    TryLeavesAMark TryLeavesAMark::default(),
    ListsWritersOnly ListsWritersOnly,
    OneReaderReleasesAll OneReaderReleasesAll,
    CountsReadersTwice CountsReadersTwice => c02_a_claim_is_idempotent_for_its_owner,
    StrangersReleaseReaders StrangersReleaseReaders => c02_a_stranger_can_neither_renew_nor_release,
    StaleReadersReleaseWriters StaleReadersReleaseWriters,
    ReadersShareAToken TokensOfTheClockAlone(Mode::Shared),
    ReadersHaveTheTokenOfTheWriter ReadersHaveTheTokenOfTheWriter,
    ReadersGetHalfTheLease ReadersGetHalfTheLease => c05_nobody_is_granted_before_the_guard_gives_up,
    ForceSparesReaders ForceSparesReaders,
    ShowsOneReader ShowsOneReader,
    ForgetsReadersReasons ForgetsReadersReasons,
    ShowsDeadReaders ShowsDeadReaders,
}

/// Grants every claim: each under a key of its own.
async fn beside(client: &Client, claim: &Claim) -> Result<Attempt> {
    let key = LockKey::new(format!("beside-{}", &claim.owner.to_hex()))?;
    client.store.try_acquire(&Claim { key, ..claim.clone() }).await
}

async fn modes(client: &Client, key: &LockKey) -> Result<Vec<Mode>> {
    Ok(client.store.inspect(key).await?.holders.into_iter().map(|holder| holder.mode).collect())
}

/// Readers insert a row of their own after a look at the writer's, with no lock on a row that both have in common.
struct LooksForWritersBeforeItInserts;

#[async_trait]
impl Double for LooksForWritersBeforeItInserts {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        if claim.mode == Mode::Exclusive {
            return client.store.try_acquire(claim).await;
        }
        if modes(client, &claim.key).await?.contains(&Mode::Exclusive) {
            return client.store.try_acquire(claim).await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        match client.store.try_acquire(claim).await? {
            Attempt::Busy { .. } => beside(client, claim).await,
            attempt => Ok(attempt),
        }
    }
}

/// The same for writers, who look for readers.
struct LetsWritersInLate;

#[async_trait]
impl Double for LetsWritersInLate {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let free = modes(client, &claim.key).await?.is_empty();
        if claim.mode == Mode::Exclusive {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        match client.store.try_acquire(claim).await? {
            Attempt::Busy { .. } if free => beside(client, claim).await,
            attempt => Ok(attempt),
        }
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        client.store.release(grant).await.map(|_| LeaseStatus::Held)
    }
}

struct WritersPassReaders;

#[async_trait]
impl Double for WritersPassReaders {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let readers = modes(client, &claim.key).await?.contains(&Mode::Shared);
        if claim.mode == Mode::Exclusive && readers {
            beside(client, claim).await
        } else {
            client.store.try_acquire(claim).await
        }
    }
}

/// Grants what no longer fits into the entry of the key.
struct StoresFortyReaders;

#[async_trait]
impl Double for StoresFortyReaders {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let readers = modes(client, &claim.key).await?.iter().filter(|mode| **mode == Mode::Shared).count();
        if claim.mode == Mode::Shared && readers >= 40 {
            return Ok(Attempt::Granted { epoch: Some(FencingToken::epoch_at(client.clock.since_1970())) });
        }
        client.store.try_acquire(claim).await
    }
}

struct ReadersExcludeReaders;

#[async_trait]
impl Double for ReadersExcludeReaders {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        client.store.try_acquire(&Claim { mode: Mode::Exclusive, ..claim.clone() }).await
    }
}

/// The newest reader is the only one that the store knows.
struct ForgetsReaders;

#[async_trait]
impl Double for ForgetsReaders {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        if claim.mode == Mode::Shared && matches!(attempt, Attempt::Granted { .. }) {
            client.store.force_release(&claim.key, None).await?;
            return client.store.try_acquire(claim).await;
        }
        Ok(attempt)
    }
}

/// A count of readers that expires as a whole.
struct OneLeaseForAllReaders;

#[async_trait]
impl Double for OneLeaseForAllReaders {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let left =
            client.store.inspect(&claim.key).await?.holders.into_iter().filter_map(|holder| holder.remaining).max();
        let ttl = if claim.mode == Mode::Shared { claim.ttl.max(left.unwrap_or_default()) } else { claim.ttl };
        client.store.try_acquire(&Claim { ttl, ..claim.clone() }).await
    }
}

/// One lease for all readers, which each of them prolongs.
#[derive(Default)]
struct OneReaderRenewsAll(Mutex<HashMap<LockKey, Vec<GrantRef>>>);

#[async_trait]
impl Double for OneReaderRenewsAll {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        if let (Attempt::Granted { epoch }, Mode::Shared) = (attempt, claim.mode) {
            let mut readers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            readers.entry(claim.key.clone()).or_default().push(claim.grant(epoch));
        }
        Ok(attempt)
    }

    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        for Renewal { grant, ttl } in renewals.iter().filter(|renewal| renewal.grant.mode == Mode::Shared) {
            let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&grant.key).cloned();
            let all: Vec<_> = all.into_iter().flatten().map(|grant| Renewal { grant, ttl: *ttl }).collect();
            client.renew(&all).await;
        }
        client.renew(renewals).await
    }
}

/// A reader draws its number before it is admitted, and nobody looks at it again.
#[derive(Default)]
struct DrawsEarly(Mutex<HashMap<LockKey, u64>>);

impl DrawsEarly {
    fn newest(&self, key: &LockKey) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied()
    }
}

#[async_trait]
impl Double for DrawsEarly {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let drawn = self.newest(&claim.key);
        if claim.mode == Mode::Shared {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
        let attempt = client.store.try_acquire(claim).await?;
        let Attempt::Granted { epoch: Some(epoch) } = attempt else { return Ok(attempt) };
        if claim.mode == Mode::Shared && drawn.is_some() && drawn != self.newest(&claim.key) {
            return Ok(Attempt::Granted { epoch: drawn.map(|before| before + 1) });
        }
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(claim.key.clone(), epoch);
        Ok(attempt)
    }
}

/// A writer that is told that the key is busy holds the next reader back, although it does not wait.
#[derive(Default)]
struct TryLeavesAMark(Mutex<HashSet<LockKey>>);

#[async_trait]
impl Double for TryLeavesAMark {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let marks = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if claim.mode == Mode::Shared && marks().remove(&claim.key) {
            return Ok(Attempt::Busy { retry_in: None });
        }
        let attempt = client.store.try_acquire(claim).await?;
        if claim.mode == Mode::Exclusive && !claim.waits && matches!(attempt, Attempt::Busy { .. }) {
            marks().insert(claim.key.clone());
        }
        Ok(attempt)
    }
}

struct ListsWritersOnly;

#[async_trait]
impl Double for ListsWritersOnly {
    async fn list(&self, client: &Client, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        let mut page = client.store.list(prefix, after).await?;
        page.keys.retain(|key| key.holders.iter().any(|holder| holder.mode == Mode::Exclusive));
        Ok(page)
    }
}

struct OneReaderReleasesAll;

#[async_trait]
impl Double for OneReaderReleasesAll {
    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let held = client.store.release(grant).await?;
        if held == LeaseStatus::Held && grant.mode == Mode::Shared {
            client.store.force_release(&grant.key, None).await?;
        }
        Ok(held)
    }
}

/// A counter that every claim increments, also one that is repeated.
struct CountsReadersTwice;

#[async_trait]
impl Double for CountsReadersTwice {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let before = modes(client, &claim.key).await?.len();
        let attempt = client.store.try_acquire(claim).await?;
        if claim.mode == Mode::Shared && modes(client, &claim.key).await?.len() == before {
            let another = Claim { owner: OwnerId::random(), ..claim.clone() };
            // Where the key was granted a moment ago, epochs may be ahead of the clock for another moment.
            while !matches!(client.store.try_acquire(&another).await?, Attempt::Granted { .. }) {
                tokio::task::yield_now().await;
            }
        }
        Ok(attempt)
    }
}

/// A counter of readers that anybody's release decrements.
struct StrangersReleaseReaders;

#[async_trait]
impl Double for StrangersReleaseReaders {
    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        if grant.mode == Mode::Shared && modes(client, &grant.key).await? == [Mode::Shared] {
            client.store.force_release(&grant.key, None).await?;
            return Ok(LeaseStatus::Held);
        }
        client.store.release(grant).await
    }
}

struct StaleReadersReleaseWriters;

#[async_trait]
impl Double for StaleReadersReleaseWriters {
    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        if grant.mode == Mode::Shared && modes(client, &grant.key).await? == [Mode::Exclusive] {
            client.store.force_release(&grant.key, None).await?;
        }
        client.store.release(grant).await
    }
}

struct ReadersHaveTheTokenOfTheWriter;

#[async_trait]
impl Double for ReadersHaveTheTokenOfTheWriter {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        let first = client.store.inspect(&claim.key).await?.holders.into_iter().filter_map(|holder| holder.token).min();
        match attempt {
            Attempt::Granted { .. } => Ok(Attempt::Granted { epoch: first.map(FencingToken::epoch) }),
            attempt => Ok(attempt),
        }
    }
}

struct ReadersGetHalfTheLease;

#[async_trait]
impl Double for ReadersGetHalfTheLease {
    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        let half = |renewal: &Renewal| match renewal.grant.mode {
            Mode::Shared => Renewal { ttl: renewal.ttl / 2, ..renewal.clone() },
            Mode::Exclusive => renewal.clone(),
        };
        client.renew(&renewals.iter().map(half).collect::<Vec<_>>()).await
    }
}

struct ForceSparesReaders;

#[async_trait]
impl Double for ForceSparesReaders {
    async fn force_release(&self, client: &Client, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        if modes(client, key).await?.contains(&Mode::Shared) {
            return client.store.inspect(key).await;
        }
        client.store.force_release(key, only).await
    }
}

struct ShowsOneReader;

#[async_trait]
impl Double for ShowsOneReader {
    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        let mut seen = client.store.inspect(key).await?;
        seen.holders.truncate(1);
        Ok(seen)
    }
}

/// Readers' rows that nobody has buried yet.
struct ShowsDeadReaders;

#[async_trait]
impl Double for ShowsDeadReaders {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let ttl = if claim.mode == Mode::Shared { claim.ttl * 10 } else { claim.ttl };
        client.store.try_acquire(&Claim { ttl, ..claim.clone() }).await
    }
}

struct ForgetsReadersReasons;

#[async_trait]
impl Double for ForgetsReadersReasons {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let reason = claim.reason.clone().filter(|_| claim.mode == Mode::Exclusive);
        client.store.try_acquire(&Claim { reason, ..claim.clone() }).await
    }
}
