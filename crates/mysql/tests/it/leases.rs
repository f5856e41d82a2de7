//! What the statements about many leases promise, with the statements of a small table, on a real server.

use leasehold_testkit::test;
use std::time::Duration;

use leasehold_core::LeaseStatus::{self, ForceReleased, Held, NotHeld};
use leasehold_core::{ErrorKind, GrantRef, LockKey, Mode, OwnerId, Result};
use leasehold_mysql::{
    Lease, LeaseStatements, Operations, RENEWAL_BATCH, RangeScan, ReleaseStatements, Releases, Sessions, Sweep, Value,
};
use leasehold_testkit::mysql::Server;
use mysql_async::prelude::Queryable;

/// A row is held while its `lease` is not zero. Each statement that changes a row counts in `changes`.
const TABLE: &str = "CREATE TABLE leasehold.t (name VARBINARY(64) PRIMARY KEY, owner BINARY(16), forced BINARY(16), \
                     lease BIGINT UNSIGNED NOT NULL, epoch BIGINT UNSIGNED NOT NULL, stamp BIGINT NOT NULL DEFAULT 0, \
                     changes INT NOT NULL DEFAULT 0)";

const LEASES: LeaseStatements<'static> = LeaseStatements {
    renew: "UPDATE t SET changes = changes + 1, lease = {micros of CONCAT(name, owner)} \
            WHERE ({any name = ? AND owner = ?}) AND lease > 0",
    status: "SELECT name, IF(lease > 0, owner, NULL), forced FROM t WHERE {any name = ?}",
    take_over: "UPDATE t SET owner = :new_owner, lease = :ttl \
                WHERE name = :name AND owner = :owner AND epoch = :epoch AND lease > 0",
};

/// The epoch of every row.
const EPOCH: u64 = 7;

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

    /// Adds a row: its owner, who was released by force, and whether it is held.
    async fn add(&self, name: &str, owner: OwnerId, forced: Option<OwnerId>, held: bool) {
        let row = (name, owner.as_bytes().to_vec(), forced.map(|owner| owner.as_bytes().to_vec()), held, EPOCH);
        let insert = "INSERT INTO leasehold.t (name, owner, forced, lease, epoch) VALUES (?, ?, ?, ?, ?)";
        self.server.session().await.unwrap().exec_drop(insert, row).await.unwrap();
    }

    /// Adds rows that this owner holds.
    async fn hold(&self, names: &[String], owner: OwnerId) {
        let insert = "INSERT INTO leasehold.t (name, owner, lease, epoch) VALUES (?, ?, 1, ?)";
        let rows = names.iter().map(|name| (name, owner.as_bytes().to_vec(), EPOCH));
        self.server.session().await.unwrap().exec_batch(insert, rows).await.unwrap();
    }

    /// A number that this query answers.
    async fn number(&self, query: &str) -> u64 {
        self.server.session().await.unwrap().query_first(query).await.unwrap().unwrap()
    }

    async fn renew(&self, leases: Vec<Lease>) -> Vec<LeaseStatus> {
        let answers = LEASES.renew(&self.sessions, leases, SECOND * 60).await;
        answers.into_iter().map(Result::unwrap).collect()
    }
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("k{number:03}")).collect()
}

fn lease(name: &str, owner: OwnerId, ttl: Duration) -> Lease {
    (name.as_bytes().to_vec(), owner, ttl)
}

fn micros(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_micros()).unwrap()
}

#[test(server)]
async fn leases_are_renewed_by_as_few_statements_as_there_are_batches() {
    let database = Database::new().await;
    let (ours, names) = (OwnerId::random(), names(RENEWAL_BATCH * 2 + 1));
    database.hold(&names, ours).await;
    // Backwards: the order of the callers is not the order of the rows.
    let leases: Vec<_> = names.iter().rev().map(|name| lease(name, ours, SECOND)).collect();
    let before = database.server.status("Com_stmt_execute").await;
    assert!(database.renew(leases).await.iter().all(|status| *status == Held));
    let sent = database.server.status("Com_stmt_execute").await - before;
    assert_eq!(sent, 3, "nothing has to be asked where all are held");
    let renewed = format!("SELECT COUNT(*) FROM leasehold.t WHERE changes = 1 AND lease = {}", micros(SECOND));
    assert_eq!(database.number(&renewed).await, names.len() as u64);
}

#[test(server)]
async fn each_renewal_is_answered_for_itself_and_the_longest_of_a_row_counts() {
    let database = Database::new().await;
    let (ours, theirs) = (OwnerId::random(), OwnerId::random());
    database.add("a", ours, None, true).await;
    database.add("expired", ours, None, false).await;
    database.add("forced", ours, Some(ours), false).await;
    database.add("theirs", theirs, None, true).await;
    database.add("theirs after force", theirs, Some(ours), true).await;
    database.add("ours after force", ours, Some(theirs), true).await;
    let asked = [
        ("ours after force", SECOND),
        ("a", SECOND * 2),
        ("theirs", SECOND),
        ("a", SECOND * 3),
        ("forced", SECOND),
        ("a", SECOND),
        ("no row", SECOND),
        ("theirs after force", SECOND),
        ("expired", SECOND),
    ];
    let leases = asked.iter().map(|(name, ttl)| lease(name, ours, *ttl)).collect();
    let expected = [Held, Held, NotHeld, Held, ForceReleased, Held, NotHeld, ForceReleased, NotHeld];
    assert_eq!(database.renew(leases).await, expected);
    let of_a = database.number("SELECT lease FROM leasehold.t WHERE name = 'a' AND changes = 1").await;
    assert_eq!(of_a, micros(SECOND * 3), "the row is renewed once, for the longest lease");
    assert_eq!(database.number("SELECT SUM(changes) FROM leasehold.t").await, 2);
}

#[test(server)]
async fn renewals_that_the_server_refuses_are_errors_for_each_of_their_callers() {
    let database = Database::new().await;
    let ours = OwnerId::random();
    let names = names(RENEWAL_BATCH + 1);
    database.hold(&names, ours).await;
    // Of the two batches, the second.
    database
        .server
        .sql(&[&format!(
            "CREATE TRIGGER leasehold.refuse BEFORE UPDATE ON leasehold.t FOR EACH ROW \
             IF OLD.name = '{}' THEN SIGNAL SQLSTATE '45000'; END IF",
            names[RENEWAL_BATCH]
        )])
        .await;
    let leases: Vec<_> = names.iter().chain(&names).map(|name| lease(name, ours, SECOND)).collect();
    let answers = LEASES.renew(&database.sessions, leases, SECOND).await;
    for (name, answer) in names.iter().chain(&names).zip(&answers) {
        match answer {
            Ok(status) => assert!(*status == Held && *name != names[RENEWAL_BATCH], "{name}"),
            Err(error) => assert!(error.kind() == ErrorKind::Backend && *name == names[RENEWAL_BATCH], "{name}"),
        }
    }
}

#[test(server)]
async fn a_grant_is_taken_over_once_from_the_owner_with_its_epoch() {
    let database = Database::new().await;
    let [old, new, third] = [(); 3].map(|()| OwnerId::random());
    database.add("k", old, None, true).await;
    database.add("forced", third, Some(old), true).await;
    database.add("expired", old, None, false).await;
    let take = async |name: &str, epoch, to| {
        let grant = GrantRef { key: LockKey::new(name).unwrap(), owner: old, mode: Mode::Exclusive, epoch };
        LEASES.take_over(&database.sessions, name.as_bytes().to_vec(), &grant, to, SECOND).await.unwrap()
    };
    for other in [None, Some(EPOCH + 1)] {
        assert_eq!(take("k", other, new).await, NotHeld);
    }
    let before = database.server.status("Com_stmt_execute").await;
    assert_eq!(take("k", Some(EPOCH), new).await, Held);
    assert_eq!(database.server.status("Com_stmt_execute").await - before, 1, "nothing has to be asked");
    assert_eq!(database.number("SELECT lease FROM leasehold.t WHERE name = 'k'").await, micros(SECOND));
    // The new owner asks again, because it did not hear of it.
    assert_eq!(take("k", Some(EPOCH), new).await, Held);
    assert_eq!(take("k", Some(EPOCH), third).await, NotHeld);
    assert_eq!(take("forced", Some(EPOCH), new).await, ForceReleased);
    assert_eq!(take("expired", Some(EPOCH), new).await, NotHeld);
}

#[test(server)]
async fn a_release_says_what_it_found() {
    let database = Database::new().await;
    let (ours, theirs) = (OwnerId::random(), OwnerId::random());
    // Somebody has one of the rows at once when it was freed.
    let many = "UPDATE t SET stamp = IF(name = 'taken since', 0, ?), epoch = IF(name = 'taken since', 1000000, epoch), \
                owner = IF(name = 'taken since', forced, owner), lease = 0 * LAST_INSERT_ID(1000000) \
                WHERE ({any name = ? AND owner = ?}) AND lease > 0";
    let releases = Releases::new(
        &database.sessions,
        ReleaseStatements {
            one: "UPDATE t SET lease = 0 WHERE name = :name AND owner = :owner AND lease > 0".into(),
            many: many.to_owned(),
            outcome: "SELECT name, stamp, epoch, owner, forced FROM t WHERE {any name = ?}".into(),
            status: LEASES.status.into(),
        },
    );
    let rows = [
        ("expired", ours, None, false, NotHeld),
        ("forced", ours, Some(ours), false, ForceReleased),
        ("held", ours, None, true, Held),
        ("held after force", ours, Some(theirs), true, Held),
        ("theirs", theirs, None, true, NotHeld),
        ("theirs after force", theirs, Some(ours), true, ForceReleased),
        ("taken since", ours, Some(theirs), true, Held),
    ];
    let add_all = async || {
        database.server.sql(&["DELETE FROM leasehold.t"]).await;
        for (name, owner, forced, held, _) in &rows {
            database.add(name, *owner, *forced, *held).await;
        }
    };
    let requests: Vec<_> = rows.iter().map(|(name, ..)| (name.as_bytes().to_vec(), ours)).collect();
    let expected: Vec<_> = rows.iter().map(|row| row.4).collect();
    let held = "SELECT COUNT(*) FROM leasehold.t WHERE lease > 0";

    assert_eq!(Releases::row(&requests[1]), Some(b"forced".as_slice()));
    add_all().await;
    let mut alone = Vec::new();
    for request in &requests {
        alone.push(releases.alone(request).await.unwrap());
    }
    assert_eq!(alone, expected);
    assert_eq!(database.number(held).await, 2, "theirs stay theirs");

    let together = async |requests: &[(Vec<u8>, OwnerId)]| {
        let requests: Vec<_> = requests.iter().collect();
        releases.together(&requests).await?.into_iter().map(Option::transpose).collect::<Result<Vec<_>>>()
    };
    add_all().await;
    assert_eq!(together(&requests).await.unwrap(), expected.into_iter().map(Some).collect::<Vec<_>>());
    assert_eq!(database.number(held).await, 2, "theirs stay theirs");

    // Where all were held, nothing has to be asked.
    add_all().await;
    let before = database.server.status("Com_stmt_execute").await;
    assert_eq!(together(&requests[2..4]).await.unwrap(), [Some(Held), Some(Held)]);
    assert_eq!(database.server.status("Com_stmt_execute").await - before, 1);

    // What the server undid is to be carried out one by one, and what it refused is an error.
    for (code, undone) in [(1213, true), (1644, false)] {
        add_all().await;
        database
            .server
            .sql(&[&format!(
                "CREATE OR REPLACE TRIGGER leasehold.refuse BEFORE UPDATE ON leasehold.t FOR EACH ROW \
                 SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = {code}"
            )])
            .await;
        let answers = together(&requests).await;
        if undone {
            assert_eq!(answers.unwrap(), [None; 7]);
        } else {
            assert_eq!(answers.unwrap_err().kind(), ErrorKind::Backend);
        }
    }
}

/// Where the next hundred rows end.
const HUNDRED: &str =
    "SELECT name FROM t WHERE name >= :from AND name < :to AND name > :after ORDER BY name LIMIT 1 OFFSET 99";

fn range() -> (Vec<u8>, Vec<u8>) {
    (b"k".to_vec(), b"l".to_vec())
}

#[test(server)]
async fn a_chunk_ends_where_the_first_of_the_tables_has_enough_rows() {
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
}

#[test(server)]
async fn a_sweep_deletes_what_is_old_in_its_range_and_counts_it() {
    let database = Database::new().await;
    database.hold(&names(250), OwnerId::random()).await;
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
    assert_eq!(database.number("SELECT COUNT(*) FROM leasehold.t").await, 52);
    assert_eq!(run(10).await, 0);
}
