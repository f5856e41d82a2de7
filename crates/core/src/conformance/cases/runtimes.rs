//! Callers that are not polled, and runtimes that rest or end: they stall nobody else.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::context::{MARGIN, SHORT, TestContext, eventually, patient};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{Capability, Error, ErrorKind, LockGuard, LockKey, LockOptions, Wait};

const LONG: Duration = Duration::from_secs(600);

/// Takes a key on a runtime of its own, which nobody drives afterwards.
async fn take_elsewhere(
    client: &Arc<TestClient>,
    key: &LockKey,
    options: &LockOptions,
) -> Result<(LockGuard, Runtime), Failure> {
    let (client, key, options) = (Arc::clone(client), key.clone(), options.clone());
    let taken = tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.block_on(client.take(&key, &options))?;
        Ok::<_, Failure>((guard, runtime))
    });
    taken.await?
}

pub(super) async fn c16_renewal_goes_on_while_another_runtime_rests(context: TestContext) -> Verdict {
    let (ours, theirs) = (Arc::new(context.client().await?), context.client().await?);
    let (first, resting) = take_elsewhere(&ours, &context.key(), &patient().ttl(LONG)).await?;
    let key = context.key();
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    tokio::time::sleep(SHORT + SHORT / 2).await;
    let (held, found) = (guard.is_held(), theirs.finds_it_held(&key).await);
    drop(first);
    resting.shutdown_background();
    ensure!(held, "nobody renewed it: {:?}", guard.loss());
    found
}

pub(super) async fn c21_a_guard_of_a_runtime_that_ended_is_released(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), context.client().await?, context.key());
    let (guard, ended) = take_elsewhere(&ours, &key, &patient().ttl(LONG)).await?;
    ended.shutdown_background();
    drop(guard);
    theirs.finds_it_free(&key).await
}

pub(super) async fn c12_a_caller_that_is_not_polled_stalls_nobody(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = theirs.take(&key, &patient()).await?;
    let forever = LockOptions::new().wait(Wait::Forever);
    ours.faults.next(Op::TryAcquire, Fault::Delay(Duration::from_secs(1)), 1);
    let mut stalled = Box::pin(ours.acquire(&key, &forever));
    let asked = || async { Ok(ours.faults.count(Op::TryAcquire, &key) > 0) };
    tokio::select! {
        granted = &mut stalled => return Err(Failure(format!("a held key was granted: {granted:?}"))),
        asked = eventually("a claim is sent", asked) => asked?,
    }
    // From here on it is kept, and polled no more, with its answer on the way.
    let tried = tokio::time::timeout(MARGIN / 2, ours.try_once(&key)).await;
    ensure!(matches!(tried, Ok(Ok(None))), "a try behind it said {tried:?}");
    drop((stalled, guard));
    Ok(())
}

pub(super) async fn c12_a_locker_whose_runtime_ended_serves_or_says_that_it_cannot(context: TestContext) -> Verdict {
    let connecting = context.clone();
    let connected = tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let client = runtime.block_on(connecting.client())?;
        drop(runtime);
        Ok::<_, Failure>(client)
    });
    let (ours, key) = (connected.await??, context.key());
    // Connections end with their runtime.
    let connects = context.subject.capabilities().has(Capability::CrossHost);
    // Without a limit: what would be tried again would be waited for until the case is given up.
    let answer = ours.acquire(&key, &LockOptions::new().wait(Wait::Forever)).await;
    let advises = |error: &Error| error.kind() == ErrorKind::Closed && error.to_string().contains("connect again on");
    let says_so = connects && answer.as_ref().is_err_and(advises);
    ensure!(says_so || matches!(answer, Ok(Some(_))), "a free key, asked for on another runtime: {answer:?}");
    Ok(())
}
