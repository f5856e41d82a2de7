//! Steps that several tests share: connecting, a claim, the whole life of a lock.

use std::time::Duration;

use leasehold_core::{Claim, LockKey, Mode};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;

use super::server::Server;
use super::subject::Subject;
use crate::together;

/// A locker on this server, with its tables.
pub async fn migrated<S: Subject>(server: &Server) -> S::Locks {
    S::migrate_at(&server.url()).await.unwrap();
    S::connect_to(&server.url()).await.unwrap()
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

/// Someone else's transaction that has the key's row locked.
pub async fn row_lock<S: Subject>(server: &Server) -> Conn {
    let mut session = server.session().await.unwrap();
    session.query_drop("BEGIN").await.unwrap();
    session.query_drop(format!("SELECT * FROM leasehold.{} FOR UPDATE", S::TABLE)).await.unwrap();
    session
}
