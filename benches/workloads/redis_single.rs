//! U1, U64: each task acquires and releases a key of its own, on one Redis. U1d, U64d: and drops its guard instead.

use crate::contenders::Locks;
use crate::harness::{Aim, Role, Side, interleave};
use crate::job::Job;
use crate::load::Result;
use crate::log::{CPU, Keys, P50, PER_SECOND};
use crate::pace::Pace;
use crate::peers;
use crate::report::Report;
use crate::servers::Redis;

/// Workload U1: one task.
pub(crate) fn u1(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("U1", "no redis-server")) };
    let mut all = sides(&redis, 1, 0);
    let (peers, absent) = peers::found();
    all.extend(
        peers
            .iter()
            .filter(|_| !pace.quick)
            .map(|peer| Side::job(Role::Peer, peer.name, peer.job(&redis.url(), Keys::Own, 1))),
    );
    let rounds = interleave(pace, all)?;
    let mut report = Report::of([
        rounds.row("U1", "1 task: p50 of a cycle, µs", OURS, P50, &[Aim::WithinFloor(1.15)]),
        rounds.row("U1", "1 task: cycles/s", OURS, PER_SECOND, &[Aim::PeerTimes(0.9)]),
        rounds.row("U1", "1 task: client CPU, µs/cycle", OURS, CPU, &[]),
    ]);
    report.absent_peers(&absent);
    Ok(report)
}

/// Workload U64: 64 tasks on one connection.
pub(crate) fn u64(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("U64", "no redis-server")) };
    let mut report = Report::default();
    let alone: &[Aim] = &[Aim::FloorTimes(1.0), Aim::PeerTimes(1.2)];
    for (workers, on, rate, most) in [(0, "current thread", alone, 6.0), (2, "2 workers", &[Aim::PeerTimes(1.2)], 9.0)]
    {
        let rounds = interleave(pace, sides(&redis, 64, workers))?;
        report.push(rounds.row("U64", &format!("64 tasks, {on}: cycles/s"), OURS, PER_SECOND, rate));
        let what = format!("64 tasks, {on}: client CPU, µs/cycle");
        report.push(rounds.row("U64", &what, OURS, CPU, &[Aim::AtMost(most)]));
    }
    Ok(report)
}

/// Workload U1d: one task that drops its guards.
pub(crate) fn u1d(pace: Pace) -> Result<Report> {
    dropped("U1d", 1, 1.4, pace)
}

/// Workload U64d: 64 tasks that drop their guards.
pub(crate) fn u64d(pace: Pace) -> Result<Report> {
    dropped("U64d", 64, 1.0, pace)
}

/// Guards that are dropped, beside guards that are released, on both kinds of runtime.
fn dropped(id: &'static str, tasks: usize, times: f64, pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent(id, "no redis-server")) };
    let mut report = Report::default();
    for (workers, on) in [(0, "current thread"), (2, "2 workers")] {
        let job = |locks| Job::own_keys(locks, tasks).workers(workers);
        let sides = vec![
            Side::job(Role::Ours, "dropped", job(Locks::RedisDropped { url: redis.url() })),
            Side::job(Role::Floor, "released", job(redis.ours())),
        ];
        let rounds = interleave(pace, sides)?;
        let what = format!("{tasks} tasks, {on}, guards dropped: cycles/s (floor: released)");
        report.push(rounds.row(id, &what, "dropped", PER_SECOND, &[Aim::FloorTimes(times)]));
    }
    Ok(report)
}

pub(crate) const OURS: &str = "redis-single";

/// The contenders on one Redis, with so many tasks on a runtime with so many workers.
pub(crate) fn sides(redis: &Redis, tasks: usize, workers: usize) -> Vec<Side<'static>> {
    let job = |locks| Job::own_keys(locks, tasks).workers(workers);
    vec![
        Side::job(Role::Ours, OURS, job(redis.ours())),
        Side::job(Role::Floor, "bare fred", job(Locks::Bare { url: redis.url() })),
        Side::job(Role::Peer, "rslock", job(redis.rslock())),
    ]
}
