//! Who is served when several wait in the store.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::context::{AMPLE, TestContext, eventually, patient, soon};
use super::waiting::{asks, wait_in_background};
use crate::conformance::Op;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{Claim, Mode, Wait};

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
