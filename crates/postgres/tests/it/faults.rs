use std::error::Error;
use std::ops::RangeInclusive;

use leasehold_postgres::{ErrorKind, Postgres};
use leasehold_testkit::{PATIENCE, shown, test};
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
