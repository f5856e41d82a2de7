use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{join_all, try_join_all};

use super::context::{AMPLE, TestContext, eventually, once, patient, soon};
use super::waiting::wait_in_background;
use crate::conformance::Op;
use crate::conformance::subject::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{ErrorKind, LeaseStatus, LockKey, LockOptions, Mode, Wait};

async fn read(client: &TestClient, key: &LockKey, options: &LockOptions) -> Result<crate::ReadGuard, Failure> {
    let guard = client.acquire_read(key, options).await?;
    guard.ok_or_else(|| Failure(format!("{key} could not be read")))
}

pub(super) async fn c01_each_of_many_readers_excludes_writers(context: TestContext) -> Verdict {
    /// More than a store takes in one request, shows on one page, or counts in a byte.
    const MANY: usize = 300;
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let read = async || {
        let mut readers = Vec::new();
        while readers.len() < MANY {
            let some = (0..20).map(|_| ours.claims(&key, Mode::Shared, AMPLE * 3));
            readers.extend(try_join_all(some).await?);
        }
        Ok::<_, Failure>(readers)
    };
    let mut readers = read().await?;
    let shown = theirs.store.steps().inspect(&key).await?.holders.len();
    ensure!(shown == MANY, "of {MANY} readers {shown} are shown");
    let last = readers.split_off(readers.len() - 1);
    let mut released = Vec::new();
    for some in readers.chunks(64) {
        released.extend(join_all(some.iter().map(|reader| ours.store.release(reader))).await);
    }
    theirs.finds_it_held(&key).await?;
    for (number, released) in released.into_iter().enumerate() {
        let held = released?;
        ensure!(held == LeaseStatus::Held, "the release of reader {number} said {held:?}");
    }
    for reader in &last {
        ours.store.release(reader).await?;
    }
    theirs.finds_it_free(&key).await?;
    let forced = read().await?;
    let ended = theirs.store.steps().force_release(&key, None).await?;
    ensure!(ended.holders.len() == MANY, "of {MANY} readers {} were told as ended by force", ended.holders.len());
    theirs.sees_nobody(&key).await?;
    for (number, reader) in forced.iter().enumerate() {
        let told = ours.store.renew(reader, Duration::from_secs(60)).await?;
        ensure!(context.tells_of_force(told), "reader {number} of {MANY} that were ended by force is told {told:?}");
    }
    theirs.finds_it_free(&key).await
}

pub(super) async fn c15_a_waiting_writer_holds_back_readers_elsewhere(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let first = read(&ours, &key, &patient()).await?;
    let options = patient();
    let mut writer = Box::pin(ours.acquire(&key, &options));
    let barred = || async { Ok(theirs.acquire_read(&key, &once()).await?.is_none()) };
    tokio::select! {
        granted = &mut writer => return Err(Failure(format!("the writer did not wait: {granted:?}"))),
        barred = eventually("readers elsewhere are held back", barred) => barred?,
    }
    first.release().await?;
    let written = soon("the writer's turn", writer).await??;
    ensure!(written.is_some(), "the writer was not served");
    Ok(())
}

/// At once, and not when the mark of one that died would have gone by itself: of tries 20 ms apart one of the first is granted. On a
/// busy machine they come later, as does what takes the mark back.
pub(super) async fn c15_the_mark_of_a_cancelled_writer_goes_away(context: TestContext) -> Verdict {
    const TRIES: usize = 12;
    const PAUSE: Duration = Duration::from_millis(20);
    let (ours, writes, theirs) = (context.client().await?, Arc::new(context.client().await?), context.client().await?);
    for (mode, wait) in [(Mode::Shared, Wait::Forever), (Mode::Exclusive, Wait::UpTo(PAUSE * 15))] {
        let (key, answered) = (context.key(), writes.faults.answered(Op::TryAcquire));
        let first = read(&ours, &key, &patient()).await?;
        let waiter = wait_in_background(&writes, &key, wait);
        let waits = || async { Ok(writes.faults.answered(Op::TryAcquire) > answered) };
        eventually("the writer is told that it has to wait", waits).await?;
        if wait == Wait::Forever {
            waiter.abort();
            ensure!(waiter.await.is_err(), "the writer was not cancelled");
        } else {
            match waiter.await? {
                Ok(granted) => ensure!(granted.is_none(), "a writer was granted beside a reader"),
                Err(error) => ensure!(error.is_transient(), "{error}"),
            }
        }
        ensure!(first.is_held(), "the reader was lost");
        first.release().await?;
        let mut tries = 1;
        while !has_tried(&theirs, &key, mode).await? {
            ensure!(
                tries < TRIES,
                "after a wait of {wait:?} nobody holds {key}, and {tries} tries ({mode}) are refused"
            );
            tries += 1;
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}

/// Whether a try was granted.
async fn has_tried(client: &TestClient, key: &LockKey, mode: Mode) -> Result<bool, Failure> {
    Ok(match mode {
        Mode::Exclusive => client.try_once(key).await?.is_some(),
        Mode::Shared => client.acquire_read(key, &once()).await?.is_some(),
    })
}

/// For how many of their leases it waits is stated by the backend: in any case for fewer than so many.
pub(super) async fn c15_writers_do_not_starve_a_waiting_reader(context: TestContext) -> Verdict {
    const LEASES: usize = 200;
    let (ours, key, served) = (context.client().await?, context.key(), Arc::new(AtomicUsize::new(0)));
    let mut writers = tokio::task::JoinSet::new();
    for writer in context.clients(3, 1).await? {
        let (key, served) = (key.clone(), Arc::clone(&served));
        writers.spawn(async move {
            loop {
                let guard = writer.take(&key, &LockOptions::new()).await?;
                served.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
                guard.release().await?;
            }
        });
    }
    let have_served = async |leases: usize| {
        let until = served.load(Ordering::Relaxed) + leases;
        eventually("the writers are served", || async { Ok(served.load(Ordering::Relaxed) >= until) }).await
    };
    have_served(5).await?;
    let options = patient();
    tokio::select! {
        reader = read(&ours, &key, &options) => drop(reader?),
        over = have_served(LEASES) => return over.and(Err(Failure(format!("a reader waits for {LEASES} leases of writers")))),
        Some(ended) = writers.join_next() => return ended?,
    }
    Ok(())
}

pub(super) async fn c29_the_reader_is_one_like_any_other(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let reader = ours.take(&key, &patient()).await?.downgrade(&once()).await?;
    for client in [&ours, &theirs] {
        let beside = read(client, &key, &patient()).await?;
        let (token, before) = (beside.fencing_token(), reader.fencing_token());
        ensure!(token > before || token.is_none(), "{token:?} beside {before:?}");
    }
    reader.renew().await?;
    ensure!(reader.is_held(), "a reader that was renewed is lost: {:?}", reader.loss());
    theirs.admin.force_release(&key).await?;
    let error = reader.renew().await.err().map(|error| error.kind());
    ensure!(matches!(error, Some(ErrorKind::Lost(_))), "renewing what was taken away said {error:?}");
    ensure!(theirs.try_once(&key).await?.is_some(), "it is still held");
    Ok(())
}
