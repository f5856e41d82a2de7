//! E1, E64, EH1, EH8: leasehold-etcd, on keys of one's own and on one that all want, beside the locks that etcd has itself.

use leasehold_testkit::etcd::Cluster;

use crate::contenders::Locks;
use crate::harness::{Aim, Role, Row, Side, interleave};
use crate::job::{Job, runtime};
use crate::load::Result;
use crate::log::{CPU, HAND_OFFS, JAIN, P50, P99, PER_SECOND};
use crate::pace::Pace;
use crate::report::Report;

const OURS: &str = "etcd";

/// One task.
pub(crate) fn e1(pace: Pace) -> Result<Report> {
    on_server("E1", |url| {
        let job = |locks| Job::own_keys(locks, 1);
        let mut all = sides(&url, job);
        all.extend([floor(&url, job), processes(&url, job)]);
        let rounds = interleave(pace, all)?;
        Ok(vec![
            rounds.row("E1", "1 task: p50 of a cycle, µs (floor: put and delete)", OURS, P50, &[Aim::WithinFloor(1.3)]),
            rounds.row("E1", "1 task: client CPU, µs/cycle", OURS, CPU, &[]),
        ])
    })
}

/// 64 tasks.
pub(crate) fn e64(pace: Pace) -> Result<Report> {
    on_server("E64", |url| {
        let job = |locks| Job::own_keys(locks, 64);
        let mut all = sides(&url, job);
        all.push(floor(&url, job));
        let rounds = interleave(pace, all)?;
        Ok(vec![
            rounds.row("E64", "64 tasks: cycles/s (floor: put and delete)", OURS, PER_SECOND, &[Aim::PeerTimes(1.5)]),
            rounds.row("E64", "64 tasks: p99 of a cycle, µs", OURS, P99, &[]),
            rounds.row("E64", "64 tasks: client CPU, µs/cycle", OURS, CPU, &[]),
        ])
    })
}

/// 64 tasks of one process on one key.
pub(crate) fn one_process(pace: Pace) -> Result<Report> {
    on_one_key("EH1", "1 × 64 on a key", pace, |locks| Job::hot_key(locks, 64))
}

/// 8 tasks in each of 8 processes on one key.
pub(crate) fn eight_processes(pace: Pace) -> Result<Report> {
    on_one_key("EH8", "8 × 8 on a key", pace, |locks| Job::hot_key(locks, 8).processes(8))
}

fn on_one_key(id: &'static str, words: &str, pace: Pace, job: impl Fn(Locks) -> Job) -> Result<Report> {
    on_server(id, |url| {
        let mut all = sides(&url, &job);
        // Each of its turns takes as long as a process needs to start and end.
        all.extend((!pace.quick).then(|| processes(&url, &job)));
        let rounds = interleave(pace, all)?;
        let row = |figure| rounds.row(id, &format!("{words}: {figure}"), OURS, figure, &[]);
        Ok(vec![row(PER_SECOND), row(HAND_OFFS), row(JAIN)])
    })
}

/// Ours, and the lock that the server itself has.
fn sides(url: &str, job: impl Fn(Locks) -> Job) -> Vec<Side<'static>> {
    vec![
        Side::job(Role::Ours, OURS, job(Locks::Etcd { url: url.to_owned() })),
        Side::job(Role::Peer, "etcd's Lock service", job(Locks::EtcdLock { url: url.to_owned() })),
    ]
}

fn processes(url: &str, job: impl Fn(Locks) -> Job) -> Side<'static> {
    Side::job(Role::Peer, "etcdctl lock", job(Locks::Etcdctl { url: url.to_owned() }))
}

fn floor(url: &str, job: impl Fn(Locks) -> Job) -> Side<'static> {
    Side::job(Role::Floor, "put and delete", job(Locks::EtcdPuts { url: url.to_owned() }))
}

/// Measures on a server of its own, with its data in the folder for temporary files.
fn on_server(id: &'static str, measure: impl Fn(String) -> Result<Vec<Row>>) -> Result<Report> {
    match runtime(0)?.block_on(Cluster::one_or_why(&[])) {
        Ok(server) => Ok(Report::of(measure(server.url())?)),
        Err(why) => Ok(Report::absent(id, &format!("no etcd: {}", why.lines().next().unwrap_or_default()))),
    }
}
