use leasehold_postgres::{ErrorKind, LockKey, LockerExt, Postgres};
use leasehold_testkit::{eventually, test};

use crate::sql::{number, patient, server, sql};

#[test(multi_thread, server)]
async fn a_standby_is_refused_and_the_primary_found() {
    let server = server(&[]).await;
    let standby = server.standby().await.unwrap();
    let error = Postgres::connect(&standby.url()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("does not allow writes"), "{error}");
    let both = format!("postgres://leasehold@127.0.0.1:{},127.0.0.1:{}/leasehold", standby.port(), server.port());
    let locks = Postgres::connect(&both).await.unwrap();
    locks.lock("k").await.unwrap().release().await.unwrap();
}

#[test(multi_thread, server)]
async fn held_locks_survive_a_switchover() {
    let mut server = server(&["synchronous_standby_names=*", "synchronous_commit=local"]).await;
    let standby = server.standby().await.unwrap();
    let both = format!("postgres://leasehold@127.0.0.1:{},127.0.0.1:{}/leasehold", server.port(), standby.port());
    let locks = Postgres::connect(&both).await.unwrap();
    let theirs = Postgres::connect(&both).await.unwrap();
    let held = locks.acquire(&LockKey::new("held").unwrap(), &patient()).await.unwrap().unwrap();
    let there = "SELECT count(*) FROM leasehold.holders";
    eventually("the standby has it", async || number(&standby.url(), there).await == 1).await;
    server.kill();
    sql(&standby.url(), &["SELECT pg_promote()"]).await;
    eventually("it goes on", async || theirs.lock("new").await.is_ok()).await;
    assert!(theirs.try_lock("held").await.unwrap().is_none() && held.is_held());
    let token = held.fencing_token();
    held.release().await.unwrap();
    assert!(theirs.lock("held").await.unwrap().fencing_token() > token);
}
