use std::error::Error;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use leasehold_postgres::{Backed, Backend, ErrorKind, LockKey, Locker, LockerExt, Postgres, Wait, connect_within};
use leasehold_testkit::{PATIENCE, Proxy, Silenced, eventually, shown, test};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::contention::crowd;
use crate::sql::{clients, number, patient, server, session, sql};

#[test(multi_thread, server)]
async fn backends_that_are_terminated_leave_no_key_locked() {
    let server = server(&[]).await;
    let clients = clients(&server.url()).await;
    let (killer, over) = (session(&server.url()).await, Arc::new(AtomicBool::new(false)));
    let killing = tokio::spawn({
        let over = Arc::clone(&over);
        async move {
            let mut ended = 0;
            while !over.load(Ordering::SeqCst) {
                let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'leasehold'";
                ended += killer.query_one(kill, &[]).await.unwrap().get::<_, i64>(0);
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            ended
        }
    });
    crowd(&clients, "k", 15).await;
    let mut tasks = JoinSet::new();
    for number in 0..40 {
        let locks = clients[number % 2].clone();
        tasks.spawn(async move {
            let key = LockKey::new(format!("own/{number}")).unwrap();
            for _ in 0..10 {
                drop(locks.acquire(&key, &patient()).await.unwrap().unwrap());
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    over.store(true, Ordering::SeqCst);
    assert!(killing.await.unwrap() > 0);
    // Well before the leases of half a minute end.
    for name in (0..40).map(|number| format!("own/{number}")).chain(["k".to_owned()]) {
        eventually("the key is free", async || clients[0].try_lock(name.as_str()).await.is_ok_and(|got| got.is_some()))
            .await;
    }
}

#[test(multi_thread, server)]
async fn a_server_that_dies_loses_no_lock_and_keeps_none() {
    let mut server = server(&["fsync=on"]).await;
    let [ours, theirs] = clients(&server.url()).await;
    let held = ours.acquire(&LockKey::new("held").unwrap(), &patient()).await.unwrap().unwrap();
    server.kill();
    let error = theirs.try_lock("held").await.map(drop).unwrap_err();
    assert!(error.is_transient(), "{error}");
    server.restart().await.unwrap();
    eventually("it answers", async || theirs.try_lock("other").await.is_ok()).await;
    assert!(theirs.try_lock("held").await.unwrap().is_none(), "a held lock was forgotten");
    assert!(held.is_held());
    held.release().await.unwrap();
    theirs.lock("held").await.unwrap().release().await.unwrap();
}

#[test(multi_thread, server)]
async fn closing_ends_while_the_server_is_silent() {
    let server = server(&[]).await;
    let proxy = Proxy::start(server.port());
    let [ours, theirs] = clients(&proxy.url(&server.url())).await;
    let answers_within = ours.engine().backend().answers_within();
    let silenced = Silenced { beside: ours.clone(), ours: ours.clone(), theirs, answers_within };
    silenced.closing_ends(|| proxy.black_hole_all(), ours.close()).await;
}

#[test(multi_thread, server)]
async fn a_server_without_connections_left_is_a_transient_fault() {
    let server = server(&["max_connections=8", "superuser_reserved_connections=0", "max_wal_senders=0"]).await;
    let mut others = Vec::new();
    for _ in 0..8 {
        others.push(session(&server.url()).await);
    }
    let error = Postgres::connect(&server.url()).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("max_connections"), "{error}");
    drop(others);
    let url = server.url();
    let locks = connect_within(Wait::UpTo(Duration::from_secs(60)), || Postgres::connect(&url)).await.unwrap();
    locks.lock("k").await.unwrap().release().await.unwrap();
}

#[test(multi_thread, server)]
async fn a_migration_that_another_session_keeps_waiting_ends() {
    let server = server(&[]).await;
    let other = session(&server.url()).await;
    other.batch_execute("BEGIN; SELECT pg_advisory_xact_lock(hashtext('leasehold migrate'))").await.unwrap();
    let migrated = timeout(3 * PATIENCE, Postgres::migrate(&server.url())).await.unwrap();
    let error = migrated.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate, "{error}");
    other.batch_execute("ROLLBACK").await.unwrap();
    Postgres::migrate(&server.url()).await.unwrap();
}

#[test(server)]
async fn each_code_has_its_class() {
    use ErrorKind::{Backend, Indeterminate, Unavailable};
    const ONCE: RangeInclusive<i64> = 1..=1;
    const AGAIN: RangeInclusive<i64> = 3..=i64::MAX;
    let server = server(&[]).await;
    sql(&server.url(), &["CREATE SEQUENCE sent"]).await;
    for (code, kind, sent, advice) in [
        ("40001", Unavailable, AGAIN, ""),
        ("40P01", Unavailable, AGAIN, ""),
        ("55P03", Unavailable, ONCE, "locked the row"),
        ("57014", Unavailable, ONCE, "statement_timeout"),
        ("25006", Unavailable, 2..=2, "read-only"),
        ("53300", Unavailable, ONCE, "max_connections"),
        ("53100", Unavailable, ONCE, "disk"),
        ("53200", Unavailable, ONCE, ""),
        ("57P03", Unavailable, ONCE, "starting"),
        ("57P01", Indeterminate, ONCE, ""),
        ("57P02", Indeterminate, ONCE, ""),
        ("57P05", Indeterminate, ONCE, ""),
        ("08006", Indeterminate, ONCE, ""),
        ("28P01", Backend, ONCE, "password"),
        ("42501", Backend, ONCE, "rights"),
        ("3D000", Backend, ONCE, "create the database"),
        ("3F000", Backend, ONCE, "migrate"),
        ("42883", Backend, ONCE, "migrate"),
        ("42P01", Backend, ONCE, "migrate"),
        ("42601", Backend, ONCE, ""),
    ] {
        sql(
            &server.url(),
            &[
                "ALTER SEQUENCE sent RESTART",
                // What a sequence gave is not undone with the statement.
                &format!(
                    "CREATE OR REPLACE FUNCTION leasehold.version() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN \
                     PERFORM nextval('sent'); RAISE EXCEPTION 'spoken' USING ERRCODE = '{code}'; END $$"
                ),
            ],
        )
        .await;
        let error = Postgres::connect(&server.url()).await.map(drop).unwrap_err();
        assert_eq!((error.kind(), error.source().is_none()), (kind, advice.is_empty()), "{code}: {error}");
        assert!(error.to_string().contains(advice) && shown(&error).contains("spoken"), "{code}: {error}");
        let times = number(&server.url(), "SELECT last_value FROM sent").await;
        assert!(sent.contains(&times), "{code}: it was sent {times} times");
    }
}

#[test]
async fn what_was_not_sent_was_not_applied() {
    let ends_all = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://u@{}/db?sslmode=disable", ends_all.local_addr().unwrap());
    let ending = tokio::spawn(async move {
        let (mut client, _) = ends_all.accept().await.unwrap();
        client.read_u8().await.unwrap();
        client.write_all(b"E\0\0\0\x23SFATAL\0VFATAL\0C57P01\0Mthe end\0\0").await.unwrap();
        client.read_to_end(&mut Vec::new()).await
    });
    let error = Postgres::connect(&url).await.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("the end"), "{error}");
    drop(ending.await);
}
