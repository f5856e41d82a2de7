//! The statement that admits a reader, beside a writer that came after the reader's epoch was drawn. Needs a private server.

use leasehold_testkit::{eventually, test};
use std::time::Duration;

use crate::sql::{Statements, readers_of};
use leasehold_mysql::{TableName, Value, named};
use leasehold_mysql_rw::{Attempt, Backend, Claim, Mode, MysqlRw, OwnerId, RwLockerExt};
use leasehold_testkit::mysql::steps::claim;
use leasehold_testkit::mysql::{Server, cost};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

/// Admits a reader of `k` with this epoch, if the statement finds no reason against it.
async fn admit(mut session: Conn, drawn: u64) {
    let table = TableName::new("leasehold_rw").unwrap();
    let admit = Statements::new(&table, &readers_of(&table).unwrap()).try_acquire_reader;
    let params = named([
        ("name", Value::Bytes(cost::name_of("k"))),
        ("writer", Value::NULL),
        ("owner", OwnerId::random().as_bytes().into()),
        ("epoch", Value::UInt(drawn)),
        ("ttl", Value::UInt(60_000_000)),
        ("label", Value::NULL),
        ("reason", Value::NULL),
    ]);
    session.query_drop("USE leasehold").await.unwrap();
    session.exec_drop(&admit, params).await.unwrap();
}

const READERS: &str = "SELECT COUNT(*) FROM leasehold.leasehold_rw_readers";

#[test(server)]
async fn a_writer_whose_claim_is_under_way_is_waited_for() {
    let server = Server::needed(&[]).await;
    MysqlRw::migrate(&server.url()).await.unwrap();
    let store = MysqlRw::builder().url(server.url()).backend().await.unwrap();
    let reader = Claim { mode: Mode::Shared, ..claim("k", Duration::from_secs(60)) };
    let Attempt::Granted { epoch: Some(drawn) } = store.try_acquire(&reader).await.unwrap() else {
        panic!("it is free")
    };
    store.release(&reader.grant(None)).await.unwrap();
    for isolation in ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        server.sql(&[&format!("SET GLOBAL TRANSACTION ISOLATION LEVEL {isolation}")]).await;
        let mut writing = server.session().await.unwrap();
        writing.query_drop("START TRANSACTION").await.unwrap();
        let claimed = "UPDATE leasehold.leasehold_rw SET epoch = epoch + 1, written = epoch, writer = REPEAT('w', 16), \
                       writer_expires_at = UTC_TIMESTAMP(6) + INTERVAL 1 MINUTE";
        writing.query_drop(claimed).await.unwrap();
        let admitting = tokio::spawn(admit(server.session().await.unwrap(), drawn));
        let lock_waits = "SELECT COUNT(*) FROM information_schema.INNODB_TRX WHERE trx_state = 'LOCK WAIT'";
        while !admitting.is_finished() && server.number(lock_waits).await == 0 {
            // The server answers from what it saw before to those who ask sooner than after 100 ms.
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
        writing.query_drop("COMMIT").await.unwrap();
        admitting.await.unwrap();
        let readers = server.number(READERS).await;
        assert_eq!(readers, 0, "{isolation}: a reader is beside a writer whose claim had not ended when it asked");
        server.sql(&["UPDATE leasehold.leasehold_rw SET writer = NULL, written = 0"]).await;
    }
}

#[test(server)]
async fn an_epoch_drawn_before_the_row_was_deleted_is_not_admitted_behind_a_writer() {
    let server = Server::needed(&[]).await;
    MysqlRw::migrate(&server.url()).await.unwrap();
    let locks = MysqlRw::connect(&server.url()).await.unwrap();
    let store = MysqlRw::builder().url(server.url()).backend().await.unwrap();
    let writer = claim("k", Duration::from_secs(60));
    let reader = Claim { mode: Mode::Shared, ..writer.clone() };
    let Attempt::Granted { epoch: Some(drawn) } = store.try_acquire(&reader).await.unwrap() else {
        panic!("it is free")
    };
    store.release(&reader.grant(None)).await.unwrap();
    let written = store.try_acquire(&writer).await.unwrap();
    assert!(matches!(written, Attempt::Granted { epoch } if epoch > Some(drawn)), "{written:?}");
    store.release(&writer.grant(None)).await.unwrap();
    eventually("the row is deleted", async || locks.gc(Duration::ZERO).await.unwrap() > 0).await;
    // Another client creates the row again.
    let _other = locks.read("k").await.unwrap();
    admit(server.session().await.unwrap(), drawn).await;
    assert_eq!(server.number(READERS).await, 1, "admitted with a smaller number than the writer's before it");
}
