//! MR: readers and writers of one key, beside a lock that keeps a count of its readers in a column.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::{join_all, try_join_all};
use leasehold_core::{LockGuard, ReadGuard, RwLockerExt};
use leasehold_mysql_rw::MysqlRw;
use mysql_async::Pool;
use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::rows::{Rows, on_each};
use super::server::{Durability, MariaDb};
use crate::contenders::mysql::pool;
use crate::harness::{Aim, Role, Side, interleave};
use crate::job::runtime;
use crate::load::{Result, now};
use crate::log::{DEADLOCKS, Sample, histogram};
use crate::pace::Pace;
use crate::report::Report;

const OURS: &str = "mysql-rw";
const RIVAL: &str = "counter column";
const READS: &str = "reads/s";
const WRITES: &str = "writes/s";
const WAIT: &str = "p99 of a writer's wait, ms";
const KEY: &str = "bench/rw";
/// Independent clients, each with a queue of its own, as in as many processes.
const CLIENTS: usize = 4;

/// Readers alone, readers and one writer, and as many of each.
pub(crate) fn readers_and_writers(pace: Pace) -> Result<Report> {
    on_each("MR", |server, words| {
        let in_memory = words == Durability::Memory.words();
        let mut all = Vec::new();
        let alone = Mix { readers: 64, writers: 0, hold: Duration::ZERO, pause: Duration::ZERO };
        let rounds = interleave(pace, sides(server, alone))?;
        let mut rows = Rows { id: "MR", words, rounds: &rounds };
        let times = if in_memory { 1.5 } else { 10.0 };
        all.push(rows.of("64 readers: reads/s", OURS, READS, &[Aim::PeerTimes(times)]));

        let beside = Mix { writers: 1, hold: Duration::from_millis(1), pause: Duration::from_millis(10), ..alone };
        let rounds = interleave(pace, sides(server, beside))?;
        let mut rows = Rows { id: "MR", words, rounds: &rounds };
        all.extend([
            rows.of("64 readers and a writer: reads/s", OURS, READS, &[]),
            rows.of("64 readers and a writer: writes/s", OURS, WRITES, &[Aim::AtLeast(20.0)]),
            rows.of("64 readers and a writer: p99 of the writer's wait, ms", OURS, WAIT, &[Aim::AtMost(60.0)]),
        ]);

        let even = Mix { readers: 16, writers: 16, ..alone };
        let rounds = interleave(pace, sides(server, even))?;
        let mut rows = Rows { id: "MR", words, rounds: &rounds };
        let least: &[Aim] = if in_memory { &[Aim::AtLeast(100.0)] } else { &[] };
        all.extend([
            rows.of("16 readers and 16 writers: reads/s", OURS, READS, least),
            rows.of("16 readers and 16 writers: writes/s", OURS, WRITES, least),
            rows.of("16 readers and 16 writers: p99 of a writer's wait, ms", OURS, WAIT, &[]),
            rows.of("16 readers and 16 writers: deadlock errors", OURS, DEADLOCKS, &[Aim::AtMost(0.0)]),
        ]);
        Ok(all)
    })
}

/// Who wants the key, for how long, and how long a writer pauses.
#[derive(Clone, Copy, Debug)]
struct Mix {
    readers: usize,
    writers: usize,
    hold: Duration,
    pause: Duration,
}

fn sides(server: &MariaDb, mix: Mix) -> Vec<Side<'_>> {
    let ours = move |pace| {
        runtime(0)?.block_on(async {
            let url = server.url();
            let clients = try_join_all((0..CLIENTS).map(|_| MysqlRw::connect(&url))).await?;
            let sample = mix.run(&clients, pace).await?;
            join_all(clients.iter().map(MysqlRw::close)).await;
            Ok(sample)
        })
    };
    let rival = move |pace| {
        runtime(0)?.block_on(async {
            let url = server.url();
            mix.run(&try_join_all((0..CLIENTS).map(|_| Counter::connect(&url))).await?, pace).await
        })
    };
    let counted = move |pace, run: &dyn Fn(Pace) -> Result<Sample>| {
        let before = server.status("Innodb_deadlocks")?;
        let mut sample = run(pace)?;
        sample.figures.insert(DEADLOCKS, (server.status("Innodb_deadlocks")? - before) as f64);
        Ok(sample)
    };
    vec![
        Side::new(Role::Ours, OURS, move |pace| counted(pace, &ours)),
        Side::new(Role::Peer, RIVAL, move |pace| counted(pace, &rival)),
    ]
}

/// A lock that readers share.
trait Shared: Clone + Send + Sync + 'static {
    type Reader: Send;
    type Writer: Send;
    fn read(&self) -> impl Future<Output = Result<Self::Reader>> + Send;
    fn write(&self) -> impl Future<Output = Result<Self::Writer>> + Send;
    fn end_read(&self, held: Self::Reader) -> impl Future<Output = Result<()>> + Send;
    fn end_write(&self, held: Self::Writer) -> impl Future<Output = Result<()>> + Send;
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
    async fn run<S: Shared>(self, clients: &[S], pace: Pace) -> Result<Sample> {
        let tally = Arc::new(Tally::default());
        let begin = Instant::now() + Duration::from_millis(pace.warm_up_millis);
        // A writer that comes every 20 ms needs a while for a p99.
        let end = begin + Duration::from_millis(pace.window_millis * 2);
        let mut tasks = JoinSet::new();
        for (number, client) in (0..self.readers + self.writers).zip(clients.iter().cycle()) {
            let (client, tally) = (client.clone(), Arc::clone(&tally));
            tasks.spawn(async move {
                let mut waits = Vec::new();
                // Whoever still waits at the end has waited for at least so long.
                let mut since = None;
                let turns = async {
                    loop {
                        if number < self.readers {
                            self.reads(&client, &tally, begin).await?;
                        } else {
                            since = Some(Instant::now());
                            self.writes(&client, &tally, begin, &mut waits).await?;
                            since = None;
                            sleep(self.pause).await;
                        }
                    }
                };
                match timeout_at(end, turns).await {
                    Ok(broke) => return broke,
                    Err(_) => waits.extend(since.map(|since| since.elapsed())),
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>(waits)
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

    async fn reads<S: Shared>(self, client: &S, tally: &Tally, begin: Instant) -> Result<()> {
        let held = client.read().await?;
        let before = tally.inside.fetch_add(1, Ordering::SeqCst);
        if before >= A_WRITER {
            return Err("a reader beside a writer".into());
        }
        self.work().await;
        tally.inside.fetch_sub(1, Ordering::SeqCst);
        tally.reads.fetch_add(u64::from(Instant::now() >= begin), Ordering::Relaxed);
        client.end_read(held).await
    }

    async fn writes<S: Shared>(
        self,
        client: &S,
        tally: &Tally,
        begin: Instant,
        waits: &mut Vec<Duration>,
    ) -> Result<()> {
        let asked = now();
        let held = client.write().await?;
        if tally.inside.fetch_add(A_WRITER, Ordering::SeqCst) != 0 {
            return Err("a writer beside others".into());
        }
        if Instant::now() >= begin {
            waits.push(Duration::from_nanos(now() - asked));
            tally.writes.fetch_add(1, Ordering::Relaxed);
        }
        self.work().await;
        tally.inside.fetch_sub(A_WRITER, Ordering::SeqCst);
        client.end_write(held).await
    }

    async fn work(self) {
        if !self.hold.is_zero() {
            sleep(self.hold).await;
        }
    }
}

impl Shared for MysqlRw {
    type Reader = ReadGuard;
    type Writer = LockGuard;

    async fn read(&self) -> Result<ReadGuard> {
        Ok(RwLockerExt::read(self, KEY).await?)
    }

    async fn write(&self) -> Result<LockGuard> {
        Ok(RwLockerExt::write(self, KEY).await?)
    }

    async fn end_read(&self, held: ReadGuard) -> Result<()> {
        held.release().await?;
        Ok(())
    }

    async fn end_write(&self, held: LockGuard) -> Result<()> {
        held.release().await?;
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

    async fn until_done(&self, statement: &str) -> Result<()> {
        let mut pause = Duration::from_millis(1);
        loop {
            let mut session = self.0.get_conn().await?;
            session.exec_drop(statement, (KEY,)).await?;
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
    type Reader = ();
    type Writer = ();

    async fn read(&self) -> Result<()> {
        self.until_done("UPDATE counter SET readers = readers + 1 WHERE name = ? AND writer = 0").await
    }

    async fn write(&self) -> Result<()> {
        self.until_done("UPDATE counter SET writer = 1 WHERE name = ? AND writer = 0 AND readers = 0").await
    }

    async fn end_read(&self, _held: ()) -> Result<()> {
        self.until_done("UPDATE counter SET readers = readers - 1 WHERE name = ? AND readers > 0").await
    }

    async fn end_write(&self, _held: ()) -> Result<()> {
        self.until_done("UPDATE counter SET writer = 0 WHERE name = ? AND writer = 1").await
    }
}
