//! Q1, Q64, Q-down: a majority of five independent Redis servers.

use crate::contenders::Locks;
use crate::harness::{Aim, Role, Side, interleave};
use crate::job::Job;
use crate::load::Result;
use crate::log::{CPU, P50, P99, PER_SECOND};
use crate::pace::Pace;
use crate::report::Report;
use crate::servers::FiveNodes;

pub(crate) const UNFENCED: &str = "redlock, unfenced";
pub(crate) const FENCED: &str = "redlock, fenced";

/// Workload Q1: one task.
pub(crate) fn q1(pace: Pace) -> Result<Report> {
    let Some(nodes) = FiveNodes::start()? else { return Ok(Report::absent("Q1", "no redis-server")) };
    let rounds = interleave(pace, all_up(&nodes, 1))?;
    let row = |name: &str, what: &str, figure, aims: &[Aim]| {
        rounds.row("Q1", &format!("5 nodes, 1 task, {what}"), name, figure, aims)
    };
    Ok(Report::of([
        row(UNFENCED, "unfenced: cycles/s", PER_SECOND, &[Aim::PeerTimes(1.0)]),
        row(FENCED, "fenced: cycles/s", PER_SECOND, &[Aim::PeerTimes(0.95)]),
        row(UNFENCED, "unfenced: p50 of a cycle, µs", P50, &[]),
        row(FENCED, "fenced: p50 of a cycle, µs", P50, &[]),
    ]))
}

/// Workload Q64: 64 tasks.
pub(crate) fn q64(pace: Pace) -> Result<Report> {
    let Some(nodes) = FiveNodes::start()? else { return Ok(Report::absent("Q64", "no redis-server")) };
    let rounds = interleave(pace, all_up(&nodes, 64))?;
    let row = |name: &str, what: &str, figure, aims: &[Aim]| {
        rounds.row("Q64", &format!("5 nodes, 64 tasks, {what}"), name, figure, aims)
    };
    Ok(Report::of([
        row(UNFENCED, "unfenced: cycles/s", PER_SECOND, &[Aim::PeerTimes(1.3)]),
        row(FENCED, "fenced: cycles/s", PER_SECOND, &[Aim::PeerTimes(1.1)]),
        row(UNFENCED, "unfenced: client CPU, µs/cycle", CPU, &[]),
        row(FENCED, "fenced: client CPU, µs/cycle", CPU, &[]),
    ]))
}

/// Workload Q-down: two of the five nodes are stopped (SIGSTOP), so that they neither answer nor refuse.
pub(crate) fn two_down(pace: Pace) -> Result<Report> {
    let Some(nodes) = FiveNodes::start()? else { return Ok(Report::absent("Q-down", "no redis-server")) };
    let job = Job::own_keys(Locks::Redlock { urls: nodes.urls(), fencing: true }, 1);
    let with_two_stopped = job.clone();
    let sides = vec![
        Side::job(Role::Floor, "all five up", job),
        Side::new(Role::Ours, FENCED, |pace| {
            let sample = with_two_stopped.run_after(pace, || nodes.stop_two());
            nodes.resume_two()?;
            sample
        }),
    ];
    let rounds = interleave(pace, sides)?;
    let row = |figure, aims: &[Aim]| {
        let what = format!("2 of 5 nodes stopped (floor: none), 1 task: {figure}");
        rounds.row("Q-down", &what, FENCED, figure, aims)
    };
    Ok(Report::of([row(P99, &[Aim::WithinFloor(1.2)]), row(P50, &[]), row(PER_SECOND, &[])]))
}

/// The contenders on five nodes that all answer.
pub(crate) fn all_up(nodes: &FiveNodes, tasks: usize) -> Vec<Side<'static>> {
    let urls = nodes.urls();
    let job = |locks| Job::own_keys(locks, tasks);
    vec![
        Side::job(Role::Ours, UNFENCED, job(Locks::Redlock { urls: urls.clone(), fencing: false })),
        Side::job(Role::Ours, FENCED, job(Locks::Redlock { urls: urls.clone(), fencing: true })),
        Side::job(Role::Floor, "bare fan-out", job(Locks::BareFanOut { urls: urls.clone() })),
        Side::job(Role::Peer, "rslock", job(Locks::Rslock { urls, retry_millis: 200 })),
    ]
}
