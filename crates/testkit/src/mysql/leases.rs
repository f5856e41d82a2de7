//! Leases and claims where other locks on these servers failed: defaults of the server, races, clocks, collations.

use std::time::Duration;

use leasehold_core::{
    Admin, Attempt, Backend, Claim, Clock, ErrorKind, LeaseStatus, LockKey, LockOptions, LockerExt, Renewal, Result,
};
use mysql_async::Pool;
use mysql_async::prelude::Queryable;

use super::server::Server;
use super::steps::{claim, is_told, migrated, row_lock, store, whole_life};
use super::subject::Subject;
use crate::eventually;
use leasehold_mysql::{ConnectionSettings, Step};

pub async fn every_default_of_the_server_is_right<S: Subject>() {
    let arguments = ["--log-bin", "--server-id=1", "--binlog-format=ROW"];
    let server = Server::needed(&arguments).await;
    let defaults = [
        ("READ UNCOMMITTED", "SET GLOBAL autocommit = 0", "SET GLOBAL time_zone = '+05:00'"),
        ("READ COMMITTED", "SET GLOBAL sql_mode = ''", "SET GLOBAL time_zone = '-11:00'"),
        ("REPEATABLE READ", "SET GLOBAL sql_mode = 'ANSI,ORACLE'", "SET GLOBAL binlog_format = 'STATEMENT'"),
        ("SERIALIZABLE", "SET GLOBAL sql_mode = 'SIMULTANEOUS_ASSIGNMENT'", "SET GLOBAL binlog_format = 'MIXED'"),
    ];
    S::migrate_at(&server.url()).await.unwrap();
    for (isolation, one, another) in defaults {
        server.sql(&[&format!("SET GLOBAL TRANSACTION ISOLATION LEVEL {isolation}"), one, another]).await;
        for found_rows in [true, false] {
            let url = format!("{}&client_found_rows={found_rows}", server.url());
            let ours = S::connect_to(&url).await.unwrap();
            let pool = Pool::from_url(&url).unwrap();
            let theirs = S::connect(ConnectionSettings::default().pool(pool)).await.unwrap();
            let key = format!("{isolation} {found_rows}");
            whole_life::<S>(&ours, &theirs, &key).await;
            S::crowd(&[ours, theirs, S::connect_to(&server.url()).await.unwrap()], &key).await;
        }
    }
}

pub async fn statement_logging_at_read_committed_is_refused_with_advice<S: Subject>() {
    let arguments =
        ["--log-bin", "--server-id=1", "--binlog-format=STATEMENT", "--transaction-isolation=READ-COMMITTED"];
    let server = migrated::<S>(&arguments).await;
    let error = S::connect_to(&server.url()).await.unwrap().try_lock("k").await.unwrap_err();
    is_told(&error, "ROW or MIXED");
}

/// A client whose sessions all live at this moment, in seconds since 1970. The user must not be all-powerful.
async fn client_at<S: Subject>(server: &Server, moment: f64) -> S::Locks {
    server.sql(&[&format!("SET GLOBAL init_connect = 'SET timestamp = {moment}'")]).await;
    S::connect_to(&server.url_of("plain", "")).await.unwrap()
}

pub async fn the_steps_of_daylight_saving_move_no_lease<S: Subject>() {
    let server = migrated::<S>(&["TZ=Europe/Berlin"]).await;
    server.sql(&["CREATE USER plain@'%'", "GRANT ALL ON leasehold.* TO plain@'%'"]).await;
    let minute = LockOptions::new().ttl(Duration::from_secs(60)).renew(false);
    let mut session = server.session().await.unwrap();
    let off: Option<i64> = session.query_first("SELECT TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(), NOW())").await.unwrap();
    assert_ne!(off, Some(0), "the server is not in Berlin, so this shows nothing");
    // 2027: forward on 28 March and back on 31 October, both at 01:00 UTC.
    for (season, step) in [("spring", 1_806_195_600.0), ("autumn", 1_824_944_400.0)] {
        let key = LockKey::new(season).unwrap();
        let before = client_at::<S>(&server, step - 1.0).await;
        let guard = before.acquire(&key, &minute).await.unwrap().expect("it is free");
        let soon_after = client_at::<S>(&server, step + 1.0).await;
        assert!(soon_after.try_lock(&key).await.unwrap().is_none(), "{season}: a live lease was taken over");
        let left = soon_after.inspect(&key).await.unwrap().holders[0].remaining.unwrap();
        assert_eq!(left, Duration::from_secs(58), "{season}");
        let long_after = client_at::<S>(&server, step + 60.0).await;
        let successor = long_after.try_lock(&key).await.unwrap().expect("a dead lease stays");
        assert!(successor.fencing_token() > guard.fencing_token());
    }
}

pub async fn names_that_text_collations_merge_are_different_locks<S: Subject>() {
    let server = migrated::<S>(&["--character-set-server=latin1"]).await;
    let locks = S::connect_to(&server.url()).await.unwrap();
    let alike =
        ["Key", "key", "key ", "kéy", "ke\u{301}y", "straße", "strasse", "😀", "😁", "a", "a\0", "ａ", "İ", "i"];
    let mut guards = Vec::new();
    for name in alike {
        guards.push(locks.try_lock(name).await.unwrap().unwrap_or_else(|| panic!("{name:?} is another's too")));
    }
    let listed = locks.list("", None).await.unwrap();
    assert_eq!(listed.keys.len(), alike.len());
}

/// Has a short lease renewed while somebody else has the rows of this table locked, until the lease is over: another claim of the
/// key comes in between. Answers whether the lease was kept, and what the other was told.
pub async fn race(server: &Server, table: &str, store: &impl Backend, short: &Claim) -> (bool, Result<Attempt>) {
    assert!(matches!(store.try_acquire(short).await.unwrap(), Attempt::Granted { .. }));
    let mut locked = row_lock(server, table).await;
    let renewal = [Renewal { grant: short.grant(None), ttl: Duration::from_secs(60) }];
    let other = claim(short.key.as_str(), Duration::from_secs(60));
    let (renewed, claimed, ()) = tokio::join!(
        store.renew(&renewal, Step::LIMIT),
        async {
            tokio::time::sleep(short.ttl + Duration::from_millis(100)).await;
            store.try_acquire(&other).await
        },
        async {
            tokio::time::sleep(short.ttl + Duration::from_millis(300)).await;
            locked.query_drop("COMMIT").await.unwrap();
        },
    );
    (*renewed[0].as_ref().unwrap() == LeaseStatus::Held, claimed)
}

pub async fn a_renewal_that_races_an_eviction_leaves_one_holder<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    for isolation in ["READ COMMITTED", "REPEATABLE READ"] {
        server.sql(&[&format!("SET GLOBAL TRANSACTION ISOLATION LEVEL {isolation}")]).await;
        let store = store::<S>(&server.url()).await;
        let (kept, claimed) = race(&server, S::TABLE, &store, &claim(isolation, Duration::from_millis(300))).await;
        let taken = matches!(claimed.unwrap(), Attempt::Granted { .. });
        assert!(kept != taken, "{isolation}: kept {kept}, taken {taken}");
    }
}

pub async fn a_renewal_is_waited_for_no_longer_than_it_is_of_use<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let store = store::<S>(&server.url()).await;
    let held = claim("k", Duration::from_secs(60));
    store.try_acquire(&held).await.unwrap();
    let _other = row_lock(&server, S::TABLE).await;
    let renewal = [Renewal { grant: held.grant(None), ttl: Duration::from_secs(60) }];
    let error = store.renew(&renewal, Duration::from_millis(200)).await.remove(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Indeterminate);
    assert!(error.to_string().contains("no answer within 200ms"), "{error}");
}

pub async fn a_cycle_takes_few_statements_and_is_never_a_deadlock<S: Subject>() {
    let server = migrated::<S>(&["--max-connections=300"]).await;
    // A connection that is new says a few words of its own.
    let locks = S::connect_to(&format!("{}&pool_max=1", server.url())).await.unwrap();
    locks.lock("k").await.unwrap().release().await.unwrap();
    let before = server.status("Questions").await;
    for _ in 0..100 {
        locks.lock("k").await.unwrap().release().await.unwrap();
    }
    // Whoever asks for the status is counted too.
    let after = server.status("Questions").await;
    let asking = server.status("Questions").await - after;
    assert_eq!(after - before, 100 * S::CYCLE + asking);

    let mut clients = vec![locks];
    for _ in 0..3 {
        clients.push(S::connect_to(&server.url()).await.unwrap());
    }
    S::crowd(&clients, "hot").await;
    assert_eq!(server.status("Innodb_deadlocks").await, 0);
}

pub async fn collected_rows_do_not_take_tokens_back<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let locks = S::connect_to(&server.url()).await.unwrap();
    let clock = Clock::system();
    let claimed = clock.now();
    let idle = locks.lock("idle").await.unwrap();
    let token = idle.fencing_token();
    idle.release().await.unwrap();
    let held = locks.lock("held").await.unwrap();
    assert_eq!(S::gc(&locks, Duration::from_secs(3600)).await.unwrap(), 0);
    eventually("the idle row is collected", async || S::gc(&locks, Duration::ZERO).await.unwrap() > 0).await;
    // A claim that began before the row went may still wait in the server, with the clock of its beginning.
    assert!(clock.now().since(claimed) >= Duration::from_secs(5), "a row is collected that a claim may be about");
    held.renew().await.unwrap();
    assert!(locks.lock("idle").await.unwrap().fencing_token() > token);
}
