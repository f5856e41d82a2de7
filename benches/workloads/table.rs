//! The table: every workload, with the store it runs on, what its tasks do, the sides that take turns, and the rows that come out.

#![allow(clippy::enum_glob_use, reason = "the table names nothing as often as contenders")]

use crate::comparison::Part;
use crate::contenders::Kind::{self, *};
use crate::harness::Aim::{self, AtLeast, AtMost, FloorTimes, PeerTimes, WithinFloor, WithinPeer};
use crate::job::Shape;
use crate::load::Pace;
use crate::log::{
    CALLS, COMMANDS, CONNECTIONS, CPU, DEADLOCKS, HAND_OFFS, JAIN, MEMORY, OF_THE_IDEAL, P50, P99, PER_SECOND,
    SERVER_CPU, STARVED,
};
use crate::report::Plot;
use crate::servers::On;
use crate::{held, others, readers, renewals};

const ONE_REDIS: &[Kind] = &[RedisSingle, Bare, Rslock];
const FIVE_NODES: &[Kind] = &[RedlockUnfenced, Redlock, BareFanOut, Rslock];
const MYSQL: &[Kind] = &[MysqlUnique, Updates, InsertDelete];
const POSTGRES: &[Kind] = &[Postgres, PgUpdates, PgAdvisory];

/// A task, and 64, with keys of their own.
const ALONE: Shape = Shape::own_keys(1);
const MANY: Shape = Shape::own_keys(64);
/// 64 tasks of a process want one key; and 8 in each of 8 processes.
const ONE_KEY: Shape = Shape::hot_key(64);
const EIGHT_BY_EIGHT: Shape = Shape { processes: 8, ..Shape::hot_key(8) };

/// The parts of all workloads. Those of one follow each other.
pub(crate) fn all(pace: Pace) -> Vec<Part> {
    [redis(pace), redlock_and_files(pace), mysql(pace), servers(pace), agents(pace)].into_iter().flatten().collect()
}

fn redis(pace: Pace) -> Vec<Part> {
    let of = |id, shape, sides| Part::of(id, On::Redis, shape, sides, pace);
    let on_a_runtime = |workers, on: &str, times, most| {
        of("U64", Shape { workers, ..MANY }, ONE_REDIS)
            .row(format!("64 tasks, {on}: cycles/s"), PER_SECOND, &[PeerTimes(times)])
            .row(format!("64 tasks, {on}: client CPU, µs/cycle"), CPU, &[AtMost(most)])
    };
    // Guards that are dropped, beside guards that are released.
    let dropped = |id, tasks: usize, times| {
        [(0, "current thread"), (2, "2 workers")].map(|(workers, on)| {
            let what = format!("{tasks} tasks, {on}, guards dropped: cycles/s (floor: released)");
            let shape = Shape { workers, ..Shape::own_keys(tasks) };
            of(id, shape, &[RedisDropped, RedisReleased]).row(what, PER_SECOND, &[FloorTimes(times)])
        })
    };
    let with_work = |processes: usize, tasks, least| {
        let shape = Shape { processes, hold_micros: 1000, ..Shape::hot_key(tasks) };
        of("H8h", shape, &[RedisSingle, Rslock])
            .others(processes > 1 && !pace.quick)
            .of_the_ideal()
            .about(&format!("{processes} × {tasks}, 1 ms of work"))
            .row(OF_THE_IDEAL, OF_THE_IDEAL, &[AtLeast(least)])
            .row(HAND_OFFS, HAND_OFFS, &[])
            .row(JAIN, JAIN, &[])
            .row(STARVED, STARVED, &[AtMost(0.0)])
    };
    let mut parts = vec![
        of("U1", ALONE, ONE_REDIS)
            .others(!pace.quick)
            .row("1 task: p50 of a cycle, µs", P50, &[WithinFloor(1.15)])
            .row("1 task: cycles/s", PER_SECOND, &[PeerTimes(0.9)])
            .row("1 task: client CPU, µs/cycle", CPU, &[]),
        on_a_runtime(0, "current thread", 1.0, 6.0),
        on_a_runtime(2, "2 workers", 0.85, 9.0),
    ];
    parts.extend(dropped("U1d", 1, 1.4));
    parts.extend(dropped("U64d", 64, 1.0));
    parts.extend(by_tasks(pace));
    parts.push(Part::other("S", On::Redis, others::batches, pace));
    parts.extend(server_cost(Pace { rounds: 3, ..pace }));
    parts.extend([
        of("H1", ONE_KEY, &[RedisSingle, BareQueued, Rslock])
            .row("1 × 64 on a key: acquisitions/s", PER_SECOND, &[PeerTimes(30.0)])
            // Not less by more than 5 % than it was.
            .row(format!("1 × 64 on a key: {HAND_OFFS}"), HAND_OFFS, &[PeerTimes(945.0)])
            .row(format!("1 × 64 on a key: {JAIN}"), JAIN, &[AtLeast(0.99)])
            .figures("1 × 64 on a key", &[COMMANDS, CPU]),
        of("H8", EIGHT_BY_EIGHT, &[Ping, RedisSingle, RedisSingleNoHandoff, Rslock, RslockEager])
            .others(true)
            .plot(Plot::LocalHandoff)
            .about("8 × 8 on a key")
            .row("acquisitions/s", PER_SECOND, &[PeerTimes(4.0)])
            // Not less by more than 5 % than it was.
            .row(HAND_OFFS, HAND_OFFS, &[PeerTimes(139.0)])
            .row("p99 of a hand-off, µs (floor: p50 of PING)", P99, &[WithinFloor(4.0)])
            .row(COMMANDS, COMMANDS, &[AtMost(0.3)])
            .row_of(RedisSingleNoHandoff, "the same, local hand-off off", COMMANDS, &[AtMost(2.05)])
            .row_of(RedisSingleNoHandoff, "acquisitions/s, local hand-off off", PER_SECOND, &[PeerTimes(0.9)])
            .row_of(RedisSingleNoHandoff, "p50 of a hand-off, local hand-off off, µs", P50, &[WithinPeer(1.2)])
            .row(JAIN, JAIN, &[AtLeast(0.99)])
            .row(STARVED, STARVED, &[AtMost(0.0)])
            .row(CPU, CPU, &[]),
        with_work(1, 64, 0.95),
        with_work(8, 8, 0.85),
    ]);
    parts
}

/// Cycles per second by the number of tasks, for the plot.
fn by_tasks(pace: Pace) -> Vec<Part> {
    let (warm_up_millis, window_millis) = (pace.warm_up_millis.min(200), pace.window_millis.min(600));
    let pace = Pace { rounds: 3, warm_up_millis, window_millis, ..pace };
    let of = |on, tasks, sides, plot| Part::of("T", on, Shape::own_keys(tasks), sides, pace).plot(plot);
    let tasks = || [1, 4, 16, 64, 256].into_iter();
    let redis = tasks().map(|tasks| {
        let aim = [16, 256].contains(&tasks).then_some(PeerTimes(1.1));
        let of = of(On::Redis, tasks, ONE_REDIS, Plot::Throughput);
        of.row(format!("{tasks} tasks: cycles/s"), PER_SECOND, aim.as_slice())
    });
    let nodes = tasks().map(|tasks| {
        let of = of(On::FiveNodes, tasks, FIVE_NODES, Plot::RedlockThroughput);
        [RedlockUnfenced, Redlock].into_iter().fold(of, |of, ours| {
            of.row_of(ours, format!("{}, {tasks} tasks: cycles/s", ours.side().1), PER_SECOND, &[])
        })
    });
    let mysql = tasks().map(|tasks| {
        let of = of(On::MariaDb, tasks, MYSQL, Plot::MysqlThroughput);
        of.row(format!("mysql-unique, {tasks} tasks: cycles/s"), PER_SECOND, &[])
    });
    redis.chain(nodes).chain(mysql).collect()
}

/// What a cycle costs the server, or each node.
fn server_cost(pace: Pace) -> [Part; 4] {
    const OF_REDIS: &[Kind] = &[RedisSingle, RedisWriters, RedisReentrant, Bare, Rslock];
    const OF_MYSQL: &[Kind] = &[MysqlUnique, MysqlRw, Updates, InsertDelete];
    let of = |on, sides, whose: &str, ours: &[(Kind, &[Aim])], most: &[Aim]| {
        ours.iter().fold(Part::of("S64", on, MANY, sides, pace), |of, (kind, times)| {
            of.about(&format!("{}, 64 tasks", kind.side().1))
                .row_of(*kind, format!("CPU of a {whose}, µs/cycle"), SERVER_CPU, times)
                .row_of(*kind, format!("commands or statements of a {whose} per cycle"), CALLS, most)
        })
    };
    let within: &[Aim] = &[WithinFloor(1.6)];
    let redis: [(Kind, &[Aim]); 3] =
        [(RedisSingle, &[WithinFloor(1.3)]), (RedisWriters, within), (RedisReentrant, within)];
    [
        of(On::Redis, OF_REDIS, "server", &redis, &[]),
        of(On::Cluster, &[RedisCluster, Bare], "server", &[(RedisCluster, within)], &[]),
        of(On::FiveNodes, FIVE_NODES, "node", &[(RedlockUnfenced, within), (Redlock, within)], &[AtMost(5.0)]),
        of(On::MariaDb, OF_MYSQL, "server", &[(MysqlUnique, &[]), (MysqlRw, &[])], &[]),
    ]
}

fn redlock_and_files(pace: Pace) -> Vec<Part> {
    let of = |id, shape| Part::of(id, On::FiveNodes, shape, FIVE_NODES, pace);
    vec![
        of("Q1", ALONE)
            .row_of(RedlockUnfenced, "5 nodes, 1 task, unfenced: cycles/s", PER_SECOND, &[PeerTimes(1.0)])
            .row_of(Redlock, "5 nodes, 1 task, fenced: cycles/s", PER_SECOND, &[PeerTimes(0.95)])
            .row_of(RedlockUnfenced, "5 nodes, 1 task, unfenced: p50 of a cycle, µs", P50, &[])
            .row_of(Redlock, "5 nodes, 1 task, fenced: p50 of a cycle, µs", P50, &[]),
        of("Q64", MANY)
            .row_of(RedlockUnfenced, "5 nodes, 64 tasks, unfenced: cycles/s", PER_SECOND, &[PeerTimes(1.3)])
            .row_of(Redlock, "5 nodes, 64 tasks, fenced: cycles/s", PER_SECOND, &[PeerTimes(1.0)])
            .row_of(RedlockUnfenced, "5 nodes, 64 tasks, unfenced: client CPU, µs/cycle", CPU, &[])
            .row_of(Redlock, "5 nodes, 64 tasks, fenced: client CPU, µs/cycle", CPU, &[]),
        Part::other("Q-down", On::FiveNodes, others::two_down, pace),
        Part::other("R100k", On::Redis, held::hundred_thousand, pace),
        // As many keys as it keeps files open. One alone would measure the rule that a store grants a key 16,000 times a
        // second at most.
        Part::of("F1", On::Folder, Shape::own_keys(16), &[File, RawFile], pace)
            .row("16 keys of one thread: cycles/s", PER_SECOND, &[FloorTimes(0.5)])
            .row("16 keys of one thread: p50 of a cycle, µs", P50, &[]),
        Part::other("F1", On::Folder, others::beside_flock, pace),
        Part::other("C", On::Redis, held::growth, pace),
    ]
}

/// Each on a MariaDB in memory, and on one with a binary log.
fn mysql(pace: Pace) -> Vec<Part> {
    const BOTH: [(On, &str); 2] = [(On::MariaDb, "in memory: "), (On::Binlog, "binlog + 1 ms: ")];
    let mut parts = Vec::new();
    let mut on_both = |of: &dyn Fn(On) -> Vec<Part>| {
        let on = |(on, words)| of(on).into_iter().map(move |part| part.words(words));
        parts.extend(BOTH.into_iter().flat_map(on));
    };
    let of = |id, on, shape, sides| Part::of(id, on, shape, sides, pace);
    on_both(&|on| {
        let within = (on == On::MariaDb).then_some(WithinFloor(5.0));
        vec![
            of("M1", on, ALONE, &[MysqlUnique, Select, InsertDelete])
                .row("1 task: p50 of a cycle, µs (floor: SELECT 1)", P50, within.as_slice())
                .row("1 task: statements per cycle", COMMANDS, &[AtLeast(2.0), AtMost(2.01)]),
        ]
    });
    on_both(&|on| {
        let times = if on == On::MariaDb { 3.0 } else { 2.5 };
        vec![
            of("M64", on, MANY, MYSQL)
                .row("64 tasks: cycles/s (floor: two UPDATEs)", PER_SECOND, &[PeerTimes(times)])
                .row("64 tasks: p99 of a cycle, µs", P99, &[])
                .row("64 tasks: statements per cycle", COMMANDS, &[])
                .row("64 tasks: deadlock errors", DEADLOCKS, &[AtMost(0.0)])
                .row("64 tasks: client CPU, µs/cycle", CPU, &[]),
        ]
    });
    on_both(&|on| {
        vec![
            of("MH1", on, ONE_KEY, &[MysqlUnique, InsertDelete])
                .row("1 × 64 on a key: acquisitions/s", PER_SECOND, &[PeerTimes(100.0)])
                .row("1 × 64 on a key: statements per acquisition", COMMANDS, &[AtMost(0.2)])
                .row("1 × 64 on a key: Jain index over tasks", JAIN, &[AtLeast(0.95)])
                .row("1 × 64 on a key: deadlock errors", DEADLOCKS, &[AtMost(0.0)]),
        ]
    });
    on_both(&|on| mysql_of_eight(on, pace));
    on_both(&|on| {
        let run = if on == On::MariaDb { readers::in_memory } else { readers::with_binlog };
        vec![Part::other("MR", on, run, pace)]
    });
    on_both(&|on| vec![Part::other("MN", on, renewals::ten_thousand, pace)]);
    parts
}

/// Without work under the lock, and with 5 ms of it.
fn mysql_of_eight(on: On, pace: Pace) -> Vec<Part> {
    const SIDES: &[Kind] = &[MysqlUnique, MysqlQueue, MysqlQueueNoHandoff, InsertDelete];
    let of = |shape| Part::of("MH8", on, shape, SIDES, pace);
    let per = "statements per acquisition";
    let quick = of(EIGHT_BY_EIGHT)
        .about("8 × 8 on a key")
        .row("acquisitions/s", PER_SECOND, &[PeerTimes(10.0)])
        .row(per, COMMANDS, &[AtMost(0.5)])
        .row(JAIN, JAIN, &[])
        .about("8 × 8 on a key, advisory queue")
        .row_of(MysqlQueue, "acquisitions/s", PER_SECOND, &[PeerTimes(10.0)])
        .row_of(MysqlQueue, per, COMMANDS, &[AtMost(0.5)])
        .row_of(MysqlQueue, JAIN, JAIN, &[AtLeast(0.95)])
        .about("8 × 8 on a key, advisory queue, local hand-off off")
        .row_of(MysqlQueueNoHandoff, per, COMMANDS, &[])
        .about("8 × 8 on a key")
        .row_of(MysqlQueue, "deadlock errors", DEADLOCKS, &[AtMost(0.0)]);
    let at_most = |most| (on == On::MariaDb).then_some(AtMost(most));
    let queue = |of: Part, ours, about: &str| {
        of.about(about).row_of(ours, "p50 of a hand-off, µs", P50, at_most(1000.0).as_slice()).row_of(
            ours,
            "p99 of a hand-off, µs",
            P99,
            at_most(3000.0).as_slice(),
        )
    };
    let work = of(Shape { hold_micros: 5000, ..EIGHT_BY_EIGHT });
    let work = work.row("8 × 8, 5 ms of work: p99 of a hand-off, µs", P99, &[]);
    let work = queue(work, MysqlQueue, "8 × 8, 5 ms of work, advisory queue");
    let work = queue(work, MysqlQueueNoHandoff, "the same, local hand-off off");
    vec![quick, work.row_of(MysqlQueueNoHandoff, per, COMMANDS, &[AtMost(4.2)])]
}

fn servers(pace: Pace) -> Vec<Part> {
    const WRITERS: &[Kind] = &[RedisWriters, BesideRedisSingle];
    let of = |id, on, shape, sides| Part::of(id, on, shape, sides, pace);
    let postgres_one_key = |id, shape, words: &str| {
        of(id, On::Postgres, shape, &[Postgres, PgAdvisory])
            .row(format!("{words} on a key: acquisitions/s"), PER_SECOND, &[PeerTimes(1.0)])
            .row(format!("{words} on a key: {JAIN}"), JAIN, &[AtLeast(0.95)])
    };
    let etcd_one_key =
        |id, shape, words| of(id, On::Etcd, shape, &[Etcd, EtcdLock]).figures(words, &[PER_SECOND, HAND_OFFS, JAIN]);
    vec![
        of("P1", On::Postgres, ALONE, POSTGRES)
            .row("1 task: p50 of a cycle, µs (floor: two UPDATEs)", P50, &[WithinFloor(1.3)])
            .row("1 task: client CPU, µs/cycle", CPU, &[]),
        of("P64", On::Postgres, MANY, POSTGRES)
            .row("64 tasks: cycles/s (floor: two UPDATEs)", PER_SECOND, &[PeerTimes(2.0)])
            .row("64 tasks: p99 of a cycle, µs", P99, &[])
            .row("64 tasks: client CPU, µs/cycle", CPU, &[]),
        postgres_one_key("PH1", ONE_KEY, "1 × 64"),
        postgres_one_key("PH8", EIGHT_BY_EIGHT, "8 × 8"),
        of("W1", On::Redis, ALONE, WRITERS).figures("1 task", &[P50, PER_SECOND, CPU]),
        of("W64", On::Redis, MANY, WRITERS).figures("64 tasks", &[PER_SECOND, P99, CPU]),
        // Each with a key of its own: readers of one process share a lease.
        of("WR64", On::Redis, MANY, &[RedisReaders, BesideRedisSingle]).figures("64 readers", &[PER_SECOND, P99, CPU]),
        of("WH8", On::Redis, EIGHT_BY_EIGHT, WRITERS).figures("8 × 8 on a key", &[PER_SECOND, HAND_OFFS, P99, JAIN]),
        of("E1", On::Etcd, ALONE, &[Etcd, EtcdPuts, EtcdLock, Etcdctl])
            .row("1 task: p50 of a cycle, µs (floor: put and delete)", P50, &[WithinFloor(1.3)])
            .row("1 task: client CPU, µs/cycle", CPU, &[]),
        of("E64", On::Etcd, MANY, &[Etcd, EtcdPuts, EtcdLock])
            .row("64 tasks: cycles/s (floor: put and delete)", PER_SECOND, &[PeerTimes(1.5)])
            .row("64 tasks: p99 of a cycle, µs", P99, &[])
            .row("64 tasks: client CPU, µs/cycle", CPU, &[]),
        etcd_one_key("EH1", ONE_KEY, "1 × 64 on a key"),
        etcd_one_key("EH8", EIGHT_BY_EIGHT, "8 × 8 on a key"),
    ]
}

fn agents(pace: Pace) -> Vec<Part> {
    let of_redis = |id, shape, words: &str, figures: &[&'static str]| {
        let rows = [Agent, AgentLines].into_iter().flat_map(|ours| figures.iter().map(move |figure| (ours, *figure)));
        let of = Part::of(id, On::AgentOfRedis, shape, &[Agent, AgentLines, RedisDirect], pace);
        rows.fold(of, |of, (ours, figure)| of.row_of(ours, format!("{} {words}: {figure}", ours.side().1), figure, &[]))
    };
    // So many take their time until all have begun.
    let long = Pace { rounds: 1, warm_up_millis: 2000, window_millis: 3000, ..pace };
    let (of_many, processes) = if pace.quick { (pace, 50) } else { (long, 500) };
    let many = |words, shape: Shape| {
        let shape = Shape { processes, ..shape };
        Part::of("A500", On::AgentOfRedis, shape, &[Agent, RedisDirect], of_many)
            .figures(&format!("{processes} processes, {words}"), &[PER_SECOND, CONNECTIONS, MEMORY])
    };
    vec![
        of_redis("A1", ALONE, "1 task", &[P50, CPU]),
        of_redis("A64", MANY, "64 tasks", &[PER_SECOND, CPU]),
        Part::of("AF", On::AgentOfFolder, ALONE, &[AgentLines, FileDirect], pace).about("lines, `file:`, 1 task").row(
            "p50 of a cycle, µs",
            P50,
            &[],
        ),
        many("own keys", ALONE),
        many("one key", Shape::hot_key(1)),
        Part::other("M-idle", On::MariaDb, renewals::one_beside_a_million, pace),
    ]
}
