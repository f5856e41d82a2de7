//! Servers that stop, restart or forget.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::links::hangs;
use crate::conformance::driver::rig::Unable;
use crate::conformance::driver::stage::{
    PATIENCE, Stage, Verdict, attempt, comes_after, ensure, eventually, is_kept, is_transient, key, once, passes_on,
    patient, take, take_for, works,
};
use crate::conformance::tokens::tokens_grow_although_all_is_forgotten;
use crate::{LockerExt, LossReason};

pub(super) async fn a_silence_that_is_shorter_than_the_lease_costs_no_lock(stage: Stage) -> Verdict {
    let (ours, theirs) = (stage.near().await?, stage.near().await?);
    let guard = take(&ours, "held").await?;
    stage.server.pause()?;
    let tried = timeout(2 * PATIENCE, attempt(&theirs, "other")).await.map_err(|_| hangs("a try"))??;
    match tried {
        Err(error) => is_transient(&error)?,
        Ok(told) => return Err(Unable::Failed(format!("a silent server was heard: {told:?}"))),
    }
    let renewed = timeout(2 * PATIENCE, guard.renew()).await.map_err(|_| hangs("a renewal"))?;
    ensure!(renewed.as_ref().is_err_and(crate::Error::is_transient), "{renewed:?}");
    ensure!(guard.is_held(), "it is lost: {:?}", guard.loss());
    stage.server.resume()?;
    works(&ours).await?;
    works(&theirs).await?;
    is_kept(&guard, &theirs).await?;
    // What was asked in the silence has been carried out by now, and is given back.
    comes_after(&ours, "other", None).await?;
    passes_on(guard, &theirs).await
}

pub(super) async fn a_silence_that_is_longer_than_the_lease_is_told_to_the_holder(stage: Stage) -> Verdict {
    let (ours, theirs) = (stage.near().await?, stage.near().await?);
    let guard = take_for(&ours, "k", Duration::from_secs(3)).await?;
    let token = guard.fencing_token();
    stage.server.pause()?;
    let lost = timeout(PATIENCE, guard.lost()).await.map_err(|_| hangs("the loss of a lock"))?;
    ensure!(lost == LossReason::Unreachable && !guard.is_held(), "{lost:?}");
    stage.server.resume()?;
    // A session takes no key again of which it still has a guard that is lost.
    drop(guard);
    comes_after(&theirs, "k", token).await?;
    comes_after(&ours, "k", token).await
}

pub(super) async fn a_server_that_restarts_keeps_locks_and_waiters(mut stage: Stage) -> Verdict {
    let (ours, theirs) = (stage.near().await?, stage.near().await?);
    let guard = take(&ours, "held").await?;
    let waiter = tokio::spawn({
        let (theirs, name) = (stage.near().await?, key("held")?);
        async move { theirs.acquire(&name, &patient().wait(crate::Wait::UpTo(3 * PATIENCE))).await }
    });
    let is_over = Arc::new(AtomicBool::new(false));
    let mut under_way = JoinSet::new();
    for number in 0..16 {
        let (locks, is_over, name) = (ours.clone(), Arc::clone(&is_over), key(&format!("k/{number}"))?);
        under_way.spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                match locks.acquire(&name, &once()).await {
                    Ok(guard) => drop(guard),
                    Err(error) if error.is_transient() => sleep(Duration::from_millis(10)).await,
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
    }
    sleep(Duration::from_millis(100)).await;
    stage.server.kill().await?;
    let tried = timeout(2 * PATIENCE, attempt(&theirs, "other")).await.map_err(|_| hangs("a try"))??;
    match tried {
        Err(error) => is_transient(&error)?,
        Ok(told) => return Err(Unable::Failed(format!("a dead server was heard: {told:?}"))),
    }
    ensure!(guard.is_held(), "it is lost: {:?}", guard.loss());
    stage.server.restart().await?;
    works(&ours).await?;
    works(&theirs).await?;
    is_over.store(true, Ordering::SeqCst);
    while let Some(ended) = under_way.join_next().await {
        ended??;
    }
    // What was under way when the server died is settled, and keeps no key.
    for number in 0..16 {
        comes_after(&theirs, &format!("k/{number}"), None).await?;
    }
    is_kept(&guard, &theirs).await?;
    let token = guard.fencing_token();
    guard.release().await?;
    let next = waiter.await??.ok_or_else(|| Unable::Failed("the waiter was not granted".to_owned()))?;
    ensure!(next.fencing_token() > token, "{next:?} after {token:?}");
    passes_on(next, &theirs).await
}

pub(super) async fn a_server_that_forgets_tells_the_holder_and_gives_larger_tokens(mut stage: Stage) -> Verdict {
    let (ours, theirs) = (stage.near().await?, stage.near().await?);
    let guard = take(&ours, "held").await?;
    let grant = async || {
        let guard = take(&ours, "k").await?;
        let token = guard.fencing_token();
        guard.release().await?;
        Ok::<_, Unable>(token)
    };
    let forgets = async || {
        stage.server.forget().await?;
        works(&ours).await?;
        Ok(take(&ours, "k").await?.fencing_token())
    };
    tokens_grow_although_all_is_forgotten(grant, forgets).await?;
    eventually("the holder is told", async || guard.renew().await.is_err() && guard.loss().is_some()).await?;
    ensure!(guard.loss() == Some(LossReason::Stolen), "{:?}", guard.loss());
    comes_after(&theirs, "held", guard.fencing_token()).await
}

pub(super) async fn sessions_that_the_operator_ends_cost_a_reconnection(stage: Stage) -> Verdict {
    let (ours, theirs) = (stage.near().await?, stage.near().await?);
    let guard = take(&ours, "held").await?;
    let mut tasks = JoinSet::new();
    // Enough that steps of several keys go to the server together.
    for number in 0..32 {
        let locks = if number % 2 == 0 { ours.clone() } else { theirs.clone() };
        let name = key(&format!("k/{}", number / 2))?;
        tasks.spawn(async move {
            for _ in 0..25 {
                drop(locks.acquire(&name, &patient()).await?);
            }
            Ok::<_, crate::Error>(())
        });
    }
    let mut ended = stage.server.end_sessions().await?;
    let mut rounds = 1;
    loop {
        tokio::select! {
            done = tasks.join_next() => match done {
                Some(done) => done??,
                None => break,
            },
            // Not for ever: on a busy machine no step gets done between two rounds.
            () = sleep(Duration::from_millis(100)), if rounds < 10 => {
                ended += stage.server.end_sessions().await?;
                rounds += 1;
            }
        }
    }
    ensure!(ended > 1, "{ended} sessions were ended");
    works(&ours).await?;
    for number in 0..16 {
        comes_after(&theirs, &format!("k/{number}"), None).await?;
    }
    is_kept(&guard, &theirs).await?;
    passes_on(guard, &theirs).await
}
