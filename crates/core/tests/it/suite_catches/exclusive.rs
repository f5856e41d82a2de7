//! Claims, releases, tokens and keys of exclusive locks, broken.

use std::collections::HashMap;
use std::future::{Ready, ready};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Claim, Clock, Error, ErrorKind, FencingToken, GrantRef, Holders, LeaseStatus, LockKey,
    MemoryBackend, Mode, OwnerId, Renewal, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Claims, Client, Double, Releases, asks};

const DAY: Duration = Duration::from_secs(86_400);

catches! {
    NeverGrants Claims(async |_: Client, _: Claim| Err::<Attempt, _>(Error::new(ErrorKind::Unsupported, "acquire"))),
    NeverExcludes Claims(never_excludes),
    ChecksBeforeItInserts Claims(checks_before_it_inserts) => c01_of_claims_at_one_moment_one_is_granted,
    IgnoresTheLease asks(|claim| claim.ttl = DAY),
    GrantsHalfTheLease asks(|claim| claim.ttl /= 2) => c05_nobody_is_granted_before_the_guard_gives_up,
    GrantsWholeSeconds asks(|claim| claim.ttl = Duration::from_secs(claim.ttl.as_secs().max(1))),
    CutsLongLeases asks(|claim| claim.ttl = claim.ttl.min(DAY * 23 / 24)),
    ExpiresByTheClientsClock ExpiresByTheClientsClock::default() => c08_a_client_an_hour_off_behaves_like_any_other,
    LeasesByTheClientsClock ExpiresByTheClientsClock::default(),
    BlocksTry Claims(blocks_try) => c10_try_answers_none_while_held,
    HidesWhatIsLeft Claims(hides_what_is_left),
    ClaimAgainProlongs Claims(claim_again_prolongs),
    ClaimAgainIsAnother Claims(claim_again_is_another),
    GrantsFromMemoryWhatWasForced GrantsFromMemory::to_all(),
    GrantsReadersFromMemoryWhatWasForced GrantsFromMemory::to_readers(),
    GrantsReadersAnewFromMemory GrantsFromMemory { anew: true, ..GrantsFromMemory::to_readers() },
    ReleasesWithoutComparing Releases(releases_without_comparing),
    ReleasesWhatExpired Releases(releases_what_expired),
    ReleasesNothing Releases(releases_nothing),
    TellsLossOnRelease Releases(tells_loss_on_release),
    ForceForgetsTheCounter ForceForgetsTheCounter::default(),
    LosesTheTokenOrder tokens(|_, epoch| (1 << 46) - epoch),
    TokensOfTheClockAlone TokensOfTheClockAlone(Mode::Exclusive),
    TokensWithoutClock tokens(|count, _| count) => c04_an_empty_store_begins_at_its_clock,
    TokensOfMilliseconds tokens(|_, epoch| epoch / 16) => c04_an_empty_store_begins_at_its_clock,
    TokensOfNextMonth tokens(|_, epoch| epoch + 30 * 86_400_000 * 16) => c04_an_empty_store_begins_at_its_clock,
    TokensAheadOfTheClock tokens(|count, epoch| epoch + 100 * count) => c04_epochs_grow_no_faster_than_the_clock,
    TokensOfMicroseconds tokens(|_, epoch| epoch * 125 / 2),
    FoldsKeyCase folds(str::to_lowercase),
    FoldsTheCaseOfOtherLetters folds(|key| key.chars().map(lower_beyond_ascii).collect()),
    TrimsKeys folds(|key| key.trim_end_matches([' ', '\t', '\n']).to_owned()),
    CutsLongKeys folds(|key| key.chars().take(254).collect()),
    CutsKeysToAColumn folds(|key| key.chars().take(191).collect()),
    HasALockForASlot folds(|key| format!("{}", crc_16(key) % 16_384)) => c22_keys_that_look_alike_are_distinct,
    HasALockForACrc32 folds(|key| format!("{:08x}", crc_32(key))) => c22_keys_that_look_alike_are_distinct,
    HasALockForAHashBy31 folds(|key| hash_by(31, key)) => c22_keys_that_look_alike_are_distinct,
    HasALockForAHashBy33 folds(|key| hash_by(33, key)) => c22_keys_that_look_alike_are_distinct,
    MixesNamespaces Namespaces(|_| "all".to_owned()) => c22_namespaces_do_not_see_each_other,
    FoldsNamespaceCase Namespaces(str::to_lowercase) => c22_namespaces_do_not_see_each_other,
    JoinsWithoutSeparator Joins("") => c22_namespaces_that_begin_alike_do_not_meet,
    JoinsWithColons Joins(":") => c22_namespaces_that_begin_alike_do_not_meet,
    NeverSignals NeverSignals,
}

pub(crate) async fn never_excludes(client: Client, claim: Claim) -> Result<Attempt> {
    if let Attempt::Busy { .. } = client.store.try_acquire(&claim).await? {
        client.store.force_release(&claim.key, None).await?;
    }
    client.store.try_acquire(&claim).await
}

/// Two steps instead of one: looks, and then inserts.
async fn checks_before_it_inserts(client: Client, claim: Claim) -> Result<Attempt> {
    if !client.store.inspect(&claim.key).await?.holders.is_empty() {
        return client.store.try_acquire(&claim).await;
    }
    tokio::time::sleep(Duration::from_millis(2)).await;
    Ok(match client.store.try_acquire(&claim).await? {
        Attempt::Busy { .. } => Attempt::Granted { epoch: Some(FencingToken::epoch_at(client.clock.since_1970())) },
        attempt => attempt,
    })
}

/// Stores when the lease ends by the clock of who asks, and compares that with the clock of who asks next.
#[derive(Default)]
struct ExpiresByTheClientsClock(Mutex<HashMap<LockKey, (OwnerId, Duration)>>);

impl ExpiresByTheClientsClock {
    /// What time it is, to this client.
    #[allow(clippy::default_trait_access, reason = "a moment has no public name")]
    fn now(client: &Client) -> Duration {
        client.clock.now().since(Default::default())
    }

    fn ends(&self, key: &LockKey) -> Option<Duration> {
        self.0.lock().unwrap().get(key).map(|(_, ends)| *ends)
    }

    fn note(&self, key: &LockKey, owner: OwnerId, ends: Duration) {
        let mut notes = self.0.lock().unwrap();
        if notes.get(key).is_none_or(|(held, _)| *held == owner) {
            notes.insert(key.clone(), (owner, ends));
        }
    }

    async fn let_expire(&self, client: &Client, key: &LockKey) -> Result<()> {
        if self.ends(key).is_some_and(|ends| ends <= Self::now(client)) {
            client.store.force_release(key, None).await?;
            self.0.lock().unwrap().remove(key);
        }
        Ok(())
    }
}

#[async_trait]
impl Double for ExpiresByTheClientsClock {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        self.let_expire(client, &claim.key).await?;
        let attempt = client.store.try_acquire(&Claim { ttl: DAY, ..claim.clone() }).await?;
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
            renewals.iter().map(|renewal| Renewal { ttl: DAY, grant: renewal.grant.clone() }).collect();
        client.renew(&renewals).await
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        self.0.lock().unwrap().retain(|_, (owner, _)| *owner != grant.owner);
        client.store.release(grant).await
    }

    async fn inspect(&self, client: &Client, key: &LockKey) -> Result<Holders> {
        let mut seen = client.store.inspect(key).await?;
        let left = self.ends(key).map(|ends| ends.saturating_sub(Self::now(client)));
        seen.holders.iter_mut().for_each(|holder| holder.remaining = left);
        Ok(seen)
    }
}

async fn blocks_try(client: Client, claim: Claim) -> Result<Attempt> {
    loop {
        match client.store.try_acquire(&claim).await? {
            Attempt::Busy { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
            attempt => return Ok(attempt),
        }
    }
}

async fn hides_what_is_left(client: Client, claim: Claim) -> Result<Attempt> {
    let attempt = client.store.try_acquire(&claim).await?;
    Ok(if let Attempt::Busy { .. } = attempt { Attempt::Busy { retry_in: None } } else { attempt })
}

async fn claim_again_prolongs(client: Client, claim: Claim) -> Result<Attempt> {
    let attempt = client.store.try_acquire(&claim).await?;
    if let Attempt::Granted { epoch } = attempt {
        client.renew(&[Renewal { grant: claim.grant(epoch), ttl: claim.ttl }]).await;
    }
    Ok(attempt)
}

/// Repeated by its owner, a claim is told that it is held.
async fn claim_again_is_another(client: Client, claim: Claim) -> Result<Attempt> {
    let other = Claim { owner: OwnerId::random(), ..claim.clone() };
    match client.store.try_acquire(&other).await? {
        Attempt::Granted { epoch } => {
            client.store.release(&other.grant(epoch)).await?;
            client.store.try_acquire(&claim).await
        }
        busy => Ok(busy),
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
        self.granted.lock().unwrap().get(&owner).copied()
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
            self.granted.lock().unwrap().insert(claim.owner, epoch);
        }
        Ok(attempt)
    }
}

async fn releases_without_comparing(client: Client, grant: GrantRef) -> Result<LeaseStatus> {
    let holders = client.store.force_release(&grant.key, None).await?;
    Ok(if holders.holders.is_empty() { LeaseStatus::NotHeld } else { LeaseStatus::Held })
}

async fn releases_what_expired(client: Client, grant: GrantRef) -> Result<LeaseStatus> {
    let held = client.store.release(&grant).await?;
    let free = client.store.inspect(&grant.key).await?.holders.is_empty();
    Ok(if free { LeaseStatus::Held } else { held })
}

pub(crate) fn releases_nothing(_: Client, _: GrantRef) -> Ready<Result<LeaseStatus>> {
    ready(Ok(LeaseStatus::Held))
}

async fn tells_loss_on_release(client: Client, grant: GrantRef) -> Result<LeaseStatus> {
    client.store.release(&grant).await.map(|_| LeaseStatus::NotHeld)
}

/// A forced release deletes the row with the number that was given last, and the next begins at the clock.
#[derive(Default)]
struct ForceForgetsTheCounter(Mutex<HashMap<LockKey, usize>>);

impl ForceForgetsTheCounter {
    /// The rows since the last forced release.
    fn rows(&self, client: &Client, key: &LockKey) -> MemoryBackend {
        let forced = self.0.lock().unwrap().get(key).copied();
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
        *self.0.lock().unwrap().entry(key.clone()).or_default() += 1;
        ended
    }
}

/// The epoch, from how many grants there were so far and what the store says.
pub(crate) fn tokens(of: fn(u64, u64) -> u64) -> impl Double {
    let grants = Arc::new(AtomicU64::new(0));
    Claims(move |client: Client, claim: Claim| {
        let grants = Arc::clone(&grants);
        async move {
            let attempt = client.store.try_acquire(&claim).await?;
            let Attempt::Granted { epoch } = attempt else { return Ok(attempt) };
            let count = grants.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(Attempt::Granted { epoch: epoch.map(|epoch| of(count, epoch)) })
        }
    })
}

/// On a store that takes 2 ms for a step, so that one caller alone never sees a number twice.
pub(crate) struct TokensOfTheClockAlone(pub(crate) Mode);

#[async_trait]
impl Double for TokensOfTheClockAlone {
    async fn try_acquire(&self, client: &Client, claim: &Claim) -> Result<Attempt> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let attempt = client.store.try_acquire(claim).await?;
        let clock = FencingToken::epoch_at(Clock::system().since_1970());
        let granted = matches!(attempt, Attempt::Granted { .. }) && claim.mode == self.0;
        Ok(if granted { Attempt::Granted { epoch: Some(clock) } } else { attempt })
    }

    async fn release(&self, client: &Client, grant: &GrantRef) -> Result<LeaseStatus> {
        tokio::time::sleep(Duration::from_millis(2)).await;
        client.store.release(grant).await
    }
}

/// What becomes of a key on its way to the store.
pub(crate) fn folds(fold: fn(&str) -> String) -> impl Double {
    Claims(move |client: Client, claim: Claim| async move {
        let key = LockKey::new(fold(claim.key.as_str()))?;
        client.store.try_acquire(&Claim { key, ..claim }).await
    })
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
