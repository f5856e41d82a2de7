//! Readers and writers of one key, beyond the conformance suite. Needs a private server.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::sql::{Statements, readers_of};
use leasehold_mysql::{TableName, Value, named};
use leasehold_mysql_rw::{
    Admin, Attempt, Backend, Claim, ErrorKind, LockKey, LockOptions, Mode, MysqlRw, RwLockerExt, Wait,
};
use leasehold_testkit::mysql::leases::race;
use leasehold_testkit::mysql::steps::{claim, row_lock};
use leasehold_testkit::mysql::{Server, cost};
use leasehold_testkit::{Proxy, eventually, test};
use mysql_async::prelude::Queryable;
use tokio::task::JoinSet;

const MINUTE: Duration = Duration::from_secs(60);

async fn migrated(server: &Server) -> MysqlRw {
    MysqlRw::migrate(&server.url()).await.unwrap();
    MysqlRw::connect(&server.url()).await.unwrap()
}

#[test(server)]
async fn a_readers_cycle_takes_three_statements_and_makes_no_writer_of_it() {
    let server = Server::needed(&[]).await;
    let locks = migrated(&server).await;
    locks.read("k").await.unwrap().release().await.unwrap();
    let before = server.status("Questions").await;
    for _ in 0..100 {
        locks.read("k").await.unwrap().release().await.unwrap();
    }
    let after = server.status("Questions").await;
    // The queries for the status are counted, too.
    let asking = server.status("Questions").await - after;
    assert_eq!(after - before, 300 + asking, "draw, admission and release");
    let reader = locks.read("k").await.unwrap();
    let refused = locks.upgrade(&reader).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unsupported);
    assert!(reader.is_held());
}

#[test(server)]
async fn a_release_by_force_in_the_middle_of_a_downgrade_frees_the_key() {
    let server = Server::needed(&[]).await;
    let near = migrated(&server).await;
    let proxy = Proxy::start(server.port());
    let far = MysqlRw::connect(&proxy.url(&server.url())).await.unwrap();
    // Forced releases between any two statements of the downgrade.
    for moment in 0..48 {
        let key = LockKey::new(format!("k{moment}")).unwrap();
        proxy.delay(Duration::ZERO);
        let writer = far.write(key.as_str()).await.unwrap();
        let token = writer.fencing_token();
        proxy.delay(Duration::from_millis(20));
        let downgrading = tokio::spawn(async move { writer.downgrade(&LockOptions::new()).await });
        tokio::time::sleep(Duration::from_millis(5 * (moment / 2))).await;
        let seen = near.inspect(&key).await.unwrap().holders;
        assert!(seen.len() == 1 && (seen[0].mode == Mode::Shared || seen[0].token == token), "{seen:?} of {token:?}");
        near.force_release(&key).await.unwrap();
        // A writer in between keeps out what comes later.
        if moment % 2 == 0 {
            assert!(near.try_write(key.as_str()).await.unwrap().is_some(), "held after a release by force at {moment}");
        }
        while !downgrading.is_finished() {
            let seen = near.inspect(&key).await.unwrap().holders;
            assert!(seen.iter().all(|holder| holder.mode == Mode::Exclusive), "{seen:?} after a release at {moment}");
        }
        if let Ok(reader) = downgrading.await.unwrap() {
            let lost = reader.renew().await.unwrap_err();
            assert!(matches!(lost.kind(), ErrorKind::Lost(_)), "{lost}");
        }
        assert!(near.try_write(key.as_str()).await.unwrap().is_some(), "held after the downgrade at {moment}");
    }
}

#[test(server)]
async fn an_admission_that_is_sent_twice_leaves_no_reader_before_a_writer() {
    let server = Server::needed(&[]).await;
    let near = migrated(&server).await;
    let mut session = server.session().await.unwrap();
    for number in 0..4 {
        let key = LockKey::new(format!("k{number}")).unwrap();
        let proxy = Proxy::start(server.port());
        let far = MysqlRw::connect(&proxy.url(&server.url())).await.unwrap();
        far.read(key.as_str()).await.unwrap().release().await.unwrap();
        proxy.delay(Duration::from_millis(20));
        let reading = tokio::spawn({
            let (key, options) = (key.clone(), LockOptions::new().wait(Wait::Never).ttl(Duration::from_secs(600)));
            async move { far.acquire_read(&key, &options).await }
        });
        // The row of the reader exists, and no answer has come yet.
        let rows = "SELECT COUNT(*) FROM leasehold.leasehold_rw_readers";
        while session.query_first::<u64, _>(rows).await.unwrap() == Some(0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        proxy.cut();
        let writing = tokio::spawn({
            let (near, key) = (near.clone(), key.clone());
            async move { near.write_for(key, MINUTE).await }
        });
        drop(reading.await.unwrap());
        assert!(writing.await.unwrap().is_ok(), "a reader is left that nobody knows of");
    }
}

#[test(server)]
async fn a_readers_renewal_that_races_the_deletion_of_its_row_leaves_one_holder() {
    let server = Server::needed(&[]).await;
    MysqlRw::migrate(&server.url()).await.unwrap();
    for isolation in ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
        server.sql(&[&format!("SET GLOBAL TRANSACTION ISOLATION LEVEL {isolation}")]).await;
        let store = MysqlRw::builder().url(server.url()).backend().await.unwrap();
        let reader = Claim { mode: Mode::Shared, ..claim(isolation, Duration::from_millis(300)) };
        let (kept, claimed) = race(&server, "leasehold_rw_readers", &store, &reader).await;
        let taken = matches!(claimed, Ok(Attempt::Granted { .. }));
        assert!(!(kept && taken), "{isolation}: a writer beside a reader");
        let later = store.try_acquire(&claim(isolation, Duration::from_secs(60))).await.unwrap();
        assert!(!matches!(later, Attempt::Granted { .. }), "{isolation}: kept {kept}, taken {taken}");
        store.force_release(&reader.key, None).await.unwrap();
    }
}

#[test(server)]
async fn the_mark_of_a_writer_that_died_expires_by_itself() {
    let server = Server::needed(&[]).await;
    MysqlRw::migrate(&server.url()).await.unwrap();
    let (ours, theirs) = (migrated(&server).await, migrated(&server).await);
    let reader = ours.read("k").await.unwrap();
    // A claim without an engine: the writer waits, and then never asks again.
    let dying = MysqlRw::builder().url(server.url()).backend().await.unwrap();
    let waits = Claim { waits: true, ..claim("k", Duration::from_secs(3600)) };
    assert!(matches!(dying.try_acquire(&waits).await.unwrap(), Attempt::Busy { .. }));
    assert!(theirs.try_read("k").await.unwrap().is_none(), "the mark holds nobody back");
    let second = theirs.read_for("k", Duration::from_secs(20)).await.unwrap();
    assert!(reader.is_held() && second.is_held());
}

#[test(server)]
async fn the_rows_of_readers_that_died_are_deleted_by_the_next_writer() {
    let server = Server::needed(&[]).await;
    let locks = migrated(&server).await;
    let store = MysqlRw::builder().url(server.url()).backend().await.unwrap();
    let brief = || Claim { mode: Mode::Shared, ..claim("k", Duration::from_secs(2)) };
    for forced in [false, true] {
        // The readers never ask again, so that none of them deletes its own row.
        for _ in 0..3 {
            assert!(matches!(store.try_acquire(&brief()).await.unwrap(), Attempt::Granted { .. }));
        }
        if forced {
            assert_eq!(store.force_release(&brief().key, None).await.unwrap().holders.len(), 3);
        }
        let rows = "SELECT COUNT(*) FROM leasehold.leasehold_rw_readers";
        let expired = format!("{rows} WHERE expires_at <= UTC_TIMESTAMP(6)");
        eventually("all leases are over", async || server.number(&expired).await == 3).await;
        locks.write("k").await.unwrap().release().await.unwrap();
        assert_eq!(server.number(rows).await, 0, "forced: {forced}");
    }
}

#[test(server)]
async fn a_claim_that_cannot_count_the_readers_keeps_nobody_out() {
    let server = Server::needed(&[]).await;
    let locks = migrated(&server).await;
    locks.write("k").await.unwrap().release().await.unwrap();
    // The claim succeeds, and the deletion of a dead reader that follows is refused.
    let rights = "GRANT SELECT, INSERT, UPDATE ON leasehold.* TO u@'%'";
    server.sql(&["CREATE USER u@'%'", rights]).await;
    let dead = Claim { mode: Mode::Shared, ..claim("k", Duration::from_millis(20)) };
    let store = MysqlRw::builder().url(server.url()).backend().await.unwrap();
    assert!(matches!(store.try_acquire(&dead).await.unwrap(), Attempt::Granted { .. }));
    let weak = MysqlRw::connect(&server.url_of("u", "")).await.unwrap();
    let refused = weak.write_for("k", Duration::from_secs(20)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Backend, "{refused}");
    locks.try_read("k").await.unwrap().expect("the claim stayed behind").release().await.unwrap();
    locks.try_write("k").await.unwrap().expect("the claim stayed behind").release().await.unwrap();
}

#[test(server)]
async fn a_cancelled_read_that_commits_later_leaves_no_reader() {
    let server = Server::needed(&[]).await;
    let (ours, theirs) = (migrated(&server).await, migrated(&server).await);
    ours.read("k").await.unwrap().release().await.unwrap();
    for table in ["leasehold_rw", "leasehold_rw_readers"] {
        // The admission waits for the gap into which the row of the reader is to be inserted.
        let mut other = row_lock(&server, table).await;
        let waits = tokio::time::timeout(Duration::from_millis(100), ours.read("k"));
        assert!(waits.await.is_err(), "{table}: the claim did not wait for the row");
        other.query_drop("COMMIT").await.unwrap();
        let writer = theirs.write_for("k", Duration::from_secs(1)).await;
        writer.expect("a phantom reads").release().await.unwrap();
    }
}

#[test(server)]
async fn readers_that_draw_together_get_an_epoch_each() {
    let server = Server::needed(&[]).await;
    MysqlRw::migrate(&server.url()).await.unwrap();
    server.sql(&["CREATE USER u@'%' IDENTIFIED BY 'pw'", "GRANT SELECT ON leasehold.* TO u@'%'"]).await;
    for table in ["leasehold_rw", "leasehold_rw_readers"] {
        server.sql(&[&format!("GRANT INSERT, UPDATE, DELETE ON leasehold.{table} TO u@'%'")]).await;
    }
    let proxy = Proxy::start(server.port());
    let store = MysqlRw::builder().url(proxy.url(&server.url_of("u", "pw"))).backend().await.unwrap();
    // While the first draws, all others ask, and the clock gets ahead of so many epochs.
    proxy.delay(Duration::from_millis(5));
    let all = async || {
        let mut readers = JoinSet::new();
        for _ in 0..40 {
            let store = store.clone();
            let claim = Claim { mode: Mode::Shared, ..claim("k", Duration::from_secs(60)) };
            readers.spawn(async move { store.try_acquire(&claim).await });
        }
        readers.join_all().await
    };
    let drawn = all().await.into_iter().map(|attempt| match attempt.unwrap() {
        Attempt::Granted { epoch: Some(epoch) } => epoch,
        busy => panic!("no writer is in the way: {busy:?}"),
    });
    let epochs: BTreeSet<_> = drawn.collect();
    let together: Vec<_> = epochs.iter().skip(1).copied().collect();
    assert_eq!(together, (together[0]..together[0] + 39).collect::<Vec<_>>());
    let newest = server.number("SELECT epoch FROM leasehold.leasehold_rw").await;
    assert_eq!(Some(&newest), together.last(), "an epoch is given again, or before it was drawn");

    server.sql(&["REVOKE INSERT, UPDATE ON leasehold.leasehold_rw FROM u@'%'"]).await;
    for refused in all().await {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Backend);
        assert!(error.to_string().contains("lacks a right") && error.to_string().contains("denied"), "{error}");
    }
}

#[test(server)]
async fn readers_far_away_that_keep_coming_have_one_turn_before_a_writer_has_its_turn() {
    let server = Server::needed(&[]).await;
    let locks = migrated(&server).await;
    locks.read("k").await.unwrap().release().await.unwrap();
    let store = MysqlRw::builder().url(server.url()).backend().await.unwrap();
    let table = TableName::new("leasehold_rw").unwrap();
    let draw = Statements::new(&table, &readers_of(&table).unwrap()).draw_epochs;
    let half_a_second_away = || {
        named([
            ("name", Value::Bytes(cost::name_of("k"))),
            ("count", Value::UInt(1)),
            ("waits", Value::UInt(1)),
            ("away", Value::UInt(500_000)),
        ])
    };
    let mut session = server.session().await.unwrap();
    session.query_drop("USE leasehold").await.unwrap();
    let turn = "SELECT COUNT(*) FROM leasehold.leasehold_rw WHERE readers_turn_until > UTC_TIMESTAMP(6)";
    for _ in 0..3 {
        let writer = claim("k", Duration::from_secs(60));
        session.exec_drop(&draw, half_a_second_away()).await.unwrap();
        let early = store.try_acquire(&writer).await.unwrap();
        assert!(matches!(early, Attempt::Busy { .. }), "a writer comes between a number and its admission");
        eventually("the turn is over", async || server.number(turn).await == 0).await;
        session.exec_drop(&draw, half_a_second_away()).await.unwrap();
        let later = store.try_acquire(&writer).await.unwrap();
        assert!(matches!(later, Attempt::Granted { .. }), "readers that draw keep writers out for ever");
        store.release(&writer.grant(None)).await.unwrap();
    }
}
