//! What tokens ought to do when the server forgets.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    missing_docs,
    reason = "tests, whose names say what they show"
)]

use std::time::Duration;

use leasehold_core::conformance::ahead_of_the_clock;
use leasehold_core::{Clock, LockerExt};

use super::traps::migrated;
use super::{Server, Subject};

/// A counter that is ahead of the server's clock cannot be replaced by it.
pub async fn expected_failure_tokens_of_a_busy_key_grow_when_the_table_is_emptied<S: Subject>() {
    let server = Server::needed(&["--innodb-flush-log-at-trx-commit=0"]).await;
    let locks = migrated::<S>(&server).await;
    let (clock, mut grants, mut newest) = (Clock::system(), 0, None);
    let begun = clock.now();
    let end = begun.plus(Duration::from_secs(2));
    while clock.now() < end {
        let guard = locks.lock("k").await.unwrap();
        (grants, newest) = (grants + 1, guard.fencing_token());
        guard.release().await.unwrap();
    }
    server.sql(&[&format!("TRUNCATE TABLE leasehold.{}", S::TABLE)]).await;
    let next = locks.lock("k").await.unwrap().fencing_token();
    ahead_of_the_clock(grants, clock.now().since(begun));
    assert!(next > newest, "{next:?} after {newest:?}");
}
