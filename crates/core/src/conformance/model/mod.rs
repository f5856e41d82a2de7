//! The model: random scripts of steps, straight to the store, each answer compared with what the contract allows.
//!
//! [`reference`](crate::reference) is the contract as code, `judge.rs` asks it from outside, `script.rs` says what is asked, and `play.rs`
//! asks. Each key has one script, of which some steps meet, and many keys are asked beside each other. A script that fails is shortened, and
//! replayed by its seed.

mod judge;
mod play;
mod script;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use proptest::strategy::{Strategy, ValueTree};
use tokio::runtime::Handle;

use self::judge::Wrong;
use self::play::{End, OPERATOR, Play, Store};
pub(super) use self::script::ENDINGS;
use self::script::{Move, script};
use super::cases::TestContext;
use super::verdict::{Failure, Verdict, ensure};
use crate::{Capabilities, Capability, Clock, LockKey, OwnerId};

/// How many keys are asked beside each other.
const KEYS: usize = 128;
/// How many shorter scripts are tried.
const SHORTER: usize = 200;
const SHORTER_WITHIN: Duration = Duration::from_secs(25);
/// For how long other scripts are asked where a store failed under too many, on a machine that is busy with something else.
const ASKED_AGAIN_WITHIN: Duration = Duration::from_secs(30);

/// The seed of the first script, for a run that is to be the same again.
const SEED: &str = "LEASEHOLD_MODEL_SEED";
/// For how many seconds scripts are begun.
const SECONDS: &str = "LEASEHOLD_MODEL_SECONDS";
/// Set where only the verdict counts: a script that fails is told as it was asked, and not made shorter, which takes many tries.
const AS_ASKED: &str = "LEASEHOLD_MODEL_AS_ASKED";

fn from_environment(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// The name of the case.
pub(super) const CASE: &str = "c01_any_script_of_steps_is_answered_as_the_contract_says";

/// How much longer than another case this one may take: scripts for as long as is asked, and shorter ones of one that failed.
pub(super) fn takes_longer() -> Duration {
    seconds() + SHORTER_WITHIN * 3 + ASKED_AGAIN_WITHIN
}

/// For how long scripts are begun. Zero: each key has one.
fn seconds() -> Duration {
    Duration::from_secs(from_environment(SECONDS).unwrap_or(7))
}

/// Asks scripts of each key until the time is over.
pub(super) async fn c01_any_script_of_steps_is_answered_as_the_contract_says(context: TestContext) -> Verdict {
    let mut claims = context.subject.capabilities();
    if context.subject.signals_in_turn() {
        claims = claims.without(Capability::Wakeup, "whose turn it is, a script does not know");
    }
    // Of the greatest length, as some of the keys are.
    let namespace = format!("{:x<64}", TestContext::namespace());
    let mut clients = Vec::new();
    for _ in 0..=OPERATOR {
        clients.push(Arc::new(context.client_in(&namespace, Clock::system()).await?));
    }
    let (is_atomic, is_dated) = (context.subject.steps_are_atomic(), context.shows_when_it_granted().await?);
    let store = Store { clients, claims, is_atomic, is_dated };
    let first = from_environment(SEED).unwrap_or_else(|| rand::random::<u32>().into());
    let (clock, mut unclear, mut asked, mut why) = (Clock::system(), 0, 0, String::new());
    let over = clock.now().plus(seconds());
    let is_unclear = |unclear, asked| unclear * 4 >= asked;
    let goes_on = |unclear, asked| {
        clock.now() < over || (is_unclear(unclear, asked) && clock.now() < over.plus(ASKED_AGAIN_WITHIN))
    };
    let (mut plays, mut next, mut named) = (FuturesUnordered::new(), first, stem());
    loop {
        while plays.len() < KEYS && goes_on(unclear, asked) {
            if next.is_multiple_of(ENDINGS.len() as u64) {
                named = stem();
            }
            let (seed, play) = (next, Play::new(&store, key(&named, next)?));
            let moves = moves(seed, &store.claims);
            plays.push(async move { (seed, play.all(&moves).await) });
            next = next.wrapping_add(1);
        }
        let Some((seed, ended)) = plays.next().await else { break };
        asked += 1;
        match ended {
            Ok(()) => {}
            Err(End::Unclear(failed)) => (unclear, why) = (unclear + 1, failed),
            Err(End::Wrong(wrong, told)) => {
                // The others would be asked beside the shorter ones.
                drop(plays);
                // The scripts of the keys that begin alike were asked beside it.
                let first = first.max(seed - seed % ENDINGS.len() as u64);
                if !context.is_explained || std::env::var_os(AS_ASKED).is_some() {
                    return Err(failure(first, "as it was asked", wrong, &told));
                }
                return Err(match shorter(seed, &store).await {
                    Some((wrong, told)) => failure(first, "made as short as it fails", wrong, &told),
                    None => failure(first, ALONE_IT_PASSED, wrong, &told),
                });
            }
        }
    }
    ensure!(
        !is_unclear(unclear, asked),
        "{unclear} of {asked} scripts ended with a store that failed, the last one: {why}"
    );
    Ok(())
}

const ALONE_IT_PASSED: &str =
    "as it was asked (alone it passed: a moment may decide, or a step of another key that is asked beside it)";

fn failure(seed: u64, how: &str, Wrong { clause, why }: Wrong, told: &str) -> Failure {
    Failure(format!("{clause}: a script, {how}:\n{told}← {why}\n{SEED}={seed} asks the same scripts"))
}

fn stem() -> String {
    format!("model-{}-", &OwnerId::random().to_hex()[..12])
}

/// The key of a script. Those of every other stem are of the greatest length, and differ at their ends alone.
fn key(stem: &str, seed: u64) -> Result<LockKey, Failure> {
    let (group, place) = (seed / ENDINGS.len() as u64, seed % ENDINGS.len() as u64);
    let ending = ENDINGS[usize::try_from(place).unwrap_or_default()];
    let filling = if group % 2 == 1 { LockKey::MAX_BYTES - stem.len() - ending.len() } else { 0 };
    Ok(LockKey::new(format!("{stem}{}{ending}", "x".repeat(filling)))?)
}

fn moves(seed: u64, claims: &Capabilities) -> Vec<Move> {
    let (mut runner, scripts) = script(seed, claims);
    scripts.new_tree(&mut runner).map(|tree| tree.current()).unwrap_or_default()
}

/// The shortest script found that fails like that of this seed, and how. `None` if it does not fail alone.
async fn shorter(seed: u64, store: &Store) -> Option<(Wrong, String)> {
    let (store, handle) = (store.clone(), Handle::current());
    let shrink = move || {
        let (mut runner, scripts) = script(seed, &store.claims);
        let mut tree = scripts.new_tree(&mut runner).ok()?;
        let fails = |moves: &[Move]| {
            let key = key(&stem(), seed).ok()?;
            match handle.block_on(Play::new(&store, key).all(moves)) {
                Err(End::Wrong(wrong, told)) => Some((wrong, told)),
                _ => None,
            }
        };
        let mut shortest = fails(&tree.current())?;
        let clock = Clock::system();
        let over = clock.now().plus(SHORTER_WITHIN);
        let mut tries = 0;
        let mut goes_on = tree.simplify();
        while goes_on && tries < SHORTER && clock.now() < over {
            tries += 1;
            goes_on = match fails(&tree.current()) {
                Some(failure) => {
                    shortest = failure;
                    tree.simplify()
                }
                None => tree.complicate(),
            };
        }
        Some(shortest)
    };
    tokio::task::spawn_blocking(shrink).await.ok().flatten()
}
