//! Tokens grow also when all nodes forget everything.

use std::time::Duration;

use leasehold_core::{Attempt, Backend, Claim, FencingToken, LockKey, Mode};
use leasehold_redlock::{LockerExt, Result};
use leasehold_testkit::{needs, test, tokens_grow_although_all_is_forgotten};

use crate::bench::Nodes;

/// A node takes no number that is ahead of its clock.
#[test]
async fn tokens_of_a_busy_key_grow_when_all_nodes_forget_everything() -> Result<()> {
    let nodes = needs("redis-server", Nodes::start(3).await);
    let builder = nodes.builder().group_commit(false);
    // Without an engine, and each claim right behind the release before it: nothing but the nodes takes time.
    let store = builder.clone().backend().await?;
    let claim = || Claim::new(&LockKey::new("k").unwrap(), Mode::Exclusive, Duration::from_secs(60));
    let mut held = claim().grant(None);
    let grant = async || {
        let next = claim();
        let (released, granted) = tokio::join!(store.release(&held), store.try_acquire(&next));
        released?;
        let Attempt::Granted { epoch } = granted? else { return Ok(None) };
        held = next.grant(epoch);
        Ok(epoch.map(FencingToken::of_epoch))
    };
    let forgets = async || {
        store.close().await;
        for node in &nodes.0 {
            node.ask(&["FLUSHALL"]).await;
        }
        // As the README says: the next program that connects sets it up again.
        builder.connect().await?.lock("k").await.map(|guard| guard.fencing_token())
    };
    tokens_grow_although_all_is_forgotten(grant, forgets).await
}
