//! On which server the locks are.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "tests, whose names say what they show"
)]

use leasehold_core::{Backed, LockerExt};
use mysql_async::prelude::Queryable;

use super::{Server, Subject};

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
    let Some(distant) = Server::start_or_skip(&[&path]).await else { return };
    std::fs::remove_file(&usual).unwrap();
    let Some(local) = Server::start_or_skip(&[&path]).await else { return };
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
