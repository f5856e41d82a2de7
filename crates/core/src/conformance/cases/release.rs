use std::time::Duration;

use super::context::{TestContext, eventually, patient};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op};
use crate::ext::under;
use crate::{Clock, ReleaseOutcome};

pub(super) async fn c20_release_says_that_it_released(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    let lost = guard.lost();
    let outcome = guard.release().await?;
    ensure!(outcome == ReleaseOutcome::Released, "{outcome:?}");
    ensure!(futures::FutureExt::now_or_never(lost).is_none(), "a release was told as a loss");
    ensure!(theirs.try_once(&key).await?.is_some(), "the key is not free after its release");
    Ok(())
}

pub(super) async fn c20_a_lost_reply_is_settled_in_the_background(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    ours.faults.next(Op::Release, Fault::LoseReply, 1);
    let error = guard.release().await.err();
    ensure!(error.as_ref().is_some_and(crate::Error::is_transient), "an unknown outcome was told as {error:?}");
    let successor = theirs.take(&key, &patient()).await?;
    eventually("the release is repeated", || async { Ok(ours.faults.count(Op::Release, &key) > 1) }).await?;
    ensure!(successor.release().await? == ReleaseOutcome::Released, "the repeated release freed a successor");
    Ok(())
}

pub(super) async fn c21_drop_releases(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    drop(ours.take(&key, &patient()).await?);
    theirs.finds_it_free(&key).await?;
    let guard = ours.take(&key, &patient()).await?;
    let dropped = std::thread::spawn(move || drop(guard)).join();
    ensure!(dropped.is_ok(), "dropping outside the runtime panicked");
    theirs.finds_it_free(&key).await?;
    let guard = ours.take(&key, &patient()).await?;
    let unwound = tokio::spawn(async move {
        let _guard = guard;
        // Unwinds like a panic, without its message in the report.
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    ensure!(unwound.await.is_err(), "it did not unwind");
    theirs.finds_it_free(&key).await
}

pub(super) async fn c21_work_under_a_lock_has_released_it_when_it_returns(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    ours.faults.always(Op::Release, Fault::Delay(Duration::from_millis(100)));
    under(ours.take(&key, &patient()).await?, context.subject.capabilities().backend(), |_| async {}).await?;
    ensure!(theirs.try_once(&key).await?.is_some(), "the key is still held after the work");
    Ok(())
}

pub(super) async fn c21_drop_does_not_wait_for_a_silent_store(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let guard = ours.take(&key, &patient()).await?;
    ours.faults.next(Op::Release, Fault::Hang, 1);
    // A drop that waited for the answer would block this thread for good.
    drop(guard);
    eventually("the release is sent", || async { Ok(ours.faults.count(Op::Release, &key) > 0) }).await?;
    ours.faults.heal();
    ours.finds_it_free(&key).await
}

pub(super) async fn c21_drop_after_the_runtime_ended_is_harmless(context: TestContext) -> Verdict {
    let key = context.key();
    let elsewhere = context.clone();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (guard, client) = runtime.block_on(async {
            let client = elsewhere.client_at(Clock::system()).await?;
            let guard = client.take(&key, &elsewhere.brief()).await?;
            Ok::<_, Failure>((guard, client))
        })?;
        drop(runtime);
        drop(guard);
        drop(client);
        Ok::<_, Failure>(key)
    });
    let ended = tokio::task::spawn_blocking(|| thread.join()).await?;
    let key = ended.map_err(|_| Failure("dropping after the runtime ended panicked".into()))??;
    context.client().await?.finds_it_free(&key).await
}
