//! How many rows each statement reads and locks in a table with thousands of other rows.

use leasehold_core::OwnerId;
use leasehold_mysql::{Lease, RangeScan, TableName, Value};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::mysql::cost::{self, Cost, OTHERS, Trial};
use leasehold_testkit::test;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::sql::Statements;
use leasehold_mysql_unique::MysqlUnique;

/// Fills the table with other rows, of which few are held, and with these leases between them.
async fn filled(server: &Server, others: u64, held: &[Lease]) -> Conn {
    MysqlUnique::migrate(&server.url()).await.unwrap();
    let mut session = server.session().await.unwrap();
    session.query_drop("USE leasehold").await.unwrap();
    session.query_drop("TRUNCATE TABLE leasehold_locks").await.unwrap();
    let others = format!(
        "INSERT INTO leasehold_locks SELECT CONCAT('leasehold', CHAR(0), 'key/', LPAD(seq, 8, '0')), UNHEX(MD5(seq)), \
         1000, UTC_TIMESTAMP(6) + INTERVAL IF(seq % 1000 = 1, 1, -1) DAY, UTC_TIMESTAMP(6), NULL, NULL, NULL \
         FROM seq_1_to_{others}"
    );
    session.query_drop(others).await.unwrap();
    let ours = "INSERT INTO leasehold_locks VALUES (?, ?, 1000, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, '2000-01-01', \
                NULL, NULL, NULL)";
    let rows = held.iter().map(|(name, owner, _)| (name.clone(), owner.as_bytes().to_vec()));
    session.exec_batch(ours, rows).await.unwrap();
    session.query_drop("ANALYZE TABLE leasehold_locks").await.unwrap();
    session
}

fn trials(name: &str, text: &str, statements: &Statements, held: &[Lease]) -> Vec<Trial> {
    let stranger = ("owner", OwnerId::random().as_bytes().into());
    let ours = ("owner", held[0].1.as_bytes().into());
    let rest: [(&'static str, Value); 5] = [
        ("ttl", 60_000_000.into()),
        ("label", Value::NULL),
        ("reason", Value::NULL),
        ("new_owner", OwnerId::random().as_bytes().into()),
        ("epoch", 1000.into()),
    ];
    let with = |owner: &(&'static str, Value)| [std::slice::from_ref(owner), &rest].concat();
    // Held by the owner of the first lease, held by another, free, and without a row.
    let keys = ["key/00009001/held", "key/00009001", "key/00009000", "key/00009001/no"];
    let (row, look) = (Cost::new(1, 1), Cost::new(1, 0));
    let scan = Cost::new(RangeScan::CHUNK + 1, 0);
    match name {
        "try_acquire" | "release" | "take_over" => {
            [stranger, ours].iter().flat_map(|owner| cost::one_row(text, &keys, &with(owner), row)).collect()
        }
        "force_release" => cost::one_row(text, &keys, &[("epoch", 1000.into())], row),
        "inspect" => cost::one_row(text, &keys, &[], look),
        "renew" => cost::batches(held, true, |leases| statements.leases().renew_statement(leases)),
        "status" | "released" | "claimed" => cost::rows(text, held, false, [&[], &[]]),
        "try_acquire_batch" => cost::claims(text, held, &[]),
        "release_batch" => cost::rows(text, held, true, [&[1.into()], &[]]),
        "gc_delete" => cost::rows(text, held, true, [&[], &[1.into()]]),
        "chunk_end" | "list" => cost::chunk(text, &[], scan),
        "gc_find" => cost::chunk(text, &[("age", 1.into())], scan),
        _ => Vec::new(),
    }
}

#[test(server)]
async fn no_statement_touches_more_rows_than_it_has_keys() {
    let server = Server::needed(&[]).await;
    let statements = Statements::new(&TableName::new("leasehold_locks").unwrap());
    let held = cost::leases("held");
    for others in OTHERS {
        let mut session = filled(&server, others, &held).await;
        let all = statements.all().into_iter().map(|(name, text)| (name, trials(name, text, &statements, &held)));
        let excess = cost::excess(&mut session, &all.collect::<Vec<_>>()).await;
        assert!(excess.is_empty(), "beside {others}:\n{}", excess.join("\n"));
    }
}
