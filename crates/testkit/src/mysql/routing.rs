//! On which server the locks are.

use std::time::Duration;

use leasehold_core::{Backed, LockerExt};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Pool, Row};

use super::server::Server;
use super::steps::migrated;
use super::subject::Subject;
use crate::Proxy;
use leasehold_mysql::ConnectionSettings;

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

pub async fn a_server_far_away_can_be_connected_to<S: Subject>() {
    let server = migrated::<S>(&[]).await;
    let address = Proxy::start(server.port());
    // A round trip of 400 ms: TCP is established by the proxy, but the login is not.
    address.delay(Duration::from_millis(200));
    let locks = S::connect_to(&address.url(&server.url())).await.unwrap();
    locks.lock("k").await.unwrap().release().await.unwrap();
}
