//! A forced release of one grant, named by its token.

use std::sync::Arc;
use std::time::Duration;

use super::context::{SHORT, TestContext, past, patient, soon};
use super::token::token;
use crate::conformance::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{ErrorKind, FencingToken, LockKey, LossReason};

/// Checks that the store shows these tokens and no other.
async fn shows(client: &TestClient, key: &LockKey, tokens: &[FencingToken]) -> Verdict {
    let seen = client.admin.inspect(key).await?.holders;
    let mut epochs: Vec<_> = seen.iter().filter_map(|holder| holder.token).map(FencingToken::epoch).collect();
    epochs.sort_unstable();
    ensure!(
        epochs.iter().eq(tokens.iter().map(|token| token.epoch()).collect::<Vec<_>>().iter()),
        "{tokens:?} expected, {seen:?} shown"
    );
    Ok(())
}

pub(super) async fn c25_a_grant_that_is_over_is_not_released_by_its_token(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let first = ours.take(&key, &patient().ttl(SHORT)).await?;
    let over = token(&first)?;
    first.release().await?;
    let free = theirs.admin.force_release_grant(&key, over).await?.holders;
    ensure!(free.is_empty(), "a free key was taken from {free:?}");
    let second = ours.take(&key, &patient().ttl(SHORT).label("the tester")).await?;
    let present = token(&second)?;
    let later = FencingToken::of_epoch(present.epoch().saturating_add(1));
    for other in [over, later, FencingToken::from(0), FencingToken::from(u64::MAX)] {
        let taken = theirs.admin.force_release_grant(&key, other).await?.holders;
        ensure!(taken.is_empty(), "by the token {other} the grant {present} was taken: {taken:?}");
    }
    shows(&theirs, &key, &[present]).await?;
    second.renew().await?;
    // What was handed off inside of a process is the same lease.
    let handed_off = FencingToken::from(present.get() | 1);
    let taken = theirs.admin.force_release_grant(&key, handed_off).await?.holders;
    ensure!(taken.len() == 1 && taken[0].label.as_deref() == Some("the tester"), "{taken:?}");
    ensure!(taken[0].token.map(FencingToken::epoch) == Some(present.epoch()), "{taken:?}");
    let successor = theirs.take(&key, &patient()).await?;
    let reason = soon("the holder is told", second.lost()).await?;
    ensure!(matches!(reason, LossReason::ForceReleased | LossReason::Stolen), "{reason:?}");
    successor.renew().await?;
    Ok(())
}

pub(super) async fn c25_a_grant_that_began_meanwhile_is_spared(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, Arc::new(context.client().await?), context.key());
    for round in 0..20 {
        let first = ours.take(&key, &patient()).await?;
        let over = token(&first)?;
        let forcing = tokio::spawn({
            let (theirs, key) = (Arc::clone(&theirs), key.clone());
            async move { theirs.admin.force_release_grant(&key, over).await }
        });
        // So that the release comes before the forced one, in the midst of it, and after it.
        tokio::time::sleep(Duration::from_millis(round % 4)).await;
        first.release().await?;
        let second = ours.take(&key, &patient()).await?;
        let taken = soon("the forced release ends", forcing).await???.holders;
        let others = taken.iter().any(|holder| holder.token.map(FencingToken::epoch) != Some(over.epoch()));
        ensure!(!others, "round {round}: by the token {over} was taken from {taken:?}");
        shows(&theirs, &key, &[token(&second)?]).await?;
        second.renew().await?;
        second.release().await?;
    }
    Ok(())
}

pub(super) async fn c25_of_readers_only_the_one_with_the_token_is_released(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let read = async |client: &TestClient| {
        let guard = client.acquire_read(&key, &patient().ttl(SHORT)).await?;
        guard.ok_or_else(|| Failure(format!("{key} could not be read")))
    };
    let (one, two) = (read(&ours).await?, read(&theirs).await?);
    let tokens = [token(&one)?, token(&two)?];
    let third = context.client().await?;
    match third.admin.force_release_grant(&key, tokens[0]).await {
        // A store that cannot end one of them alone.
        Err(refused) if refused.kind() == ErrorKind::Unsupported => {
            shows(&third, &key, &tokens).await?;
            one.release().await?;
        }
        taken => {
            let taken = taken?.holders;
            let epochs: Vec<_> = taken.iter().map(|holder| holder.token.map(FencingToken::epoch)).collect();
            ensure!(epochs == [Some(tokens[0].epoch())], "taken from {taken:?} by the token {}", tokens[0]);
            shows(&third, &key, &tokens[1..]).await?;
            let reason = soon("the reader is told", one.lost()).await?;
            ensure!(matches!(reason, LossReason::ForceReleased | LossReason::Stolen), "{reason:?}");
        }
    }
    two.renew().await?;
    let taken = third.admin.force_release_grant(&key, tokens[1]).await?.holders;
    ensure!(taken.len() == 1, "the last reader was not released by its token: {taken:?}");
    let writer = third.take(&key, &past(Duration::ZERO)).await?;
    let nobody = third.admin.force_release_grant(&key, tokens[1]).await?.holders;
    ensure!(nobody.is_empty() && writer.is_held(), "by the token of a reader was taken from {nobody:?}");
    writer.renew().await?;
    Ok(())
}
