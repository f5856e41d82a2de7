//! What the engine alone decides, whatever the store: asked of one in memory, on a clock that jumps ahead instead of waiting.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{
    Admin, Clock, Engine, EngineOptions, ErrorKind, LocalHandoff, LockKey, LockOptions, Locker, LockerExt, LossReason,
    ReleaseOutcome, Wait,
};
use leasehold_testkit::{Fault, Faulty, FaultyMemory, Op, faulty_memory, test};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

const MOMENT: Duration = Duration::from_millis(500);

/// Two programs on one store, each with faults of its own.
fn two(handoff: LocalHandoff) -> [Engine<FaultyMemory>; 2] {
    two_at(&Clock::tokio(), handoff)
}

fn two_at(clock: &Clock, handoff: LocalHandoff) -> [Engine<FaultyMemory>; 2] {
    let store = faulty_memory(clock).inner;
    [(); 2].map(|()| {
        let options = EngineOptions::new().clock(clock.clone()).local_handoff(handoff);
        Engine::with(Faulty::new(store.clone()).remote(), options)
    })
}

fn up_to(wait: Duration) -> LockOptions {
    LockOptions::new().wait(Wait::UpTo(wait))
}

/// How a wait ends, and how long it takes.
async fn ends(locks: &Engine<FaultyMemory>, options: &LockOptions) -> (Result<bool, ErrorKind>, Duration) {
    let (began, key) = (Instant::now(), LockKey::new("k").unwrap());
    let answer = locks.acquire(&key, options).await;
    (answer.map(|guard| guard.is_some()).map_err(|error| error.kind()), began.elapsed())
}

#[test(paused)]
async fn a_wait_limit_is_kept_also_while_the_store_is_silent() {
    let [ours, theirs] = two(LocalHandoff::new());
    let held = theirs.lock("k").await.unwrap();
    let (answer, took) = ends(&ours, &up_to(MOMENT)).await;
    assert!(answer == Ok(false) && took >= MOMENT && took < MOMENT * 2, "{answer:?} after {took:?}");
    drop(held);
    let faults = &ours.backend().faults;
    let silent = async |locks: &Engine<FaultyMemory>| {
        locks.backend().faults.always(Op::TryAcquire, Fault::Hang);
        ends(locks, &up_to(MOMENT)).await
    };
    let (answer, took) = silent(&ours).await;
    assert!(answer == Err(ErrorKind::Indeterminate) && took < MOMENT * 2, "{answer:?} after {took:?}");
    // A slow answer does not lengthen the wait after it; one of a locker that has had no answer may take as long as any.
    faults.heal();
    faults.next(Op::TryAcquire, Fault::Delay(MOMENT * 2), 1);
    assert!(ours.try_lock("another").await.is_ok());
    for locks in [&ours, &two(LocalHandoff::new())[0]] {
        let (_, took) = silent(locks).await;
        assert!(took < MOMENT * 4, "{took:?}");
    }
}

#[test(paused)]
async fn a_failure_of_the_moment_is_waited_for_with_pauses_that_grow_and_another_ends_the_wait() {
    let [ours, theirs] = two(LocalHandoff::new());
    let faults = &ours.backend().faults;
    faults.always(Op::TryAcquire, Fault::Refuse(ErrorKind::Unavailable));
    let (answer, took) = ends(&ours, &up_to(MOMENT * 2)).await;
    assert!(answer == Err(ErrorKind::Unavailable) && took >= MOMENT * 2, "{answer:?} after {took:?}");
    // Without a pause it is thousands; with one of a constant 20 ms about 50.
    assert!((2..=30).contains(&faults.calls(Op::TryAcquire)), "{} attempts", faults.calls(Op::TryAcquire));
    // Those behind the first of a process, who ask nothing themselves, are not told that the key is held.
    let mut head = Box::pin(ours.lock("k"));
    assert!(futures::poll!(&mut head).is_pending());
    for options in [LockOptions::new().wait(Wait::Never), up_to(MOMENT)] {
        assert_eq!(ends(&ours, &options).await.0, Err(ErrorKind::Unavailable));
    }
    faults.heal();
    drop(head.await.unwrap());
    for fault in [Fault::Refuse(ErrorKind::Unavailable), Fault::LoseReply] {
        faults.next(Op::TryAcquire, fault, 3);
        drop(ours.lock("k").await.unwrap());
        assert_eq!(faults.left(Op::TryAcquire), 0);
    }
    faults.next(Op::TryAcquire, Fault::LoseReply, 1);
    assert_eq!(ends(&ours, &LockOptions::new().wait(Wait::Never)).await.0, Err(ErrorKind::Indeterminate));
    drop(theirs.lock_for("k", MOMENT).await.expect("nobody knows of that grant, and it is given back"));
    faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Backend), 1);
    let asked = faults.calls(Op::TryAcquire);
    assert_eq!(ours.lock("k").await.unwrap_err().kind(), ErrorKind::Backend);
    assert_eq!(faults.calls(Op::TryAcquire), asked + 1, "it was tried again");
}

#[test(paused)]
async fn of_many_waiters_one_talks_to_the_store_and_they_are_served_in_order_without_those_who_left() {
    for handoff in [LocalHandoff::new(), LocalHandoff::off()] {
        let [ours, theirs] = two(handoff);
        let held = theirs.lock("k").await.unwrap();
        let served = Arc::new(Mutex::new(Vec::new()));
        let waiters: Vec<_> = (0..10)
            .map(|number| {
                let (ours, served) = (ours.clone(), Arc::clone(&served));
                tokio::spawn(async move {
                    let guard = ours.lock("k").await.unwrap();
                    served.lock().unwrap().push(number);
                    guard.release().await.unwrap();
                })
            })
            .collect();
        sleep(MOMENT / 50).await;
        waiters[0].abort();
        waiters[4].abort();
        yield_now().await;
        let asked = ours.backend().faults.calls(Op::TryAcquire);
        assert!(asked <= 4, "{asked} claims of ten waiters");
        held.release().await.unwrap();
        for waiter in waiters {
            drop(waiter.await);
        }
        assert_eq!(*served.lock().unwrap(), [1, 2, 3, 5, 6, 7, 8, 9]);
    }
}

#[test(paused)]
async fn however_a_guard_ends_who_waits_behind_it_goes_on_long_before_the_lease_is_over() {
    for detached in [false, true] {
        let [ours, theirs] = two(LocalHandoff::new());
        let guard = ours.lock_with("k", &LockOptions::new().ttl(MOMENT * 1000)).await.unwrap();
        let ends = async {
            sleep(MOMENT).await;
            if detached {
                let handed = guard.detach().unwrap();
                drop(theirs.attach(&handed, &LockOptions::new()).await.unwrap().unwrap());
            } else {
                theirs.force_release(guard.key()).await.unwrap();
                drop(guard);
            }
        };
        let (granted, ()) = tokio::join!(ours.lock_for("k", MOMENT * 20), ends);
        assert!(granted.is_ok(), "detached: {detached}, {granted:?}");
    }
}

#[test(paused)]
async fn a_deadline_runs_from_before_the_request_and_is_compared_at_the_point_of_use() {
    let clock = Clock::tokio();
    let [ours, _] = two_at(&clock, LocalHandoff::new());
    let (faults, lease) = (&ours.backend().faults, MOMENT * 20);
    let options = LockOptions::new().ttl(lease).renew(false);
    for step in [Op::TryAcquire, Op::Renew] {
        faults.next(step, Fault::Delay(MOMENT), 1);
        let guard = ours.lock_with("k", &options).await.unwrap();
        if step == Op::Renew {
            guard.renew().await.unwrap();
        }
        assert!(guard.remaining() + MOMENT <= lease, "{:?}, {step:?}", guard.remaining());
    }
    faults.next(Op::TryAcquire, Fault::Delay(lease), 1);
    match ours.lock_with("late", &options.clone().wait(Wait::Never)).await {
        Ok(guard) => assert!(!guard.is_held(), "its lease ran out before the answer"),
        Err(error) => assert!(error.is_transient(), "{error}"),
    }
    let guard = ours.lock_with("k", &options).await.unwrap();
    // As after a suspend: no task has run between the jump and the question.
    clock.advance(lease * 2);
    assert!(!guard.is_held() && guard.remaining().is_zero(), "{:?}", guard.remaining());
    assert_eq!(guard.lost().await, LossReason::Expired);
}

#[test(paused)]
async fn nothing_is_renewed_any_more_after_a_release_a_drop_a_loss_or_the_longest_hold() {
    let [ours, theirs] = two(LocalHandoff::new());
    let (faults, options) = (&ours.backend().faults, LockOptions::new().ttl(MOMENT * 6));
    let hold = async |name: &str, options: &LockOptions| ours.lock_with(name, options).await.unwrap();
    let began = Instant::now();
    let capped = hold("capped", &options.clone().max_hold(MOMENT * 14)).await;
    let (released, dropped, lost) =
        (hold("released", &options).await, hold("dropped", &options).await, hold("lost", &options).await);
    sleep(MOMENT * 10).await;
    for guard in [&capped, &released, &dropped, &lost] {
        assert!(guard.is_held() && faults.count(Op::Renew, guard.key()) > 0, "{guard:?} was not renewed");
    }
    released.release().await.unwrap();
    drop(dropped);
    theirs.force_release(lost.key()).await.unwrap();
    assert_eq!(lost.lost().await, LossReason::ForceReleased);
    assert_eq!(capped.lost().await, LossReason::MaxHold);
    assert!((MOMENT * 14..MOMENT * 15).contains(&began.elapsed()), "{:?}", began.elapsed());
    drop(theirs.lock_for("capped", MOMENT).await.expect("it is free, although its guard is kept"));
    assert_eq!(capped.release().await.unwrap(), ReleaseOutcome::AlreadyLost(LossReason::MaxHold));
    let renewals = faults.calls(Op::Renew);
    sleep(MOMENT * 100).await;
    assert_eq!(faults.calls(Op::Renew), renewals);
}

#[test(paused)]
async fn a_close_waits_for_what_is_under_way_and_no_guard_begins_after_it() {
    let [ours, theirs] = two(LocalHandoff::new());
    let (faults, held) = (&ours.backend().faults, ours.lock("held").await.unwrap());
    let releasing = tokio::spawn(ours.lock("k").await.unwrap().release());
    let acquiring = tokio::spawn({
        let ours = ours.clone();
        async move { ours.lock("another").await.map(|guard| guard.loss()) }
    });
    faults.next(Op::Release, Fault::Delay(MOMENT), 1);
    faults.next(Op::TryAcquire, Fault::Delay(MOMENT), 1);
    yield_now().await;
    let began = Instant::now();
    ours.close().await;
    assert!(began.elapsed() >= MOMENT, "it waited for {:?}", began.elapsed());
    assert_eq!(releasing.await.unwrap().unwrap(), ReleaseOutcome::Released);
    let granted = acquiring.await.unwrap().map_err(|error| error.kind());
    assert!(matches!(granted, Err(ErrorKind::Closed) | Ok(Some(LossReason::Shutdown))), "{granted:?}");
    assert_eq!(held.loss(), Some(LossReason::Shutdown));
    assert_eq!(ours.lock("k").await.unwrap_err().kind(), ErrorKind::Closed);
    for name in ["held", "k", "another"] {
        drop(theirs.lock_for(name, MOMENT).await.expect("it is free"));
    }
}
