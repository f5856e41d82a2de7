//! T: cycles per second by the number of tasks, each with a key of its own, for the plot: on one Redis, five nodes and MySQL.

use crate::contenders::Locks;
use crate::harness::{Aim, Role, Rounds, Side, interleave, median};
use crate::job::Job;
use crate::load::Result;
use crate::log::PER_SECOND;
use crate::mysql::server::{Durability, MariaDb};
use crate::pace::Pace;
use crate::report::{Plot, Report};
use crate::servers::{FiveNodes, Redis};
use crate::{redis_single, redlock};

const TASKS: [u16; 5] = [1, 4, 16, 64, 256];
const UNIQUE: &str = "mysql-unique";

/// Workload T.
pub(crate) fn by_tasks(pace: Pace) -> Result<Report> {
    let pace = Pace {
        rounds: 3,
        warm_up_millis: pace.warm_up_millis.min(200),
        window_millis: pace.window_millis.min(600),
        ..pace
    };
    let mut report = Report::default();

    match Redis::start()? {
        None => report.extend(Report::absent("T", "no redis-server")),
        Some(redis) => {
            for tasks in TASKS {
                let rounds = interleave(pace, redis_single::sides(&redis, tasks.into(), 0))?;
                let aims: &[Aim] = if [16, 256].contains(&tasks) { &[Aim::PeerTimes(1.1)] } else { &[] };
                report.push(rounds.row("T", &format!("{tasks} tasks: cycles/s"), redis_single::OURS, PER_SECOND, aims));
                report.add_point(Plot::Throughput, tasks, &rounds);
            }
        }
    }
    match FiveNodes::start()? {
        None => report.extend(Report::absent("T", "no redis-server for five nodes")),
        Some(nodes) => {
            for tasks in TASKS {
                let rounds = interleave(pace, redlock::all_up(&nodes, tasks.into()))?;
                for ours in [redlock::UNFENCED, redlock::FENCED] {
                    report.push(rounds.row("T", &format!("{ours}, {tasks} tasks: cycles/s"), ours, PER_SECOND, &[]));
                }
                report.add_point(Plot::RedlockThroughput, tasks, &rounds);
            }
        }
    }
    match MariaDb::start(Durability::Memory)? {
        Err(why) => report.extend(Report::absent("T", &why)),
        Ok(server) => {
            for tasks in TASKS {
                let rounds = interleave(pace, on_mysql(&server, tasks.into()))?;
                report.push(rounds.row("T", &format!("{UNIQUE}, {tasks} tasks: cycles/s"), UNIQUE, PER_SECOND, &[]));
                report.add_point(Plot::MysqlThroughput, tasks, &rounds);
            }
        }
    }
    Ok(report)
}

fn on_mysql(server: &MariaDb, tasks: usize) -> Vec<Side<'static>> {
    let job = |locks| Job::own_keys(locks, tasks);
    vec![
        Side::job(Role::Ours, UNIQUE, job(server.ours())),
        Side::job(Role::Floor, "two UPDATEs", job(Locks::Updates { url: server.url() })),
        Side::job(Role::Peer, "insert/delete", job(Locks::InsertDelete { url: server.url() })),
    ]
}

impl Report {
    /// Adds what every side reached with this number of tasks.
    fn add_point(&mut self, plot: Plot, tasks: u16, rounds: &Rounds) {
        for side in rounds.names() {
            let reached = median(&rounds.figures(side.1, PER_SECOND));
            self.draw(plot, side, [(tasks.into(), reached)]);
        }
    }
}
