//! How many rows each statement reads and locks in tables with thousands of other rows.

use leasehold_core::OwnerId;
use leasehold_mysql::{Lease, RangeScan, TableName, Value};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::mysql::cost::{self, Cost, OTHERS, Trial};
use leasehold_testkit::test;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::sql::{Statements, readers_of};
use leasehold_mysql_rw::MysqlRw;

/// The keys of the trials: held by a writer, marked by a waiting writer, free, read by a few readers of which one is dead
/// and one was released by force, read by a crowd, and without a row.
const WRITTEN: &str = "key/00009001/written";
const MARKED: &str = "key/00009002";
const FREE: &str = "key/00009003";
const READ: &str = "key/00009004";
const CROWDED: &str = "key/00009005";
const NONE: &str = "key/00009006/no";
const ALL: [&str; 6] = [WRITTEN, MARKED, FREE, READ, CROWDED, NONE];
/// How many rows of readers `READ` has.
const FEW: u64 = 5;

/// Fills both tables with other rows, of which few are held, and with these leases between them.
async fn filled(server: &Server, others: u64, held: &Held) -> Conn {
    MysqlRw::migrate(&server.url()).await.unwrap();
    let mut session = server.session().await.unwrap();
    session.query_drop("USE leasehold").await.unwrap();
    for table in ["leasehold_rw", "leasehold_rw_readers"] {
        session.query_drop(format!("TRUNCATE TABLE {table}")).await.unwrap();
    }
    let past = "'2000-01-01'";
    let writer =
        format!("1000, 1000, 0, ?, NULL, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, {past}, {past}, {past}, NULL, NULL, NULL");
    let reader = format!("1000, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, {past}, NULL, NULL");
    let name = "CONCAT('leasehold', CHAR(0), 'key/', LPAD(seq, 8, '0'))";
    let idle = writer.replace('?', "NULL");
    for statement in [
        format!("INSERT INTO leasehold_rw SELECT {name}, {idle} FROM seq_1_to_{others}"),
        format!(
            "INSERT INTO leasehold_rw_readers SELECT {name}, UNHEX(MD5(seq)), {reader}, IF(seq % 1000 != 1, REPEAT('f', 16), NULL) FROM seq_1_to_{others}"
        ),
    ] {
        session.query_drop(statement).await.unwrap();
    }
    let parents = ALL[..5].iter().map(|key| (cost::name_of(key),));
    session.exec_batch(format!("REPLACE INTO leasehold_rw VALUES (?, {idle})"), parents).await.unwrap();
    let rows = |leases: &[Lease]| -> Vec<_> {
        leases.iter().map(|(name, owner, _)| (name.clone(), owner.as_bytes().to_vec())).collect()
    };
    session.exec_batch(format!("REPLACE INTO leasehold_rw VALUES (?, {writer})"), rows(&held.writers)).await.unwrap();
    let mut readers = [rows(&held.readers), rows(&held.crowd)].concat();
    for key in [WRITTEN, READ] {
        readers.extend((0..FEW).map(|_| (cost::name_of(key), OwnerId::random().as_bytes().to_vec())));
    }
    for key in [FREE, READ] {
        let delete = "DELETE FROM leasehold_rw_readers WHERE name = ?";
        session.exec_drop(delete, (cost::name_of(key),)).await.unwrap();
    }
    session
        .exec_batch(format!("INSERT INTO leasehold_rw_readers VALUES (?, ?, {reader}, NULL)"), readers)
        .await
        .unwrap();
    for change in ["expires_at = '2000-01-01'", "forced = REPEAT('f', 16)"] {
        let one = format!(
            "UPDATE leasehold_rw_readers SET {change} WHERE name = ? AND forced IS NULL AND expires_at > '2001-01-01' LIMIT 1"
        );
        session.exec_drop(one, (cost::name_of(READ),)).await.unwrap();
    }
    let mark = "UPDATE leasehold_rw SET writer = REPEAT('w', 16), waiting = REPEAT('c', 16) WHERE name = ?";
    session.exec_drop(mark, (cost::name_of(MARKED),)).await.unwrap();
    session.query_drop("ANALYZE TABLE leasehold_rw, leasehold_rw_readers").await.unwrap();
    session
}

/// The leases of the trials: writers, the first of them of `WRITTEN`; readers of as many keys; and readers of `CROWDED`.
struct Held {
    writers: Vec<Lease>,
    readers: Vec<Lease>,
    crowd: Vec<Lease>,
}

impl Held {
    fn new() -> Self {
        let crowd = cost::leases("").into_iter().map(|(_, owner, ttl)| (cost::name_of(CROWDED), owner, ttl));
        Self { writers: cost::leases("written"), readers: cost::leases("read"), crowd: crowd.collect() }
    }

    fn many(&self) -> u64 {
        self.crowd.len() as u64 + 1
    }
}

fn trials(name: &str, text: &str, statements: &Statements, held: &Held) -> Vec<Trial> {
    let owner = |owner: OwnerId| Value::from(owner.as_bytes());
    let (ours, reader, stranger) = (owner(held.writers[0].1), owner(held.crowd[0].1), owner(OwnerId::random()));
    let params = |owner: &Value| {
        let owner = [("owner", owner.clone()), ("writer", owner.clone()), ("client", owner.clone())];
        let rest: [(&'static str, Value); 10] = [
            ("epoch", 1000.into()),
            ("ttl", 60_000_000.into()),
            ("count", 3.into()),
            ("waits", 1.into()),
            ("away", 0.into()),
            ("written", 1000.into()),
            ("oldest", 0.into()),
            ("newest", 1_000_000.into()),
            ("by", OwnerId::random().as_bytes().into()),
            ("new_owner", OwnerId::random().as_bytes().into()),
        ];
        [&owner[..], &rest, &[("label", Value::NULL), ("reason", Value::NULL)]].concat()
    };
    // By each of the three owners, on each key.
    let each_key = |most: Cost| -> Vec<Trial> {
        let owners = [&ours, &reader, &stranger];
        owners.into_iter().flat_map(|owner| cost::one_row(text, &ALL, &params(owner), most)).collect()
    };
    // On each key, beside what it touches for each of its readers; at REPEATABLE READ also the gap behind them.
    let each_reader = |reads: u64, locks: fn(u64) -> u64, gaps: fn(u64) -> u64| -> Vec<Trial> {
        let readers = [(WRITTEN, FEW), (FREE, 0), (READ, FEW), (CROWDED, held.many()), (NONE, 0)];
        let trial = |(key, readers)| {
            let trials = cost::one_row(text, &[key], &params(&ours), Cost::new(reads + readers, locks(readers)));
            trials.into_iter().map(move |trial| Trial { gaps: gaps(readers), ..trial })
        };
        readers.into_iter().flat_map(trial).collect()
    };
    let of_readers = |locks: bool, behind: &[Value]| -> Vec<Trial> {
        [&held.readers, &held.crowd].into_iter().flat_map(|held| cost::rows(text, held, locks, [&[], behind])).collect()
    };
    let scan = Cost::new(RangeScan::CHUNK + 1, 0);
    match name {
        "create_row"
        | "mark_waiting_writer"
        | "take_over_writer"
        | "release_writer"
        | "force_release_writer"
        | "draw_epochs"
        | "downgrade_epoch"
        | "downgrade_reader"
        | "release_reader"
        | "delete_reader" => each_key(Cost::new(1, 1)),
        // The row of the key, and the row of the reader.
        "downgrade" => each_key(Cost::new(2, 2)),
        // The row of the reader, and the row that replaces it, because the owner is part of the key.
        "take_over_reader" => each_key(Cost::new(2, 3)),
        "try_acquire_reader" => {
            let rest = params(&reader).into_iter().filter(|(name, _)| *name != "epoch");
            let admission: Vec<_> = rest.chain([("epoch", 1001.into())]).collect();
            // The row of the key, and the row of the reader where it asks again.
            cost::one_row(text, &ALL, &admission, Cost::new(2, 2))
        }
        // The statement looks for a living reader, which REPEATABLE READ locks, with the dead ones before it.
        "try_acquire_writer" => each_reader(2, |_| 1, |readers| 1 + readers.min(FEW)),
        "count_readers" | "force_released_readers" => each_reader(2, |_| 0, |_| 0),
        "delete_expired_readers" | "force_release_readers" => each_reader(1, |readers| readers, |_| 2),
        "renew_writers" => cost::batches(&held.writers, true, |leases| statements.writers().renew_statement(leases)),
        "renew_readers" => [&held.readers, &held.crowd]
            .into_iter()
            .flat_map(|held| cost::batches(held, true, |leases| statements.readers().renew_statement(leases)))
            .collect(),
        "writer_status" | "released_writers" => cost::rows(text, &held.writers, false, [&[], &[]]),
        "reader_status" => of_readers(false, &[]),
        "try_acquire_writer_batch" => cost::claims(text, &held.writers, std::slice::from_ref(&ours)),
        // The row of each key, its readers, and their end.
        "read_keys" | "claimed" => cost::rows(text, &held.writers, false, [&[], &[]])
            .into_iter()
            .map(|trial| Trial { most: Cost::new(2 * trial.most.reads + FEW, 0), ..trial })
            .collect(),
        "release_writer_batch" => cost::rows(text, &held.writers, true, [&[1.into()], &[]]),
        "gc_delete_locks" => cost::rows(text, &held.writers, true, [&[], &[1.into()]]),
        "gc_delete_readers" => of_readers(true, &[1.into()]),
        "chunk_end_locks" | "chunk_end_readers" => cost::chunk(text, &[], scan),
        "gc_find_locks" | "gc_find_readers" => cost::chunk(text, &[("age", 1.into())], scan),
        // The rows of two tables, and what was found in both.
        "list" => cost::chunk(text, &[], Cost::new(2 * (RangeScan::CHUNK + 1) + 101, 0)),
        "inspect" => {
            let first = |name| Value::Bytes(cost::name_of(name));
            let range = [("from", first("key/00000001")), ("to", first("key/00005000"))];
            cost::chunk(text, &range, Cost::new(2 * (RangeScan::CHUNK + 1), 0))
        }
        _ => Vec::new(),
    }
}

#[test(server)]
async fn no_statement_touches_more_rows_than_it_has_keys() {
    let server = Server::needed(&[]).await;
    let locks = TableName::new("leasehold_rw").unwrap();
    let statements = Statements::new(&locks, &readers_of(&locks).unwrap());
    let held = Held::new();
    for others in OTHERS {
        let mut session = filled(&server, others, &held).await;
        let all = statements.all().into_iter().map(|(name, text)| (name, trials(name, text, &statements, &held)));
        let excess = cost::excess(&mut session, &all.collect::<Vec<_>>()).await;
        assert!(excess.is_empty(), "beside {others}:\n{}", excess.join("\n"));
    }
}
