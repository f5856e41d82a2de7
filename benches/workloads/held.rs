//! What many held and waited for keys cost: 100,000 leases that are renewed (R100k); and a cycle of acquire and release, as more keys are
//! held and more tasks wait (C).
//!
//! What is counted of a client is counted in a process of its own, so that its memory and processor time contain nothing else.

use std::convert::Infallible;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::clock::{Moment, lease_deadline};
use leasehold_core::{LockGuard, LockKey, LockOptions, LockerExt};
use leasehold_redis_single::RedisSingle;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::contenders::ours::ours;
use crate::contenders::redis::Bare;
use crate::contenders::{Kind, Role};
use crate::harness::{Aim, Rounds, Row, Side, interleave, median};
use crate::job::{Job, Shape, runtime};
use crate::load::{Pace, Result, now};
use crate::log::{COST, PER_SECOND, Sample};
use crate::machine;
use crate::report::{Plot, Report};
use crate::servers::Store;

const LEASES: usize = 100_000;
const LEASE: Duration = Duration::from_secs(30);
/// So many of the guards are looked at all the time.
const WATCHED: usize = 50;

/// What a child process counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Task {
    /// What it costs that its locker holds leases of `redis-single`.
    Hold { leases: usize, seconds: u64 },
    /// What it costs to hold leases on a bare client, with a task for each.
    HoldByTasks { leases: usize, seconds: u64 },
    /// What those cost who wait for a key that is held: bytes for each.
    Wait { waiters: usize },
}

/// What it costs a client.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Cost {
    core_percent: f64,
    bytes_of_each: f64,
    latest_millis: f64,
}

/// Has a child process of this program count it, with this Redis.
fn counted(task: &Task, redis: &Store) -> Result<Cost> {
    let task = serde_json::to_string(&(task, redis.url()))?;
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["--child-task", &task]).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8(output.stdout)?;
    serde_json::from_str(&text).map_err(|_| format!("{task}: {}", text.trim()).into())
}

/// Counts what a parent process asked for, and prints it.
pub(crate) fn run_as_child(task: &str) -> Result<()> {
    let (task, url): (Task, String) = serde_json::from_str(task)?;
    let cost = runtime(0)?.block_on(async {
        match task {
            Task::Hold { leases, seconds } => hold_and_watch(&url, leases, seconds).await,
            Task::HoldByTasks { leases, seconds } => hold_by_tasks(&url, leases, seconds).await,
            Task::Wait { waiters } => wait(&url, waiters).await,
        }
    })?;
    println!("{}", serde_json::to_string(&cost)?);
    Ok(())
}

/// Workload R100k.
pub(crate) fn hundred_thousand(redis: &Store, pace: Pace) -> Result<Report> {
    // Every lease is renewed once in ten seconds.
    let seconds = if pace.quick { 10 } else { 20 };
    let ours = counted(&Task::Hold { leases: LEASES, seconds }, redis)?;
    let tasks = counted(&Task::HoldByTasks { leases: LEASES, seconds }, redis)?;
    let row = |what: &str, figure: fn(&Cost) -> f64, most| {
        let row = Row::of(&format!("100,000 leases renewed every 10 s: {what}"), &[figure(&ours)]);
        row.beside("a task per lock", figure(&tasks)).judged(&[Aim::AtMost(most)])
    };
    Ok(Report::of([
        row("client CPU, % of a core", |cost| cost.core_percent, 2.0),
        row("bytes per lock beside its guard", |cost| cost.bytes_of_each, 300.0),
        row("the latest renewal, ms after it was due", |cost| cost.latest_millis, 50.0),
    ]))
}

const HELD: [usize; 5] = [10, 100, 1000, 10_000, 100_000];
const WAITING: [usize; 4] = [1, 10, 100, 1000];

/// Workload C.
pub(crate) fn growth(redis: &Store, pace: Pace) -> Result<Report> {
    let mut report = Report::default();
    let mut add = |rounds: &Rounds, what: &str, plot, sizes: &[usize]| {
        let most = sizes[sizes.len() - 1].to_string();
        report.rows.push(rounds.row(what, &most, COST, &[Aim::WithinFloor(1.25)]));
        let cost = |size: &usize| (*size as f64, median(&rounds.figures(&size.to_string(), COST)));
        report.draw(plot, Kind::RedisSingle.side(), sizes.iter().map(cost));
    };
    let beside = "100,000 keys held (floor: 10), 64 tasks: µs per cycle";
    add(&beside_held_keys(redis, pace)?, beside, Plot::Keys, &HELD);
    let among = "1,000 wait for a key (floor: 10): µs per acquisition";
    add(&among_waiters(redis, pace)?, among, Plot::Waiters, &WAITING);
    for leases in [10_000, 100_000] {
        let cost = counted(&Task::Hold { leases, seconds: 0 }, redis)?;
        let what = format!("{leases} keys held: bytes per lock beside its guard");
        report.rows.push(Row::of(&what, &[cost.bytes_of_each]));
    }
    let cost = counted(&Task::Wait { waiters: 10_000 }, redis)?;
    let what = "10,000 wait for a key: bytes per waiter, its task included";
    report.rows.push(Row::of(what, &[cost.bytes_of_each]));
    Ok(report)
}

/// Measures with a locker for each number of held keys. All lockers exist at the same time, so that they can take turns.
fn beside_held_keys(redis: &Store, pace: Pace) -> Result<Rounds> {
    let runtime = runtime(0)?;
    // A lease so long that no renewal falls into a round.
    let options = LockOptions::new().ttl(Duration::from_secs(3600));
    let mut lockers = Vec::new();
    for size in HELD {
        let locks = runtime.block_on(RedisSingle::connect(&redis.url()))?;
        let guards = runtime.block_on(hold(&locks, &format!("held/{size}"), size, &options))?;
        lockers.push((size, locks, guards));
    }
    let shape = Shape::own_keys(64);
    let sides = lockers.iter().map(|(size, locks, _guards)| {
        side(*size, |pace| {
            let start = now();
            let log = runtime.block_on(shape.load(pace, 0).run(ours(locks.clone()), start))?;
            shape.judged(pace, start, &log)
        })
    });
    interleave(pace, sides.collect())
}

fn among_waiters(redis: &Store, pace: Pace) -> Result<Rounds> {
    let sides = WAITING.map(|waiters| {
        let job = Job::of(redis.locks(Kind::RedisSingle), Shape::hot_key(waiters));
        side(waiters, move |pace| job.run(pace))
    });
    interleave(pace, sides.into())
}

/// A side of this size, with what a cycle costs. The size 10 is the floor, with which all other sizes are compared.
fn side<'a>(size: usize, mut run: impl FnMut(Pace) -> Result<Sample> + 'a) -> Side<'a> {
    Side::new(if size == 10 { Role::Floor } else { Role::Ours }, &size.to_string(), move |pace| {
        let mut sample = run(pace)?;
        sample.figures.insert(COST, 1e6 / sample.figures[PER_SECOND]);
        Ok(sample)
    })
}

/// Holds leases, which their locker renews, for `seconds`, and watches some of the guards.
async fn hold_and_watch(url: &str, leases: usize, seconds: u64) -> Result<Cost> {
    let locks = RedisSingle::connect(url).await?;
    let before = machine::resident_bytes();
    let guards = hold(&locks, "held", leases, &LockOptions::new().ttl(LEASE)).await?;
    let bytes = machine::resident_bytes().saturating_sub(before);
    // If no renewal is late, no guard ever has less remaining than this: two thirds of the lease, less the guard's margin.
    let due = lease_deadline(Moment::default(), LEASE).since(Moment::default()).saturating_sub(LEASE / 3);
    let mut least = Duration::MAX;
    let (cpu, end) = (machine::cpu_micros(), Instant::now() + Duration::from_secs(seconds));
    let mut ticks = interval(Duration::from_millis(20));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < end {
        ticks.tick().await;
        let watched = guards.iter().step_by((leases / WATCHED).max(1));
        least = watched.map(LockGuard::remaining).fold(least, Duration::min);
    }
    let core_percent = (machine::cpu_micros() - cpu) as f64 / (seconds.max(1) as f64 * 1e4);
    if let Some(lost) = guards.iter().find(|guard| !guard.is_held()) {
        return Err(format!("{} was lost while it was held", lost.key()).into());
    }
    Ok(Cost {
        core_percent,
        bytes_of_each: bytes as f64 / leases as f64 - size_of::<LockGuard>() as f64,
        latest_millis: due.saturating_sub(least).as_secs_f64() * 1e3,
    })
}

/// Holds leases on a bare client, with a task for each lease that sleeps and renews it.
async fn hold_by_tasks(url: &str, leases: usize, seconds: u64) -> Result<Cost> {
    let bare = Arc::new(Bare::connect(url).await?);
    let before = machine::resident_bytes();
    let mut tasks = JoinSet::new();
    let (taken, mut all_taken) = watch::channel(0);
    let (late, latest) = watch::channel(Duration::ZERO);
    let tell = Arc::new((taken, late));
    for number in 0..leases {
        tasks.spawn(renew_for_ever(Arc::clone(&bare), format!("held-by-task/{number}"), Arc::clone(&tell)));
    }
    tokio::select! {
        all = all_taken.wait_for(|taken| *taken == leases) => drop(all?),
        Some(ended) = tasks.join_next() => match ended?? {},
    }
    let bytes = machine::resident_bytes().saturating_sub(before);
    let cpu = machine::cpu_micros();
    sleep(Duration::from_secs(seconds)).await;
    let core_percent = (machine::cpu_micros() - cpu) as f64 / (seconds as f64 * 1e4);
    if let Some(ended) = tasks.try_join_next() {
        match ended?? {}
    }
    let latest_millis = latest.borrow().as_secs_f64() * 1e3;
    Ok(Cost { core_percent, bytes_of_each: bytes as f64 / leases as f64, latest_millis })
}

/// Tells when it has taken the key, and how late its latest renewal was.
type Tell = Arc<(watch::Sender<usize>, watch::Sender<Duration>)>;

async fn renew_for_ever(bare: Arc<Bare>, key: String, tell: Tell) -> Result<Infallible> {
    let owner = bare.take(&key).await?;
    tell.0.send_modify(|taken| *taken += 1);
    loop {
        let due = Instant::now() + LEASE / 3;
        sleep(LEASE / 3).await;
        bare.renew(&key, &owner).await?;
        let by = due.elapsed();
        tell.1.send_if_modified(|latest| std::mem::replace(latest, by.max(*latest)) < by);
    }
}

/// Has this many tasks wait for one key.
async fn wait(url: &str, waiters: usize) -> Result<Cost> {
    let locks = Arc::new(RedisSingle::connect(url).await?);
    let guard = locks.lock("waited-for").await?;
    let before = machine::resident_bytes();
    let mut tasks = JoinSet::new();
    for _ in 0..waiters {
        let (locks, key) = (Arc::clone(&locks), guard.key().clone());
        tasks.spawn(async move { locks.acquire(&key, &LockOptions::new()).await.map(drop) });
    }
    // All have had a turn to join the queue.
    sleep(Duration::from_millis(500)).await;
    let bytes = machine::resident_bytes().saturating_sub(before);
    tasks.abort_all();
    Ok(Cost { bytes_of_each: bytes as f64 / waiters as f64, ..Cost::default() })
}

/// Acquires this many leases of keys with the prefix `prefix`, 256 at a time.
async fn hold(locks: &RedisSingle, prefix: &str, leases: usize, options: &LockOptions) -> Result<Vec<LockGuard>> {
    let mut guards = Vec::with_capacity(leases);
    let keys: Vec<LockKey> = (0..leases).map(|n| LockKey::new(format!("{prefix}/{n}"))).collect::<Result<_, _>>()?;
    for some in keys.chunks(256) {
        let grants = some.iter().map(|key| locks.acquire(key, options));
        for grant in futures::future::try_join_all(grants).await? {
            guards.push(grant.ok_or("a wait without end ended")?);
        }
    }
    Ok(guards)
}
