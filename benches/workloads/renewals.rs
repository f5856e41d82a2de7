//! R100k: 100,000 leases that are held and renewed, by one locker and by a task each.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::clock::{Moment, lease_deadline};
use leasehold_core::{LockGuard, LockKey, LockOptions, LockerExt};
use leasehold_redis_single::RedisSingle;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::child_task::{self, ChildTask, HoldCost};
use crate::contenders::bare::Bare;
use crate::harness::{Aim, Row};
use crate::load::{Contender, Result};
use crate::machine;
use crate::pace::Pace;
use crate::report::Report;
use crate::servers::Store;

const LEASES: usize = 100_000;
const LEASE: Duration = Duration::from_secs(30);
const WATCHED: usize = 50;

/// Workload R100k. Each side runs in a process of its own, so that the memory contains nothing else.
pub(crate) fn hundred_thousand(redis: &Store, pace: Pace) -> Result<Report> {
    // Every lease is renewed once in ten seconds.
    let seconds = if pace.quick { 10 } else { 20 };
    let ours: HoldCost = child_task::run(&ChildTask::Hold { url: redis.url(), leases: LEASES, seconds })?;
    let tasks: HoldCost = child_task::run(&ChildTask::HoldByTasks { url: redis.url(), leases: LEASES, seconds })?;
    let row = |what: &str, figure: fn(&HoldCost) -> f64, aims: &[Aim]| {
        let row = Row::of("R100k", &format!("100,000 leases renewed every 10 s: {what}"), &[figure(&ours)], aims);
        row.beside("a task per lock", figure(&tasks))
    };
    Ok(Report::of([
        row("client CPU, % of a core", |cost| cost.core_percent, &[Aim::AtMost(2.0)]),
        row("bytes per lock beside its guard", |cost| cost.bytes_per_lease, &[Aim::AtMost(300.0)]),
        row("the latest renewal, ms after it was due", |cost| cost.latest_millis, &[Aim::AtMost(50.0)]),
    ]))
}

/// Holds leases, which their locker renews, for `seconds`, and watches some of the guards.
pub(crate) async fn hold_and_watch(url: &str, leases: usize, seconds: u64) -> Result<HoldCost> {
    let locks = RedisSingle::connect(url).await?;
    let before = machine::resident_bytes();
    let guards = hold(&locks, "held", leases, &LockOptions::new().ttl(LEASE)).await?;
    let bytes = machine::resident_bytes().saturating_sub(before);
    let own = size_of::<LockGuard>();
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
    Ok(HoldCost {
        core_percent,
        bytes_per_lease: bytes as f64 / leases as f64 - own as f64,
        latest_millis: due.saturating_sub(least).as_secs_f64() * 1e3,
    })
}

/// Holds leases on a bare client, with a task for each lease that sleeps and renews it.
pub(crate) async fn hold_by_tasks(url: &str, leases: usize, seconds: u64) -> Result<HoldCost> {
    let bare = Arc::new(Bare::connect(url).await?);
    let before = machine::resident_bytes();
    let mut tasks = JoinSet::new();
    let (late, mut latest) = watch::channel(Duration::ZERO);
    let late = Arc::new(late);
    for number in 0..leases {
        tasks.spawn(renew_for_ever(Arc::clone(&bare), bare.key(&format!("held-by-task/{number}"))?, Arc::clone(&late)));
    }
    // All leases are granted when the last one is.
    let last = bare.key(&format!("held-by-task/{}", leases - 1))?;
    while !bare.is_taken(&last).await? {
        sleep(Duration::from_millis(50)).await;
    }
    let bytes = machine::resident_bytes().saturating_sub(before);
    latest.mark_unchanged();
    let cpu = machine::cpu_micros();
    sleep(Duration::from_secs(seconds)).await;
    let core_percent = (machine::cpu_micros() - cpu) as f64 / (seconds as f64 * 1e4);
    if let Some(ended) = tasks.try_join_next() {
        match ended?? {}
    }
    let latest_millis = latest.borrow().as_secs_f64() * 1e3;
    Ok(HoldCost { core_percent, bytes_per_lease: bytes as f64 / leases as f64, latest_millis })
}

async fn renew_for_ever(bare: Arc<Bare>, key: Arc<str>, late: Arc<watch::Sender<Duration>>) -> Result<Infallible> {
    let taken = bare.acquire(&key).await?;
    loop {
        let due = Instant::now() + LEASE / 3;
        sleep(LEASE / 3).await;
        bare.renew(&taken).await?;
        let by = due.elapsed();
        late.send_if_modified(|latest| std::mem::replace(latest, by.max(*latest)) < by);
    }
}

/// Acquires this many leases of keys with the prefix `prefix`, 256 at a time.
pub(crate) async fn hold(
    locks: &RedisSingle,
    prefix: &str,
    leases: usize,
    options: &LockOptions,
) -> Result<Vec<LockGuard>> {
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
