//! Connections that break, die or are slow.

use std::time::Duration;

use tokio::time::timeout;

use crate::conformance::driver::rig::Unable;
use crate::conformance::driver::stage::{
    PATIENCE, Stage, Verdict, attempt, ensure, eventually, is_kept, is_transient, key, passes_on, patient, take, works,
};
use crate::{Admin, ErrorKind, LockerExt};

pub(super) async fn connections_that_break_cost_no_lock(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    let guard = take(&ours, "held").await?;
    for _ in 0..5 {
        stage.proxy.cut();
        is_kept(&guard, &theirs).await?;
        works(&ours).await?;
    }
    stage.proxy.refuse(true);
    stage.proxy.cut();
    eventually("an error is certain that nothing was sent", async || {
        let refused = attempt(&ours, "other").await;
        matches!(refused, Ok(Err(error)) if error.kind() == ErrorKind::Unavailable)
    })
    .await?;
    ensure!(guard.is_held(), "it is lost: {:?}", guard.loss());
    stage.proxy.heal();
    works(&ours).await?;
    is_kept(&guard, &theirs).await?;
    passes_on(guard, &theirs).await
}

pub(super) async fn a_connection_that_died_unnoticed_is_replaced(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    let guard = take(&ours, "held").await?;
    works(&ours).await?;
    // A try may find every connection of before under way, and open one: nothing is lost then.
    for _ in 0..100 {
        stage.proxy.black_hole();
        match timeout(PATIENCE, attempt(&ours, "other")).await.map_err(|_| hangs("a try"))?? {
            // Another connection was there, or the request was sent again.
            Ok(granted) => drop(granted),
            Err(error) => is_transient(&error)?,
        }
        if stage.proxy.effects().lost_requests > 0 {
            break;
        }
    }
    ensure!(stage.proxy.effects().lost_requests > 0, "nothing was lost: {:?}", stage.proxy.effects());
    works(&ours).await?;
    is_kept(&guard, &theirs).await?;
    drop(take(&theirs, "other").await?);
    passes_on(guard, &theirs).await
}

pub(super) async fn a_waiter_behind_a_connection_that_died_gets_its_turn(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    let held = take(&theirs, "k").await?;
    let token = held.fencing_token();
    let name = key("k")?;
    let waiter = tokio::spawn({
        let (ours, name) = (ours.clone(), name.clone());
        async move { ours.acquire(&name, &patient()).await }
    });
    // It waits by whatever means the store has, once it has asked and heard that the key is held.
    tokio::time::sleep(Duration::from_millis(500)).await;
    stage.proxy.black_hole();
    held.release().await?;
    let guard = timeout(2 * PATIENCE, waiter).await.map_err(|_| hangs("a waiter"))??;
    let guard = guard?.ok_or_else(|| Unable::Failed("a key that was released was not granted".to_owned()))?;
    ensure!(guard.fencing_token() > token, "{guard:?} after {token:?}");
    is_kept(&guard, &theirs).await?;
    passes_on(guard, &theirs).await
}

pub(super) async fn a_slow_connection_is_waited_for(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    stage.proxy.delay(Duration::from_millis(100));
    let guard = take(&ours, "k").await?;
    is_kept(&guard, &theirs).await?;
    ensure!(attempt(&ours, "other").await??.is_some(), "a free key was not granted");
    ensure!(stage.proxy.effects().delayed > 4, "nothing was slow: {:?}", stage.proxy.effects());
    passes_on(guard, &theirs).await
}

pub(super) async fn acquisitions_that_are_cancelled_at_any_moment_leave_nothing(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    let name = key("k")?;
    stage.proxy.delay(Duration::from_millis(5));
    let mut cancelled = 0;
    for round in 0..120 {
        // From before the request has left to after the answer has come, also where a step has two rounds.
        let patience = Duration::from_micros(round * 263 % 40_000);
        match timeout(patience, ours.acquire(&name, &patient())).await {
            Ok(granted) => drop(granted?),
            Err(_) => cancelled += 1,
        }
        if round % 20 == 19 {
            eventually("the key is free", async || {
                theirs.inspect(&name).await.is_ok_and(|seen| seen.holders.is_empty())
            })
            .await?;
        }
    }
    ensure!(cancelled > 20, "{cancelled} were cancelled");
    drop(take(&theirs, "k").await?);
    Ok(())
}

pub(super) fn hangs(what: &str) -> Unable {
    Unable::Failed(format!("{what} hangs"))
}
