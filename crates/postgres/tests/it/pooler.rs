use std::time::Duration;

use leasehold_postgres::{Backed, Backend, ErrorKind, LockKey, LockerExt, Notification, Postgres};
use leasehold_testkit::{PATIENCE, crowd_of_both, eventually, test};
use tokio::time::timeout;

use crate::sql::{clients, number, server};

#[test(multi_thread, server)]
async fn locks_work_through_a_pooler_in_transaction_mode() {
    let server = server(&[]).await;
    let pooler = server.pooler().await;
    let url = format!("{}?listen=127.0.0.1:{}", pooler.url(), server.port());
    Postgres::migrate(&url).await.unwrap();
    let clients = clients(&url).await;
    crowd_of_both(&clients, "k", 8, 20).await;
    // Two of the pooler's, for all of these, and the two that listen.
    let sessions =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    let most = 4;
    eventually("the sessions of the pooler", async || number(&server.url(), sessions).await <= most).await;

    let store = clients[0].engine().backend();
    let mut heard = store.notifications().unwrap().subscribe(&LockKey::new("waited for").unwrap()).await.unwrap();
    let guard = clients[0].lock("waited for").await.unwrap();
    let waiter = tokio::spawn({
        let theirs = clients[1].clone();
        async move { theirs.lock("waited for").await.map(drop) }
    });
    let waits = "SELECT count(*) FROM leasehold.locks WHERE waited_until > clock_timestamp() AND name = 'leasehold\\000waited for'";
    eventually("somebody waits", async || number(&server.url(), waits).await == 1).await;
    guard.release().await.unwrap();
    waiter.await.unwrap().unwrap();
    assert_eq!(timeout(PATIENCE, heard.next()).await.unwrap(), Notification::Freed);
}

#[test(multi_thread, server)]
async fn notifications_that_do_not_pass_a_pooler_are_found_out() {
    let server = server(&[]).await;
    let pooler = server.pooler().await;
    let clients = clients(&pooler.url()).await;
    let store = clients[0].engine().backend();
    let key = LockKey::new("k").unwrap();
    let error = store.notifications().unwrap().subscribe(&key).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("listen=host:port"), "{error}");
    // And waiters poll.
    let guard = clients[0].lock("k").await.unwrap();
    let waiter = tokio::spawn({
        let theirs = clients[1].clone();
        async move { theirs.lock("k").await.map(drop) }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    guard.release().await.unwrap();
    timeout(PATIENCE, waiter).await.unwrap().unwrap().unwrap();
}

#[test(multi_thread, server)]
async fn a_login_that_a_pooler_refuses_is_refused_for_good() {
    let server = server(&[]).await;
    let pooler = server.pooler().await;
    let url = format!("postgres://leasehold@127.0.0.1:{}/absent", pooler.port());
    let error = Postgres::connect(&url).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
}
