//! What the server keeps, and what that costs.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::conformance::driver::rig::{Able, Unable};
use crate::conformance::driver::stage::{PATIENCE, Stage, Verdict, ensure, key, patient};
use crate::{Clock, LockKey, LockOptions, LockerExt, Locks};

/// By how much a count may grow: a pool may open a few connections when there is more to do than before, and of everything else each of
/// two lockers may have one under way. What each hand-off leaves would be a thousand.
fn room(name: &str) -> u64 {
    if ["connections", "sessions", "clients", "prepared statements"].contains(&name) { 16 } else { 2 }
}

/// What two lockers on one key need is what they have after ten hand-offs.
pub(super) async fn a_thousand_hand_offs_leave_no_more_on_the_server_than_ten(stage: Stage) -> Verdict {
    let lockers = [stage.far().await?, stage.far().await?];
    take_turns(&lockers, 5).await?;
    // Of what is given up in the background, some is still there: this is the most that may be.
    let few = keeps(&stage).await?;
    take_turns(&lockers, 500).await?;
    let clock = Clock::system();
    let limit = clock.now().plus(PATIENCE);
    loop {
        let many = keeps(&stage).await?;
        let grown: Vec<_> = many
            .iter()
            .filter(|(name, count)| **count > few.get(*name).copied().unwrap_or_default() + room(name))
            .collect();
        if grown.is_empty() {
            return Ok(());
        }
        ensure!(clock.now() < limit, "{grown:?} have grown: {few:?} after ten hand-offs, {many:?} after a thousand");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn keeps(stage: &Stage) -> Able<BTreeMap<&'static str, u64>> {
    let mut keeps = stage.server.keeps().await?;
    keeps.insert("connections", stage.proxy.open());
    Ok(keeps)
}

/// Two lockers take a key in turns, so often each.
async fn take_turns(lockers: &[Locks; 2], times: usize) -> Verdict {
    let mut tasks = JoinSet::new();
    for locks in lockers {
        let (locks, name) = (locks.clone(), key("k")?);
        tasks.spawn(async move {
            for _ in 0..times {
                cycle(&locks, &name).await?;
            }
            Ok::<_, Unable>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

async fn cycle(locks: &Locks, name: &LockKey) -> Verdict {
    // A lease of the usual length: some stores keep what is left of one until it would have ended.
    let options = LockOptions::new().wait(patient().patience());
    let guard = locks.acquire(name, &options).await?;
    guard.ok_or_else(|| Unable::Failed("a key is not free".to_owned()))?.release().await?;
    Ok(())
}

/// Compared with a new key on a new server, in turns: what else the machine does slows both down.
pub(super) async fn a_key_costs_no_more_after_thousands_of_cycles(stage: Stage) -> Verdict {
    let (old, fresh) = (stage.near().await?, stage.another().await?);
    let name = key("k")?;
    for _ in 0..stage.cycles() {
        cycle(&old, &name).await?;
    }
    costs_at_most(3, &old, &fresh.near().await?).await
}

/// Compared with a server on which nobody else is, in turns.
pub(super) async fn the_keys_of_others_slow_nobody_down(stage: Stage) -> Verdict {
    stage.server.fill(30_000).await?;
    let (full, empty) = (stage.near().await?, stage.another().await?);
    costs_at_most(10, &full, &empty.near().await?).await
}

/// The median of cycles of a key on one server is at most so many times that on another one. Asked twice if it is not.
async fn costs_at_most(times: u32, ours: &Locks, theirs: &Locks) -> Verdict {
    let name = key("k")?;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..150 {
            for (locks, took) in [ours, theirs].into_iter().zip(&mut took) {
                let clock = Clock::system();
                let began = clock.now();
                cycle(locks, &name).await?;
                took.push(clock.now().since(began));
            }
        }
        let [ours, theirs] = took.map(|mut took| {
            took.sort_unstable();
            took[took.len() / 2]
        });
        if ours <= theirs * times {
            return Ok(());
        }
        seen.push((ours, theirs));
    }
    Err(Unable::Failed(format!("a cycle takes more than {times} times as long: {seen:?}")))
}
