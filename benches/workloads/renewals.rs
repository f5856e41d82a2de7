//! Renewals on MySQL: of 10,000 leases in batches, beside one statement for each (MN); and of one lease in a table with a million keys that
//! nobody holds, and in an empty table (M-idle).

use std::time::Duration;

use futures::future::try_join_all;
use leasehold_core::{Attempt, Backend, Claim, GrantRef, LeaseStatus, LockKey, Mode, Renewal};
use leasehold_mysql_rw::MysqlRw;
use leasehold_mysql_unique::MysqlUnique;
use leasehold_testkit::mysql::Server;
use mysql_async::prelude::Queryable;

use crate::contenders::Role;
use crate::contenders::mysql::pool;
use crate::harness::{Aim, Row, Side, interleave};
use crate::job::runtime;
use crate::load::{Pace, Result, now};
use crate::log::{P50, Sample, histogram};
use crate::machine;
use crate::report::Report;
use crate::servers::Store;

const UNIQUE: &str = "mysql-unique";
const WRITERS: &str = "mysql-rw, writers";
const READERS: &str = "mysql-rw, readers";
const NAMESPACE: &str = "renewals";
const LEASES: usize = 10_000;
const LEASE: Duration = Duration::from_secs(600);
const SERVER_CPU: &str = "server CPU, ms";
const ALL: &str = "all renewed, ms";
const LONGEST: &str = "the longest statement, ms";

/// Workload MN: held by one client that is its own keeper.
pub(crate) fn ten_thousand(store: &Store, pace: Pace) -> Result<Report> {
    // The server's processor time comes in steps of 10 ms.
    const TIMES: usize = 10;
    let (server, runtime) = (store.mariadb()?, runtime(0)?);
    let url = server.url();
    let unique = runtime.block_on(MysqlUnique::builder().url(&url).namespace(NAMESPACE).backend())?;
    let rw = runtime.block_on(MysqlRw::builder().url(&url).namespace(NAMESPACE).backend())?;
    let leases = runtime.block_on(held(&unique, Mode::Exclusive))?;
    let writers = runtime.block_on(held(&rw, Mode::Exclusive))?;
    let readers = runtime.block_on(held(&rw, Mode::Shared))?;
    let pool = pool(&url)?;
    let measured = |times: usize, renewed: &dyn Fn() -> Result<Sample>| {
        let before = machine::cpu_millis_of(server.pid())?;
        let mut sample = renewed()?;
        let cpu = machine::cpu_millis_of(server.pid())? - before;
        let steps = sample.latencies.iter_recorded();
        let total: u64 = steps.map(|step| step.value_iterated_to() * step.count_at_value()).sum();
        let each = [(SERVER_CPU, cpu / times as f64), (ALL, total as f64 / 1e6 / times as f64)];
        sample.figures.extend(each.into_iter().chain([(LONGEST, sample.latencies.max() as f64 / 1e6)]));
        Ok(sample)
    };
    let sides = vec![
        Side::new(Role::Ours, UNIQUE, |_| measured(TIMES, &|| runtime.block_on(renewed(&unique, &leases, TIMES)))),
        Side::new(Role::Ours, WRITERS, |_| measured(TIMES, &|| runtime.block_on(renewed(&rw, &writers, TIMES)))),
        Side::new(Role::Ours, READERS, |_| measured(TIMES, &|| runtime.block_on(renewed(&rw, &readers, TIMES)))),
        Side::new(Role::Peer, "one by one", |_| measured(1, &|| runtime.block_on(one_by_one(&pool, &leases)))),
    ];
    let rounds = interleave(Pace { rounds: pace.rounds.min(3), ..pace }, sides)?;
    let mut report = Report::of([
        rounds.row("10,000 leases renewed: server CPU, ms", UNIQUE, SERVER_CPU, &[Aim::WithinPeer(1.0 / 15.0)]),
        rounds.row("10,000 leases renewed: until all are, ms", UNIQUE, ALL, &[]),
    ]);
    report.rows.extend([UNIQUE, WRITERS, READERS].map(|ours| {
        let what = format!("10,000 leases renewed, {ours}: the longest statement, ms");
        rounds.row(&what, ours, LONGEST, &[Aim::AtMost(10.0)])
    }));
    Ok(report)
}

async fn held<B: Backend>(store: &B, mode: Mode) -> Result<Vec<GrantRef>> {
    let mut grants = Vec::with_capacity(LEASES);
    for some in (0..LEASES).collect::<Vec<_>>().chunks(256) {
        let taken = some.iter().map(|number| take(store, mode, format!("kept/{mode:?}/{number}"), LEASE));
        grants.extend(try_join_all(taken).await?);
    }
    Ok(grants)
}

/// A grant of this key, which is free.
async fn take<B: Backend>(store: &B, mode: Mode, key: String, lease: Duration) -> Result<GrantRef> {
    let key = LockKey::new(key)?;
    let claim = Claim::new(&key, mode, lease);
    match store.try_acquire(&claim).await? {
        Attempt::Granted { epoch } => Ok(claim.grant(epoch)),
        busy => Err(format!("{} is not free: {busy:?}", claim.key).into()),
    }
}

/// Renews these so many times, in batches, each of which is timed.
async fn renewed<B: Backend>(store: &B, grants: &[GrantRef], times: usize) -> Result<Sample> {
    let renewals: Vec<Renewal> = grants.iter().map(|grant| Renewal { grant: grant.clone(), ttl: LEASE }).collect();
    let mut latencies = histogram();
    for _ in 0..times {
        for batch in renewals.chunks(store.renewal_batch()) {
            let begin = now();
            let answers = store.renew(batch, LEASE / 4).await;
            latencies.saturating_record(now() - begin);
            if !answers.iter().all(|answer| matches!(answer, Ok(LeaseStatus::Held))) {
                return Err("a lease was lost while it was kept".into());
            }
        }
    }
    Ok(Sample::timed(grants.len() * times, latencies))
}

/// On one connection, as a keeper would.
async fn one_by_one(pool: &mysql_async::Pool, grants: &[GrantRef]) -> Result<Sample> {
    let renew = "UPDATE leasehold_locks SET expires_at = UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND \
                 WHERE name = ? AND owner = ? AND expires_at > UTC_TIMESTAMP(6)";
    let mut session = pool.get_conn().await?;
    let mut latencies = histogram();
    for grant in grants {
        let name = format!("{NAMESPACE}\0{}", grant.key);
        let begin = now();
        session.exec_drop(renew, (LEASE.as_micros() as u64, name, grant.owner.as_bytes())).await?;
        latencies.saturating_record(now() - begin);
        if session.affected_rows() != 1 {
            return Err("a lease was lost while it was kept".into());
        }
    }
    Ok(Sample::timed(LEASES, latencies))
}

/// Names of tables: one that stays empty and one that is filled.
const TABLES: [&str; 2] = ["few_rows", "many_rows"];

/// Workload M-idle.
pub(crate) fn one_beside_a_million(store: &Store, pace: Pace) -> Result<Report> {
    // The lease that the idle rows had.
    const OVER: Duration = Duration::from_millis(100);
    let server = store.mariadb()?;
    let url = server.url();
    let of_unique = |table: &str| MysqlUnique::builder().url(&url).table(format!("{table}_unique"));
    let of_rw = |table: &str| MysqlRw::builder().url(&url).table(format!("{table}_rw"));
    let unique = async |table: &str| Ok(of_unique(table).backend().await?);
    let rw = async |table: &str| Ok(of_rw(table).backend().await?);
    runtime(0)?.block_on(async {
        // Production keeps what it uses in memory, too.
        server.sql(&["SET GLOBAL innodb_buffer_pool_size = 536870912"]).await;
        for table in TABLES {
            of_unique(table).migrate().await?;
            of_rw(table).migrate().await?;
        }
        let [_, many] = TABLES;
        take(&unique(many).await?, Mode::Exclusive, "idle".to_owned(), OVER).await?;
        take(&rw(many).await?, Mode::Exclusive, "idle".to_owned(), OVER).await?;
        take(&rw(many).await?, Mode::Shared, "idle/reader".to_owned(), OVER).await?;
        fill(server, many).await
    })?;
    Ok(Report::of([
        compared(pace, "mysql-unique", unique, Mode::Exclusive)?,
        compared(pace, "mysql-rw, writer", rw, Mode::Exclusive)?,
        compared(pace, "mysql-rw, reader", rw, Mode::Shared)?,
    ]))
}

/// A row of the results: the renewal of a lease in the table that is full, and in the one that is not.
///
/// What a renewal takes on one connection depends on which cores its two ends run on, up to twice as much, so that each side
/// connects many times and the connection with the least counts.
fn compared<B: Backend>(
    pace: Pace,
    name: &str,
    connect: impl AsyncFn(&str) -> Result<B> + Copy,
    mode: Mode,
) -> Result<Row> {
    const CONNECTIONS: usize = 8;
    const RENEWALS: usize = 300;
    let sides = TABLES.into_iter().zip([(Role::Floor, "empty table"), (Role::Ours, name)]);
    let sides = sides.map(|(table, (role, side))| {
        let mut grants = Vec::new();
        Side::new(role, side, move |_| {
            let samples = (0..CONNECTIONS).map(|_| {
                runtime(0)?.block_on(async {
                    let store = connect(table).await?;
                    if grants.is_empty() {
                        grants.push(take(&store, mode, format!("held/{mode:?}"), LEASE).await?);
                    }
                    renewed(&store, &grants, RENEWALS).await
                })
            });
            let samples = samples.collect::<Result<Vec<_>>>()?.into_iter();
            samples.min_by(|one, other| one.figures[P50].total_cmp(&other.figures[P50])).ok_or_else(|| "none".into())
        })
    });
    let rounds = interleave(pace, sides.collect())?.least(P50);
    let what = format!("{name}: a renewal beside 1,000,000 idle rows (floor: none), least p50 of a connection, µs");
    Ok(rounds.row(&what, name, P50, &[Aim::WithinFloor(1.2)]))
}

/// Fills each of these tables with a million copies of one row that it has, each under a name of its own, whatever its other columns are.
async fn fill(server: &Server, tables: &str) -> Result<()> {
    let mut session = server.session().await?;
    let columns = "SELECT table_name, GROUP_CONCAT(column_name ORDER BY ordinal_position) FROM information_schema.columns \
                   WHERE table_schema = 'leasehold' AND table_name LIKE ? GROUP BY table_name";
    let tables: Vec<(String, String)> = session.exec(columns, (format!("{tables}%"),)).await?;
    let digits: Vec<String> = (0..10).map(|digit| format!("SELECT {digit} AS n")).collect();
    let places = ["a", "b", "c", "d", "e", "f"];
    let joined = places.map(|place| format!("({}) AS {place}", digits.join(" UNION ALL "))).join(" JOIN ");
    let name = format!("CONCAT(old.name, '/', {})", places.map(|place| format!("{place}.n")).join(", "));
    for (table, columns) in tables {
        let values =
            columns.split(',').map(|column| if column == "name" { name.clone() } else { format!("old.{column}") });
        let values = values.collect::<Vec<_>>().join(", ");
        let old = format!("(SELECT * FROM leasehold.{table} LIMIT 1) AS old");
        let fill = format!("INSERT INTO leasehold.{table} ({columns}) SELECT {values} FROM {old} JOIN {joined}");
        session.query_drop(fill).await?;
        // As the server does by itself, some time after a table has grown.
        session.query_drop(format!("ANALYZE TABLE leasehold.{table}")).await?;
    }
    Ok(())
}
