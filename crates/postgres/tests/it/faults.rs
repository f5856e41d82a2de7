use std::error::Error;
use std::ops::RangeInclusive;

use leasehold_postgres::{Backed, Backend, ErrorKind, LockKey, Notification, Postgres};
use leasehold_testkit::{PATIENCE, eventually, shown, test};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::sql::{number, server, session, sql};

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
    // For a second, with pauses that become longer.
    const AGAIN: RangeInclusive<i64> = 3..=60;
    let server = server(&[]).await;
    sql(&server.url(), &["CREATE SEQUENCE sent", "CREATE SEQUENCE session", "CREATE SEQUENCE sessions"]).await;
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
        ("08P01", Indeterminate, ONCE, ""),
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
                "ALTER SEQUENCE sessions RESTART",
                // What a sequence gave is not undone with the statement.
                &format!(
                    "CREATE OR REPLACE FUNCTION leasehold.version() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN \
                     PERFORM nextval('sent'); \
                     IF (SELECT last_value FROM session) <> pg_backend_pid() THEN PERFORM nextval('sessions'); END IF; \
                     PERFORM setval('session', pg_backend_pid()); \
                     RAISE EXCEPTION 'spoken' USING ERRCODE = '{code}'; END $$"
                ),
            ],
        )
        .await;
        let error = Postgres::connect(&server.url()).await.map(drop).unwrap_err();
        assert_eq!((error.kind(), error.source().is_none()), (kind, advice.is_empty()), "{code}: {error}");
        assert!(error.to_string().contains(advice) && shown(&error).contains("spoken"), "{code}: {error}");
        let times = number(&server.url(), "SELECT last_value FROM sent").await;
        assert!(sent.contains(&times), "{code}: it was sent {times} times");
        // A statement that goes elsewhere has another session.
        let sessions = number(&server.url(), "SELECT last_value FROM sessions").await;
        assert_eq!(sessions, if code == "25006" { 2 } else { 1 }, "{code}");
    }
}

/// What a login is told by who answers with these bytes, and then goes.
async fn told_by(answer: &'static [u8]) -> leasehold_postgres::Error {
    let ends_all = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("postgres://u@{}/db?sslmode=disable", ends_all.local_addr().unwrap());
    let ending = tokio::spawn(async move {
        let (mut client, _) = ends_all.accept().await.unwrap();
        client.read_u8().await.unwrap();
        client.write_all(answer).await.unwrap();
        if !answer.is_empty() {
            let _ = client.read_to_end(&mut Vec::new()).await;
        }
    });
    let error = Postgres::connect(&url).await.map(drop).unwrap_err();
    drop(ending.await);
    error
}

#[test]
async fn what_was_not_sent_was_not_applied() {
    const BROKE: &str = "is it a PostgreSQL server";
    for (answer, why, is_broken) in [
        (&b"E\0\0\0\x23SFATAL\0VFATAL\0C57P01\0Mthe end\0\0"[..], "the end", false),
        // As a pooler says it for failures of the moment.
        (b"E\0\0\0\x23SFATAL\0VFATAL\0C08P01\0Mthe end\0\0", "the end", false),
        // Ready for a statement before the login.
        (b"Z\0\0\0\x05I", "unexpected message", false),
        (b"", "", true),
    ] {
        let error = told_by(answer).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(shown(&error).contains(why) && error.to_string().contains(BROKE) == is_broken, "{}", shown(&error));
    }
}

#[test(multi_thread, server)]
async fn a_subscription_ends_with_its_connection_and_the_next_has_another() {
    let server = server(&[]).await;
    let locks = Postgres::connect(&server.url()).await.unwrap();
    let key = LockKey::new("k").unwrap();
    let notifications = locks.engine().backend().notifications().unwrap();
    let listening = async |statement: &str| {
        let listens = format!("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '{statement} leasehold_%'");
        number(&server.url(), &listens).await
    };
    for _ in 0..2 {
        let mut heard = notifications.subscribe(&key).await.unwrap();
        assert_eq!(listening("LISTEN").await, 1);
        let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN leasehold_%'";
        sql(&server.url(), &[ended]).await;
        assert_eq!(timeout(PATIENCE, heard.next()).await.expect("it was told nothing"), Notification::Ended);
    }
    let heard = [notifications.subscribe(&key).await.unwrap(), notifications.subscribe(&key).await.unwrap()];
    for (heard, is_last) in heard.into_iter().zip([false, true]) {
        assert_eq!(listening("LISTEN").await, 1);
        drop(heard);
        eventually("the last ends it", async || !is_last || listening("UNLISTEN").await == 1).await;
    }
}
