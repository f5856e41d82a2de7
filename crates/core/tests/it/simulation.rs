//! The engine under a seeded adversary, on a clock that jumps ahead instead of waiting: lost replies, refusals,
//! delays longer than leases, cancelled waits, dropped guards, expiry in the middle of a hold.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{
    Backend, Clock, Engine, EngineOptions, ErrorKind, FencingToken, LockKey, LockOptions, LockerExt, MemoryBackend,
    Wait,
};
use leasehold_testkit::{Fault, Faulty, FaultyMemory, Op, if_deep, test};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// How many histories are played in one run of the tests, and how many more in a deep one.
const SEEDS: u64 = 400;
const MORE: u64 = 4_000;

type Dice = Arc<Mutex<StdRng>>;

fn roll(dice: &Dice, sides: u32) -> u32 {
    dice.lock().unwrap().random_range(0..sides)
}

/// What goes wrong with a step.
fn adversary(dice: &Dice, op: Op) -> Vec<Fault> {
    if !matches!(op, Op::TryAcquire | Op::Renew | Op::Release) {
        return Vec::new();
    }
    let mut faults = vec![Fault::Slow(Duration::from_micros(u64::from(roll(dice, 3_000))))];
    if roll(dice, 20) == 0 {
        faults.push(Fault::Refuse(ErrorKind::Unavailable));
    }
    if roll(dice, 30) == 0 {
        // Sometimes longer than any lease here.
        faults.push(Fault::Delay(Duration::from_millis(u64::from(roll(dice, 3_000)))));
    }
    if roll(dice, 20) == 0 {
        faults.push(Fault::LoseReply);
    }
    faults
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
        let dice: Dice = Arc::new(Mutex::new(StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(number))));
        let backend = Faulty::new(store.clone());
        backend.faults.choose({
            let dice = Arc::clone(&dice);
            move |op| adversary(&dice, op)
        });
        let engine = Engine::with(backend, EngineOptions::new().clock(clock.clone()));
        let register = Arc::clone(&register);
        tasks.spawn(async move {
            for _ in 0..6 {
                hold_once(&engine, &dice, &register).await;
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

async fn hold_once(engine: &Engine<FaultyMemory>, dice: &Dice, register: &Mutex<Register>) {
    let key = LockKey::new(["a", "b"][roll(dice, 2) as usize]).unwrap();
    let options = LockOptions::new()
        .ttl(Duration::from_millis(u64::from(100 + roll(dice, 900))))
        .renew(roll(dice, 3) > 0)
        .wait(Wait::UpTo(Duration::from_millis(u64::from(roll(dice, 2_000)))));
    let leaves_after = Duration::from_millis(u64::from(roll(dice, 3_000)));
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
    let work = Duration::from_millis(u64::from(roll(dice, 1_500)));
    tokio::select! {
        biased;
        _ = guard.lost() => {}
        () = tokio::time::sleep(work) => {}
    }
    *register.lock().unwrap().inside.get_mut(&key).unwrap() -= 1;
    if roll(dice, 2) == 0 {
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
