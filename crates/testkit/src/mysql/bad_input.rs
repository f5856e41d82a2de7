//! What servers, operators and addresses can get wrong: a typed error that says what to do, and no credential in it.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "tests, whose names say what they show"
)]

use std::time::Duration;

use leasehold_core::conformance::error_text;
use leasehold_core::{
    Admin, Backed, Clock, Error, ErrorKind, LockKey, LockOptions, Locker, LockerExt, ReleaseOutcome, Wait,
};
use mysql_async::Pool;
use mysql_async::prelude::Queryable;

use super::server::Server;
use super::steps::row_lock;
use super::subject::Subject;
use leasehold_mysql::ConnectionSettings;

async fn refusal<S: Subject>(url: &str) -> Error {
    let error = S::connect_to(url).await.unwrap_err();
    assert!(!error_text(&error).contains("canary"), "a credential is shown: {}", error_text(&error));
    error
}

pub async fn what_is_missing_is_said_and_what_to_do<S: Subject>() {
    let server = Server::needed(&[]).await;
    let error = refusal::<S>(&server.url()).await;
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("leasehold migrate"), "{error}");

    let error = refusal::<S>(&server.url().replace("/leasehold", "/nowhere")).await;
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("create the database"), "{error}");

    server.sql(&["CREATE USER u@'%' IDENTIFIED BY 'right'", "GRANT ALL ON leasehold.* TO u@'%'"]).await;
    let error = refusal::<S>(&server.url_of("u", "canary")).await;
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("password"), "{error}");

    // The table goes away under a client that has seen it.
    S::migrate_at(&server.url()).await.unwrap();
    let locks = S::connect_to(&server.url()).await.unwrap();
    server.sql(&[&format!("DROP TABLE leasehold.{}", S::TABLE)]).await;
    let error = locks.lock("k").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Backend);
    assert!(error.to_string().contains("leasehold migrate"), "{error}");
}

pub async fn an_older_table_is_refused_by_its_version_with_what_to_do<S: Subject>() {
    let server = Server::needed(&[]).await;
    S::migrate_at(&server.url()).await.unwrap();
    let locks = S::connect_to(&server.url()).await.unwrap();
    locks.lock("k").await.unwrap().release().await.unwrap();
    let (name, version) = comment::<S>(&server).await;
    let older = format!("ALTER TABLE leasehold.{} COMMENT='{name} 0'", S::TABLE);
    server.sql(&[&older]).await;
    for error in [refusal::<S>(&server.url()).await, S::migrate_at(&server.url()).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Backend);
        let told =
            format!("it is of version 0, and this program needs version {version}: run a program of that version");
        assert!(error.to_string().contains(&told), "{error}");
    }
    // As the error says.
    server.sql(&[&format!("DROP TABLE leasehold.{}", S::TABLE)]).await;
    S::migrate_at(&server.url()).await.unwrap();
    S::connect_to(&server.url()).await.unwrap().lock("k").await.unwrap().release().await.unwrap();
}

/// The name of the schema of the table of the keys, and its version.
async fn comment<S: Subject>(server: &Server) -> (String, String) {
    let comment = format!("SELECT table_comment FROM information_schema.tables WHERE table_name = '{}'", S::TABLE);
    let comment: Option<String> = server.session().await.unwrap().query_first(comment).await.unwrap();
    let comment = comment.unwrap();
    let (name, version) = comment.rsplit_once(' ').unwrap();
    (name.to_owned(), version.to_owned())
}

pub async fn a_newer_table_is_used_if_it_says_so_and_refused_by_name_if_not<S: Subject>() {
    let server = Server::needed(&[]).await;
    S::migrate_at(&server.url()).await.unwrap();
    let (name, version) = comment::<S>(&server).await;
    let newer = |rest: String| {
        format!("ALTER TABLE leasehold.{} ADD COLUMN IF NOT EXISTS later INT, COMMENT='{name} {rest}'", S::TABLE)
    };
    server.sql(&[&newer(format!("4711 since {version}"))]).await;
    S::connect_to(&server.url()).await.unwrap().lock("k").await.unwrap().release().await.unwrap();
    S::migrate_at(&server.url()).await.unwrap();

    server.sql(&[&newer("4711 since 4710".into())]).await;
    for error in [refusal::<S>(&server.url()).await, S::migrate_at(&server.url()).await.unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::Backend);
        for word in ["4711", "4710", &format!("version {version}"), "newer"] {
            assert!(error.to_string().contains(word), "{word}: {error}");
        }
        assert!(!error.to_string().contains("migrate`"), "that would not help: {error}");
    }
}

pub async fn tables_that_would_not_lock_are_refused<S: Subject>() {
    let server = Server::needed(&[]).await;
    S::migrate_at(&server.url()).await.unwrap();
    for (change, word) in [
        ("MODIFY name VARCHAR(320) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL", "varchar"),
        ("MODIFY name VARBINARY(100) NOT NULL", "varbinary(100)"),
        (&format!("MODIFY {} DATETIME NOT NULL", S::EXPIRY), "datetime(0)"),
        (&format!("MODIFY {} TIMESTAMP(6) NOT NULL", S::EXPIRY), "timestamp(6)"),
        ("DROP COLUMN forced", "forced"),
        ("DROP PRIMARY KEY, ADD INDEX (name)", "primary key"),
        ("DROP PRIMARY KEY, ADD PRIMARY KEY (name, epoch)", "primary key"),
        ("ENGINE=MyISAM", "InnoDB"),
        ("COMMENT='leasehold of another time'", "another time"),
    ] {
        let copy = format!("CREATE TABLE leasehold.odd LIKE leasehold.{}", S::TABLE);
        server
            .sql(&["DROP TABLE IF EXISTS leasehold.odd", &copy, &format!("ALTER TABLE leasehold.odd {change}")])
            .await;
        let error = refusal::<S>(&format!("{}&table=odd", server.url())).await;
        assert_eq!(error.kind(), ErrorKind::Backend, "{change}");
        assert!(error.to_string().contains(word) && error.to_string().contains("migrate"), "{change}: {error}");
    }
}

pub async fn addresses_are_checked_before_anything_is_sent<S: Subject>() {
    for table in ["a%60b", "a'b", "a%22b", "x;drop%20table%20b", ""] {
        let error = refusal::<S>(&format!("mysql://u:canary@127.0.0.1:1/db?table={table}")).await;
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{table}");
    }
    let access =
        || ConnectionSettings::default().url("mysql://u:canary@127.0.0.1:1/db?allow_public_key_retrieval=true");
    assert!(!format!("{:?}", access()).contains("canary"));
    for senseless in [access().table("a`b"), access().namespace(""), ConnectionSettings::default()] {
        assert_eq!(S::connect(senseless).await.unwrap_err().kind(), ErrorKind::InvalidOptions);
    }
    // Nobody listens there.
    let error = refusal::<S>("mysql://u:canary@127.0.0.1:1/db?allow_public_key_retrieval=true").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.to_string().contains("mysql://127.0.0.1:1/db: "), "{error}");
}

pub async fn a_pool_of_the_callers_does_not_show_its_password_either<S: Subject>() {
    let server = Server::needed(&[]).await;
    S::migrate_at(&server.url()).await.unwrap();
    server.sql(&["CREATE USER u@'%' IDENTIFIED BY 'canary'", "GRANT ALL ON leasehold.* TO u@'%'"]).await;
    let url = server.url_of("u", "canary");
    let access = ConnectionSettings::default()
        .pool(Pool::from_url(url.replace("allow_public_key_retrieval=true", "prefer_socket=false")).unwrap());
    assert!(!format!("{access:?}").contains("canary"));
    let locks = S::connect(access).await.unwrap();
    let own = S::connect_to(&url).await.unwrap();
    let guard = locks.lock("k").await.unwrap();
    assert!(!format!("{locks:?} {own:?} {guard:?}").contains("canary"));
    locks.engine().close().await;
}

pub async fn a_read_only_server_is_a_transient_fault<S: Subject>() {
    let server = Server::needed(&[]).await;
    S::migrate_at(&server.url()).await.unwrap();
    let rights = "GRANT SELECT, INSERT, UPDATE ON leasehold.* TO u@'%'";
    server.sql(&["CREATE USER u@'%'", rights, "SET GLOBAL read_only = 1"]).await;
    let locks = S::connect_to(&server.url_of("u", "")).await.unwrap();
    let error = locks.try_lock("k").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("read-only"), "{error}");
    // A waiter is there when it becomes a primary again.
    let waits = locks.lock("k");
    let (guard, ()) = tokio::join!(waits, server.sql(&["DO SLEEP(0.3)", "SET GLOBAL read_only = 0"]));
    guard.unwrap().release().await.unwrap();
}

pub async fn a_server_without_connections_left_is_a_transient_fault<S: Subject>() {
    let server = Server::needed(&["--max-connections=10"]).await;
    S::migrate_at(&server.url()).await.unwrap();
    let mut taken = Vec::new();
    // One more than the limit is kept for an administrator.
    while let Ok(session) = server.session().await {
        taken.push(session);
    }
    let error = refusal::<S>(&server.url()).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("no connection left"), "{error}");
    drop(taken);
    let clock = Clock::system();
    let limit = clock.now().plus(Duration::from_secs(20));
    while let Err(error) = S::connect_to(&server.url()).await {
        assert!(error.is_transient() && clock.now() < limit, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub async fn killed_sessions_cost_nothing_but_a_reconnection<S: Subject>() {
    let server = Server::needed(&[]).await;
    S::migrate_at(&server.url()).await.unwrap();
    let locks = S::connect_to(&server.url()).await.unwrap();
    let kill_all = || async {
        let mut session = server.session().await.unwrap();
        let others = "SELECT id FROM information_schema.processlist WHERE user = 'root' AND id <> CONNECTION_ID()";
        let ids: Vec<u64> = session.query(others).await.unwrap();
        let killed = ids.len();
        for id in ids {
            // It may have gone by itself.
            drop(session.query_drop(format!("KILL CONNECTION {id}")).await);
        }
        killed
    };
    let guard = locks.lock("k").await.unwrap();
    assert_ne!(kill_all().await, 0);
    guard.renew().await.unwrap();
    assert_ne!(kill_all().await, 0);
    assert!(locks.try_lock("k").await.unwrap().is_none());
    let waits = async {
        let key = LockKey::new("k").unwrap();
        locks.acquire(&key, &LockOptions::new().wait(Wait::UpTo(Duration::from_secs(20)))).await
    };
    let (waited, ()) = tokio::join!(waits, async {
        kill_all().await;
        drop(guard);
    });
    waited.unwrap().expect("it was released").release().await.unwrap();
}

pub async fn a_server_that_dies_loses_no_lock_and_keeps_none<S: Subject>() {
    let mut server = Server::needed(&[]).await;
    S::migrate_at(&server.url()).await.unwrap();
    let locks = S::connect_to(&server.url()).await.unwrap();
    let key = LockKey::new("k").unwrap();
    let held = locks.acquire(&key, &LockOptions::new().ttl(Duration::from_secs(60))).await.unwrap().unwrap();

    server.kill();
    assert!(held.renew().await.unwrap_err().is_transient());
    assert!(locks.try_lock("other").await.unwrap_err().is_transient());
    server.restart().await.unwrap();
    // The row survived, and so did the lease; the renewal finds it.
    held.renew().await.unwrap();
    assert!(held.is_held());
    let seen = locks.inspect(&key).await.unwrap();
    assert_eq!(seen.holders[0].token, held.fencing_token());

    // The waiter rides it out; the release whose outcome was unknown is settled in the background.
    let waiter = tokio::spawn({
        let (locks, key) = (S::connect_to(&server.url()).await.unwrap(), key.clone());
        async move { locks.lock(&key).await }
    });
    server.kill();
    let outcome = held.release().await;
    assert!(outcome.as_ref().is_err_and(Error::is_transient), "{outcome:?}");
    server.restart().await.unwrap();
    let guard = waiter.await.unwrap().unwrap();
    assert_eq!(guard.release().await.unwrap(), ReleaseOutcome::Released);
}

/// Kills the server while this step waits in it for the key's row, and starts it again.
async fn dies_amid<S: Subject, T>(server: &mut Server, step: impl Future<Output = T>) -> T {
    let other = row_lock::<S>(server).await;
    let mut step = std::pin::pin!(step);
    let underway = tokio::time::timeout(Duration::from_millis(200), step.as_mut()).await;
    assert!(underway.is_err(), "it did not wait for the row");
    server.kill();
    drop(other);
    let outcome = step.await;
    server.restart().await.unwrap();
    outcome
}

pub async fn a_step_that_the_server_dies_amid_is_settled<S: Subject>() {
    let mut server = Server::needed(&[]).await;
    S::migrate_at(&server.url()).await.unwrap();
    let locks = S::connect_to(&server.url()).await.unwrap();
    locks.lock("k").await.unwrap().release().await.unwrap();

    let claimed = dies_amid::<S, _>(&mut server, locks.try_lock("k")).await;
    assert!(claimed.as_ref().is_err_and(Error::is_transient), "{claimed:?}");
    let guard = S::connect_to(&server.url()).await.unwrap().try_lock("k").await.unwrap();
    let guard = guard.expect("a claim that nobody answered holds the key");

    let renewed = dies_amid::<S, _>(&mut server, guard.renew()).await;
    assert!(renewed.as_ref().is_err_and(Error::is_transient), "{renewed:?}");
    guard.renew().await.unwrap();

    let released = dies_amid::<S, _>(&mut server, guard.release()).await;
    assert!(released.as_ref().is_err_and(Error::is_transient), "{released:?}");
    // Its lease has most of half a minute left, and the answer is found out before.
    let patience = LockOptions::new().wait(Wait::UpTo(Duration::from_secs(15)));
    let next = locks.acquire(&LockKey::new("k").unwrap(), &patience).await.unwrap();
    next.expect("the key stays locked").release().await.unwrap();
}
