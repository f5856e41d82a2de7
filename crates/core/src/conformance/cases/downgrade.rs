//! A writer that goes on as a reader: no writer comes in between, and nothing of what it was is left.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::context::{TestContext, eventually, once, outlast, patient};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{
    Attempt, Capability, Claim, Error, ErrorKind, GrantRef, LeaseStatus, LockGuard, LockKey, Mode, ReadGuard,
    ReleaseOutcome, Wait,
};

const LONG: Duration = Duration::from_secs(600);

/// A reader that was the writer of this key.
async fn downgraded(client: &TestClient, key: &LockKey) -> Result<ReadGuard, Failure> {
    Ok(client.take(key, &patient()).await?.downgrade(&once()).await?)
}

/// The step in the store.
async fn step(client: &TestClient, writer: &GrantRef, ttl: Duration) -> Result<(Claim, Attempt), Failure> {
    let claim = Claim::new(&writer.key, Mode::Shared, ttl);
    let attempt = client.store.steps().downgrade(writer, &claim).await?;
    Ok((claim, attempt))
}

async fn became(client: &TestClient, writer: &GrantRef, ttl: Duration) -> Result<GrantRef, Failure> {
    match step(client, writer, ttl).await? {
        (claim, Attempt::Granted { epoch }) => Ok(claim.grant(epoch)),
        (_, other) => Err(Failure(format!("the writer did not become a reader: {other:?}"))),
    }
}

async fn becomes_nothing(client: &TestClient, writer: &GrantRef) -> Verdict {
    let (_, attempt) = step(client, writer, LONG).await?;
    ensure!(matches!(attempt, Attempt::Busy { .. } | Attempt::HeldBy { .. }), "{attempt:?} for {writer:?}");
    Ok(())
}

pub(super) async fn c29_no_writer_comes_between_a_writer_and_the_reader_that_it_becomes(
    context: TestContext,
) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), Arc::new(context.client().await?), context.key());
    let writer = ours.take(&key, &patient()).await?;
    // They ask all the while, here and elsewhere, so that one of them would be granted in any gap.
    let contend = |client: &Arc<TestClient>| {
        let (client, key) = (Arc::clone(client), key.clone());
        tokio::spawn(async move {
            loop {
                if let Some(guard) = client.acquire(&key, &once()).await? {
                    return Ok::<LockGuard, Error>(guard);
                }
                tokio::task::yield_now().await;
            }
        })
    };
    let mut others = vec![contend(&theirs), contend(&theirs), contend(&ours)];
    let asked = || async { Ok(theirs.faults.count(Op::TryAcquire, &key) > 2) };
    eventually("others ask", asked).await?;
    let reader = writer.downgrade(&once()).await?;
    tokio::time::sleep(Duration::from_millis(50)).await;
    ensure!(reader.is_held(), "the reader is lost: {:?}", reader.loss());
    let held = ours.store.steps().inspect(&key).await?.holders;
    let reads = held.iter().all(|holder| holder.mode == Mode::Shared && holder.token == reader.fencing_token());
    ensure!(held.len() == 1 && reads, "beside a reader that was the writer: {held:?}");
    ensure!(!others.iter().any(tokio::task::JoinHandle::is_finished), "a writer was granted beside the reader");
    ensure!(reader.release().await? == ReleaseOutcome::Released, "the reader was gone");
    let (next, ..) = futures::future::select_all(&mut others).await;
    others.iter().for_each(tokio::task::JoinHandle::abort);
    next??.release().await?;
    Ok(())
}

pub(super) async fn c29_no_writer_is_granted_between_the_two_tokens(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (Arc::new(context.client().await?), Arc::new(context.client().await?), context.key());
    let granted = Arc::new(Mutex::new(Vec::new()));
    // Without a pause, so that one of them is granted in the shortest gap.
    let contend = |client: &Arc<TestClient>| {
        let (client, key, granted) = (Arc::clone(client), key.clone(), Arc::clone(&granted));
        tokio::spawn(async move {
            loop {
                if let Ok(Some(guard)) = client.acquire(&key, &once()).await {
                    granted.lock().unwrap_or_else(PoisonError::into_inner).push(guard.fencing_token());
                    let _ = guard.release().await;
                }
                tokio::task::yield_now().await;
            }
        })
    };
    let others = [contend(&theirs), contend(&theirs), contend(&ours)];
    let rounds = async {
        for _ in 0..100 {
            let writer = ours.take(&key, &patient()).await?;
            let before = writer.fencing_token();
            let reader = writer.downgrade(&once()).await?;
            let after = reader.fencing_token();
            let others = granted.lock().unwrap_or_else(PoisonError::into_inner).clone();
            ensure!(others.iter().all(|token| *token < before || *token > after), "{before:?}, {after:?}: {others:?}");
            reader.release().await?;
        }
        Ok(())
    };
    let verdict = rounds.await;
    others.iter().for_each(tokio::task::JoinHandle::abort);
    verdict
}

pub(super) async fn c29_readers_come_in_beside_one_that_was_the_writer(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let reader = downgraded(&ours, &key).await?;
    for client in [&ours, &theirs] {
        let beside = client.acquire_read(&key, &patient()).await?;
        let token = beside.as_ref().map(crate::Guard::fencing_token);
        ensure!(beside.is_some(), "{key} could not be read");
        let fenced = context.subject.capabilities().has(Capability::Fencing);
        ensure!(!fenced || token > Some(reader.fencing_token()), "{token:?} beside {:?}", reader.fencing_token());
        client.finds_it_held(&key).await?;
    }
    ensure!(reader.release().await? == ReleaseOutcome::Released, "the reader was gone");
    Ok(())
}

pub(super) async fn c29_the_tokens_of_writer_reader_and_the_next_writer_grow(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let mut newest = None;
    for _ in 0..5 {
        let writer = ours.take(&key, &patient()).await?;
        let before = writer.fencing_token();
        let reader = writer.downgrade(&once()).await?;
        let tokens = (newest, before, reader.fencing_token());
        ensure!(tokens.0 < tokens.1 && tokens.1 < tokens.2, "{tokens:?}");
        reader.release().await?;
        let next = theirs.take(&key, &patient()).await?;
        ensure!(tokens.2 < next.fencing_token(), "{:?} after {tokens:?}", next.fencing_token());
        newest = next.fencing_token();
        next.release().await?;
    }
    Ok(())
}

pub(super) async fn c29_a_writer_that_became_a_reader_can_neither_renew_nor_release(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let writer = ours.claims(&key, Mode::Exclusive, LONG).await?;
    let reader = became(&ours, &writer, LONG / 10).await?;
    // As by a renewal that was under way, and by a release that is made once more.
    let again = [("renewed", ours.store.renew(&writer, LONG).await?), ("released", ours.store.release(&writer).await?)];
    for (what, held) in again {
        ensure!(held != LeaseStatus::Held, "it was {what} by the writer");
    }
    becomes_nothing(&ours, &writer).await?;
    theirs.finds_it_held(&key).await?;
    if context.subject.capabilities().has(Capability::Lease) {
        ours.sees_left(&key, LONG / 10).await?;
    }
    let held = (ours.store.renew(&reader, LONG).await?, ours.store.release(&reader).await?);
    ensure!(held == (LeaseStatus::Held, LeaseStatus::Held), "the reader lost it: {held:?}");
    theirs.finds_it_free(&key).await
}

pub(super) async fn c29_the_lease_of_the_reader_ends_like_any_other(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let writer = ours.claims(&key, Mode::Exclusive, LONG).await?;
    let reader = became(&ours, &writer, context.brief_ttl()).await?;
    outlast(context.brief_ttl()).await;
    theirs.finds_it_free(&key).await?;
    let held = ours.store.renew(&reader, LONG).await?;
    ensure!(held != LeaseStatus::Held, "a reader that ran out was renewed");
    theirs.finds_it_free(&key).await
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

pub(super) async fn c29_a_caller_that_is_not_the_writer_becomes_no_reader(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let writer = ours.claims(&key, Mode::Exclusive, LONG).await?;
    let stranger = GrantRef { owner: crate::OwnerId::random(), ..writer.clone() };
    becomes_nothing(&theirs, &stranger).await?;
    ensure!(ours.store.release(&writer).await? == LeaseStatus::Held, "the writer is gone");
    becomes_nothing(&ours, &writer).await?;
    ours.finds_it_free(&key).await?;
    let reader = ours.claims(&key, Mode::Shared, LONG).await?;
    becomes_nothing(&ours, &reader).await?;
    ensure!(ours.store.release(&reader).await? == LeaseStatus::Held, "the reader is gone");
    ours.finds_it_free(&key).await
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

pub(super) async fn c29_a_downgrade_whose_answer_was_lost_leaves_nothing(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let writer = ours.take(&key, &patient().ttl(LONG)).await?;
    ours.faults.next(Op::Downgrade, Fault::LoseReply, 1);
    let error = writer.downgrade(&once().ttl(LONG)).await.err().map(|error| error.kind());
    ensure!(error == Some(ErrorKind::Indeterminate), "a lost answer was told as {error:?}");
    is_given_back(&ours, &key).await
}

pub(super) async fn c29_a_downgrade_that_is_refused_leaves_nothing(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    for kind in [ErrorKind::Unavailable, ErrorKind::Backend] {
        let writer = ours.take(&key, &patient().ttl(LONG)).await?;
        ours.faults.next(Op::Downgrade, Fault::Refuse(kind), 1);
        let error = writer.downgrade(&once().ttl(LONG)).await.err().map(|error| error.kind());
        ensure!(error == Some(kind), "a refusal was told as {error:?}");
        is_given_back(&ours, &key).await?;
    }
    Ok(())
}

pub(super) async fn c29_a_downgrade_that_is_cancelled_leaves_nothing(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let writer = ours.take(&key, &patient().ttl(LONG)).await?;
    ours.faults.next(Op::Downgrade, Fault::KeepReply, 1);
    let options = once().ttl(LONG);
    let downgrading = tokio::spawn(async move { writer.downgrade(&options).await });
    eventually("the store is asked", || async { Ok(ours.faults.count(Op::Downgrade, &key) > 0) }).await?;
    downgrading.abort();
    let _ = downgrading.await;
    ours.faults.heal();
    is_given_back(&ours, &key).await
}

pub(super) async fn c29_the_reader_is_renewed_and_learns_of_its_loss(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let reader = downgraded(&ours, &key).await?;
    reader.renew().await?;
    ensure!(reader.is_held(), "a reader that was renewed is lost: {:?}", reader.loss());
    theirs.admin.force_release(&key).await?;
    let error = reader.renew().await.err().map(|error| error.kind());
    ensure!(matches!(error, Some(ErrorKind::Lost(_))), "renewing what was taken away said {error:?}");
    let options = patient().wait(Wait::Never);
    ensure!(theirs.acquire(&key, &options).await?.is_some(), "it is still held");
    Ok(())
}
