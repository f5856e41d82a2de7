//! What the statements about many leases promise, with the statements of a small table, on a real server.

use leasehold_testkit::test;
use std::time::Duration;

use leasehold_core::LeaseStatus::Held;
use leasehold_core::OwnerId;
use leasehold_mysql::{Lease, LeaseStatements, RENEWAL_BATCH, RangeScan, Sessions, Sweep, Value};
use leasehold_testkit::mysql::Server;
use mysql_async::prelude::Queryable;

/// A row is held while its `lease` is not zero. Each statement that changes a row counts in `changes`.
const TABLE: &str = "CREATE TABLE leasehold.t (name VARBINARY(64) PRIMARY KEY, owner BINARY(16), forced BINARY(16), \
                     lease BIGINT UNSIGNED NOT NULL, epoch BIGINT UNSIGNED NOT NULL, \
                     changes INT NOT NULL DEFAULT 0)";

const LEASES: LeaseStatements<'static> = LeaseStatements {
    renew: "UPDATE t SET changes = changes + 1, lease = {micros of CONCAT(name, owner)} \
            WHERE ({any name = ? AND owner = ?}) AND lease > 0",
    status: "SELECT name, IF(lease > 0, owner, NULL), forced FROM t WHERE {any name = ?}",
    take_over: "",
};

const SECOND: Duration = Duration::from_secs(1);

struct Database {
    server: Server,
    sessions: Sessions,
}

impl Database {
    async fn new() -> Self {
        let server = Server::needed(&[]).await;
        server.sql(&[TABLE]).await;
        let sessions = Sessions::at(&server.url()).unwrap();
        Self { server, sessions }
    }

    /// Adds rows that this owner holds.
    async fn hold(&self, names: &[String], owner: OwnerId) {
        let insert = "INSERT INTO leasehold.t (name, owner, lease, epoch) VALUES (?, ?, 1, 7)";
        let rows = names.iter().map(|name| (name, owner.as_bytes().to_vec()));
        self.server.session().await.unwrap().exec_batch(insert, rows).await.unwrap();
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("k{number:03}")).collect()
}

fn lease(name: &str, owner: OwnerId, ttl: Duration) -> Lease {
    (name.as_bytes().to_vec(), owner, ttl)
}

#[test(server)]
async fn leases_are_renewed_by_as_few_statements_as_there_are_batches() {
    let database = Database::new().await;
    let (ours, names) = (OwnerId::random(), names(RENEWAL_BATCH * 2 + 1));
    database.hold(&names, ours).await;
    // Backwards: the order of the callers is not the order of the rows.
    let leases: Vec<_> = names.iter().rev().map(|name| lease(name, ours, SECOND)).collect();
    let before = database.server.status("Com_stmt_execute").await;
    let answers = LEASES.renew(&database.sessions, leases, SECOND * 60).await;
    assert!(answers.iter().all(|status| matches!(status, Ok(Held))), "{answers:?}");
    let sent = database.server.status("Com_stmt_execute").await - before;
    assert_eq!(sent, 3, "nothing has to be asked where all are held");
    let renewed = format!("SELECT COUNT(*) FROM leasehold.t WHERE changes = 1 AND lease = {}", SECOND.as_micros());
    assert_eq!(database.server.number(&renewed).await, names.len() as u64);
}

/// Where the next hundred rows end.
const HUNDRED: &str =
    "SELECT name FROM t WHERE name >= :from AND name < :to AND name > :after ORDER BY name LIMIT 1 OFFSET 99";

fn range() -> (Vec<u8>, Vec<u8>) {
    (b"k".to_vec(), b"l".to_vec())
}

#[test(server)]
async fn a_range_is_read_in_chunks_and_a_sweep_deletes_what_is_old_in_it() {
    let database = Database::new().await;
    database.hold(&names(250), OwnerId::random()).await;
    let (fifty, none) = (HUNDRED.replace("99", "49"), HUNDRED.replace("99", "999"));
    let bytes = |text: &str| Value::Bytes(text.into());
    for (ends, last) in [
        (vec![HUNDRED], Some("k099")),
        (vec![HUNDRED, &fifty], Some("k049")),
        (vec![&fifty, HUNDRED], Some("k049")),
        (vec![&none, HUNDRED], Some("k099")),
        (vec![&none, &none], None),
    ] {
        let chunk = RangeScan::new(range(), Vec::new()).chunk(&database.sessions, "test", &ends).await.unwrap();
        assert_eq!(chunk.last, last.map(|last| last.as_bytes().to_vec()), "{ends:?}");
        let upto = bytes(last.unwrap_or("l"));
        assert_eq!(chunk.names(), [("from", bytes("k")), ("to", bytes("l")), ("after", bytes("")), ("upto", upto)]);
    }
    let scan = RangeScan::new(range(), b"k000".to_vec()).after(b"k009".to_vec());
    let chunk = scan.chunk(&database.sessions, "test", &[HUNDRED]).await.unwrap();
    assert_eq!((chunk.last.as_deref(), &chunk.names()[2].1), (Some(&b"k109"[..]), &bytes("k009")));

    // Outside of the range of a sweep.
    database.hold(&["a".to_owned(), "l".to_owned()], OwnerId::random()).await;
    // Every fifth is younger.
    database.server.sql(&["UPDATE leasehold.t SET epoch = 100 WHERE RIGHT(name, 1) IN ('0', '5')"]).await;
    let sweep = Sweep {
        chunk_end: HUNDRED,
        find: "SELECT name FROM t WHERE name >= :from AND name < :to AND name > :after AND name <= :upto \
               AND epoch + :age < 100",
        delete: "DELETE FROM t WHERE ({any name = ?}) AND epoch + ? < 100",
    };
    let run =
        async |age: u64| sweep.run(&database.sessions, RangeScan::new(range(), Vec::new()), age.into()).await.unwrap();
    assert_eq!(run(100).await, 0, "nothing is so old");
    let before = database.server.status("Com_delete").await;
    assert_eq!(run(10).await, 200);
    // 80 of each hundred in batches of 64, and 40 of the rest.
    assert_eq!(database.server.status("Com_delete").await - before, 5);
    assert_eq!(database.server.number("SELECT COUNT(*) FROM leasehold.t").await, 52);
    assert_eq!(run(10).await, 0);
}
