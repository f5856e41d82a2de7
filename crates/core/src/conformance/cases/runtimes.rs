//! Callers that are not polled, and runtimes that rest or end: they stall nobody else.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use super::bench::{Bench, MARGIN, SHORT, eventually, patient};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Contender, Fault, Op};
use crate::{Capability, Clock, Error, LockGuard, LockKey, LockOptions, Wait};

const LONG: Duration = Duration::from_secs(600);

/// Takes a key on a runtime of its own, which nobody drives afterwards.
async fn take_elsewhere(
    contender: &Arc<Contender>,
    key: &LockKey,
    options: &LockOptions,
) -> Result<(LockGuard, Runtime), Failure> {
    let (contender, key, options) = (Arc::clone(contender), key.clone(), options.clone());
    let taken = tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let guard = runtime.block_on(contender.take(&key, &options))?;
        Ok::<_, Failure>((guard, runtime))
    });
    taken.await?
}

pub(super) async fn c16_renewal_goes_on_while_another_runtime_rests(bench: Bench) -> Verdict {
    let (ours, theirs) = (Arc::new(bench.contender().await?), bench.contender().await?);
    let (first, resting) = take_elsewhere(&ours, &bench.key(), &patient().ttl(LONG)).await?;
    let key = bench.key();
    let guard = ours.take(&key, &patient().ttl(SHORT)).await?;
    tokio::time::sleep(SHORT + SHORT / 2).await;
    let (held, found) = (guard.is_held(), theirs.finds_it_held(&key).await);
    drop(first);
    resting.shutdown_background();
    ensure!(held, "nobody renewed it: {:?}", guard.loss());
    found
}

pub(super) async fn c21_a_guard_of_a_runtime_that_ended_is_released(bench: Bench) -> Verdict {
    let (ours, theirs, key) = (Arc::new(bench.contender().await?), bench.contender().await?, bench.key());
    let (guard, ended) = take_elsewhere(&ours, &key, &patient().ttl(LONG)).await?;
    ended.shutdown_background();
    drop(guard);
    theirs.finds_it_free(&key).await
}

pub(super) async fn c12_a_caller_that_is_not_polled_stalls_nobody(bench: Bench) -> Verdict {
    let (ours, theirs, key) = (bench.contender().await?, bench.contender().await?, bench.key());
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

/// How long a wait of 100 ms took while the store was silent.
async fn waits_on_silence(contender: &Contender, key: &LockKey) -> Duration {
    let clock = Clock::system();
    contender.faults.always(Op::TryAcquire, Fault::Hang);
    let began = clock.now();
    let _ = contender.acquire(key, &LockOptions::new().wait(Wait::UpTo(Duration::from_millis(100)))).await;
    let waited = clock.now().since(began);
    contender.faults.heal();
    waited
}

pub(super) async fn c11_the_limit_of_the_first_wait_is_kept_in_silence_too(bench: Bench) -> Verdict {
    let (ours, key) = (bench.contender().await?, bench.key());
    let waited = waits_on_silence(&ours, &key).await;
    ensure!(waited < Duration::from_millis(1600), "a wait of 100 ms took {waited:?}");
    Ok(())
}

pub(super) async fn c11_a_slow_failure_does_not_lengthen_the_next_wait(bench: Bench) -> Verdict {
    let (ours, key) = (bench.contender().await?, bench.key());
    ours.faults.next(Op::TryAcquire, Fault::Delay(Duration::from_secs(3)), 1);
    ours.try_once(&bench.key()).await?;
    let waited = waits_on_silence(&ours, &key).await;
    ensure!(waited < Duration::from_secs(4), "a wait of 100 ms took {waited:?}");
    Ok(())
}

pub(super) async fn c12_a_locker_whose_runtime_ended_serves_or_says_that_it_cannot(bench: Bench) -> Verdict {
    let connecting = bench.clone();
    let connected = tokio::task::spawn_blocking(move || {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let contender = runtime.block_on(connecting.contender())?;
        drop(runtime);
        Ok::<_, Failure>(contender)
    });
    let (ours, key) = (connected.await??, bench.key());
    // Connections end with their runtime.
    let connects = bench.subject.capabilities().has(Capability::CrossHost);
    let answer = ours.acquire(&key, &LockOptions::new().wait(Wait::UpTo(MARGIN / 2))).await;
    let advises = |error: &Error| error.is_transient() && error.to_string().contains("connect again on");
    let says_so = connects && answer.as_ref().is_err_and(advises);
    ensure!(says_so || matches!(answer, Ok(Some(_))), "a free key, asked for on another runtime: {answer:?}");
    Ok(())
}
