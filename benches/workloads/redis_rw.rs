//! W1, W64, WR64, WH8: leasehold-redis-rw beside leasehold-redis-single: what it costs that a key may have readers.

use crate::contenders::Locks;
use crate::harness::{Role, Side, interleave};
use crate::job::Job;
use crate::load::Result;
use crate::log::{CPU, HAND_OFFS, JAIN, P50, P99, PER_SECOND};
use crate::pace::Pace;
use crate::report::Report;
use crate::servers::Redis;

const OURS: &str = "redis-rw";

/// A writer, one task.
pub(crate) fn w1(pace: Pace) -> Result<Report> {
    measured("W1", "1 task", pace, &[P50, PER_SECOND, CPU], false, |locks| Job::own_keys(locks, 1))
}

/// Writers, 64 tasks.
pub(crate) fn w64(pace: Pace) -> Result<Report> {
    measured("W64", "64 tasks", pace, &[PER_SECOND, P99, CPU], false, |locks| Job::own_keys(locks, 64))
}

/// Readers, 64 tasks, each with a key of its own: readers of one process share a lease.
pub(crate) fn readers(pace: Pace) -> Result<Report> {
    measured("WR64", "64 readers", pace, &[PER_SECOND, P99, CPU], true, |locks| Job::own_keys(locks, 64))
}

/// Writers, 8 tasks in each of 8 processes on one key.
pub(crate) fn eight_processes(pace: Pace) -> Result<Report> {
    let figures = &[PER_SECOND, HAND_OFFS, P99, JAIN];
    measured("WH8", "8 × 8 on a key", pace, figures, false, |locks| Job::hot_key(locks, 8).processes(8))
}

fn measured(
    id: &'static str,
    words: &str,
    pace: Pace,
    figures: &[&'static str],
    readers: bool,
    job: impl Fn(Locks) -> Job,
) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent(id, "no redis-server")) };
    let sides = vec![
        Side::job(Role::Ours, OURS, job(Locks::RedisRw { url: redis.url(), readers })),
        Side::job(Role::Peer, "redis-single", job(redis.ours())),
    ];
    let rounds = interleave(pace, sides)?;
    let row = |figure: &&'static str| rounds.row(id, &format!("{words}: {figure}"), OURS, figure, &[]);
    Ok(Report::of(figures.iter().map(row)))
}
