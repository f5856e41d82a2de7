//! Readers beside writers, broken.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Claim, FencingToken, GrantRef, Holders, LeaseStatus, LockKey, Mode, OwnerId, Renewal, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Claims, Client, Double, Forces, Releases, asks};
use crate::suite_catches::exclusive::TokensOfTheClockAlone;

catches! {
    LooksForWritersBeforeItInserts Claims(looks_for_writers_before_it_inserts),
    LetsWritersInLate LetsWritersInLate,
    WritersPassReaders Claims(writers_pass_readers),
    StoresFortyReaders Claims(stores_forty_readers) => c01_each_of_many_readers_excludes_writers,
    ReadersExcludeReaders asks(|claim| claim.mode = Mode::Exclusive),
    ForgetsReaders Claims(forgets_readers),
    OneLeaseForAllReaders Claims(one_lease_for_all_readers),
    OneReaderRenewsAll OneReaderRenewsAll::default(),
    DrawsEarly DrawsEarly::default(),
    TryLeavesAMark TryLeavesAMark::default(),
    OneReaderReleasesAll Releases(one_reader_releases_all),
    CountsReadersTwice Claims(counts_readers_twice) => c02_a_claim_is_idempotent_for_its_owner,
    StrangersReleaseReaders Releases(strangers_release_readers) => c02_a_stranger_can_neither_renew_nor_release,
    StaleReadersReleaseWriters Releases(stale_readers_release_writers),
    ReadersShareAToken TokensOfTheClockAlone(Mode::Shared),
    ReadersHaveTheTokenOfTheWriter Claims(readers_have_the_token_of_the_writer),
    ForceSparesReaders Forces(force_spares_readers),
    ForgetsReadersReasons asks(|claim| claim.reason = claim.reason.take().filter(|_| claim.mode == Mode::Exclusive)),
    // Readers' rows that nobody has buried yet.
    ShowsDeadReaders asks(|claim| if claim.mode == Mode::Shared { claim.ttl *= 10 }),
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
async fn looks_for_writers_before_it_inserts(client: Client, claim: Claim) -> Result<Attempt> {
    if claim.mode == Mode::Exclusive || modes(&client, &claim.key).await?.contains(&Mode::Exclusive) {
        return client.store.try_acquire(&claim).await;
    }
    tokio::time::sleep(Duration::from_millis(2)).await;
    match client.store.try_acquire(&claim).await? {
        Attempt::Busy { .. } => beside(&client, &claim).await,
        attempt => Ok(attempt),
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

async fn writers_pass_readers(client: Client, claim: Claim) -> Result<Attempt> {
    if claim.mode == Mode::Exclusive && modes(&client, &claim.key).await?.contains(&Mode::Shared) {
        return beside(&client, &claim).await;
    }
    client.store.try_acquire(&claim).await
}

/// Grants what no longer fits into the entry of the key.
async fn stores_forty_readers(client: Client, claim: Claim) -> Result<Attempt> {
    let readers = modes(&client, &claim.key).await?.iter().filter(|mode| **mode == Mode::Shared).count();
    if claim.mode == Mode::Shared && readers >= 40 {
        return Ok(Attempt::Granted { epoch: Some(FencingToken::epoch_at(client.clock.since_1970())) });
    }
    client.store.try_acquire(&claim).await
}

/// The newest reader is the only one that the store knows.
async fn forgets_readers(client: Client, claim: Claim) -> Result<Attempt> {
    let attempt = client.store.try_acquire(&claim).await?;
    if claim.mode == Mode::Shared && matches!(attempt, Attempt::Granted { .. }) {
        client.store.force_release(&claim.key, None).await?;
        return client.store.try_acquire(&claim).await;
    }
    Ok(attempt)
}

/// A count of readers that expires as a whole.
async fn one_lease_for_all_readers(client: Client, mut claim: Claim) -> Result<Attempt> {
    if claim.mode == Mode::Shared {
        let holders = client.store.inspect(&claim.key).await?.holders;
        let left = holders.into_iter().filter_map(|holder| holder.remaining).max();
        claim.ttl = claim.ttl.max(left.unwrap_or_default());
    }
    client.store.try_acquire(&claim).await
}

/// One lease for all readers, which each of them prolongs.
#[derive(Default)]
struct OneReaderRenewsAll(Mutex<HashMap<LockKey, Vec<GrantRef>>>);

#[async_trait]
impl Double for OneReaderRenewsAll {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        if let (Attempt::Granted { epoch }, Mode::Shared) = (attempt, claim.mode) {
            let mut readers = self.0.lock().unwrap();
            readers.entry(claim.key.clone()).or_default().push(claim.grant(epoch));
        }
        Ok(attempt)
    }

    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        for Renewal { grant, ttl } in renewals.iter().filter(|renewal| renewal.grant.mode == Mode::Shared) {
            let all = self.0.lock().unwrap().get(&grant.key).cloned();
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
        self.0.lock().unwrap().get(key).copied()
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
        self.0.lock().unwrap().insert(claim.key.clone(), epoch);
        Ok(attempt)
    }
}

/// A writer that is told that the key is busy holds the next reader back, although it does not wait.
#[derive(Default)]
struct TryLeavesAMark(Mutex<HashSet<LockKey>>);

#[async_trait]
impl Double for TryLeavesAMark {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let marks = || self.0.lock().unwrap();
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

async fn one_reader_releases_all(client: Client, grant: GrantRef) -> Result<LeaseStatus> {
    let held = client.store.release(&grant).await?;
    if held == LeaseStatus::Held && grant.mode == Mode::Shared {
        client.store.force_release(&grant.key, None).await?;
    }
    Ok(held)
}

/// A counter that every claim increments, also one that is repeated.
async fn counts_readers_twice(client: Client, claim: Claim) -> Result<Attempt> {
    let before = modes(&client, &claim.key).await?.len();
    let attempt = client.store.try_acquire(&claim).await?;
    if claim.mode == Mode::Shared && modes(&client, &claim.key).await?.len() == before {
        let another = Claim { owner: OwnerId::random(), ..claim };
        // Where the key was granted a moment ago, epochs may be ahead of the clock for another moment.
        while !matches!(client.store.try_acquire(&another).await?, Attempt::Granted { .. }) {
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

async fn stale_readers_release_writers(client: Client, grant: GrantRef) -> Result<LeaseStatus> {
    if grant.mode == Mode::Shared && modes(&client, &grant.key).await? == [Mode::Exclusive] {
        client.store.force_release(&grant.key, None).await?;
    }
    client.store.release(&grant).await
}

async fn readers_have_the_token_of_the_writer(client: Client, claim: Claim) -> Result<Attempt> {
    let attempt = client.store.try_acquire(&claim).await?;
    let holders = client.store.inspect(&claim.key).await?.holders;
    let first = holders.into_iter().filter_map(|holder| holder.token).min();
    let granted = matches!(attempt, Attempt::Granted { .. });
    Ok(if granted { Attempt::Granted { epoch: first.map(FencingToken::epoch) } } else { attempt })
}

async fn force_spares_readers(client: Client, (key, only): (LockKey, Option<u64>)) -> Result<Holders> {
    if modes(&client, &key).await?.contains(&Mode::Shared) {
        return client.store.inspect(&key).await;
    }
    client.store.force_release(&key, only).await
}
