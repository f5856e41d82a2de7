use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{join_all, try_join_all};

use super::context::{AMPLE, TestContext, eventually, once, outlast, patient, soon};
use super::waiting::wait_in_background;
use crate::conformance::Op;
use crate::conformance::subject::TestClient;
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::{LeaseStatus, LockKey, LockOptions, Mode, Wait};

async fn finds_reading_barred(client: &TestClient, key: &LockKey) -> Verdict {
    ensure!(client.acquire_read(key, &once()).await?.is_none(), "{key} could be read");
    Ok(())
}

async fn read(client: &TestClient, key: &LockKey, options: &LockOptions) -> Result<crate::ReadGuard, Failure> {
    let guard = client.acquire_read(key, options).await?;
    guard.ok_or_else(|| Failure(format!("{key} could not be read")))
}

/// Each under a token of its own (C4).
pub(super) async fn c01_readers_share(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let mut guards = Vec::new();
    for client in [&ours, &ours, &theirs, &ours] {
        guards.push(read(client, &key, &once()).await?);
    }
    ensure!(guards.iter().all(crate::Guard::is_held), "a reader was lost");
    let tokens: Vec<_> = guards.iter().map(crate::Guard::fencing_token).collect();
    ensure!(tokens.is_sorted_by(|a, b| a < b || b.is_none()), "the tokens of readers do not grow: {tokens:?}");
    for guard in guards {
        guard.release().await?;
    }
    ours.finds_it_free(&key).await
}

pub(super) async fn c01_writers_and_readers_exclude_each_other(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let reader = read(&ours, &key, &patient()).await?;
    theirs.finds_it_held(&key).await?;
    ours.finds_it_held(&key).await?;
    reader.release().await?;
    let writer = ours.take(&key, &patient()).await?;
    finds_reading_barred(&theirs, &key).await?;
    finds_reading_barred(&ours, &key).await?;
    writer.release().await?;
    read(&theirs, &key, &patient()).await?.release().await?;
    Ok(())
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

/// Where a store keeps beside the readers how many there are, or until when, what becomes of one must not count for another.
pub(super) async fn c01_a_writer_waits_for_the_reader_that_stays_longest(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let (brief, long) = (context.brief_ttl(), AMPLE * 3);
    let stays = ours.claims_briefly(&key, Mode::Shared, brief).await?;
    let goes = ours.claims_briefly(&key, Mode::Shared, brief).await?;
    let renewed = ours.store.renew(&stays, long).await?;
    let stays = if renewed == LeaseStatus::Held { stays } else { ours.claims(&key, Mode::Shared, long).await? };
    outlast(brief).await;
    theirs.finds_it_held(&key).await?;
    // It comes late, and frees nothing.
    ours.store.release(&goes).await?;
    theirs.finds_it_held(&key).await?;
    ours.store.release(&stays).await?;
    theirs.finds_it_free(&key).await
}

pub(super) async fn c15_a_waiting_writer_holds_back_later_readers(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    let first = read(&ours, &key, &patient()).await?;
    let before = ours.faults.count(Op::TryAcquire, &key);
    let options = patient();
    let mut writer = Box::pin(ours.acquire(&key, &options));
    let asked = || async { Ok(ours.faults.count(Op::TryAcquire, &key) > before) };
    tokio::select! {
        granted = &mut writer => return Err(Failure(format!("the writer did not wait: {granted:?}"))),
        asked = eventually("the writer asks", asked) => asked?,
    }
    // The writer goes on meanwhile: on a store that takes its time it may be in the middle of an attempt, and those
    // behind it hear from it.
    tokio::select! {
        granted = &mut writer => return Err(Failure(format!("the writer did not wait: {granted:?}"))),
        barred = finds_reading_barred(&ours, &key) => barred?,
    }
    first.release().await?;
    let written = soon("the writer's turn", writer).await??;
    ensure!(written.is_some(), "the writer was not served");
    Ok(())
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
