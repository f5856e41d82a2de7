//! The engine under a seeded adversary, on a clock that jumps ahead instead of waiting: lost replies, refusals,
//! delays longer than leases, cancelled waits, dropped guards, expiry in the middle of a hold.

use leasehold_testkit::{if_deep, test};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_core::{
    Attempt, Backend, Capabilities, Claim, Clock, Cursor, Engine, EngineOptions, Error, ErrorKind, FencingToken,
    GrantRef, Holders, LeaseStatus, LockKey, LockOptions, Locker, MemoryBackend, Notifications, Page, Renewal, Result,
    Wait,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How many histories are played in one run of the tests, and how many more in a deep one.
const SEEDS: u64 = 400;
const MORE: u64 = 4_000;

#[derive(Debug)]
struct Adversary {
    inner: MemoryBackend,
    random: Mutex<StdRng>,
}

impl Adversary {
    fn roll(&self, sides: u32) -> u32 {
        self.random.lock().unwrap().random_range(0..sides)
    }

    async fn between<T>(&self, step: impl Future<Output = T> + Send) -> Result<T> {
        tokio::time::sleep(Duration::from_micros(u64::from(self.roll(3_000)))).await;
        if self.roll(20) == 0 {
            return Err(Error::new(ErrorKind::Unavailable, "step"));
        }
        let answer = step.await;
        if self.roll(30) == 0 {
            // Sometimes longer than any lease here.
            tokio::time::sleep(Duration::from_millis(u64::from(self.roll(3_000)))).await;
        }
        if self.roll(20) == 0 { Err(Error::new(ErrorKind::Indeterminate, "step")) } else { Ok(answer) }
    }
}

#[async_trait]
impl Backend for Adversary {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    async fn try_acquire(&self, claim: &Claim) -> Result<Attempt> {
        self.between(self.inner.try_acquire(claim)).await?
    }
    async fn renew(&self, renewals: &[Renewal], within: Duration) -> Vec<Result<LeaseStatus>> {
        match self.between(self.inner.renew(renewals, within)).await {
            Ok(answers) => answers,
            Err(error) => renewals.iter().map(|_| Err(Error::new(error.kind(), "step"))).collect(),
        }
    }
    async fn release(&self, grant: &GrantRef) -> Result<LeaseStatus> {
        self.between(self.inner.release(grant)).await?
    }
    async fn inspect(&self, key: &LockKey) -> Result<Holders> {
        self.inner.inspect(key).await
    }
    async fn list(&self, prefix: &str, after: Option<&Cursor>) -> Result<Page> {
        self.inner.list(prefix, after).await
    }
    async fn force_release(&self, key: &LockKey, only: Option<u64>) -> Result<Holders> {
        self.inner.force_release(key, only).await
    }
    fn notifications(&self) -> Option<&dyn Notifications> {
        self.inner.notifications()
    }
}

/// Who believes to hold which key, by the local clock, and the newest token of each.
#[derive(Debug, Default)]
struct Register {
    inside: BTreeMap<LockKey, u32>,
    newest: BTreeMap<LockKey, FencingToken>,
    grants: u32,
}

async fn play(seed: u64) -> u32 {
    let clock = Clock::tokio();
    let store = MemoryBackend::new(clock.clone());
    let register = Arc::new(Mutex::new(Register::default()));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..4 {
        let random = Mutex::new(StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(number)));
        let engine =
            Engine::with(Adversary { inner: store.clone(), random }, EngineOptions::new().clock(clock.clone()));
        let register = Arc::clone(&register);
        tasks.spawn(async move {
            for _ in 0..6 {
                hold_once(&engine, &register).await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap_or_else(|panic| panic!("seed {seed}: {panic}"));
    }
    // Whatever was cancelled or left unknown, the leases end it.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let held = store.list("", None).await.unwrap().keys;
    assert!(held.is_empty(), "seed {seed} left {held:?}");
    register.lock().unwrap().grants
}

async fn hold_once(engine: &Engine<Adversary>, register: &Mutex<Register>) {
    let backend = engine.backend();
    let key = LockKey::new(["a", "b"][backend.roll(2) as usize]).unwrap();
    let options = LockOptions::new()
        .ttl(Duration::from_millis(u64::from(100 + backend.roll(900))))
        .renew(backend.roll(3) > 0)
        .wait(Wait::UpTo(Duration::from_millis(u64::from(backend.roll(2_000)))));
    let leaves_after = Duration::from_millis(u64::from(backend.roll(3_000)));
    let Ok(Ok(Some(guard))) = tokio::time::timeout(leaves_after, engine.acquire(&key, &options)).await else {
        return;
    };
    let token = guard.fencing_token().unwrap();
    if guard.is_held() {
        let mut register = register.lock().unwrap();
        register.grants += 1;
        let inside = register.inside.entry(key.clone()).or_default();
        *inside += 1;
        assert_eq!(*inside, 1, "two valid holders of {key}");
        let newest = register.newest.insert(key.clone(), token);
        assert!(newest < Some(token), "{token} after {newest:?}");
    } else {
        return;
    }
    let work = Duration::from_millis(u64::from(backend.roll(1_500)));
    tokio::select! {
        biased;
        _ = guard.lost() => {}
        () = tokio::time::sleep(work) => {}
    }
    *register.lock().unwrap().inside.get_mut(&key).unwrap() -= 1;
    if backend.roll(2) == 0 {
        // Any outcome is legal here; that it ends is what matters.
        let _ = guard.release().await;
    }
}

#[test]
fn no_history_has_two_valid_holders_a_repeated_token_or_a_lock_for_ever() {
    let first = std::env::var("LEASEHOLD_SEED").ok().and_then(|seed| seed.parse().ok());
    let all = if_deep([MORE]).fold(SEEDS, |few, more| few + more);
    let seeds = first.map_or(0..all, |seed| seed..seed + 1);
    let mut grants = 0;
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        grants += runtime.block_on(play(seed));
    }
    assert!(first.is_some() || grants > 1_000, "only {grants} grants: the adversary lets nothing through");
}
