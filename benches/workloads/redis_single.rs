//! U1, U64, T: each task acquires and releases a key of its own, on one Redis.

use crate::contenders::Locks;
use crate::harness::{Aim, Role, Side, interleave, median};
use crate::job::Job;
use crate::load::Result;
use crate::log::{CPU, Keys, P50, PER_SECOND};
use crate::pace::Pace;
use crate::peers;
use crate::report::{Plot, Report};
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
        rounds.row("U1", "1 task: p50 of a cycle, µs", OURS, P50, &[Aim::WithinFloor(1.09)]),
        rounds.row("U1", "1 task: cycles/s", OURS, PER_SECOND, &[Aim::PeerTimes(0.95)]),
        rounds.row("U1", "1 task: client CPU, µs/cycle", OURS, CPU, &[]),
    ]);
    report.absent_peers(&absent);
    Ok(report)
}

/// Workload U64: 64 tasks on one connection.
pub(crate) fn u64(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("U64", "no redis-server")) };
    let mut report = Report::default();
    for (workers, on) in [(0, "current thread"), (2, "2 workers")] {
        let rounds = interleave(pace, sides(&redis, 64, workers))?;
        let aims = [Aim::FloorTimes(1.5), Aim::PeerTimes(1.2)];
        report.push(rounds.row("U64", &format!("64 tasks, {on}: cycles/s"), OURS, PER_SECOND, &aims));
        report.push(rounds.row("U64", &format!("64 tasks, {on}: client CPU, µs/cycle"), OURS, CPU, &[]));
    }
    Ok(report)
}

/// Workload T: throughput by the number of tasks, for the plot.
pub(crate) fn by_tasks(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("T", "no redis-server")) };
    let pace = Pace { rounds: 3, ..pace };
    let mut report = Report::default();
    for tasks in [1_u16, 4, 16, 64, 256] {
        let rounds = interleave(pace, sides(&redis, tasks.into(), 0))?;
        report.push(rounds.row("T", &format!("{tasks} tasks: cycles/s"), OURS, PER_SECOND, &[]));
        for side in rounds.names() {
            let median = median(&rounds.figures(side.1, PER_SECOND));
            report.draw(Plot::Throughput, side, [(tasks.into(), median)]);
        }
    }
    Ok(report)
}

const OURS: &str = "redis-single";

fn sides(redis: &Redis, tasks: usize, workers: usize) -> Vec<Side<'static>> {
    let job = |locks| Job::own_keys(locks, tasks).workers(workers);
    vec![
        Side::job(Role::Ours, OURS, job(redis.ours())),
        Side::job(Role::Floor, "bare fred", job(Locks::Bare { url: redis.url() })),
        Side::job(Role::Peer, "rslock", job(redis.rslock())),
    ]
}
