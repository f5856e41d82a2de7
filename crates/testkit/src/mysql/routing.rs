//! On which server the locks are.

use std::time::Duration;

use leasehold_core::{Attempt, Backed, Backend, ErrorKind, LockKey, LockOptions, LockerExt, Wait};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Pool, Row};
use tokio::time::{sleep, timeout};

use super::server::Server;
use super::steps::{claim, migrated};
use super::subject::Subject;
use crate::Proxy;
use leasehold_mysql::ConnectionSettings;

/// Longer than anything here takes, also where everything is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The names of the keys that this server has rows of.
async fn keys<S: Subject>(server: &Server) -> Vec<String> {
    let mut session = server.session().await.unwrap();
    let names = format!("SELECT SUBSTRING_INDEX(name, CHAR(0), -1) FROM leasehold.{} ORDER BY name", S::TABLE);
    let names: Vec<Vec<u8>> = session.query(names).await.unwrap();
    names.into_iter().map(|name| String::from_utf8(name).unwrap()).collect()
}

pub async fn the_lock_is_on_the_server_of_the_address<S: Subject>() {
    // As on two machines whose servers have their distribution's usual path: both name the same one, and behind it
    // is, on each machine, the server of that machine.
    let folder = tempfile::tempdir().unwrap();
    let usual = folder.path().join("usual.sock");
    let path = format!("--socket={}", usual.display());
    let distant = Server::needed(&[&path]).await;
    std::fs::remove_file(&usual).unwrap();
    let local = Server::needed(&[&path]).await;
    S::migrate_at(&distant.url()).await.unwrap();
    let nothing: [String; 0] = [];
    let of_local = format!("SHOW TABLES FROM leasehold LIKE '{}'", S::TABLE);
    let tables: Vec<String> = local.session().await.unwrap().query(of_local).await.unwrap();
    assert_eq!(tables, nothing, "the tables were created on another server");

    S::migrate_at(&local.url()).await.unwrap();
    for (server, key) in [(&distant, "there"), (&local, "here")] {
        let locks = S::connect_to(&server.url()).await.unwrap();
        locks.lock(key).await.unwrap().renew().await.unwrap();
        locks.engine().close().await;
    }
    assert_eq!(keys::<S>(&distant).await, ["there"]);
    assert_eq!(keys::<S>(&local).await, ["here"]);
}

/// A primary and its replica, with a user whom `read_only` binds.
async fn pair() -> (Server, Server) {
    let arguments = |id: &'static str| ["--log-bin", "--log-slave-updates", "--binlog-format=ROW", id];
    let primary = Server::needed(&arguments("--server-id=1")).await;
    let replica = Server::needed(&arguments("--server-id=2")).await;
    let follow = format!(
        "CHANGE MASTER TO master_host = '127.0.0.1', master_port = {}, master_user = 'root', \
         master_use_gtid = slave_pos, master_connect_retry = 1",
        primary.port()
    );
    replica.sql(&["RESET MASTER", "SET GLOBAL gtid_slave_pos = ''", &follow, "START SLAVE"]).await;
    primary.sql(&["CREATE USER u@'%'", "GRANT ALL ON leasehold.* TO u@'%'"]).await;
    replica.sql(&["SET GLOBAL read_only = 1"]).await;
    (primary, replica)
}

/// As an operator does it: the old one takes no writes any more, the new one has all of them, and takes more.
async fn switch_over(old: &Server, new: &Server) {
    let mut session = old.session().await.unwrap();
    session.query_drop("SET GLOBAL read_only = 1").await.unwrap();
    let position: Option<String> = session.query_first("SELECT @@global.gtid_binlog_pos").await.unwrap();
    let caught_up = format!("SELECT MASTER_GTID_WAIT('{}', {})", position.unwrap(), PATIENCE.as_secs());
    let mut session = new.session().await.unwrap();
    assert_eq!(session.query_first(caught_up).await.unwrap(), Some(0), "the replica did not follow");
    session.query_drop("STOP SLAVE").await.unwrap();
    session.query_drop("SET GLOBAL read_only = 0").await.unwrap();
}

pub async fn a_switchover_under_waiters_and_a_held_lock_is_noticed_at_once<S: Subject>() {
    let (old, new) = pair().await;
    S::migrate_at(&old.url()).await.unwrap();
    let address = Proxy::start(old.port());
    let url = address.url(&old.url_of("u", ""));
    let (ours, theirs) = (S::connect_to(&url).await.unwrap(), S::connect_to(&url).await.unwrap());
    let ttl = Duration::from_secs(6);
    let lease = LockOptions::new().ttl(ttl);
    let held = ours.acquire(&LockKey::new("held").unwrap(), &lease).await.unwrap().unwrap();
    let token = held.fencing_token();
    let waits = tokio::spawn({
        let patient = lease.clone().wait(Wait::UpTo(PATIENCE * 2));
        async move { theirs.acquire(&LockKey::new("held").unwrap(), &patient).await }
    });
    sleep(Duration::from_millis(300)).await;

    // The connections that there are stay with the old one.
    switch_over(&old, &new).await;
    address.redirect(new.port());
    sleep(ttl * 3 / 2).await;
    assert!(held.is_held(), "the lease did not go on: {:?}", held.renew().await);
    held.renew().await.unwrap();
    assert!(!waits.is_finished(), "granted beside the holder");
    held.release().await.unwrap();
    let granted = timeout(PATIENCE / 4, waits).await.expect("the waiter stayed with the old server");
    let granted = granted.unwrap().unwrap().expect("it was released");
    assert!(granted.fencing_token() > token);
    let rows = format!("SELECT COUNT(*) FROM leasehold.{} WHERE {} > UTC_TIMESTAMP(6)", S::TABLE, S::EXPIRY);
    let live: Option<u64> = new.session().await.unwrap().query_first(rows).await.unwrap();
    assert_eq!(live, Some(1), "the lock is not on the new server");
}

/// All that a session's statements may depend on.
async fn settings(session: &mut Conn) -> Vec<(String, String)> {
    let rows: Vec<Row> = session.query("SHOW SESSION VARIABLES").await.unwrap();
    let changing = ["timestamp", "last_insert_id", "identity", "rand_seed1", "rand_seed2", "in_transaction"];
    let text = |row: &Row, index| String::from_utf8_lossy(&row.get::<Vec<u8>, usize>(index).unwrap()).into_owned();
    let all = rows.iter().map(|row| (text(row, 0), text(row, 1)));
    all.filter(|(name, _)| !changing.contains(&name.as_str()) && !name.starts_with("gtid")).collect()
}

pub async fn a_pool_of_the_callers_is_given_back_as_it_was<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    // One session, which is not reset, with settings of the caller's own.
    let url = format!("{}&prefer_socket=false&pool_min=1&pool_max=1&reset_connection=false", server.url());
    let pool = Pool::from_url(&url).unwrap();
    let mut session = pool.get_conn().await.unwrap();
    let own =
        "SET SESSION autocommit = 0, sql_mode = '', innodb_lock_wait_timeout = 77, lock_wait_timeout = 88, @a = 'b'";
    session.query_drop(own).await.unwrap();
    let (id, before) = (session.id(), settings(&mut session).await);
    drop(session);

    let locks = S::connect(ConnectionSettings::default().pool(pool.clone())).await.unwrap();
    let guard = locks.lock("k").await.unwrap();
    guard.renew().await.unwrap();
    assert!(locks.try_lock("other").await.unwrap().is_some());
    guard.release().await.unwrap();
    let mut session = pool.get_conn().await.unwrap();
    assert_eq!(session.id(), id);
    let after = settings(&mut session).await;
    let changed: Vec<_> = after.iter().filter(|setting| !before.contains(setting)).collect();
    assert!(changed.is_empty(), "{changed:?}");
    assert_eq!(session.query_first("SELECT @a").await.unwrap(), Some("b".to_owned()));
    // While the caller has all of its sessions, the locks go on.
    locks.lock("k").await.unwrap().release().await.unwrap();
    locks.engine().close().await;
    session.query_drop("DO 1").await.unwrap();
}

pub async fn a_claim_that_broke_is_not_taken_for_refused<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let address = Proxy::start(server.port());
    let ours = S::store(ConnectionSettings::default().url(format!("{}&pool_max=1", address.url(&server.url()))))
        .await
        .unwrap();
    let theirs = S::connect_to(&server.url()).await.unwrap();
    let held = theirs.lock("k").await.unwrap();
    // A session that knows the statement sends the claim, its connection breaks, and the claim is still on its way.
    ours.try_acquire(&claim("k", PATIENCE)).await.unwrap();
    address.hold_requests();
    let claim = claim("k", PATIENCE);
    let mut claiming = std::pin::pin!(ours.try_acquire(&claim));
    let underway = timeout(Duration::from_millis(200), claiming.as_mut()).await;
    assert!(underway.is_err(), "it was not kept back: {underway:?}");
    address.cut();
    let answer = claiming.await;
    held.release().await.unwrap();
    address.release();
    sleep(Duration::from_millis(500)).await;
    let free = theirs.try_lock("k").await.unwrap().is_some();
    let refused = matches!(answer, Ok(Attempt::Busy { .. }));
    assert!(!refused || free, "it was said to be refused, and holds the key");
    assert!(refused || answer.is_err_and(|error| error.kind() == ErrorKind::Indeterminate));
}

pub async fn a_server_far_away_can_be_connected_to<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let address = Proxy::start(server.port());
    // A round trip of 400 ms: TCP is established by the proxy, but the login is not.
    address.delay(Duration::from_millis(200));
    let locks = S::connect_to(&address.url(&server.url())).await.unwrap();
    locks.lock("k").await.unwrap().release().await.unwrap();
}
