//! MR: readers and writers of one key, beside a lock that keeps a count of its readers in a column.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{Either, join_all, try_join_all};
use leasehold_core::{LockGuard, ReadGuard, RwLockerExt};
use leasehold_mysql_rw::MysqlRw;
use mysql_async::Pool;
use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::contenders::Role;
use crate::contenders::mysql::pool;
use crate::harness::{Aim, Rounds, Side, interleave};
use crate::job::runtime;
use crate::load::{Failure, Pace, Result};
use crate::log::{DEADLOCKS, Sample, histogram};
use crate::report::Report;
use crate::servers::Store;

const OURS: &str = "mysql-rw";
const READS: &str = "reads/s";
const WRITES: &str = "writes/s";
const WAIT: &str = "p99 of a writer's wait, ms";
const KEY: &str = "bench/rw";
/// Independent clients, each with a queue of its own, as in as many processes.
const CLIENTS: usize = 4;

/// Workload MR on a server whose data are in memory: readers alone, readers and one writer, and as many of each.
pub(crate) fn in_memory(store: &Store, pace: Pace) -> Result<Report> {
    readers_and_writers(store, pace, 1.5, &[Aim::AtLeast(100.0)])
}

/// The same on one that has a binary log.
pub(crate) fn with_binlog(store: &Store, pace: Pace) -> Result<Report> {
    readers_and_writers(store, pace, 10.0, &[])
}

fn readers_and_writers(store: &Store, pace: Pace, times: f64, least: &[Aim]) -> Result<Report> {
    let alone = Mix { readers: 64, writers: 0, hold: Duration::ZERO, pause: Duration::ZERO };
    let beside = Mix { writers: 1, hold: Duration::from_millis(1), pause: Duration::from_millis(10), ..alone };
    let even = Mix { readers: 16, writers: 16, ..alone };
    let (alone, beside, even) =
        (alone.measured(store, pace)?, beside.measured(store, pace)?, even.measured(store, pace)?);
    Ok(Report::of([
        alone.row("64 readers: reads/s", OURS, READS, &[Aim::PeerTimes(times)]),
        beside.row("64 readers and a writer: reads/s", OURS, READS, &[]),
        beside.row("64 readers and a writer: writes/s", OURS, WRITES, &[Aim::AtLeast(20.0)]),
        beside.row("64 readers and a writer: p99 of the writer's wait, ms", OURS, WAIT, &[Aim::AtMost(60.0)]),
        even.row("16 readers and 16 writers: reads/s", OURS, READS, least),
        even.row("16 readers and 16 writers: writes/s", OURS, WRITES, least),
        even.row("16 readers and 16 writers: p99 of a writer's wait, ms", OURS, WAIT, &[]),
        even.row("16 readers and 16 writers: deadlock errors", OURS, DEADLOCKS, &[Aim::AtMost(0.0)]),
    ]))
}

/// Who wants the key, for how long, and how long a writer pauses.
#[derive(Clone, Copy, Debug)]
struct Mix {
    readers: usize,
    writers: usize,
    hold: Duration,
    pause: Duration,
}

/// A lock that readers share.
trait Shared: Clone + Send + Sync + 'static {
    type Held: Send;
    fn take(&self, writes: bool) -> impl Future<Output = Result<Self::Held>> + Send;
    fn give_back(&self, writes: bool, held: Self::Held) -> impl Future<Output = Result<()>> + Send;
}

/// What was counted, from all tasks.
#[derive(Debug, Default)]
struct Tally {
    /// Readers who are inside, and far above them, writers.
    inside: AtomicU64,
    reads: AtomicU64,
    writes: AtomicU64,
}

const A_WRITER: u64 = 1 << 32;

impl Mix {
    fn measured(self, store: &Store, pace: Pace) -> Result<Rounds> {
        let server = store.mariadb()?;
        let url = server.url();
        let deadlocks = async || server.status("Innodb_deadlocks").await as f64;
        let counted = |pace, ours: bool| {
            runtime(0)?.block_on(async {
                let before = deadlocks().await;
                let mut sample = if ours {
                    let clients = try_join_all((0..CLIENTS).map(|_| MysqlRw::connect(&url))).await?;
                    let sample = self.run(&clients, pace).await?;
                    join_all(clients.iter().map(MysqlRw::close)).await;
                    sample
                } else {
                    self.run(&try_join_all((0..CLIENTS).map(|_| Counter::connect(&url))).await?, pace).await?
                };
                sample.figures.insert(DEADLOCKS, deadlocks().await - before);
                Ok::<_, Failure>(sample)
            })
        };
        let ours = Side::new(Role::Ours, OURS, |pace| counted(pace, true));
        interleave(pace, vec![ours, Side::new(Role::Peer, "counter column", |pace| counted(pace, false))])
    }

    async fn run<S: Shared>(self, clients: &[S], pace: Pace) -> Result<Sample> {
        let tally = Arc::new(Tally::default());
        let begin = Instant::now() + Duration::from_millis(pace.warm_up_millis);
        // A writer that comes every 20 ms needs a while for a p99.
        let end = begin + Duration::from_millis(pace.window_millis * 2);
        let mut tasks = JoinSet::new();
        for (number, client) in (0..self.readers + self.writers).zip(clients.iter().cycle()) {
            let (client, tally, writes) = (client.clone(), Arc::clone(&tally), number >= self.readers);
            tasks.spawn(async move {
                let mut waits = Vec::new();
                // Whoever still waits at the end has waited for at least so long.
                let mut since = None;
                let turns = async {
                    loop {
                        since = writes.then(Instant::now);
                        waits.extend(self.turn(&client, &tally, writes, begin).await?.filter(|_| writes));
                        since = None;
                        if writes {
                            sleep(self.pause).await;
                        }
                    }
                };
                match timeout_at(end, turns).await {
                    Ok(broke) => return broke,
                    Err(_) => waits.extend(since.map(|since| since.elapsed())),
                }
                Ok::<_, Failure>(waits)
            });
        }
        let mut latencies = histogram();
        while let Some(ended) = tasks.join_next().await {
            for wait in ended?? {
                latencies.saturating_record(wait.as_nanos() as u64);
            }
        }
        let seconds = (end - begin).as_secs_f64();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (reads, writes) = (count(&tally.reads), count(&tally.writes));
        let figures = [
            (READS, reads as f64 / seconds),
            (WRITES, writes as f64 / seconds),
            (WAIT, latencies.value_at_quantile(0.99) as f64 / 1e6),
        ];
        Ok(Sample { acquisitions: (reads + writes) as usize, figures: figures.into(), latencies })
    }

    /// Answers how long it took to get the key, if it counts.
    async fn turn<S: Shared>(
        self,
        client: &S,
        tally: &Tally,
        writes: bool,
        begin: Instant,
    ) -> Result<Option<Duration>> {
        let asked = Instant::now();
        let held = client.take(writes).await?;
        let waited = asked.elapsed();
        let (weight, too_many) = if writes { (A_WRITER, 1) } else { (1, A_WRITER) };
        if tally.inside.fetch_add(weight, Ordering::SeqCst) >= too_many {
            return Err("a writer beside others".into());
        }
        let counts = Instant::now() >= begin;
        if !self.hold.is_zero() {
            sleep(self.hold).await;
        }
        tally.inside.fetch_sub(weight, Ordering::SeqCst);
        let counter = if writes { &tally.writes } else { &tally.reads };
        counter.fetch_add(u64::from(counts), Ordering::Relaxed);
        client.give_back(writes, held).await?;
        Ok(counts.then_some(waited))
    }
}

impl Shared for MysqlRw {
    type Held = Either<LockGuard, ReadGuard>;

    async fn take(&self, writes: bool) -> Result<Self::Held> {
        Ok(if writes { Either::Left(self.write(KEY).await?) } else { Either::Right(self.read(KEY).await?) })
    }

    async fn give_back(&self, _writes: bool, held: Self::Held) -> Result<()> {
        match held {
            Either::Left(writer) => writer.release().await?,
            Either::Right(reader) => reader.release().await?,
        };
        Ok(())
    }
}

/// One row with the number of readers and whether there is a writer; without leases, owners or tokens.
#[derive(Clone)]
struct Counter(Pool);

impl Counter {
    async fn connect(url: &str) -> Result<Self> {
        let pool = pool(url)?;
        let mut session = pool.get_conn().await?;
        let table = "CREATE TABLE IF NOT EXISTS counter (name VARCHAR(255) CHARACTER SET utf8mb4 PRIMARY KEY, \
                     readers INT NOT NULL, writer INT NOT NULL)";
        session.query_drop(table).await?;
        // Those of the last run who were cut short have left their marks.
        session.exec_drop("REPLACE INTO counter VALUES (?, 0, 0)", (KEY,)).await?;
        drop(session);
        Ok(Self(pool))
    }

    async fn until_done(&self, change: &str) -> Result<()> {
        let (statement, mut pause) = (format!("UPDATE counter SET {change}"), Duration::from_millis(1));
        loop {
            let mut session = self.0.get_conn().await?;
            session.exec_drop(&statement, (KEY,)).await?;
            if session.affected_rows() == 1 {
                return Ok(());
            }
            drop(session);
            sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

impl Shared for Counter {
    type Held = ();

    async fn take(&self, writes: bool) -> Result<()> {
        let write = "writer = 1 WHERE name = ? AND writer = 0 AND readers = 0";
        self.until_done(if writes { write } else { "readers = readers + 1 WHERE name = ? AND writer = 0" }).await
    }

    async fn give_back(&self, writes: bool, _held: ()) -> Result<()> {
        let read = "readers = readers - 1 WHERE name = ? AND readers > 0";
        self.until_done(if writes { "writer = 0 WHERE name = ? AND writer = 1" } else { read }).await
    }
}
