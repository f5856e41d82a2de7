//! What tokens ought to do when the server forgets.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "tests, whose names say what they show"
)]

use leasehold_core::conformance::tokens_grow_although_all_is_forgotten;
use leasehold_core::{Error, LockerExt};

use super::server::Server;
use super::steps::migrated;
use super::subject::Subject;

/// A counter that is ahead of the server's clock cannot be replaced by it.
pub async fn expected_failure_tokens_of_a_busy_key_grow_when_the_table_is_emptied<S: Subject>() {
    let server = Server::needed(&["--innodb-flush-log-at-trx-commit=0"]).await;
    let locks = migrated::<S>(&server).await;
    let grant = async || {
        let guard = locks.lock("k").await?;
        let token = guard.fencing_token();
        guard.release().await?;
        Ok(token)
    };
    let forgets = async || {
        server.sql(&[&format!("TRUNCATE TABLE leasehold.{}", S::TABLE)]).await;
        Ok::<_, Error>(locks.lock("k").await?.fencing_token())
    };
    tokens_grow_although_all_is_forgotten(grant, forgets).await.unwrap();
}
