//! M1, M64, MH1, MH8: mysql-unique, on keys of one's own and on one that all want.

mod idle_rows;
mod renewals;
mod rows;
mod rw;
pub(crate) mod server;

use std::time::Duration;

pub(crate) use self::idle_rows::one_beside_a_million;
pub(crate) use self::renewals::ten_thousand;
use self::rows::{DEADLOCKS, Rows, on_each};
pub(crate) use self::rw::readers_and_writers;
use self::server::{Durability, MariaDb};
use crate::contenders::Locks;
use crate::harness::{Aim, Role, Side, interleave};
use crate::job::Job;
use crate::load::Result;
use crate::log::{COMMANDS, CPU, JAIN, P50, P99, PER_SECOND};
use crate::pace::Pace;
use crate::report::Report;

const OURS: &str = "mysql-unique";
const QUEUE: &str = "mysql-unique, advisory queue";
const QUEUE_ALONE: &str = "mysql-unique, advisory queue, local hand-off off";
const RIVAL: &str = "insert/delete";

/// One task.
pub(crate) fn m1(pace: Pace) -> Result<Report> {
    on_each("M1", |server, words| {
        let job = |locks| Job::own_keys(locks, 1);
        let sides = vec![
            counted(server, Role::Ours, OURS, job(server.ours())),
            counted(server, Role::Floor, "SELECT 1", job(Locks::Select { url: server.url() })),
            counted(server, Role::Peer, RIVAL, job(Locks::InsertDelete { url: server.url() })),
        ];
        let rounds = interleave(pace, sides)?;
        let within: &[Aim] = if words == Durability::Memory.words() { &[Aim::WithinFloor(5.0)] } else { &[] };
        let mut rows = Rows { id: "M1", words, rounds: &rounds };
        Ok(vec![
            rows.of("1 task: p50 of a cycle, µs (floor: SELECT 1)", OURS, P50, within),
            rows.of("1 task: statements per cycle", OURS, COMMANDS, &[Aim::AtLeast(2.0), Aim::AtMost(2.01)]),
        ])
    })
}

/// 64 tasks.
pub(crate) fn m64(pace: Pace) -> Result<Report> {
    on_each("M64", |server, words| {
        let job = |locks| Job::own_keys(locks, 64);
        let sides = vec![
            counted(server, Role::Ours, OURS, job(server.ours())),
            counted(server, Role::Floor, "two UPDATEs", job(Locks::Updates { url: server.url() })),
            counted(server, Role::Peer, RIVAL, job(Locks::InsertDelete { url: server.url() })),
        ];
        let rounds = interleave(pace, sides)?;
        let times = if words == Durability::Memory.words() { 3.0 } else { 2.5 };
        let mut rows = Rows { id: "M64", words, rounds: &rounds };
        Ok(vec![
            rows.of("64 tasks: cycles/s (floor: two UPDATEs)", OURS, PER_SECOND, &[Aim::PeerTimes(times)]),
            rows.of("64 tasks: p99 of a cycle, µs", OURS, P99, &[]),
            rows.of("64 tasks: statements per cycle", OURS, COMMANDS, &[]),
            rows.of("64 tasks: deadlock errors", OURS, DEADLOCKS, &[Aim::AtMost(0.0)]),
            rows.of("64 tasks: client CPU, µs/cycle", OURS, CPU, &[]),
        ])
    })
}

/// 64 tasks of one process on one key.
pub(crate) fn one_process(pace: Pace) -> Result<Report> {
    on_each("MH1", |server, words| {
        let job = |locks| Job::hot_key(locks, 64);
        let sides = vec![
            counted(server, Role::Ours, OURS, job(server.ours())),
            counted(server, Role::Peer, RIVAL, job(Locks::InsertDelete { url: server.url() })),
        ];
        let rounds = interleave(pace, sides)?;
        let mut rows = Rows { id: "MH1", words, rounds: &rounds };
        Ok(vec![
            rows.of("1 × 64 on a key: acquisitions/s", OURS, PER_SECOND, &[Aim::PeerTimes(100.0)]),
            rows.of("1 × 64 on a key: statements per acquisition", OURS, COMMANDS, &[Aim::AtMost(0.2)]),
            rows.of("1 × 64 on a key: Jain index over tasks", OURS, JAIN, &[Aim::AtLeast(0.95)]),
            rows.of("1 × 64 on a key: deadlock errors", OURS, DEADLOCKS, &[Aim::AtMost(0.0)]),
        ])
    })
}

/// 8 tasks in each of 8 processes on one key, without work and with 5 ms of it.
pub(crate) fn eight_processes(pace: Pace) -> Result<Report> {
    on_each("MH8", |server, words| {
        let ours =
            |local_handoff, advisory_queue| Locks::MysqlUnique { url: server.url(), local_handoff, advisory_queue };
        let rival = || Locks::InsertDelete { url: server.url() };
        let job = |locks| Job::hot_key(locks, 8).processes(8);
        let sides = vec![
            counted(server, Role::Ours, OURS, job(server.ours())),
            counted(server, Role::Ours, QUEUE, job(ours(true, true))),
            counted(server, Role::Ours, QUEUE_ALONE, job(ours(false, true))),
            counted(server, Role::Peer, RIVAL, job(rival())),
        ];
        let rounds = interleave(pace, sides)?;
        let mut rows = Rows { id: "MH8", words, rounds: &rounds };
        let mut all = vec![
            rows.of("8 × 8 on a key: acquisitions/s", OURS, PER_SECOND, &[Aim::PeerTimes(10.0)]),
            rows.of("8 × 8 on a key: statements per acquisition", OURS, COMMANDS, &[Aim::AtMost(0.5)]),
            rows.of("8 × 8 on a key: Jain index over tasks", OURS, JAIN, &[]),
            rows.of("8 × 8 on a key, advisory queue: acquisitions/s", QUEUE, PER_SECOND, &[Aim::PeerTimes(10.0)]),
            rows.of("8 × 8 on a key, advisory queue: statements per acquisition", QUEUE, COMMANDS, &[Aim::AtMost(0.5)]),
            rows.of("8 × 8 on a key, advisory queue: Jain index over tasks", QUEUE, JAIN, &[Aim::AtLeast(0.95)]),
            rows.of(
                "8 × 8 on a key, advisory queue, local hand-off off: statements per acquisition",
                QUEUE_ALONE,
                COMMANDS,
                &[],
            ),
            rows.of("8 × 8 on a key: deadlock errors", QUEUE, DEADLOCKS, &[Aim::AtMost(0.0)]),
        ];

        let job = |locks| job(locks).hold(Duration::from_millis(5));
        let sides = vec![
            counted(server, Role::Ours, OURS, job(server.ours())),
            counted(server, Role::Ours, QUEUE, job(ours(true, true))),
            counted(server, Role::Ours, QUEUE_ALONE, job(ours(false, true))),
            counted(server, Role::Peer, RIVAL, job(rival())),
        ];
        let rounds = interleave(pace, sides)?;
        let mut rows = Rows { id: "MH8", words, rounds: &rounds };
        let in_memory = words == Durability::Memory.words();
        let at_most = |most| if in_memory { vec![Aim::AtMost(most)] } else { Vec::new() };
        all.extend([
            rows.of("8 × 8, 5 ms of work: p99 of a hand-off, µs", OURS, P99, &[]),
            rows.of("8 × 8, 5 ms of work, advisory queue: p50 of a hand-off, µs", QUEUE, P50, &at_most(1000.0)),
            rows.of("8 × 8, 5 ms of work, advisory queue: p99 of a hand-off, µs", QUEUE, P99, &at_most(3000.0)),
            rows.of("the same, local hand-off off: p50 of a hand-off, µs", QUEUE_ALONE, P50, &at_most(1000.0)),
            rows.of("the same, local hand-off off: p99 of a hand-off, µs", QUEUE_ALONE, P99, &at_most(3000.0)),
            rows.of(
                "the same, local hand-off off: statements per acquisition",
                QUEUE_ALONE,
                COMMANDS,
                &[Aim::AtMost(4.2)],
            ),
        ]);
        Ok(all)
    })
}

/// A side whose statements and deadlocks are counted at the server.
fn counted<'a>(server: &'a MariaDb, role: Role, name: &str, job: Job) -> Side<'a> {
    Side::new(role, name, move |pace| {
        let deadlocks = server.status("Innodb_deadlocks")?;
        let mut before = Ok(0);
        // Who connects asks about the tables, once.
        let mut sample = job.run_after(pace, || before = server.statements())?;
        let sent = server.statements()? - before?;
        let deadlocks = server.status("Innodb_deadlocks")? - deadlocks;
        sample.figures.insert(COMMANDS, sent as f64 / sample.acquisitions as f64);
        sample.figures.insert(DEADLOCKS, deadlocks as f64);
        Ok(sample)
    })
}
