//! Claims, releases, tokens and keys of exclusive locks, broken.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leasehold_core::{
    Attempt, Backend, Claim, Clock, FencingToken, GrantRef, LeaseStatus, LockKey, Mode, Renewal, Result,
};

use crate::suite_catches::catches;
use crate::suite_catches::double::{Client, Double, asks, claims, releases};

const DAY: Duration = Duration::from_secs(86_400);

catches! {
    NeverExcludes claims(never_excludes),
    ChecksBeforeItInserts claims(checks_before_it_inserts) => c01_of_claims_at_one_moment_one_is_granted,
    GrantsHalfTheLease asks(|claim| claim.ttl /= 2) => c05_nobody_is_granted_before_the_guard_gives_up,
    GrantsWholeSeconds asks(|claim| claim.ttl = Duration::from_secs(claim.ttl.as_secs().max(1))),
    CutsLongLeases asks(|claim| claim.ttl = claim.ttl.min(DAY * 23 / 24)),
    EndsByTheClientsClock claims(ends_by_the_clients_clock) => c08_a_client_an_hour_off_behaves_like_any_other,
    BlocksTry claims(blocks_try) => c10_try_answers_none_while_held,
    HidesWhatIsLeft claims(hides_what_is_left),
    ClaimAgainProlongs claims(claim_again_prolongs),
    GrantsFromMemoryWhatWasForced grants_from_memory(&[Mode::Exclusive, Mode::Shared], false),
    GrantsReadersAnewFromMemory grants_from_memory(&[Mode::Shared], true),
    ReleasesWhatExpired releases(releases_what_expired),
    ReleasesNothing releases(releases_nothing),
    TellsLossOnRelease releases(tells_loss_on_release),
    LosesTheTokenOrder tokens(|_, epoch| (1 << 46) - epoch),
    TokensWithoutClock tokens(|count, _| count) => c04_an_empty_store_begins_at_its_clock,
    TokensOfNextMonth tokens(|_, epoch| epoch + 30 * 86_400_000 * 16) => c04_an_empty_store_begins_at_its_clock,
    TokensAheadOfTheClock tokens(|count, epoch| epoch + 100 * count) => c04_epochs_grow_no_faster_than_the_clock,
    FoldsKeyCase folds(str::to_lowercase),
    TrimsKeys folds(|key| key.trim_end_matches([' ', '\t', '\n']).to_owned()),
    CutsLongKeys folds(|key| key.chars().take(254).collect()),
    HasALockForASlot folds(|key| format!("{}", crc_16(key) % 16_384)) => c22_keys_that_look_alike_are_distinct,
    HasALockForACrc32 folds(|key| format!("{:08x}", crc_32(key))) => c22_keys_that_look_alike_are_distinct,
    HasALockForAHashBy31 folds(|key| hash_by(31, key)) => c22_keys_that_look_alike_are_distinct,
    HasALockForAHashBy33 folds(|key| hash_by(33, key)) => c22_keys_that_look_alike_are_distinct,
    MixesNamespaces namespaces(|_| "all".to_owned()) => c22_namespaces_do_not_see_each_other,
    FoldsNamespaceCase namespaces(str::to_lowercase) => c22_namespaces_do_not_see_each_other,
    JoinsWithoutSeparator joins("") => c22_namespaces_that_begin_alike_do_not_meet,
    NeverSignals Double { signals: false, ..Double::sound() },
}

async fn never_excludes(client: Client, claim: Claim) -> Result<Attempt> {
    if let Attempt::Busy { .. } = client.claim(&claim).await? {
        client.store.force_release(&claim.key, None).await?;
    }
    client.claim(&claim).await
}

/// Two steps instead of one: looks, and then inserts.
async fn checks_before_it_inserts(client: Client, claim: Claim) -> Result<Attempt> {
    if !client.store.inspect(&claim.key).await?.holders.is_empty() {
        return client.claim(&claim).await;
    }
    tokio::time::sleep(Duration::from_millis(2)).await;
    Ok(match client.claim(&claim).await? {
        Attempt::Busy { .. } => Attempt::Granted { epoch: Some(FencingToken::epoch_at(client.clock.since_1970())) },
        attempt => attempt,
    })
}

/// Writes down when the lease ends by the clock of who asks, which the store compares with its own.
async fn ends_by_the_clients_clock(client: Client, mut claim: Claim) -> Result<Attempt> {
    claim.ttl += client.clock.now().since(Clock::system().now());
    client.claim(&claim).await
}

async fn blocks_try(client: Client, claim: Claim) -> Result<Attempt> {
    loop {
        match client.claim(&claim).await? {
            Attempt::Busy { .. } => tokio::time::sleep(Duration::from_millis(5)).await,
            attempt => return Ok(attempt),
        }
    }
}

async fn hides_what_is_left(client: Client, claim: Claim) -> Result<Attempt> {
    let attempt = client.claim(&claim).await?;
    Ok(if let Attempt::Busy { .. } = attempt { Attempt::Busy { retry_in: None } } else { attempt })
}

async fn claim_again_prolongs(client: Client, claim: Claim) -> Result<Attempt> {
    let attempt = client.claim(&claim).await?;
    if let Attempt::Granted { epoch } = attempt {
        client.renew(&[Renewal { grant: claim.grant(epoch), ttl: claim.ttl }]).await;
    }
    Ok(attempt)
}

/// What was granted once is granted to its owner for ever, with the number that it had or with a new one.
fn grants_from_memory(modes: &'static [Mode], anew: bool) -> Double {
    claims(move |client: Client, claim: Claim| async move {
        let is_it = |grant: &GrantRef| grant.owner == claim.owner && modes.contains(&grant.mode);
        match client.granted(&claim.key).into_iter().find(is_it) {
            Some(grant) => Ok(Attempt::Granted { epoch: grant.epoch.map(|epoch| epoch + u64::from(anew)) }),
            None => client.claim(&claim).await,
        }
    })
}

async fn releases_what_expired(client: Client, grant: GrantRef) -> Result<LeaseStatus> {
    let held = client.store.release(&grant).await?;
    let free = client.store.inspect(&grant.key).await?.holders.is_empty();
    Ok(if free { LeaseStatus::Held } else { held })
}

fn releases_nothing(_: Client, _: GrantRef) -> Ready<Result<LeaseStatus>> {
    ready(Ok(LeaseStatus::Held))
}

async fn tells_loss_on_release(client: Client, grant: GrantRef) -> Result<LeaseStatus> {
    client.store.release(&grant).await.map(|_| LeaseStatus::NotHeld)
}

/// The epoch, from how many grants there were so far and what the store says.
fn tokens(of: fn(u64, u64) -> u64) -> Double {
    let grants = Arc::new(AtomicU64::new(0));
    claims(move |client: Client, claim: Claim| {
        let grants = Arc::clone(&grants);
        async move {
            let attempt = client.claim(&claim).await?;
            let Attempt::Granted { epoch } = attempt else { return Ok(attempt) };
            let count = grants.fetch_add(1, Ordering::SeqCst) + 1;
            Ok(Attempt::Granted { epoch: epoch.map(|epoch| of(count, epoch)) })
        }
    })
}

/// What becomes of a key on its way to the store.
fn folds(fold: fn(&str) -> String) -> Double {
    claims(move |client: Client, claim: Claim| async move {
        let key = LockKey::new(fold(claim.key.as_str()))?;
        client.claim(&Claim { key, ..claim }).await
    })
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

fn namespaces(namespace: fn(&str) -> String) -> Double {
    Double { namespace, ..Double::sound() }
}

/// One flat name for namespace and key.
fn joins(joint: &'static str) -> Double {
    let grants = move |client: Client, claim: Claim| async move {
        let key = client.flat(joint, &claim.key)?;
        client.store.namespace("flat").try_acquire(&Claim { key, ..claim }).await
    };
    let frees = move |client: Client, grant: GrantRef| async move {
        let key = client.flat(joint, &grant.key)?;
        client.store.namespace("flat").release(&GrantRef { key, ..grant }).await
    };
    Double { releases: Box::new(frees), ..claims(grants) }
}
