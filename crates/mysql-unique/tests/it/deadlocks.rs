//! Why a batch takes its rows in the order of their names: in any other, batches over the same keys are deadlocks.

#[allow(dead_code, reason = "the table is for the library")]
use leasehold_testkit::test;
use std::time::Duration;

use crate::sql::Statements;
use leasehold_core::{Clock, OwnerId};
use leasehold_mysql::{TableName, Value, batch};
use leasehold_mysql_unique::MysqlUnique;
use leasehold_testkit::mysql::{Server, cost};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

/// So many sessions claim as many keys at a time, out of so many.
const SESSIONS: u64 = 8;
const BATCH: u64 = 32;
const KEYS: u64 = 48;

/// Claims a batch of keys and releases it, until the time is over. Answers how often the server called it a deadlock.
async fn claim_batches(mut session: Conn, number: u64, sorted: bool) -> u64 {
    let statements = Statements::new(&TableName::new("leasehold_locks").unwrap());
    session.query_drop("USE leasehold").await.unwrap();
    let clock = Clock::system();
    let end = clock.now().plus(Duration::from_millis(1500));
    let (mut deadlocks, mut turn) = (0, number);
    while clock.now() < end {
        turn += 1;
        // The numbers of the keys go round, forward in one session and backward in the next.
        let place = |step: u64| if number.is_multiple_of(2) { turn + step } else { turn + KEYS - step } % KEYS;
        let mut names: Vec<_> = (0..BATCH).map(|step| cost::name_of(&format!("k{:02}", place(step)))).collect();
        if sorted {
            names.sort();
        }
        let owner = OwnerId::random();
        let row = |name: &Vec<u8>| {
            let (name, owner) = (Value::Bytes(name.clone()), owner.as_bytes().into());
            vec![name, Value::NULL, Value::NULL, owner, 60_000_000.into()]
        };
        let (claim, params) = batch(&statements.try_acquire_batch, &names.iter().map(row).collect::<Vec<_>>(), &[]);
        match session.exec_drop(claim, params).await {
            Ok(()) => {}
            Err(Error::Server(refusal)) if refusal.code == 1213 => deadlocks += 1,
            Err(other) => panic!("{other}"),
        }
    }
    deadlocks
}

#[test(multi_thread, server)]
async fn only_sorted_batches_over_the_same_keys_are_no_deadlock() {
    let server = Server::needed(&["--innodb-flush-log-at-trx-commit=0"]).await;
    MysqlUnique::migrate(&server.url()).await.unwrap();
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        server.sql(&[&format!("SET GLOBAL TRANSACTION ISOLATION LEVEL {isolation}")]).await;
        for sorted in [true, false] {
            let mut sessions = tokio::task::JoinSet::new();
            for number in 0..SESSIONS {
                let session = server.session().await.unwrap();
                sessions.spawn(claim_batches(session, number, sorted));
            }
            let deadlocks: u64 = sessions.join_all().await.into_iter().sum();
            assert_eq!(deadlocks == 0, sorted, "{isolation}, sorted: {sorted}: {deadlocks} deadlocks");
        }
    }
}
