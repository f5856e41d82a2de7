//! The end of a locker, and of a runtime.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::links::hangs;
use crate::conformance::driver::idle_runtime;
use crate::conformance::driver::silenced::Silenced;
use crate::conformance::driver::stage::{
    Stage, Verdict, comes_after, ensure, eventually, key, once, patient, take, works,
};
use crate::{ErrorKind, LockerExt, LossReason};

pub(super) async fn closing_ends_while_the_server_is_silent(stage: Stage) -> Verdict {
    stage.contends_with_itself()?;
    let [ours, theirs] = stage.two().await?;
    // Longer than any store is given, so that the limit of the check is minutes.
    let answers_within = Duration::from_secs(6);
    let silenced = Silenced { beside: ours.clone(), ours: ours.clone(), theirs, answers_within };
    silenced.closing_ends(|| stage.proxy.black_hole_all(), ours.close()).await;
    stage.proxy.heal();
    works(&stage.far().await?).await
}

pub(super) async fn closing_under_load_frees_all_keys_and_connections(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    let held = take(&ours, "held").await?;
    let mut tasks = JoinSet::new();
    for number in 0..16 {
        let (ours, name) = (ours.clone(), key(&format!("k/{number}"))?);
        tasks.spawn(async move {
            loop {
                // What is granted is given back by being dropped, also if the locker is closed by then.
                if let Err(error) = ours.acquire(&name, &patient()).await {
                    return error.kind();
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    timeout(Duration::from_secs(120), ours.close()).await.map_err(|_| hangs("closing"))?;
    while let Some(ended) = timeout(Duration::from_secs(120), tasks.join_next()).await.map_err(|_| hangs("a caller"))? {
        let told = ended?;
        ensure!(told == ErrorKind::Closed, "a caller was told {told:?}");
    }
    ensure!(held.loss() == Some(LossReason::Shutdown), "{:?}", held.loss());
    for number in 0..16 {
        comes_after(&theirs, &format!("k/{number}"), None).await?;
    }
    comes_after(&theirs, "held", held.fencing_token()).await?;
    drop(held);
    // A connection of sessions ends with the last of them, and not with the first that is closed.
    let _closed = (!stage.has_sessions()).then_some(ours);
    stage.nobody_is_connected().await
}

pub(super) async fn a_locker_that_is_dropped_lets_go_of_keys_and_connections(stage: Stage) -> Verdict {
    let [ours, theirs] = stage.two().await?;
    let guard = take(&ours, "k").await?;
    drop(ours);
    guard.renew().await?;
    ensure!(guard.is_held(), "it is lost: {:?}", guard.loss());
    let token = guard.fencing_token();
    drop(guard);
    comes_after(&theirs, "k", token).await?;
    stage.nobody_is_connected().await
}

pub(super) async fn a_runtime_that_rests_stalls_nobody(stage: Stage) -> Verdict {
    idle_runtime::a_runtime_that_rests_stalls_nobody(stage.near().await?).await;
    Ok(())
}

pub(super) async fn the_clients_own_pool_is_left_as_it_was(stage: Stage) -> Verdict {
    let borrowed = stage.server.borrowed().await?;
    let theirs = stage.near().await?;
    let guard = take(&borrowed.locks, "k").await?;
    ensure!(theirs.acquire(guard.key(), &once()).await?.is_none(), "it was granted twice");
    let token = guard.fencing_token();
    borrowed.locks.close().await;
    comes_after(&theirs, "k", token).await?;
    drop(borrowed.locks);
    eventually("the caller's client works", async || (borrowed.works)().await).await
}
