//! S64: what a cycle costs the server, on each backend, with 64 tasks that each have a key of their own.

use crate::contenders::Locks;
use crate::harness::{Aim, Role, Rounds, interleave};
use crate::job::Job;
use crate::load::Result;
use crate::log::{CALLS, SERVER_CPU};
use crate::mysql::server::{Durability, MariaDb};
use crate::pace::Pace;
use crate::report::Report;
use crate::servers::{FiveNodes, Redis, with_server_work};

const SINGLE: &str = "redis-single";
const REENTRANT: &str = "redis-reentrant";
const UNFENCED: &str = "redlock, unfenced";
const FENCED: &str = "redlock, fenced";
const UNIQUE: &str = "mysql-unique";
const RW: &str = "mysql-rw, writers";

/// Workload S64.
pub(crate) fn each_backend(pace: Pace) -> Result<Report> {
    let pace = Pace { rounds: 3, ..pace };
    let mut report = one_redis(pace)?;
    report.extend(five_nodes(pace)?);
    report.extend(mysql(pace)?);
    Ok(report)
}

fn one_redis(pace: Pace) -> Result<Report> {
    let Some(redis) = Redis::start()? else { return Ok(Report::absent("S64", "no redis-server")) };
    let side = |role, name, locks| with_server_work(role, name, Job::own_keys(locks, 64), || redis.work());
    let rounds = interleave(
        pace,
        vec![
            side(Role::Ours, SINGLE, redis.ours()),
            side(Role::Ours, REENTRANT, Locks::RedisReentrant { url: redis.url() }),
            side(Role::Floor, "bare fred", Locks::Bare { url: redis.url() }),
            side(Role::Peer, "rslock", redis.rslock()),
        ],
    )?;
    Ok(rows(&rounds, &[(SINGLE, &[]), (REENTRANT, &[])], "server"))
}

fn five_nodes(pace: Pace) -> Result<Report> {
    let Some(nodes) = FiveNodes::start()? else { return Ok(Report::absent("S64", "no redis-server for five nodes")) };
    let side = |role, name, locks| with_server_work(role, name, Job::own_keys(locks, 64), || nodes.work_of_each());
    let redlock = |fencing| Locks::Redlock { urls: nodes.urls(), fencing };
    let rounds = interleave(
        pace,
        vec![
            side(Role::Ours, UNFENCED, redlock(false)),
            side(Role::Ours, FENCED, redlock(true)),
            side(Role::Floor, "bare fan-out", Locks::BareFanOut { urls: nodes.urls() }),
            side(Role::Peer, "rslock", Locks::Rslock { urls: nodes.urls(), retry_millis: 200 }),
        ],
    )?;
    let calls: &[Aim] = &[Aim::AtMost(5.0)];
    Ok(rows(&rounds, &[(UNFENCED, calls), (FENCED, calls)], "node"))
}

fn mysql(pace: Pace) -> Result<Report> {
    let server = match MariaDb::start(Durability::Memory)? {
        Ok(server) => server,
        Err(why) => return Ok(Report::absent("S64", &why)),
    };
    let side = |role, name, locks| with_server_work(role, name, Job::own_keys(locks, 64), || server.work());
    let rounds = interleave(
        pace,
        vec![
            side(Role::Ours, UNIQUE, server.ours()),
            side(Role::Ours, RW, Locks::MysqlRw { url: server.url() }),
            side(Role::Floor, "two UPDATEs", Locks::Updates { url: server.url() }),
            side(Role::Peer, "insert/delete", Locks::InsertDelete { url: server.url() }),
        ],
    )?;
    Ok(rows(&rounds, &[(UNIQUE, &[]), (RW, &[])], "server"))
}

/// Two rows for each backend, with the aims for its calls.
fn rows(rounds: &Rounds, backends: &[(&str, &[Aim])], whose: &str) -> Report {
    let mut report = Report::default();
    for (name, calls) in backends {
        let what = format!("{name}, 64 tasks: CPU of a {whose}, µs/cycle");
        report.push(rounds.row("S64", &what, name, SERVER_CPU, &[]));
        let what = format!("{name}, 64 tasks: commands or statements of a {whose} per cycle");
        report.push(rounds.row("S64", &what, name, CALLS, calls));
    }
    report
}
