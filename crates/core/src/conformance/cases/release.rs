use super::context::{TestContext, patient};
use crate::ReleaseOutcome;
use crate::conformance::verdict::{Verdict, ensure};

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
