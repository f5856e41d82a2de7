//! P1, P64, PH1, PH8: leasehold-postgres, on keys of one's own and on one that all want, beside advisory locks of sessions.

use leasehold_postgres::Postgres;
use leasehold_testkit::postgres::Server;

use crate::contenders::Locks;
use crate::harness::{Aim, Role, Row, Side, interleave};
use crate::job::{Job, runtime};
use crate::load::Result;
use crate::log::{CPU, JAIN, P50, P99, PER_SECOND};
use crate::pace::Pace;
use crate::report::Report;

const OURS: &str = "postgres";
const RIVAL: &str = "pg_advisory_lock";

/// One task.
pub(crate) fn p1(pace: Pace) -> Result<Report> {
    on_server("P1", |url| {
        let job = |locks| Job::own_keys(locks, 1);
        let floor = Side::job(Role::Floor, "two UPDATEs", job(Locks::PgUpdates { url: url.clone() }));
        let rounds = interleave(pace, vec![ours(&url, job), floor, rival(&url, job)])?;
        Ok(vec![
            rounds.row("P1", "1 task: p50 of a cycle, µs (floor: two UPDATEs)", OURS, P50, &[Aim::WithinFloor(1.3)]),
            rounds.row("P1", "1 task: client CPU, µs/cycle", OURS, CPU, &[]),
        ])
    })
}

/// 64 tasks.
pub(crate) fn p64(pace: Pace) -> Result<Report> {
    on_server("P64", |url| {
        let job = |locks| Job::own_keys(locks, 64);
        let floor = Side::job(Role::Floor, "two UPDATEs", job(Locks::PgUpdates { url: url.clone() }));
        let rounds = interleave(pace, vec![ours(&url, job), floor, rival(&url, job)])?;
        Ok(vec![
            rounds.row(
                "P64",
                "64 tasks: cycles/s (floor: two UPDATEs)",
                OURS,
                PER_SECOND,
                &[Aim::FloorTimes(1.0), Aim::PeerTimes(2.0)],
            ),
            rounds.row("P64", "64 tasks: p99 of a cycle, µs", OURS, P99, &[]),
            rounds.row("P64", "64 tasks: client CPU, µs/cycle", OURS, CPU, &[]),
        ])
    })
}

/// 64 tasks of one process on one key.
pub(crate) fn one_process(pace: Pace) -> Result<Report> {
    on_one_key("PH1", "1 × 64 on a key", pace, |locks| Job::hot_key(locks, 64))
}

/// 8 tasks in each of 8 processes on one key.
pub(crate) fn eight_processes(pace: Pace) -> Result<Report> {
    on_one_key("PH8", "8 × 8 on a key", pace, |locks| Job::hot_key(locks, 8).processes(8))
}

fn on_one_key(id: &'static str, words: &str, pace: Pace, job: impl Fn(Locks) -> Job) -> Result<Report> {
    on_server(id, |url| {
        let rounds = interleave(pace, vec![ours(&url, &job), rival(&url, &job)])?;
        Ok(vec![
            rounds.row(id, &format!("{words}: acquisitions/s"), OURS, PER_SECOND, &[Aim::PeerTimes(1.0)]),
            rounds.row(id, &format!("{words}: Jain index over tasks"), OURS, JAIN, &[Aim::AtLeast(0.95)]),
        ])
    })
}

fn ours(url: &str, job: impl Fn(Locks) -> Job) -> Side<'static> {
    Side::job(Role::Ours, OURS, job(Locks::Postgres { url: url.to_owned() }))
}

fn rival(url: &str, job: impl Fn(Locks) -> Job) -> Side<'static> {
    Side::job(Role::Peer, RIVAL, job(Locks::PgAdvisory { url: url.to_owned() }))
}

/// Measures on a server with the tables of ours, which commits without waiting for its disk.
fn on_server(id: &'static str, measure: impl Fn(String) -> Result<Vec<Row>>) -> Result<Report> {
    let started = runtime(0)?.block_on(async {
        match Server::start_with(&["max_connections=600"]).await {
            Ok(server) => Postgres::migrate(&server.url()).await.map(|()| Ok(server)),
            Err(why) => Ok(Err(why)),
        }
    })?;
    match started {
        Ok(server) => Ok(Report::of(measure(server.url())?)),
        Err(why) => Ok(Report::absent(id, &format!("no PostgreSQL: {}", why.lines().next().unwrap_or_default()))),
    }
}
