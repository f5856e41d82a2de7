//! The least that a user needs.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Duration;

use leasehold_mysql::testing::Server;
use leasehold_mysql_unique::{Admin, ErrorKind, LockKey, LockOptions, Locker, LockerExt, MysqlUnique, Wait};

#[tokio::test]
async fn select_insert_and_update_suffice() {
    let Some(server) = Server::start_or_skip(&[]).await else { return };
    MysqlUnique::migrate(&server.url()).await.unwrap();
    let rights = "GRANT SELECT, INSERT, UPDATE ON leasehold.leasehold_locks TO u@'%'";
    server.sql(&["CREATE USER u@'%' IDENTIFIED BY 'p w'", rights]).await;
    let url = server.url_of("u", "p%20w");
    let (ours, theirs) = (MysqlUnique::connect(&url).await.unwrap(), MysqlUnique::connect(&url).await.unwrap());

    let guard = ours.lock("k").await.unwrap();
    assert!(theirs.try_lock("k").await.unwrap().is_none());
    guard.renew().await.unwrap();
    assert_eq!(theirs.inspect(guard.key()).await.unwrap().holders.len(), 1);
    assert_eq!(theirs.list("k", None).await.unwrap().keys.len(), 1);
    theirs.force_release(guard.key()).await.unwrap();
    assert!(guard.renew().await.is_err());
    let brief = LockOptions::new().ttl(Duration::from_millis(50)).renew(false).wait(Wait::Never);
    let dies = theirs.acquire(&LockKey::new("k").unwrap(), &brief).await.unwrap().unwrap();
    let next = ours.lock("k").await.unwrap();
    assert!(next.fencing_token() > dies.fencing_token());
    next.release().await.unwrap();

    for refused in
        [MysqlUnique::builder().url(&url).table("other").migrate().await, ours.gc(Duration::ZERO).await.map(drop)]
    {
        // There may be nothing to collect yet, and then nothing is refused.
        if let Err(error) = refused {
            assert_eq!(error.kind(), ErrorKind::Backend);
            assert!(error.to_string().contains("lacks a right"), "{error}");
        }
    }
    let error = MysqlUnique::builder().url(&url).table("other").migrate().await.unwrap_err();
    assert!(error.to_string().contains("right"), "{error}");
}
