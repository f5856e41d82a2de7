use futures::future::join_all;
use leasehold::FencingToken;
use leasehold::fenced::{Outcome, SqlWrite};
use leasehold_testkit::mysql::Server;
use leasehold_testkit::test;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use crate::fenced::tokens_of;

/// A row that goes back to a smaller fence is an error of the server itself.
const TABLE: [&str; 3] = [
    "CREATE TABLE leasehold.account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL, fence BIGINT NOT NULL DEFAULT 0)",
    "INSERT INTO leasehold.account (id, balance) VALUES (7, 0)",
    "CREATE TRIGGER leasehold.forwards BEFORE UPDATE ON leasehold.account FOR EACH ROW IF NEW.fence < OLD.fence THEN \
     SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the fence went back'; END IF",
];

async fn server() -> Server {
    let server = Server::needed(&[]).await;
    server.sql(&TABLE).await;
    server
}

async fn write(session: &mut Conn, token: u64, key: u64, balance: u64) -> Option<Outcome> {
    let statement = SqlWrite::mysql("leasehold.account", "id", "fence", &["balance"]).expect("plain names");
    let written = session.exec_iter(statement.update(), (balance, token, key, token)).await.expect("it is written");
    let rows = written.affected_rows();
    drop(written);
    let seen = if rows == 0 { session.exec_first(statement.seen(), (key,)).await.expect("a fence") } else { None };
    SqlWrite::outcome(FencingToken::from(token), rows, seen)
}

async fn row(session: &mut Conn) -> (u64, u64) {
    let row = session.query_first("SELECT balance, fence FROM leasehold.account WHERE id = 7").await;
    row.expect("a row").expect("the row is there")
}

#[test(multi_thread)]
async fn a_row_refuses_a_late_write() {
    let server = server().await;
    let mut session = server.session().await.expect("a session");
    let stale = Some(Outcome::Stale { seen: 9.into() });
    assert_eq!(write(&mut session, 5, 7, 50).await, Some(Outcome::Written));
    assert_eq!(write(&mut session, 5, 7, 51).await, Some(Outcome::Written), "the same holder");
    assert_eq!(write(&mut session, 5, 7, 51).await, Some(Outcome::Written), "the same write: no row is changed");
    assert_eq!(write(&mut session, 9, 7, 90).await, Some(Outcome::Written), "the next holder");
    assert_eq!(write(&mut session, 5, 7, 52).await, stale, "the late holder");
    assert_eq!(row(&mut session).await, (90, 9));
    assert_eq!(write(&mut session, 10, 8, 80).await, None, "there is no such row");
}

/// A transaction shows itself the rows as they were when it began, unless it asks for them with a lock.
#[test(multi_thread)]
async fn an_old_snapshot_does_not_hide_a_larger_token() {
    let server = server().await;
    let (mut late, mut next) = (server.session().await.expect("a session"), server.session().await.expect("a session"));
    late.query_drop("BEGIN").await.expect("a transaction");
    assert_eq!(row(&mut late).await, (0, 0));
    assert_eq!(write(&mut next, 9, 7, 90).await, Some(Outcome::Written));
    assert_eq!(row(&mut late).await, (0, 0), "this is what a plain SELECT is shown");
    assert_eq!(write(&mut late, 5, 7, 50).await, Some(Outcome::Stale { seen: 9.into() }));
    late.query_drop("ROLLBACK").await.expect("the end");
}

#[test(multi_thread)]
async fn a_row_never_goes_back_to_a_smaller_token() {
    let server = &server().await;
    let stale = join_all((0..8).map(|writer| async move {
        let mut session = server.session().await.expect("a session");
        let mut stale = 0;
        for token in tokens_of(writer, 400) {
            match write(&mut session, token, 7, token * 10).await {
                Some(Outcome::Written) => {}
                Some(Outcome::Stale { seen }) if seen.get() > token => stale += 1,
                other => panic!("{other:?} for {token}"),
            }
        }
        stale
    }));
    assert!(stale.await.into_iter().sum::<u64>() > 0, "no writer was late");
    assert_eq!(row(&mut server.session().await.expect("a session")).await, (4000, 400));
}
