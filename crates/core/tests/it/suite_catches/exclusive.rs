//! Claims, releases, tokens and keys of exclusive locks, broken.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Claim, Clock, Error, ErrorKind, GrantRef, Holders, LeaseStatus, LockKey, MemoryBackend, Mode,
    OwnerId, Renewal, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double};

catches! {
    NeverGrants NeverGrants,
    NeverExcludes NeverExcludes,
    ChecksBeforeItInserts ChecksBeforeItInserts => c01_of_claims_at_one_moment_one_is_granted,
    IgnoresTheLease Grants(|_| Duration::from_secs(86_400)),
    GrantsHalfTheLease Grants(|lease| lease / 2) => c05_nobody_is_granted_before_the_guard_gives_up,
    GrantsWholeSeconds Grants(|lease| Duration::from_secs(lease.as_secs().max(1))),
    CutsLongLeases Grants(|lease| lease.min(Duration::from_secs(23 * 3_600))),
    ExpiresByTheClientsClock ExpiresByTheClientsClock::default() => c08_a_client_an_hour_off_behaves_like_any_other,
    LeasesByTheClientsClock ExpiresByTheClientsClock::default(),
    BlocksTry BlocksTry => c10_try_answers_none_while_held,
    HidesWhatIsLeft Busy(|_| None),
    ClaimAgainProlongs ClaimAgainProlongs,
    ClaimAgainIsAnother ClaimAgainIsAnother,
    GrantsFromMemoryWhatWasForced GrantsFromMemory::to_all(),
    GrantsReadersFromMemoryWhatWasForced GrantsFromMemory::to_readers(),
    GrantsReadersAnewFromMemory GrantsFromMemory { anew: true, ..GrantsFromMemory::to_readers() },
    ReleasesWithoutComparing ReleasesWithoutComparing,
    ReleasesWhatExpired ReleasesWhatExpired,
    ReleasesNothing ReleasesNothing,
    TellsLossOnRelease TellsLossOnRelease,
    ForceForgetsTheCounter ForceForgetsTheCounter::default(),
    LosesTheTokenOrder Tokens::new(|_, epoch| (1 << 46) - epoch),
    TokensOfTheClockAlone TokensOfTheClockAlone(Mode::Exclusive),
    TokensWithoutClock Tokens::new(|count, _| count) => c04_an_empty_store_begins_at_its_clock,
    TokensOfMilliseconds Tokens::new(|_, epoch| epoch / 16) => c04_an_empty_store_begins_at_its_clock,
    TokensOfNextMonth Tokens::new(|_, epoch| epoch + 30 * 86_400_000 * 16) => c04_an_empty_store_begins_at_its_clock,
    TokensAheadOfTheClock Tokens::new(|count, epoch| epoch + 100 * count) => c04_epochs_grow_no_faster_than_the_clock,
    TokensOfMicroseconds Tokens::new(|_, epoch| epoch * 125 / 2),
    FoldsKeyCase Folds(str::to_lowercase),
    FoldsTheCaseOfOtherLetters Folds(|key| key.chars().map(lower_beyond_ascii).collect()),
    TrimsKeys Folds(|key| key.trim_end_matches([' ', '\t', '\n']).to_owned()),
    CutsLongKeys Folds(|key| key.chars().take(254).collect()),
    CutsKeysToAColumn Folds(|key| key.chars().take(191).collect()),
    HasALockForASlot Folds(|key| format!("{}", crc_16(key) % 16_384)) => c22_keys_that_look_alike_are_distinct,
    HasALockForACrc32 Folds(|key| format!("{:08x}", crc_32(key))) => c22_keys_that_look_alike_are_distinct,
    HasALockForAHashBy31 Folds(|key| hash_by(31, key)) => c22_keys_that_look_alike_are_distinct,
    HasALockForAHashBy33 Folds(|key| hash_by(33, key)) => c22_keys_that_look_alike_are_distinct,
    MixesNamespaces Namespaces(|_| "all".to_owned()) => c22_namespaces_do_not_see_each_other,
    FoldsNamespaceCase Namespaces(str::to_lowercase) => c22_namespaces_do_not_see_each_other,
    JoinsWithoutSeparator Joins("") => c22_namespaces_that_begin_alike_do_not_meet,
    JoinsWithColons Joins(":") => c22_namespaces_that_begin_alike_do_not_meet,
    NeverSignals NeverSignals,
}

pub(crate) struct NeverGrants;

#[async_trait]
impl Double for NeverGrants {
    async fn try_acquire(&self, _client: &Client, _claim: &Claim) -> Result<Attempt> {
        Err(Error::new(ErrorKind::Unsupported, "acquire"))
    }
}

pub(crate) struct NeverExcludes;

#[async_trait]
impl Double for NeverExcludes {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        if let Attempt::Busy { .. } = client.store.try_acquire(claim).await? {
            client.store.force_release(&claim.key, None).await?;
        }
        client.store.try_acquire(claim).await
    }
}

/// Two steps instead of one: looks, and then inserts.
struct ChecksBeforeItInserts;

#[async_trait]
impl Double for ChecksBeforeItInserts {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        if !client.store.inspect(&claim.key).await?.holders.is_empty() {
            return client.store.try_acquire(claim).await;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        match client.store.try_acquire(claim).await? {
            Attempt::Busy { .. } => {
                Ok(Attempt::Granted { epoch: Some(leasehold_core::FencingToken::epoch_at(client.clock.since_1970())) })
            }
            attempt => Ok(attempt),
        }
    }
}

pub(crate) struct Grants(pub(crate) fn(Duration) -> Duration);

#[async_trait]
impl Double for Grants {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        client.store.try_acquire(&Claim { ttl: self.0(claim.ttl), ..claim.clone() }).await
    }
}

/// Stores when the lease ends by the clock of who asks, and compares that with the clock of who asks next.
#[derive(Default)]
struct ExpiresByTheClientsClock(Mutex<HashMap<LockKey, (OwnerId, Duration)>>);

impl ExpiresByTheClientsClock {
    const NEVER: Duration = Duration::from_secs(86_400);

    /// What time it is, to this client.
    #[allow(clippy::default_trait_access, reason = "a moment has no public name")]
    fn now(client: &Client) -> Duration {
        client.clock.now().since(Default::default())
    }

    fn ends(&self, key: &LockKey) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).map(|(_, ends)| *ends)
    }

    fn note(&self, key: &LockKey, owner: OwnerId, ends: Duration) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.get(key).is_none_or(|(held, _)| *held == owner) {
            notes.insert(key.clone(), (owner, ends));
        }
    }

    async fn let_expire(&self, client: &Client, key: &LockKey) -> Result<()> {
        if self.ends(key).is_some_and(|ends| ends <= Self::now(client)) {
            client.store.force_release(key, None).await?;
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        }
        Ok(())
    }
}

#[async_trait]
impl Double for ExpiresByTheClientsClock {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        self.let_expire(client, &claim.key).await?;
        let attempt = client.store.try_acquire(&Claim { ttl: Self::NEVER, ..claim.clone() }).await?;
        if let Attempt::Granted { .. } = attempt {
            self.note(&claim.key, claim.owner, Self::now(client) + claim.ttl);
        }
        Ok(attempt)
    }

    async fn renew(&self, client: &Client, renewals: &[Renewal]) -> Vec<Result<LeaseStatus>> {
        for Renewal { grant, ttl } in renewals {
            if let Err(error) = self.let_expire(client, &grant.key).await {
                return vec![Err(error)];
            }
            self.note(&grant.key, grant.owner, Self::now(client) + *ttl);
        }
        let renewals: Vec<_> =
            renewals.iter().map(|renewal| Renewal { ttl: Self::NEVER, grant: renewal.grant.clone() }).collect();
        client.renew(&renewals).await
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, (owner, _)| *owner != grant.owner);
        client.store.release(grant).await
    }

    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        let mut seen = client.store.inspect(key).await?;
        let left = self.ends(key).map(|ends| ends.saturating_sub(Self::now(client)));
        seen.holders.iter_mut().for_each(|holder| holder.remaining = left);
        Ok(seen)
    }
}

struct BlocksTry;

#[async_trait]
impl Double for BlocksTry {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        loop {
            match client.store.try_acquire(claim).await? {
                Attempt::Busy { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
                attempt => return Ok(attempt),
            }
        }
    }
}

struct Busy(fn(Option<Duration>) -> Option<Duration>);

#[async_trait]
impl Double for Busy {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        Ok(match client.store.try_acquire(claim).await? {
            Attempt::Busy { retry_in } => Attempt::Busy { retry_in: self.0(retry_in) },
            attempt => attempt,
        })
    }
}

struct ClaimAgainProlongs;

#[async_trait]
impl Double for ClaimAgainProlongs {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        if let Attempt::Granted { epoch } = attempt {
            client.renew(&[Renewal { grant: claim.grant(epoch), ttl: claim.ttl }]).await;
        }
        Ok(attempt)
    }
}

/// Repeated by its owner, a claim is told that it is held.
struct ClaimAgainIsAnother;

#[async_trait]
impl Double for ClaimAgainIsAnother {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let other = Claim { owner: OwnerId::random(), ..claim.clone() };
        match client.store.try_acquire(&other).await? {
            Attempt::Granted { epoch } => {
                client.store.release(&other.grant(epoch)).await?;
                client.store.try_acquire(claim).await
            }
            busy => Ok(busy),
        }
    }
}

/// What was granted once is granted to its owner for ever, with the number that it had or with a new one.
struct GrantsFromMemory {
    modes: &'static [Mode],
    anew: bool,
    granted: Mutex<HashMap<OwnerId, u64>>,
}

impl GrantsFromMemory {
    fn to_all() -> Self {
        Self { modes: &[Mode::Exclusive, Mode::Shared], ..Self::to_readers() }
    }

    fn to_readers() -> Self {
        Self { modes: &[Mode::Shared], anew: false, granted: Mutex::default() }
    }

    fn known(&self, owner: OwnerId) -> Option<u64> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).get(&owner).copied()
    }
}

#[async_trait]
impl Double for GrantsFromMemory {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        if let Some(epoch) = self.known(claim.owner).filter(|_| self.modes.contains(&claim.mode)) {
            return Ok(Attempt::Granted { epoch: Some(epoch + u64::from(self.anew)) });
        }
        let attempt = client.store.try_acquire(claim).await?;
        if let Attempt::Granted { epoch: Some(epoch) } = attempt {
            self.granted.lock().unwrap_or_else(PoisonError::into_inner).insert(claim.owner, epoch);
        }
        Ok(attempt)
    }
}

struct ReleasesWithoutComparing;

#[async_trait]
impl Double for ReleasesWithoutComparing {
    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let holders = client.store.force_release(&grant.key, None).await?;
        Ok(if holders.holders.is_empty() { LeaseStatus::NotHeld } else { LeaseStatus::Held })
    }
}

struct ReleasesWhatExpired;

#[async_trait]
impl Double for ReleasesWhatExpired {
    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let held = client.store.release(grant).await?;
        let free = client.store.inspect(&grant.key).await?.holders.is_empty();
        Ok(if free { LeaseStatus::Held } else { held })
    }
}

pub(crate) struct ReleasesNothing;

#[async_trait]
impl Double for ReleasesNothing {
    async fn release(&self, _: &Client, _: &GrantRef) -> Result<LeaseStatus> {
        Ok(LeaseStatus::Held)
    }
}

/// A forced release deletes the row with the number that was given last, and the next begins at the clock.
#[derive(Default)]
struct ForceForgetsTheCounter(Mutex<HashMap<LockKey, usize>>);

impl ForceForgetsTheCounter {
    /// The rows since the last forced release.
    fn rows(&self, client: &Client, key: &LockKey) -> MemoryBackend {
        let forced = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied();
        client.store.namespace(&format!("since {forced:?}"))
    }
}

#[async_trait]
impl Double for ForceForgetsTheCounter {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        self.rows(client, &claim.key).try_acquire(claim).await
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        self.rows(client, &grant.key).release(grant).await
    }

    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        self.rows(client, key).inspect(key).await
    }

    async fn force_release(&self, client: &Client, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        let ended = self.rows(client, key).force_release(key, only).await;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key.clone()).or_default() += 1;
        ended
    }
}

struct TellsLossOnRelease;

#[async_trait]
impl Double for TellsLossOnRelease {
    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        client.store.release(grant).await.map(|_| LeaseStatus::NotHeld)
    }
}

/// The epoch, from how many grants there were so far and what the store says.
pub(crate) struct Tokens {
    count: AtomicU64,
    epoch: fn(u64, u64) -> u64,
}

impl Tokens {
    pub(crate) fn new(epoch: fn(u64, u64) -> u64) -> Self {
        Self { count: AtomicU64::new(0), epoch }
    }
}

#[async_trait]
impl Double for Tokens {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let attempt = client.store.try_acquire(claim).await?;
        let Attempt::Granted { epoch } = attempt else { return Ok(attempt) };
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(Attempt::Granted { epoch: epoch.map(|epoch| (self.epoch)(count, epoch)) })
    }
}

/// On a store that takes 2 ms for a step, so that one caller alone never sees a number twice.
pub(crate) struct TokensOfTheClockAlone(pub(crate) Mode);

#[async_trait]
impl Double for TokensOfTheClockAlone {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let attempt = client.store.try_acquire(claim).await?;
        let clock = leasehold_core::FencingToken::epoch_at(Clock::system().since_1970());
        let granted = matches!(attempt, Attempt::Granted { .. }) && claim.mode == self.0;
        Ok(if granted { Attempt::Granted { epoch: Some(clock) } } else { attempt })
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        client.store.release(grant).await
    }
}

/// What becomes of a key on its way to the store.
pub(crate) struct Folds(pub(crate) fn(&str) -> String);

#[async_trait]
impl Double for Folds {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let key = LockKey::new(self.0(claim.key.as_str()))?;
        client.store.try_acquire(&Claim { key, ..claim.clone() }).await
    }
}

fn lower_beyond_ascii(letter: char) -> char {
    if letter.is_ascii() { letter } else { letter.to_lowercase().next().unwrap_or(letter) }
}

/// The checksum by which a cluster of Redis deals keys out to its slots.
fn crc_16(key: &str) -> u16 {
    key.bytes().fold(0, |crc: u16, byte| {
        let shifted = |crc: u16, _| if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
        (0..8).fold(crc ^ (u16::from(byte) << 8), shifted)
    })
}

fn crc_32(key: &str) -> u32 {
    !key.bytes().fold(u32::MAX, |crc, byte| {
        let shifted = |crc: u32, _| if crc & 1 == 0 { crc >> 1 } else { (crc >> 1) ^ 0xedb8_8320 };
        (0..8).fold(crc ^ u32::from(byte), shifted)
    })
}

fn hash_by(factor: u32, key: &str) -> String {
    let hash = key.bytes().fold(0, |hash: u32, byte| hash.wrapping_mul(factor).wrapping_add(u32::from(byte)));
    format!("{hash:08x}")
}

struct Namespaces(fn(&str) -> String);

impl Double for Namespaces {
    fn namespace(&self, namespace: &str) -> String {
        self.0(namespace)
    }
}

/// One flat name for namespace and key; of the namespaces that begin alike, the shortest is where the store begins.
struct Joins(&'static str);

impl Joins {
    fn flat(&self, client: &Client, key: &LockKey) -> Result<(Client, LockKey)> {
        let shown = format!("{:?}", client.store);
        let namespace = shown.rsplit("namespace: \"").next().and_then(|rest| rest.split('"').next()).unwrap_or("");
        let store = client.store.namespace("flat");
        let name = format!("{namespace}{}{}", self.0, key.as_str());
        Ok((Client { store, ..client.clone() }, LockKey::new(name)?))
    }
}

#[async_trait]
impl Double for Joins {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        let (client, key) = self.flat(client, &claim.key)?;
        client.store.try_acquire(&Claim { key, ..claim.clone() }).await
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        let (client, key) = self.flat(client, &grant.key)?;
        client.store.release(&GrantRef { key, ..grant.clone() }).await
    }
}

struct NeverSignals;

impl Double for NeverSignals {
    fn signals(&self) -> bool {
        false
    }
}
