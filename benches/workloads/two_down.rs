//! Q-down: two of five nodes are stopped (SIGSTOP), so that they neither answer nor refuse.

use crate::contenders::Kind;
use crate::harness::{Aim, Role, Side, interleave};
use crate::job::{Job, Shape};
use crate::load::Result;
use crate::log::{P50, P99, PER_SECOND};
use crate::pace::Pace;
use crate::report::Report;
use crate::servers::Store;

const OURS: &str = "redlock, fenced";

/// Workload Q-down.
pub(crate) fn two_down(nodes: &Store, pace: Pace) -> Result<Report> {
    let job = || Job::of(nodes.locks(Kind::Redlock), Shape::own_keys(1));
    let (all_up, two_stopped) = (job(), job());
    let sides = vec![
        Side::job(Role::Floor, "all five up", all_up),
        Side::new(Role::Ours, OURS, |pace| nodes.with_two_stopped(|stop| two_stopped.run_after(pace, stop))),
    ];
    let rounds = interleave(pace, sides)?;
    let row = |figure, aims: &[Aim]| {
        let what = format!("2 of 5 nodes stopped (floor: none), 1 task: {figure}");
        rounds.row("Q-down", &what, OURS, figure, aims)
    };
    Ok(Report::of([row(P99, &[Aim::WithinFloor(1.2)]), row(P50, &[]), row(PER_SECOND, &[])]))
}
