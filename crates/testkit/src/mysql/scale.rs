//! A table with a million rows of other keys, and what the server says of each statement there.

use std::time::Duration;

use leasehold_core::{Admin, Backed, Backend, Cursor, Renewal};
use mysql_async::prelude::Queryable;

use super::server::Server;
use super::steps::{claim, migrated, store, whole_life};
use super::subject::Subject;
use leasehold_mysql::{RangeScan, Step};

const ROWS: u64 = 1_000_000;
/// Of these so many are held, and so many idle for long; all others were used a moment ago.
const FEW: u64 = 40;

/// The most that a statement about one key may read: its row, and what there is of its readers.
const SINGLE: u64 = 8;
/// The most that any may read: a stretch of each of two tables, and what it found.
const MOST: u64 = 2 * (RangeScan::CHUNK + 1 + 101);

pub async fn no_statement_reads_far_in_a_table_of_a_million_rows<S: Subject>() {
    let arguments = ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=256M"];
    let server = migrated::<S>(&arguments).await;
    let log = ["SET GLOBAL log_output = 'TABLE'", "SET GLOBAL long_query_time = 0", "SET GLOBAL slow_query_log = ON"];
    server.sql(&S::fill(ROWS, ROWS / FEW).iter().map(String::as_str).collect::<Vec<_>>()).await;
    server.sql(&log).await;
    let ours = S::connect_to(&server.url()).await.unwrap();
    let theirs = S::connect_to(&server.url()).await.unwrap();

    // A lock's life between the other rows, and before and behind all of them.
    for key in ["key/00500000/mine", "a", "z"] {
        whole_life::<S>(&ours, &theirs, key).await;
    }
    let store = store::<S>(&server.url()).await;
    let claims: Vec<_> =
        (0..3).map(|number| claim(&format!("key/0070000{number}/mine"), Duration::from_secs(60))).collect();
    for count in 1..=claims.len() {
        for claim in &claims {
            store.try_acquire(claim).await.unwrap();
        }
        let renewal = |claim: &leasehold_core::Claim| Renewal { grant: claim.grant(None), ttl: claim.ttl };
        let answers = store.renew(&claims[..count].iter().map(renewal).collect::<Vec<_>>(), Step::LIMIT).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        store.force_release(&claims[0].key, None).await.unwrap();
        store.renew(&[renewal(&claims[0])], Step::LIMIT).await;
        for claim in &claims {
            store.release(&claim.grant(None)).await.unwrap();
        }
    }
    worst(&server, "a lock's life", SINGLE).await;

    let (mut after, mut listed): (Option<Cursor>, u64) = (None, 0);
    loop {
        let page = ours.engine().list("key/", after.as_ref()).await.unwrap();
        listed += page.keys.len() as u64;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(listed, FEW);
    worst(&server, "list", MOST).await;
    assert_eq!(S::gc(&ours, Duration::from_secs(86_400)).await.unwrap(), FEW, "what is idle goes, however rare");
    worst(&server, "gc", MOST).await;
}

/// Fails if a statement since the last time read more rows than this, and says how long the slowest took.
async fn worst(server: &Server, what: &str, most: u64) {
    let mut session = server.session().await.unwrap();
    // An owner's bytes stand in a statement as they are: it may be no text.
    let read: Vec<(u64, f64, Vec<u8>)> = session
        .query(
            "SELECT rows_examined, TIME_TO_SEC(query_time) + MICROSECOND(query_time) / 1e6, \
             LEFT(sql_text, 300) FROM mysql.slow_log WHERE sql_text LIKE '%leasehold%' \
             AND sql_text NOT LIKE '%slow_log%' AND sql_text NOT LIKE '%information_schema%' ORDER BY rows_examined DESC",
        )
        .await
        .unwrap();
    assert!(read.len() > 5, "the server noted down {} statements", read.len());
    let slowest = read.iter().map(|(_, seconds, _)| *seconds).fold(0.0, f64::max);
    let (rows, _, statement) = &read[0];
    let statement = String::from_utf8_lossy(statement);
    eprintln!("{what}: {} statements, at most {rows} rows and {:.1} ms", read.len(), slowest * 1e3);
    assert!(*rows <= most, "{what}: {rows} rows were read, {most} are the most, by {statement}");
    session.query_drop("TRUNCATE TABLE mysql.slow_log").await.unwrap();
}
