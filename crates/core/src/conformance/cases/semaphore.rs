//! Semaphores: slots that are locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::context::{AMPLE, SHORT, TestContext, eventually, once, past, patient, soon};
use crate::conformance::verdict::{Failure, Verdict, ensure};
use crate::conformance::{Fault, Op, TestClient};
use crate::{ErrorKind, LockGuard, LockKey, LockOptions, Locker, Mode, Result, Semaphore, Wait};

type Sem = Semaphore<Arc<dyn Locker>>;
type Waiter = tokio::task::JoinHandle<Result<Option<LockGuard>>>;

fn semaphore(client: &TestClient, key: &LockKey, permits: usize) -> Result<Sem> {
    Semaphore::new(Arc::clone(&client.locker), key, permits)
}

/// Takes all permits.
async fn all_of(semaphore: &Sem) -> Result<Vec<LockGuard>, Failure> {
    let permits = semaphore.acquire_many(semaphore.permits(), &patient()).await?;
    permits.ok_or_else(|| Failure("the permits of an idle semaphore were not granted".into()))
}

/// Checks that all permits are there, or will be without a lease having to run out.
async fn finds_all_free(client: &TestClient, semaphore: &Sem) -> Verdict {
    for slot in semaphore.slots() {
        client.finds_it_free(slot).await?;
    }
    Ok(())
}

fn waits(semaphore: &Sem, wait: Wait) -> Waiter {
    let semaphore = semaphore.clone();
    tokio::spawn(async move { semaphore.acquire_with(&LockOptions::new().wait(wait)).await })
}

/// Options of a wait that is over soon.
fn limited() -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(Duration::from_millis(50)))
}

/// Checks that a wait of 50 ms was in vain. On a busy machine it may end before the store has answered.
fn in_vain<T: std::fmt::Debug>(answer: Result<Option<T>>) -> Verdict {
    match answer {
        Ok(granted) => ensure!(granted.is_none(), "granted although too many permits are taken: {granted:?}"),
        Err(error) => ensure!(error.is_transient(), "{error}"),
    }
    Ok(())
}

/// Ends when this many claims of the client for each slot were answered: one is the first try, and the next is that of a waiter.
async fn asks_for_every_slot(client: &TestClient, semaphore: &Sem, claims: usize) -> Verdict {
    let asked = || async {
        let claimed = |slot| client.faults.count(Op::TryAcquire, slot) >= claims;
        Ok(semaphore.slots().iter().all(claimed))
    };
    eventually("a waiter claims every slot", asked).await
}

pub(super) async fn c30_there_are_as_many_permits_as_were_asked_for_and_no_more(context: TestContext) -> Verdict {
    let key = context.key();
    let clients = context.clients(3, 1).await?;
    let mut permits = Vec::new();
    for client in &clients {
        let permit = soon("a try answers", semaphore(client, &key, 3)?.try_acquire()).await??;
        permits.push(permit.ok_or_else(|| Failure(format!("of three permits only {} are there", permits.len())))?);
    }
    let fourth = semaphore(&context.client().await?, &key, 3)?;
    let more = soon("a try answers", fourth.try_acquire()).await??;
    ensure!(more.is_none(), "a fourth of three permits: {more:?} beside {permits:?}");
    in_vain(soon("a limited wait answers", fourth.acquire_with(&limited())).await?)?;
    ensure!(permits.iter().all(LockGuard::is_held), "{permits:?}");
    Ok(())
}

pub(super) async fn c30_of_many_contenders_never_more_than_the_permits_are_inside(context: TestContext) -> Verdict {
    const PERMITS: usize = 2;
    let (key, inside) = (context.key(), Arc::new(AtomicUsize::new(0)));
    let mut tasks = tokio::task::JoinSet::new();
    for client in context.clients(6, 3).await? {
        let (semaphore, inside) = (semaphore(&client, &key, PERMITS)?, Arc::clone(&inside));
        tasks.spawn(async move {
            for _ in 0..4 {
                let permit = semaphore.acquire_with(&patient()).await?;
                let permit = permit.ok_or_else(|| Failure("a contender starved".into()))?;
                let seen = inside.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::time::sleep(Duration::from_millis(2)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                ensure!(seen <= PERMITS, "{seen} are inside with {PERMITS} permits");
                permit.release().await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

pub(super) async fn c30_a_waiter_is_granted_whichever_permit_is_released(context: TestContext) -> Verdict {
    let (theirs, key) = (context.client().await?, context.key());
    let holding = semaphore(&theirs, &key, 3)?;
    let mut held = all_of(&holding).await?;
    for slot in holding.slots() {
        let ours = context.client().await?;
        let waiting = semaphore(&ours, &key, 3)?;
        let waiter = waits(&waiting, Wait::UpTo(AMPLE));
        asks_for_every_slot(&ours, &waiting, 2).await?;
        let Some(at) = held.iter().position(|permit| permit.key() == slot) else {
            return Err(Failure(format!("{slot} was not granted among all: {held:?}")));
        };
        let freed = held.swap_remove(at);
        let token = freed.fencing_token();
        freed.release().await?;
        let granted = soon("the waiter has the permit", waiter).await???;
        let granted = granted.ok_or_else(|| Failure(format!("{slot} was released, and not granted")))?;
        ensure!(granted.key() == slot, "{slot} was released, and {} granted", granted.key());
        ensure!(granted.fencing_token() > token || token.is_none(), "{:?} after {token:?}", granted.fencing_token());
        held.push(granted);
    }
    Ok(())
}

pub(super) async fn c30_the_permit_of_a_holder_that_died_is_granted_after_its_lease(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let semaphore = semaphore(&ours, &key, 2)?;
    // The engine of a client that only claims does not renew: as if it had died.
    let dead = theirs.claims_briefly(&semaphore.slots()[1], Mode::Exclusive, context.brief_ttl()).await?;
    let living = theirs.take(&semaphore.slots()[0], &patient()).await?;
    let granted = semaphore.acquire_with(&past(context.brief_ttl())).await?;
    let granted = granted.ok_or_else(|| Failure("the permit of the dead is gone for ever".into()))?;
    ensure!(*granted.key() == dead.key, "{} was granted, which is held", granted.key());
    ensure!(living.is_held(), "the holder that lives was lost");
    Ok(())
}

pub(super) async fn c30_a_wait_that_ends_without_a_permit_leaves_nothing(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let (holding, waiting) = (semaphore(&theirs, &key, 2)?, semaphore(&ours, &key, 2)?);
    let held = all_of(&holding).await?;
    let waiter = waits(&waiting, Wait::Forever);
    asks_for_every_slot(&ours, &waiting, 2).await?;
    waiter.abort();
    ensure!(waiter.await.is_err(), "the waiter was not cancelled");
    in_vain(waiting.acquire_with(&limited()).await)?;
    drop(held);
    finds_all_free(&theirs, &holding).await?;
    finds_all_free(&ours, &waiting).await
}

pub(super) async fn c30_of_permits_released_at_once_a_waiter_keeps_one(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let (holding, waiting) = (semaphore(&theirs, &key, 3)?, semaphore(&ours, &key, 3)?);
    let held = all_of(&holding).await?;
    let waiter = waits(&waiting, Wait::UpTo(AMPLE));
    asks_for_every_slot(&ours, &waiting, 2).await?;
    futures::future::try_join_all(held.into_iter().map(LockGuard::release)).await?;
    let kept = soon("the waiter has a permit", waiter).await???;
    let kept = kept.ok_or_else(|| Failure("no permit was granted".into()))?;
    // Its leases are longer than this wait: what it does not keep it gives back.
    for slot in holding.slots().iter().filter(|slot| *slot != kept.key()) {
        theirs.finds_it_free(slot).await?;
    }
    ensure!(kept.is_held(), "the permit was lost");
    theirs.finds_it_held(kept.key()).await
}

pub(super) async fn c30_who_want_several_permits_do_not_block_each_other(context: TestContext) -> Verdict {
    let (key, gathering) = (context.key(), Arc::new(tokio::sync::Barrier::new(2)));
    let mut tasks = tokio::task::JoinSet::new();
    for client in context.clients(2, 1).await? {
        // So that both have one permit before either has two.
        client.faults.always(Op::TryAcquire, Fault::Delay(Duration::from_millis(5)));
        let (semaphore, gathering) = (semaphore(&client, &key, 2)?, Arc::clone(&gathering));
        tasks.spawn(async move {
            for _ in 0..4 {
                gathering.wait().await;
                let permits = semaphore.acquire_many(2, &patient()).await?;
                let permits = permits.ok_or_else(|| Failure("two permits are waited for for ever".into()))?;
                let apart = permits.len() == 2 && permits[0].key() != permits[1].key();
                ensure!(apart && permits.iter().all(LockGuard::is_held), "{permits:?}");
                futures::future::try_join_all(permits.into_iter().map(LockGuard::release)).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(ended) = soon("both have had their permits", tasks.join_next()).await? {
        ended??;
    }
    Ok(())
}

pub(super) async fn c30_several_permits_are_granted_all_or_none(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let (holding, wanting) = (semaphore(&theirs, &key, 3)?, semaphore(&ours, &key, 3)?);
    let one = holding.acquire().await?;
    for options in [once(), limited()] {
        in_vain(soon("a wait ends", wanting.acquire_many(3, &options)).await?)?;
    }
    for slot in holding.slots().iter().filter(|slot| *slot != one.key()) {
        theirs.finds_it_free(slot).await?;
    }
    one.release().await?;
    let all = all_of(&wanting).await?;
    ensure!(all.len() == 3 && holding.try_acquire().await?.is_none(), "{all:?} are not all");
    Ok(())
}

pub(super) async fn c30_waiters_of_several_lockers_are_served_in_order(context: TestContext) -> Verdict {
    let (holder, key) = (context.client().await?, context.key());
    let holding = semaphore(&holder, &key, 2)?;
    let mut held = all_of(&holding).await?;
    let mut waiters = Vec::new();
    for _ in 0..3 {
        let client = context.client().await?;
        let waiting = semaphore(&client, &key, 2)?;
        waiters.push(waits(&waiting, Wait::UpTo(AMPLE)));
        asks_for_every_slot(&client, &waiting, 2).await?;
        // The claims that join the queues, behind the first tries, are answered.
        let answered = || async { Ok(client.faults.answered(Op::TryAcquire) >= 4) };
        eventually("a waiter has its places", answered).await?;
    }
    for at in 0..3 {
        held.swap_remove(0).release().await?;
        let granted = soon("the first in line is served", &mut waiters[at]).await???;
        held.push(granted.ok_or_else(|| Failure(format!("waiter {at} was not served")))?);
        let early = waiters[at + 1..].iter().any(tokio::task::JoinHandle::is_finished);
        ensure!(!early, "a waiter behind number {at} was served before it, or beside it");
    }
    Ok(())
}

pub(super) async fn c30_a_semaphore_that_cannot_be_is_refused_before_anything_is_sent(context: TestContext) -> Verdict {
    let (ours, key) = (context.client().await?, context.key());
    for permits in [0, Sem::MAX_PERMITS + 1, usize::MAX] {
        let refused = semaphore(&ours, &key, permits).err().map(|error| error.kind());
        ensure!(refused == Some(ErrorKind::InvalidOptions), "{permits} permits: {refused:?}");
    }
    for length in [Sem::MAX_KEY_BYTES + 1, LockKey::MAX_BYTES] {
        let refused = semaphore(&ours, &LockKey::new("k".repeat(length))?, 3).err().map(|error| error.kind());
        ensure!(refused == Some(ErrorKind::InvalidKey), "a key of {length} bytes: {refused:?}");
    }
    let three = semaphore(&ours, &key, 3)?;
    for count in [0, 4] {
        let refused = three.acquire_many(count, &patient()).await.err().map(|error| error.kind());
        ensure!(refused == Some(ErrorKind::InvalidOptions), "{count} of three permits: {refused:?}");
    }
    let sent = ours.faults.all_steps();
    ensure!(sent == 0, "{sent} requests were sent");
    let longest = LockKey::new(format!("{}{}", key.as_str(), "k".repeat(Sem::MAX_KEY_BYTES - key.as_str().len())))?;
    let all = all_of(&semaphore(&ours, &longest, Sem::MAX_PERMITS)?).await?;
    ensure!(all.len() == Sem::MAX_PERMITS, "{} permits of the longest key", all.len());
    Ok(())
}

pub(super) async fn c30_a_failing_store_is_an_error_and_not_a_semaphore_without_permits(
    context: TestContext,
) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let others = context.client().await?;
    let semaphore = semaphore(&ours, &key, 2)?;
    for kind in [ErrorKind::Unavailable, ErrorKind::Backend] {
        ours.faults.always(Op::TryAcquire, Fault::Refuse(kind));
        let answer = soon("a try ends", semaphore.try_acquire()).await?.err().map(|error| error.kind());
        ensure!(answer == Some(kind), "{kind:?} was reported as {answer:?}");
        let answer = soon("a wait ends", semaphore.acquire_with(&limited())).await?.err().map(|error| error.kind());
        ensure!(answer == Some(kind), "{kind:?} was reported as {answer:?}");
    }
    ours.faults.heal();
    // One that fails for a moment is waited for.
    ours.faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Unavailable), 3);
    let permit = soon("the fault is ridden out", semaphore.acquire_with(&patient())).await??;
    ensure!(permit.is_some_and(|permit| permit.is_held()), "no permit after the fault");
    // The slot that could not be asked may be free. Another client: a claim of a wait that was left may still be under way.
    let _held = all_of(&self::semaphore(&theirs, &key, 2)?).await?;
    let (ours, semaphore) = (&others, self::semaphore(&others, &key, 2)?);
    ours.faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Unavailable), 1);
    let answer = soon("a try ends", semaphore.try_acquire()).await?.map_err(|error| error.kind());
    ensure!(matches!(answer, Err(ErrorKind::Unavailable)), "beside a slot that is taken: {answer:?}");
    Ok(())
}

pub(super) async fn c30_of_several_permits_none_was_lost_while_waiting_for_the_others(context: TestContext) -> Verdict {
    let (ours, theirs, key) = (context.client().await?, context.client().await?, context.key());
    let (holding, wanting) = (semaphore(&theirs, &key, 2)?, semaphore(&ours, &key, 2)?);
    let one = holding.acquire().await?;
    let options = patient().ttl(SHORT).renew(false);
    let gathering = tokio::spawn(async move { wanting.acquire_many(2, &options).await });
    let mut taken = Vec::new();
    for slot in holding.slots().iter().filter(|slot| *slot != one.key()) {
        let gathered = || async { Ok(!theirs.admin.inspect(slot).await?.holders.is_empty()) };
        eventually("one permit is gathered", gathered).await?;
        // Its lease ends while the other permit is waited for.
        taken.push(theirs.take(slot, &patient()).await?);
    }
    one.release().await?;
    let answer = soon("who gathers is answered", gathering).await??.map_err(|error| error.kind());
    ensure!(matches!(answer, Err(ErrorKind::Lost(_))), "a permit that was lost was granted: {answer:?}");
    Ok(())
}
