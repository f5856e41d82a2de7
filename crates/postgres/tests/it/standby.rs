use leasehold_postgres::{ErrorKind, LockKey, LockerExt, Postgres};
use leasehold_testkit::{eventually, test};

use crate::sql::{number, patient, server, sql};

#[test(multi_thread, server)]
async fn a_standby_is_refused_until_it_takes_over_and_then_knows_the_held_locks() {
    let mut server = server(&["synchronous_standby_names=*", "synchronous_commit=local"]).await;
    let standby = server.standby().await.unwrap();
    let error = Postgres::connect(&standby.url()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("does not allow writes"), "{error}");
    // The primary is found in either place.
    let both = |one: u16, other: u16| format!("postgres://leasehold@127.0.0.1:{one},127.0.0.1:{other}/leasehold");
    let locks = Postgres::connect(&both(standby.port(), server.port())).await.unwrap();
    let theirs = Postgres::connect(&both(server.port(), standby.port())).await.unwrap();
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
