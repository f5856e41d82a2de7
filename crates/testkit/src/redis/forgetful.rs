use leasehold_core::conformance::tokens_grow_although_all_is_forgotten;
use leasehold_core::{Locker, LockerExt, Result};

use super::server::Server;

/// Checks that the tokens of a busy key grow also when the server forgets everything. The key must not be handed off inside
/// the process.
///
/// # Errors
/// What the locker answers instead of granting or releasing the key.
pub async fn tokens_grow_although_the_server_forgets(server: &Server, locks: &dyn Locker) -> Result<()> {
    let grant = async || {
        let guard = locks.lock("k").await?;
        let token = guard.fencing_token();
        guard.release().await.map(|_| token)
    };
    let forgets = async || {
        server.ask(&["FLUSHALL"]).await;
        locks.lock("k").await.map(|guard| guard.fencing_token())
    };
    tokens_grow_although_all_is_forgotten(grant, forgets).await
}
