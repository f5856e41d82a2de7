//! The table: every workload, with the stores it runs on, the sides that take turns, and the rows that come out.

use std::time::Duration;

use crate::comparison::{Comparison, Entry};
use crate::contenders::Kind;
use crate::harness::Aim::{AtLeast, AtMost, FloorTimes, PeerTimes, WithinFloor, WithinPeer};
use crate::harness::Role::{Floor, Ours, Peer};
use crate::job::Shape;
use crate::load::Result;
use crate::log::{
    CALLS, COMMANDS, CONNECTIONS, CPU, DEADLOCKS, HAND_OFFS, JAIN, MEMORY, OF_THE_IDEAL, P50, P99, PER_SECOND,
    SERVER_CPU, STARVED,
};
use crate::mysql::server::Durability;
use crate::pace::Pace;
use crate::report::{Plot, Report};
use crate::servers::{On, Store};
use crate::{batches, growth, mysql, program, renewals, two_down};

/// A workload, and what it is made of.
pub(crate) struct Workload {
    pub(crate) id: &'static str,
    pub(crate) parts: fn(Pace) -> Vec<Part>,
}

pub(crate) enum Part {
    Comparison(Comparison),
    /// What is not acquired and released in a loop, on a store of this kind.
    On(On, fn(&Store, Pace) -> Result<Report>),
    /// And what starts its own.
    Other(fn(Pace) -> Result<Report>),
}

const ONE_REDIS: &[Entry] =
    &[(Ours, "redis-single", Kind::RedisSingle), (Floor, "bare fred", Kind::Bare), (Peer, "rslock", Kind::Rslock)];
const ONE_REDIS_OF_ALL: &[Entry] = &[
    (Ours, "redis-single", Kind::RedisSingle),
    (Ours, "redis-rw, writers", Kind::RedisWriters),
    (Ours, "redis-reentrant", Kind::RedisReentrant),
    (Floor, "bare fred", Kind::Bare),
    (Peer, "rslock", Kind::Rslock),
];
const CLUSTER: &[Entry] =
    &[(Ours, "redis-single, Cluster", Kind::RedisSingle), (Floor, "bare fred, Cluster", Kind::Bare)];
const DROPPED: &[Entry] = &[(Ours, "dropped", Kind::RedisDropped), (Floor, "released", Kind::RedisSingle)];
const ONE_KEY: &[Entry] = &[
    (Ours, "redis-single", Kind::RedisSingle),
    (Floor, "bare fred behind a queue", Kind::BareQueued),
    (Peer, "rslock", Kind::Rslock),
];
const ONE_KEY_OF_EIGHT: &[Entry] = &[
    (Floor, "PING", Kind::Ping),
    (Ours, "redis-single", Kind::RedisSingle),
    (Ours, NO_HANDOFF, Kind::RedisSingleNoHandoff),
    (Peer, "rslock", Kind::Rslock),
    (Peer, "rslock, retry 5 ms", Kind::RslockEager),
];
const NO_HANDOFF: &str = "redis-single, local hand-off off";
const WITH_WORK: &[Entry] = &[(Ours, "redis-single", Kind::RedisSingle), (Peer, "rslock", Kind::Rslock)];
const WRITERS: &[Entry] = &[(Ours, "redis-rw", Kind::RedisWriters), (Peer, "redis-single", Kind::RedisSingle)];
const READERS: &[Entry] = &[(Ours, "redis-rw", Kind::RedisReaders), (Peer, "redis-single", Kind::RedisSingle)];
const UNFENCED: &str = "redlock, unfenced";
const FENCED: &str = "redlock, fenced";
const FIVE_NODES: &[Entry] = &[
    (Ours, UNFENCED, Kind::RedlockUnfenced),
    (Ours, FENCED, Kind::Redlock),
    (Floor, "bare fan-out", Kind::BareFanOut),
    (Peer, "rslock", Kind::Rslock),
];
const MYSQL_ALONE: &[Entry] = &[
    (Ours, "mysql-unique", Kind::MysqlUnique),
    (Floor, "SELECT 1", Kind::Select),
    (Peer, "insert/delete", Kind::InsertDelete),
];
const MYSQL: &[Entry] = &[
    (Ours, "mysql-unique", Kind::MysqlUnique),
    (Floor, "two UPDATEs", Kind::Updates),
    (Peer, "insert/delete", Kind::InsertDelete),
];
const MYSQL_OF_ALL: &[Entry] = &[
    (Ours, "mysql-unique", Kind::MysqlUnique),
    (Ours, "mysql-rw, writers", Kind::MysqlRw),
    (Floor, "two UPDATEs", Kind::Updates),
    (Peer, "insert/delete", Kind::InsertDelete),
];
const QUEUE: &str = "mysql-unique, advisory queue";
const QUEUE_ALONE: &str = "mysql-unique, advisory queue, local hand-off off";
const MYSQL_ONE_KEY: &[Entry] =
    &[(Ours, "mysql-unique", Kind::MysqlUnique), (Peer, "insert/delete", Kind::InsertDelete)];
const MYSQL_ONE_KEY_OF_EIGHT: &[Entry] = &[
    (Ours, "mysql-unique", Kind::MysqlUnique),
    (Ours, QUEUE, Kind::MysqlUniqueQueue),
    (Ours, QUEUE_ALONE, Kind::MysqlUniqueQueueNoHandoff),
    (Peer, "insert/delete", Kind::InsertDelete),
];
const POSTGRES: &[Entry] = &[
    (Ours, "postgres", Kind::Postgres),
    (Floor, "two UPDATEs", Kind::PgUpdates),
    (Peer, "pg_advisory_lock", Kind::PgAdvisory),
];
const POSTGRES_ONE_KEY: &[Entry] = &[(Ours, "postgres", Kind::Postgres), (Peer, "pg_advisory_lock", Kind::PgAdvisory)];
const ETCD: &[Entry] = &[
    (Ours, "etcd", Kind::Etcd),
    (Floor, "put and delete", Kind::EtcdPuts),
    (Peer, "etcd's Lock service", Kind::EtcdLock),
];
const ETCD_BESIDE_PROCESSES: &[Entry] = &[
    (Ours, "etcd", Kind::Etcd),
    (Floor, "put and delete", Kind::EtcdPuts),
    (Peer, "etcd's Lock service", Kind::EtcdLock),
    (Peer, "etcdctl lock", Kind::Etcdctl),
];
const ETCD_ONE_KEY: &[Entry] = &[(Ours, "etcd", Kind::Etcd), (Peer, "etcd's Lock service", Kind::EtcdLock)];
const FILES: &[Entry] = &[(Ours, "file", Kind::File), (Floor, "flock(2) + write", Kind::RawFile)];
const AGENT: &str = "agent:";
const LINES: &str = "lines";
const AGENT_OF_REDIS: &[Entry] =
    &[(Ours, AGENT, Kind::Agent), (Ours, LINES, Kind::AgentLines), (Peer, "direct", Kind::RedisSingle)];
const AGENT_OF_PROCESSES: &[Entry] = &[(Ours, AGENT, Kind::Agent), (Peer, "direct", Kind::RedisSingle)];
const AGENT_OF_FILES: &[Entry] = &[(Ours, LINES, Kind::AgentLines), (Peer, "direct", Kind::File)];

const IN_MEMORY: On = On::MariaDb(Durability::Memory);
const CURRENT_THREAD: (usize, &str) = (0, "current thread");
const TWO_WORKERS: (usize, &str) = (2, "2 workers");
/// 8 tasks in each of 8 processes want one key.
const EIGHT_BY_EIGHT: Shape = Shape::hot_key(8).processes(8);

pub(crate) const TABLE: &[Workload] = &[
    Workload {
        id: "U1",
        parts: |pace| {
            alone(
                Comparison::of(On::Redis, Shape::own_keys(1), ONE_REDIS, pace)
                    .others(!pace.quick)
                    .row("1 task: p50 of a cycle, µs", P50, &[WithinFloor(1.15)])
                    .row("1 task: cycles/s", PER_SECOND, &[PeerTimes(0.9)])
                    .row("1 task: client CPU, µs/cycle", CPU, &[]),
            )
        },
    },
    Workload {
        id: "U64",
        parts: |pace| {
            let on = |(workers, on), times, most| {
                Comparison::of(On::Redis, Shape::own_keys(64).workers(workers), ONE_REDIS, pace)
                    .row(format!("64 tasks, {on}: cycles/s"), PER_SECOND, &[PeerTimes(times)])
                    .row(format!("64 tasks, {on}: client CPU, µs/cycle"), CPU, &[AtMost(most)])
            };
            all([on(CURRENT_THREAD, 1.0, 6.0), on(TWO_WORKERS, 0.85, 9.0)])
        },
    },
    Workload { id: "U1d", parts: |pace| dropped(1, 1.4, pace) },
    Workload { id: "U64d", parts: |pace| dropped(64, 1.0, pace) },
    Workload { id: "T", parts: by_tasks },
    Workload { id: "S", parts: |_| vec![Part::On(On::Redis, batches::by_size)] },
    Workload {
        id: "S64",
        parts: |pace| {
            let pace = Pace { rounds: 3, ..pace };
            let of = |on, entries| Comparison::of(on, Shape::own_keys(64), entries, pace);
            let cost = |made: Comparison, ours, whose: &str, times: &[_], most: &[_]| {
                made.row_of(ours, format!("{ours}, 64 tasks: CPU of a {whose}, µs/cycle"), SERVER_CPU, times).row_of(
                    ours,
                    format!("{ours}, 64 tasks: commands or statements of a {whose} per cycle"),
                    CALLS,
                    most,
                )
            };
            let single = cost(of(On::Redis, ONE_REDIS_OF_ALL), "redis-single", "server", &[WithinFloor(1.3)], &[]);
            let rw = cost(single, "redis-rw, writers", "server", &[WithinFloor(1.6)], &[]);
            let reentrant = cost(rw, "redis-reentrant", "server", &[WithinFloor(1.6)], &[]);
            let cluster = of(On::Cluster, CLUSTER);
            let cluster = cost(cluster, "redis-single, Cluster", "server", &[WithinFloor(1.6)], &[]);
            let nodes = of(On::FiveNodes, FIVE_NODES);
            let unfenced = cost(nodes, UNFENCED, "node", &[WithinFloor(1.6)], &[AtMost(5.0)]);
            let fenced = cost(unfenced, FENCED, "node", &[WithinFloor(1.6)], &[AtMost(5.0)]);
            let unique = cost(of(IN_MEMORY, MYSQL_OF_ALL), "mysql-unique", "server", &[], &[]);
            all([reentrant, cluster, fenced, cost(unique, "mysql-rw, writers", "server", &[], &[])])
        },
    },
    Workload {
        id: "H1",
        parts: |pace| {
            alone(
                Comparison::of(On::Redis, Shape::hot_key(64), ONE_KEY, pace)
                    .row("1 × 64 on a key: acquisitions/s", PER_SECOND, &[PeerTimes(30.0)])
                    // Not less by more than 5 % than it was.
                    .row(format!("1 × 64 on a key: {HAND_OFFS}"), HAND_OFFS, &[PeerTimes(945.0)])
                    .row(format!("1 × 64 on a key: {JAIN}"), JAIN, &[AtLeast(0.99)])
                    .row(format!("1 × 64 on a key: {COMMANDS}"), COMMANDS, &[])
                    .row(format!("1 × 64 on a key: {CPU}"), CPU, &[]),
            )
        },
    },
    Workload {
        id: "H8",
        parts: |pace| {
            let p50 = "8 × 8 on a key: p50 of a hand-off, local hand-off off, µs";
            alone(
                Comparison::of(On::Redis, EIGHT_BY_EIGHT, ONE_KEY_OF_EIGHT, pace)
                    .others(true)
                    .plot(Plot::LocalHandoff)
                    .row("8 × 8 on a key: acquisitions/s", PER_SECOND, &[PeerTimes(4.0)])
                    // Not less by more than 5 % than it was.
                    .row(format!("8 × 8 on a key: {HAND_OFFS}"), HAND_OFFS, &[PeerTimes(139.0)])
                    .row("8 × 8 on a key: p99 of a hand-off, µs (floor: p50 of PING)", P99, &[WithinFloor(4.0)])
                    .row(format!("8 × 8 on a key: {COMMANDS}"), COMMANDS, &[AtMost(0.3)])
                    .row_of(NO_HANDOFF, "8 × 8 on a key: the same, local hand-off off", COMMANDS, &[AtMost(2.05)])
                    .row_of(
                        NO_HANDOFF,
                        "8 × 8 on a key: acquisitions/s, local hand-off off",
                        PER_SECOND,
                        &[PeerTimes(0.9)],
                    )
                    .row_of(NO_HANDOFF, p50, P50, &[WithinPeer(1.2)])
                    .row(format!("8 × 8 on a key: {JAIN}"), JAIN, &[AtLeast(0.99)])
                    .row(format!("8 × 8 on a key: {STARVED}"), STARVED, &[AtMost(0.0)])
                    .row(format!("8 × 8 on a key: {CPU}"), CPU, &[]),
            )
        },
    },
    Workload {
        id: "H8h",
        parts: |pace| {
            let with_work = |processes, tasks, least| {
                let shape = Shape::hot_key(tasks).processes(processes).hold(Duration::from_millis(1));
                let words = format!("{processes} × {tasks}, 1 ms of work");
                Comparison::of(On::Redis, shape, WITH_WORK, pace)
                    .others(processes > 1 && !pace.quick)
                    .of_the_ideal()
                    .row(format!("{words}: {OF_THE_IDEAL}"), OF_THE_IDEAL, &[AtLeast(least)])
                    .row(format!("{words}: {HAND_OFFS}"), HAND_OFFS, &[])
                    .row(format!("{words}: {JAIN}"), JAIN, &[])
                    .row(format!("{words}: {STARVED}"), STARVED, &[AtMost(0.0)])
            };
            all([with_work(1, 64, 0.95), with_work(8, 8, 0.85)])
        },
    },
    Workload {
        id: "Q1",
        parts: |pace| {
            alone(
                Comparison::of(On::FiveNodes, Shape::own_keys(1), FIVE_NODES, pace)
                    .row_of(UNFENCED, "5 nodes, 1 task, unfenced: cycles/s", PER_SECOND, &[PeerTimes(1.0)])
                    .row_of(FENCED, "5 nodes, 1 task, fenced: cycles/s", PER_SECOND, &[PeerTimes(0.95)])
                    .row_of(UNFENCED, "5 nodes, 1 task, unfenced: p50 of a cycle, µs", P50, &[])
                    .row_of(FENCED, "5 nodes, 1 task, fenced: p50 of a cycle, µs", P50, &[]),
            )
        },
    },
    Workload {
        id: "Q64",
        parts: |pace| {
            alone(
                Comparison::of(On::FiveNodes, Shape::own_keys(64), FIVE_NODES, pace)
                    .row_of(UNFENCED, "5 nodes, 64 tasks, unfenced: cycles/s", PER_SECOND, &[PeerTimes(1.3)])
                    .row_of(FENCED, "5 nodes, 64 tasks, fenced: cycles/s", PER_SECOND, &[PeerTimes(1.0)])
                    .row_of(UNFENCED, "5 nodes, 64 tasks, unfenced: client CPU, µs/cycle", CPU, &[])
                    .row_of(FENCED, "5 nodes, 64 tasks, fenced: client CPU, µs/cycle", CPU, &[]),
            )
        },
    },
    Workload { id: "Q-down", parts: |_| vec![Part::On(On::FiveNodes, two_down::two_down)] },
    Workload { id: "R100k", parts: |_| vec![Part::On(On::Redis, renewals::hundred_thousand)] },
    Workload {
        id: "F1",
        parts: |pace| {
            // As many keys as it keeps files open. One alone would measure the rule that a store grants a key 16,000 times a
            // second at most.
            let files = Comparison::of(On::Folder, Shape::own_keys(16), FILES, pace)
                .row("16 keys of one thread: cycles/s", PER_SECOND, &[FloorTimes(0.5)])
                .row("16 keys of one thread: p50 of a cycle, µs", P50, &[]);
            vec![Part::Comparison(files), Part::Other(program::beside_flock)]
        },
    },
    Workload { id: "C", parts: |_| vec![Part::On(On::Redis, growth::growth)] },
    Workload {
        id: "M1",
        parts: |pace| {
            on_both(|on, in_memory| {
                let within = in_memory.then_some(WithinFloor(5.0));
                vec![
                    Comparison::of(on, Shape::own_keys(1), MYSQL_ALONE, pace)
                        .row("1 task: p50 of a cycle, µs (floor: SELECT 1)", P50, within.as_slice())
                        .row("1 task: statements per cycle", COMMANDS, &[AtLeast(2.0), AtMost(2.01)]),
                ]
            })
        },
    },
    Workload {
        id: "M64",
        parts: |pace| {
            on_both(|on, in_memory| {
                let times = if in_memory { 3.0 } else { 2.5 };
                vec![
                    Comparison::of(on, Shape::own_keys(64), MYSQL, pace)
                        .row("64 tasks: cycles/s (floor: two UPDATEs)", PER_SECOND, &[PeerTimes(times)])
                        .row("64 tasks: p99 of a cycle, µs", P99, &[])
                        .row("64 tasks: statements per cycle", COMMANDS, &[])
                        .row("64 tasks: deadlock errors", DEADLOCKS, &[AtMost(0.0)])
                        .row("64 tasks: client CPU, µs/cycle", CPU, &[]),
                ]
            })
        },
    },
    Workload {
        id: "MH1",
        parts: |pace| {
            on_both(|on, _| {
                vec![
                    Comparison::of(on, Shape::hot_key(64), MYSQL_ONE_KEY, pace)
                        .row("1 × 64 on a key: acquisitions/s", PER_SECOND, &[PeerTimes(100.0)])
                        .row("1 × 64 on a key: statements per acquisition", COMMANDS, &[AtMost(0.2)])
                        .row("1 × 64 on a key: Jain index over tasks", JAIN, &[AtLeast(0.95)])
                        .row("1 × 64 on a key: deadlock errors", DEADLOCKS, &[AtMost(0.0)]),
                ]
            })
        },
    },
    Workload { id: "MH8", parts: |pace| on_both(|on, in_memory| mysql_of_eight(on, in_memory, pace)) },
    Workload { id: "MR", parts: |_| vec![Part::Other(mysql::readers_and_writers)] },
    Workload { id: "MN", parts: |_| vec![Part::Other(mysql::ten_thousand)] },
    Workload {
        id: "P1",
        parts: |pace| {
            alone(
                Comparison::of(On::Postgres, Shape::own_keys(1), POSTGRES, pace)
                    .row("1 task: p50 of a cycle, µs (floor: two UPDATEs)", P50, &[WithinFloor(1.3)])
                    .row("1 task: client CPU, µs/cycle", CPU, &[]),
            )
        },
    },
    Workload {
        id: "P64",
        parts: |pace| {
            alone(
                Comparison::of(On::Postgres, Shape::own_keys(64), POSTGRES, pace)
                    .row("64 tasks: cycles/s (floor: two UPDATEs)", PER_SECOND, &[PeerTimes(2.0)])
                    .row("64 tasks: p99 of a cycle, µs", P99, &[])
                    .row("64 tasks: client CPU, µs/cycle", CPU, &[]),
            )
        },
    },
    Workload { id: "PH1", parts: |pace| postgres_one_key("1 × 64", Shape::hot_key(64), pace) },
    Workload { id: "PH8", parts: |pace| postgres_one_key("8 × 8", EIGHT_BY_EIGHT, pace) },
    Workload {
        id: "W1",
        parts: |pace| {
            let of = Comparison::of(On::Redis, Shape::own_keys(1), WRITERS, pace);
            alone(figures(of, "1 task", &[P50, PER_SECOND, CPU]))
        },
    },
    Workload {
        id: "W64",
        parts: |pace| {
            let of = Comparison::of(On::Redis, Shape::own_keys(64), WRITERS, pace);
            alone(figures(of, "64 tasks", &[PER_SECOND, P99, CPU]))
        },
    },
    Workload {
        id: "WR64",
        parts: |pace| {
            // Each with a key of its own: readers of one process share a lease.
            let of = Comparison::of(On::Redis, Shape::own_keys(64), READERS, pace);
            alone(figures(of, "64 readers", &[PER_SECOND, P99, CPU]))
        },
    },
    Workload {
        id: "WH8",
        parts: |pace| {
            let of = Comparison::of(On::Redis, EIGHT_BY_EIGHT, WRITERS, pace);
            alone(figures(of, "8 × 8 on a key", &[PER_SECOND, HAND_OFFS, P99, JAIN]))
        },
    },
    Workload {
        id: "E1",
        parts: |pace| {
            alone(
                Comparison::of(On::Etcd, Shape::own_keys(1), ETCD_BESIDE_PROCESSES, pace)
                    .row("1 task: p50 of a cycle, µs (floor: put and delete)", P50, &[WithinFloor(1.3)])
                    .row("1 task: client CPU, µs/cycle", CPU, &[]),
            )
        },
    },
    Workload {
        id: "E64",
        parts: |pace| {
            alone(
                Comparison::of(On::Etcd, Shape::own_keys(64), ETCD, pace)
                    .row("64 tasks: cycles/s (floor: put and delete)", PER_SECOND, &[PeerTimes(1.5)])
                    .row("64 tasks: p99 of a cycle, µs", P99, &[])
                    .row("64 tasks: client CPU, µs/cycle", CPU, &[]),
            )
        },
    },
    Workload {
        id: "EH1",
        parts: |pace| {
            let of = Comparison::of(On::Etcd, Shape::hot_key(64), ETCD_ONE_KEY, pace);
            alone(figures(of, "1 × 64 on a key", &[PER_SECOND, HAND_OFFS, JAIN]))
        },
    },
    Workload {
        id: "EH8",
        parts: |pace| {
            let of = Comparison::of(On::Etcd, EIGHT_BY_EIGHT, ETCD_ONE_KEY, pace);
            alone(figures(of, "8 × 8 on a key", &[PER_SECOND, HAND_OFFS, JAIN]))
        },
    },
    Workload { id: "A1", parts: |pace| agent_of_redis("1 task", 1, &[P50, CPU], pace) },
    Workload { id: "A64", parts: |pace| agent_of_redis("64 tasks", 64, &[PER_SECOND, CPU], pace) },
    Workload {
        id: "AF",
        parts: |pace| {
            let of = Comparison::of(On::AgentOfFolder, Shape::own_keys(1), AGENT_OF_FILES, pace);
            alone(of.row("lines, `file:`, 1 task: p50 of a cycle, µs", P50, &[]))
        },
    },
    Workload {
        id: "A500",
        parts: |pace| {
            // So many take their time until all have begun.
            let long = Pace { rounds: 1, warm_up_millis: 2000, window_millis: 3000, ..pace };
            let (pace, processes) = if pace.quick { (pace, 50) } else { (long, 500) };
            let of = |words, shape: Shape| {
                let of = Comparison::of(On::AgentOfRedis, shape.processes(processes), AGENT_OF_PROCESSES, pace);
                figures(of, &format!("{processes} processes, {words}"), &[PER_SECOND, CONNECTIONS, MEMORY])
            };
            all([of("own keys", Shape::own_keys(1)), of("one key", Shape::hot_key(1))])
        },
    },
    Workload { id: "M-idle", parts: |_| vec![Part::Other(mysql::one_beside_a_million)] },
];

fn alone(comparison: Comparison) -> Vec<Part> {
    vec![Part::Comparison(comparison)]
}

fn all<const N: usize>(comparisons: [Comparison; N]) -> Vec<Part> {
    comparisons.into_iter().map(Part::Comparison).collect()
}

/// On MariaDB in memory, and with a binary log.
fn on_both(of: impl Fn(On, bool) -> Vec<Comparison>) -> Vec<Part> {
    let on = |durability: Durability| {
        let made = of(On::MariaDb(durability), durability == Durability::Memory).into_iter();
        made.map(move |comparison| Part::Comparison(comparison.words(durability.words())))
    };
    Durability::BOTH.into_iter().flat_map(on).collect()
}

/// A row for each figure, without aims.
fn figures(of: Comparison, words: &str, figures: &[&'static str]) -> Comparison {
    figures.iter().fold(of, |of, figure| of.row(format!("{words}: {figure}"), figure, &[]))
}

/// Guards that are dropped, beside guards that are released, on both kinds of runtime.
fn dropped(tasks: usize, times: f64, pace: Pace) -> Vec<Part> {
    all([CURRENT_THREAD, TWO_WORKERS].map(|(workers, on)| {
        let what = format!("{tasks} tasks, {on}, guards dropped: cycles/s (floor: released)");
        let shape = Shape::own_keys(tasks).workers(workers);
        Comparison::of(On::Redis, shape, DROPPED, pace).row(what, PER_SECOND, &[FloorTimes(times)])
    }))
}

/// Cycles per second by the number of tasks, for the plot.
fn by_tasks(pace: Pace) -> Vec<Part> {
    let pace = Pace {
        rounds: 3,
        warm_up_millis: pace.warm_up_millis.min(200),
        window_millis: pace.window_millis.min(600),
        ..pace
    };
    let of = |on, tasks, entries, plot| Comparison::of(on, Shape::own_keys(tasks), entries, pace).plot(plot);
    let tasks = || [1, 4, 16, 64, 256].into_iter();
    let redis = tasks().map(|tasks| {
        let aim = [16, 256].contains(&tasks).then_some(PeerTimes(1.1));
        let of = of(On::Redis, tasks, ONE_REDIS, Plot::Throughput);
        of.row(format!("{tasks} tasks: cycles/s"), PER_SECOND, aim.as_slice())
    });
    let nodes = tasks().map(|tasks| {
        let of = of(On::FiveNodes, tasks, FIVE_NODES, Plot::RedlockThroughput);
        [UNFENCED, FENCED]
            .into_iter()
            .fold(of, |of, ours| of.row_of(ours, format!("{ours}, {tasks} tasks: cycles/s"), PER_SECOND, &[]))
    });
    let mysql = tasks().map(|tasks| {
        let of = of(IN_MEMORY, tasks, MYSQL, Plot::MysqlThroughput);
        of.row(format!("mysql-unique, {tasks} tasks: cycles/s"), PER_SECOND, &[])
    });
    redis.chain(nodes).chain(mysql).map(Part::Comparison).collect()
}

/// Without work under the lock, and with 5 ms of it.
fn mysql_of_eight(on: On, in_memory: bool, pace: Pace) -> Vec<Comparison> {
    let quick = Comparison::of(on, EIGHT_BY_EIGHT, MYSQL_ONE_KEY_OF_EIGHT, pace)
        .row("8 × 8 on a key: acquisitions/s", PER_SECOND, &[PeerTimes(10.0)])
        .row("8 × 8 on a key: statements per acquisition", COMMANDS, &[AtMost(0.5)])
        .row("8 × 8 on a key: Jain index over tasks", JAIN, &[])
        .row_of(QUEUE, "8 × 8 on a key, advisory queue: acquisitions/s", PER_SECOND, &[PeerTimes(10.0)])
        .row_of(QUEUE, "8 × 8 on a key, advisory queue: statements per acquisition", COMMANDS, &[AtMost(0.5)])
        .row_of(QUEUE, "8 × 8 on a key, advisory queue: Jain index over tasks", JAIN, &[AtLeast(0.95)])
        .row_of(
            QUEUE_ALONE,
            "8 × 8 on a key, advisory queue, local hand-off off: statements per acquisition",
            COMMANDS,
            &[],
        )
        .row_of(QUEUE, "8 × 8 on a key: deadlock errors", DEADLOCKS, &[AtMost(0.0)]);
    let at_most = |most| if in_memory { vec![AtMost(most)] } else { Vec::new() };
    let queue = |of: Comparison, ours, words: &str| {
        of.row_of(ours, format!("{words}: p50 of a hand-off, µs"), P50, &at_most(1000.0)).row_of(
            ours,
            format!("{words}: p99 of a hand-off, µs"),
            P99,
            &at_most(3000.0),
        )
    };
    let shape = EIGHT_BY_EIGHT.hold(Duration::from_millis(5));
    let work = Comparison::of(on, shape, MYSQL_ONE_KEY_OF_EIGHT, pace).row(
        "8 × 8, 5 ms of work: p99 of a hand-off, µs",
        P99,
        &[],
    );
    let work = queue(work, QUEUE, "8 × 8, 5 ms of work, advisory queue");
    let work = queue(work, QUEUE_ALONE, "the same, local hand-off off").row_of(
        QUEUE_ALONE,
        "the same, local hand-off off: statements per acquisition",
        COMMANDS,
        &[AtMost(4.2)],
    );
    vec![quick, work]
}

fn postgres_one_key(words: &str, shape: Shape, pace: Pace) -> Vec<Part> {
    let of = Comparison::of(On::Postgres, shape, POSTGRES_ONE_KEY, pace);
    alone(of.row(format!("{words} on a key: acquisitions/s"), PER_SECOND, &[PeerTimes(1.0)]).row(
        format!("{words} on a key: Jain index over tasks"),
        JAIN,
        &[AtLeast(0.95)],
    ))
}

fn agent_of_redis(words: &str, tasks: usize, figures: &[&'static str], pace: Pace) -> Vec<Part> {
    let of = Comparison::of(On::AgentOfRedis, Shape::own_keys(tasks), AGENT_OF_REDIS, pace);
    let rows = [AGENT, LINES].into_iter().flat_map(|name| figures.iter().map(move |figure| (name, *figure)));
    alone(rows.fold(of, |of, (name, figure)| of.row_of(name, format!("{name} {words}: {figure}"), figure, &[])))
}
