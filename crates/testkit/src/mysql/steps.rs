//! Steps that several tests share: connecting, a claim, the whole life of a lock.

use std::time::Duration;

use leasehold_core::{Claim, Error, ErrorKind, LockKey, Mode};
use leasehold_mysql::ConnectionSettings;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::server::Server;
use super::subject::Subject;
use crate::together;

/// A server with these arguments, and the tables. The test is ignored where there is none.
pub async fn migrated<S: Subject>(arguments: &[&str]) -> Server {
    let server = Server::needed(arguments).await;
    S::migrate_at(&server.url()).await.unwrap();
    server
}

/// The store alone, at this URL.
pub async fn store<S: Subject>(url: &str) -> S::Store {
    S::store(ConnectionSettings::default().url(url)).await.unwrap()
}

/// That a call failed for good, with these words.
#[track_caller]
pub fn is_told(error: &Error, words: &str) {
    assert_eq!(error.kind(), ErrorKind::Backend, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

/// An exclusive claim that does not wait.
pub fn claim(key: &str, ttl: Duration) -> Claim {
    let key = LockKey::new(key).unwrap();
    Claim::new(&key, Mode::Exclusive, ttl)
}

/// All that a lock does, once, by two clients.
pub async fn whole_life<S: Subject>(ours: &S::Locks, theirs: &S::Locks, key: &str) {
    together::whole_life(ours, theirs, key).await;
    S::more_life(ours, theirs, key).await;
}

/// Someone else's transaction that has all rows of a table locked.
pub async fn row_lock(server: &Server, table: &str) -> Conn {
    let mut session = server.session().await.unwrap();
    session.query_drop("BEGIN").await.unwrap();
    session.query_drop(format!("SELECT * FROM leasehold.{table} FOR UPDATE")).await.unwrap();
    session
}
