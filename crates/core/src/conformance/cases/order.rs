//! Who is served when several wait.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::context::{AMPLE, TestContext, eventually, patient, soon};
use super::waiting::{asks, wait_in_background};
use crate::conformance::Op;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Attempt, Claim, LeaseStatus, Mode, Wait};

pub(super) async fn c14_waiters_are_served_in_order(context: TestContext) -> Verdict {
    let (ours, key) = (Arc::new(context.client().await?), context.key());
    let served = Arc::new(Mutex::new(Vec::new()));
    let guard = ours.take(&key, &patient()).await?;
    let mut tasks = Vec::new();
    for number in 0..8 {
        let (ours, key, served) = (Arc::clone(&ours), key.clone(), Arc::clone(&served));
        let (joined, has_joined) = tokio::sync::oneshot::channel();
        tasks.push(tokio::spawn(async move {
            let options = patient();
            let mut waiting = Box::pin(ours.acquire(&key, &options));
            // The first poll joins the queue; only then may the next one come.
            let first = futures::poll!(&mut waiting);
            let _ = joined.send(());
            let granted = match first {
                std::task::Poll::Ready(granted) => granted?,
                std::task::Poll::Pending => waiting.await?,
            };
            served.lock().unwrap_or_else(PoisonError::into_inner).push(number);
            granted.ok_or_else(|| Failure(format!("waiter {number} was not served")))?.release().await?;
            Ok::<_, Failure>(())
        }));
        soon("a waiter joins", has_joined).await??;
    }
    guard.release().await?;
    for task in tasks {
        task.await??;
    }
    let served = served.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ensure!(served == (0..8).collect::<Vec<_>>(), "served in the order {served:?}");
    Ok(())
}

pub(super) async fn c14_the_store_serves_lockers_in_order(context: TestContext) -> Verdict {
    let (holder, key) = (context.client().await?, context.key());
    let guard = holder.take(&key, &patient()).await?;
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = tokio::task::JoinSet::new();
    for number in 0..5 {
        let (waiter, key, served) = (Arc::new(context.client().await?), key.clone(), Arc::clone(&served));
        let asking = Arc::clone(&waiter);
        waiters.spawn(async move {
            let guard = waiter.take(&key, &patient()).await?;
            served.lock().unwrap_or_else(PoisonError::into_inner).push(number);
            Ok::<_, Failure>(guard.release().await?)
        });
        let asked = || async { Ok(asking.faults.answered(Op::TryAcquire) > 0) };
        eventually("a waiter has its place", asked).await?;
    }
    guard.release().await?;
    while let Some(ended) = waiters.join_next().await {
        ended??;
    }
    let served = served.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ensure!(served == (0..5).collect::<Vec<_>>(), "served in the order {served:?}");
    Ok(())
}

pub(super) async fn c14_a_queue_position_that_is_given_up_is_skipped(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = theirs.take(&key, &patient()).await?;
    let claim = Claim { waits: true, ..Claim::new(&key, Mode::Exclusive, Duration::from_secs(3600)) };
    let attempt = ours.store.try_acquire(&claim).await?;
    ensure!(matches!(attempt, Attempt::Queued { .. }), "a claim that waits was told {attempt:?}");
    ensure!(
        ours.store.release(&claim.grant(None)).await? == LeaseStatus::NotHeld,
        "a place was released as if it held the key"
    );
    guard.release().await?;
    let holders = theirs.admin.inspect(&key).await?.holders;
    ensure!(holders.is_empty(), "a place that was given up was granted: {holders:?}");
    Ok(())
}

pub(super) async fn c14_a_waiter_that_died_does_not_keep_the_others(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), context.client().await?, context.key());
    let guard = theirs.take(&key, &patient()).await?;
    let dead = context.client().await?;
    // It listens and then neither asks again nor does anything with what it is granted.
    let _listener = dead.store.subscribe(&key).await?;
    let claim = Claim { waits: true, ..Claim::new(&key, Mode::Exclusive, Duration::from_secs(3600)) };
    dead.store.try_acquire(&claim).await?;
    let waiter = wait_in_background(&ours, &key, Wait::UpTo(AMPLE));
    asks(&ours, &key, 0).await?;
    guard.release().await?;
    ensure!(soon("the waiter behind is served", waiter).await???.is_some(), "a dead waiter keeps the others");
    Ok(())
}

pub(super) async fn c14_a_cancelled_waiter_is_skipped(context: TestContext) -> Verdict {
    let (ours, key) = (Arc::new(context.client().await?), context.key());
    let theirs = context.client().await?;
    let guard = theirs.take(&key, &patient()).await?;
    let head = wait_in_background(&ours, &key, Wait::Forever);
    asks(&ours, &key, 0).await?;
    let second = wait_in_background(&ours, &key, Wait::Forever);
    let third = wait_in_background(&ours, &key, Wait::UpTo(AMPLE));
    second.abort();
    head.abort();
    ensure!(head.await.is_err() && second.await.is_err(), "the waiters were not cancelled");
    guard.release().await?;
    let granted = soon("the next in line is served", third).await???;
    ensure!(granted.is_some(), "the next in line was not served");
    Ok(())
}
