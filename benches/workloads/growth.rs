//! C: what a cycle of acquire and release costs, as more keys are held and more tasks wait.

use std::sync::Arc;
use std::time::Duration;

use leasehold_core::{LockOptions, LockerExt};
use leasehold_redis_single::RedisSingle;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::child_task::{self, ChildTask, HoldCost};
use crate::contenders::Kind;
use crate::contenders::ours::ours;
use crate::harness::{Aim, Role, Rounds, Row, Side, interleave, median};
use crate::job::{Job, Shape, runtime};
use crate::load::{Load, Result, now};
use crate::log::{COST, Keys, PER_SECOND, Sample};
use crate::machine;
use crate::pace::Pace;
use crate::renewals::hold;
use crate::report::{Plot, Report};
use crate::servers::Store;

const HELD: [usize; 5] = [10, 100, 1000, 10_000, 100_000];
const WAITING: [usize; 4] = [1, 10, 100, 1000];

/// Workload C, on one Redis.
pub(crate) fn growth(redis: &Store, pace: Pace) -> Result<Report> {
    let mut report = Report::default();

    let rounds = beside_held_keys(redis, pace)?;
    let flat = [Aim::WithinFloor(1.25)];
    report.push(rounds.row("C", "100,000 keys held (floor: 10), 64 tasks: µs per cycle", "100000", COST, &flat));
    report.draw(Plot::Keys, (Role::Ours, OURS), costs(&rounds, &HELD));

    let rounds = among_waiters(redis, pace)?;
    report.push(rounds.row("C", "1,000 wait for a key (floor: 10): µs per acquisition", "1000", COST, &flat));
    report.draw(Plot::Waiters, (Role::Ours, OURS), costs(&rounds, &WAITING));

    for leases in [10_000, 100_000] {
        let cost: HoldCost = child_task::run(&ChildTask::Hold { url: redis.url(), leases, seconds: 0 })?;
        let what = format!("{leases} keys held: bytes per lock beside its guard");
        report.push(Row::of("C", &what, &[cost.bytes_per_lease], &[]));
    }
    let bytes: f64 = child_task::run(&ChildTask::Wait { url: redis.url(), waiters: 10_000 })?;
    report.push(Row::of("C", "10,000 wait for a key: bytes per waiter, its task included", &[bytes], &[]));
    Ok(report)
}

const OURS: &str = "redis-single";

fn costs(rounds: &Rounds, sizes: &[usize]) -> Vec<(f64, f64)> {
    sizes.iter().map(|size| (*size as f64, median(&rounds.figures(&size.to_string(), COST)))).collect()
}

/// Measures with a locker for each number of held keys. All lockers exist at the same time, so that they can take turns.
fn beside_held_keys(redis: &Store, pace: Pace) -> Result<Rounds> {
    let runtime = runtime(0)?;
    // A lease so long that no renewal falls into a round.
    let options = LockOptions::new().ttl(Duration::from_secs(3600));
    let mut lockers = Vec::new();
    for size in HELD {
        lockers.push(runtime.block_on(async {
            let locks = RedisSingle::connect(&redis.url()).await?;
            let guards = hold(&locks, &format!("held/{size}"), size, &options).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>((size, locks, guards))
        })?);
    }
    let sides = lockers.iter().map(|(size, locks, _guards)| {
        Side::new(role(*size), &size.to_string(), |pace| {
            let (warm_up_millis, window_millis) = (pace.warm_up_millis, pace.window_millis);
            let load =
                Load { keys: Keys::Own, tasks: 64, first_task: 0, hold_micros: 0, warm_up_millis, window_millis };
            let start = now();
            let log = runtime.block_on(load.run(ours(locks.clone()), start))?;
            log.check(load.keys)?;
            Ok(with_cost(log.sample(load.keys, load.tasks, &load.window(start))))
        })
    });
    interleave(pace, sides.collect())
}

fn among_waiters(redis: &Store, pace: Pace) -> Result<Rounds> {
    let sides = WAITING.map(|waiters| {
        let job = Job::of(redis.locks(Kind::RedisSingle), Shape::hot_key(waiters));
        Side::new(role(waiters), &waiters.to_string(), move |pace| Ok(with_cost(job.run(pace)?)))
    });
    interleave(pace, sides.into())
}

/// The size 10 is the floor, with which all other sizes are compared.
fn role(size: usize) -> Role {
    if size == 10 { Role::Floor } else { Role::Ours }
}

fn with_cost(mut sample: Sample) -> Sample {
    sample.figures.insert(COST, 1e6 / sample.figures[PER_SECOND]);
    sample
}

/// Measures the memory per waiter, with this many waiters of one key in this process.
pub(crate) async fn bytes_per_waiter(url: &str, waiters: usize) -> Result<f64> {
    let locks = Arc::new(RedisSingle::connect(url).await?);
    let guard = locks.lock("waited-for").await?;
    let before = machine::resident_bytes();
    let mut tasks = JoinSet::new();
    for _ in 0..waiters {
        let locks = Arc::clone(&locks);
        let key = guard.key().clone();
        tasks.spawn(async move { locks.acquire(&key, &LockOptions::new()).await.map(drop) });
    }
    // All have had a turn to join the queue.
    sleep(Duration::from_millis(500)).await;
    let bytes = machine::resident_bytes().saturating_sub(before);
    tasks.abort_all();
    Ok(bytes as f64 / waiters as f64)
}
