//! M-idle: the renewal of one lease in a table with a million keys that nobody holds, and in an empty table.

use std::time::Duration;

use leasehold_core::{Backend, GrantRef, LeaseStatus, Mode, Renewal};
use leasehold_mysql_rw::MysqlRw;
use leasehold_mysql_unique::MysqlUnique;
use mysql_async::prelude::Queryable;

use super::renewals::take;
use super::server::{Durability, MariaDb};
use crate::harness::{Aim, Role, Row, Side, interleave};
use crate::job::runtime;
use crate::load::{Result, now};
use crate::log::{P50, Sample, histogram};
use crate::pace::Pace;
use crate::report::Report;

const LEASE: Duration = Duration::from_secs(600);
/// The lease that the idle rows had.
const OVER: Duration = Duration::from_millis(100);
const CONNECTIONS: usize = 8;
/// On each connection.
const RENEWALS: usize = 300;
/// Names of tables: one that stays empty and one that is filled.
const TABLES: [&str; 2] = ["few_rows", "many_rows"];

/// Workload M-idle.
pub(crate) fn one_beside_a_million(pace: Pace) -> Result<Report> {
    let server = match MariaDb::start(Durability::Memory)? {
        Ok(server) => server,
        Err(why) => return Ok(Report::absent("M-idle", &why)),
    };
    let url = server.url();
    let unique =
        async |table: &str| Ok(MysqlUnique::builder().url(&url).table(format!("{table}_unique")).backend().await?);
    let rw = async |table: &str| Ok(MysqlRw::builder().url(&url).table(format!("{table}_rw")).backend().await?);
    runtime(0)?.block_on(async {
        // Production keeps what it uses in memory, too.
        server.sql(&["SET GLOBAL innodb_buffer_pool_size = 536870912"]).await;
        for table in TABLES {
            MysqlUnique::builder().url(&url).table(format!("{table}_unique")).migrate().await?;
            MysqlRw::builder().url(&url).table(format!("{table}_rw")).migrate().await?;
        }
        let [_, many] = TABLES;
        take(&unique(many).await?, Mode::Exclusive, "idle".to_owned(), OVER).await?;
        take(&rw(many).await?, Mode::Exclusive, "idle".to_owned(), OVER).await?;
        take(&rw(many).await?, Mode::Shared, "idle/reader".to_owned(), OVER).await?;
        for table in tables_of_many(&server).await? {
            copy_its_row(&server, &table).await?;
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
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
    let sides = TABLES.into_iter().zip([(Role::Floor, "empty table"), (Role::Ours, name)]);
    let sides = sides.map(|(table, (role, side))| {
        let mut grant = None;
        Side::new(role, side, move |_| {
            let mut least: Option<Sample> = None;
            for _ in 0..CONNECTIONS {
                let sample = runtime(0)?.block_on(async {
                    let store = connect(table).await?;
                    if grant.is_none() {
                        grant = Some(take(&store, mode, format!("held/{mode:?}"), LEASE).await?);
                    }
                    renewed(&store, grant.as_ref().ok_or("no grant")?).await
                })?;
                least = least.filter(|least| least.figures[P50] <= sample.figures[P50]).or(Some(sample));
            }
            least.ok_or_else(|| "no connection".into())
        })
    });
    let rounds = interleave(pace, sides.collect())?.least(P50);
    let what = format!("{name}: a renewal beside 1,000,000 idle rows (floor: none), least p50 of a connection, µs");
    Ok(rounds.row("M-idle", &what, name, P50, &[Aim::WithinFloor(1.2)]))
}

async fn renewed<B: Backend>(store: &B, grant: &GrantRef) -> Result<Sample> {
    let renewal = [Renewal { grant: grant.clone(), ttl: LEASE }];
    let mut latencies = histogram();
    for _ in 0..RENEWALS {
        let begin = now();
        let answers = store.renew(&renewal, LEASE / 4).await;
        latencies.saturating_record(now() - begin);
        if !matches!(answers.as_slice(), [Ok(LeaseStatus::Held)]) {
            return Err(format!("a lease was lost while it was kept: {answers:?}").into());
        }
    }
    let figures = [(P50, latencies.value_at_quantile(0.5) as f64 / 1e3)].into();
    Ok(Sample { acquisitions: RENEWALS, figures, latencies })
}

async fn tables_of_many(server: &MariaDb) -> Result<Vec<String>> {
    let mut session = server.session().await?;
    let find =
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'leasehold' AND table_name LIKE ?";
    Ok(session.exec(find, (format!("{}%", TABLES[1]),)).await?)
}

/// Fills the table with a million copies of one row that it has, each under a name of its own, whatever its other columns are.
async fn copy_its_row(server: &MariaDb, table: &str) -> Result<()> {
    let mut session = server.session().await?;
    let columns = "SELECT column_name FROM information_schema.columns \
                   WHERE table_schema = 'leasehold' AND table_name = ? ORDER BY ordinal_position";
    let columns: Vec<String> = session.exec(columns, (table,)).await?;
    let digits = |name: &str| {
        let others: Vec<String> = (1..10).map(|digit| format!("SELECT {digit}")).collect();
        format!("(SELECT 0 AS n UNION ALL {}) AS {name}", others.join(" UNION ALL "))
    };
    let (places, joined): (Vec<String>, Vec<String>) =
        ["a", "b", "c", "d", "e", "f"].iter().map(|name| (format!("{name}.n"), digits(name))).unzip();
    let name = format!("CONCAT(old.name, '/', {})", places.join(", "));
    let values = columns.iter().map(|column| if column == "name" { name.clone() } else { format!("old.{column}") });
    let fill = format!(
        "INSERT INTO leasehold.{table} ({}) SELECT {} FROM (SELECT * FROM leasehold.{table} LIMIT 1) AS old JOIN {}",
        columns.join(", "),
        values.collect::<Vec<_>>().join(", "),
        joined.join(" JOIN "),
    );
    session.query_drop(fill).await?;
    // As the server does by itself, some time after a table has grown.
    Ok(session.query_drop(format!("ANALYZE TABLE leasehold.{table}")).await?)
}
