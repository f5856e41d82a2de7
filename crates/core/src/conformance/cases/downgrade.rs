//! A writer that goes on as a reader: no writer comes in between, and nothing of what it was is left.

use std::time::Duration;

use super::context::{TestContext, eventually, once, patient};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{Attempt, Claim, ErrorKind, LockKey, Mode, ReadGuard, Wait};

const LONG: Duration = Duration::from_secs(600);

/// A reader that was the writer of this key.
async fn downgraded(client: &TestClient, key: &LockKey) -> Result<ReadGuard, Failure> {
    Ok(client.take(key, &patient()).await?.downgrade(&once()).await?)
}

/// The number of the reader counts for whoever is granted next, also within one moment of the clock: a new key begins ahead of it.
pub(super) async fn c29_who_reads_beside_a_writer_that_became_a_reader_has_a_larger_number(
    context: TestContext,
) -> Verdict {
    const ROUNDS: usize = 64;
    let (ours, theirs) = (context.client().await?, context.client().await?);
    for _ in 0..ROUNDS {
        let writer = ours.claims(&context.key(), Mode::Exclusive, LONG).await?;
        let [reads, beside] = [(); 2].map(|()| Claim::new(&writer.key, Mode::Shared, LONG));
        let read = ours.store.steps().downgrade(&writer, &reads).await?;
        let next = theirs.store.try_acquire(&beside).await?;
        let (Attempt::Granted { epoch: read }, Attempt::Granted { epoch: next }) = (read, next) else {
            return Err(Failure(format!("the downgrade was answered {read:?}, and a reader beside it {next:?}")));
        };
        ensure!(writer.epoch < read && read < next, "{writer:?} became the reader {read:?}, and then came {next:?}");
    }
    Ok(())
}

pub(super) async fn c29_the_reader_has_texts_of_its_own(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let writer = ours.take(&key, &patient().label("writer").reason("writing")).await?;
    let reader = writer.downgrade(&once().label("reader")).await?;
    let held = ours.store.steps().inspect(&key).await?.holders;
    let texts: Vec<_> = held.iter().map(|holder| (holder.label.as_deref(), holder.reason.as_deref())).collect();
    ensure!(texts == [(Some("reader"), None)], "{texts:?}");
    drop(reader);
    Ok(())
}

pub(super) async fn c29_a_writer_that_was_taken_away_becomes_no_reader(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let writer = ours.take(&key, &patient()).await?;
    theirs.admin.force_release(&key).await?;
    let error = writer.downgrade(&once()).await.err().map(|error| error.kind());
    ensure!(matches!(error, Some(ErrorKind::Lost(_))), "{error:?}");
    theirs.finds_it_free(&key).await
}

/// Long before the lease could have ended.
async fn is_given_back(client: &TestClient, key: &LockKey) -> Verdict {
    let is_free = || async { Ok(client.store.steps().inspect(key).await?.holders.is_empty()) };
    eventually("reader and writer are given back", is_free).await?;
    client.finds_it_free(key).await
}

pub(super) async fn c29_a_downgrade_that_fails_or_is_cancelled_leaves_nothing(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    for (fault, kind) in [
        (Fault::LoseReply, ErrorKind::Indeterminate),
        (Fault::Refuse(ErrorKind::Unavailable), ErrorKind::Unavailable),
        (Fault::Refuse(ErrorKind::Backend), ErrorKind::Backend),
    ] {
        let writer = ours.take(&key, &patient().ttl(LONG)).await?;
        ours.faults.next(Op::Downgrade, fault, 1);
        let error = writer.downgrade(&once().ttl(LONG)).await.err().map(|error| error.kind());
        ensure!(error == Some(kind), "{fault:?} was told as {error:?}");
        is_given_back(&ours, &key).await?;
    }
    let before = ours.faults.count(Op::Downgrade, &key);
    let (writer, options) = (ours.take(&key, &patient().ttl(LONG)).await?, once().ttl(LONG));
    ours.faults.next(Op::Downgrade, Fault::KeepReply, 1);
    let downgrading = tokio::spawn(async move { writer.downgrade(&options).await });
    eventually("the store is asked", || async { Ok(ours.faults.count(Op::Downgrade, &key) > before) }).await?;
    downgrading.abort();
    let _ = downgrading.await;
    ours.faults.heal();
    is_given_back(&ours, &key).await
}

pub(super) async fn c29_the_reader_is_one_like_any_other(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let reader = downgraded(&ours, &key).await?;
    for client in [&ours, &theirs] {
        let beside = client.acquire_read(&key, &patient()).await?;
        let beside = beside.ok_or_else(|| Failure(format!("{key} could not be read")))?;
        let (token, before) = (beside.fencing_token(), reader.fencing_token());
        ensure!(token > before || token.is_none(), "{token:?} beside {before:?}");
    }
    reader.renew().await?;
    ensure!(reader.is_held(), "a reader that was renewed is lost: {:?}", reader.loss());
    theirs.admin.force_release(&key).await?;
    let error = reader.renew().await.err().map(|error| error.kind());
    ensure!(matches!(error, Some(ErrorKind::Lost(_))), "renewing what was taken away said {error:?}");
    let options = patient().wait(Wait::Never);
    ensure!(theirs.acquire(&key, &options).await?.is_some(), "it is still held");
    Ok(())
}
