//! The hand-off inside a process, where the search of the state machine does not see what the engine makes of it.

use std::time::Duration;

use leasehold_core::{
    Clock, Engine, EngineOptions, LocalHandoff, LockGuard, LockOptions, LockerExt, ReleaseOutcome, RwLockerExt,
};
use leasehold_testkit::{Fault, FaultyMemory, Op, faulty_memory, test};

const LEASE: Duration = Duration::from_secs(80);

fn engine(local_handoff: LocalHandoff) -> Engine<FaultyMemory> {
    let options = EngineOptions::new().clock(Clock::tokio()).local_handoff(local_handoff);
    Engine::with(faulty_memory(&Clock::tokio()).deaf(), options)
}

fn options() -> LockOptions {
    LockOptions::new().ttl(LEASE)
}

/// Who waits for the guard, and gets it when this is as old.
async fn next(engine: &Engine<FaultyMemory>, guard: LockGuard, age: Duration) -> LockGuard {
    let releases = async {
        tokio::time::sleep(age).await;
        guard.release().await.unwrap();
    };
    let options = options();
    tokio::join!(engine.lock_with("k", &options), releases).0.unwrap()
}

#[test(paused)]
async fn an_epoch_takes_as_many_handoffs_as_is_set_and_its_count_never_wraps() {
    // No age limit below an eighth of the lease.
    let unhurried = LocalHandoff::new().age(LEASE);
    for (set, age, most) in [
        (unhurried.most(u16::MAX), Duration::ZERO, LocalHandoff::HARD_LIMIT),
        (unhurried.most(4), Duration::ZERO, 4),
        (unhurried, LEASE / 8, 0),
        (LocalHandoff::new(), Duration::from_millis(11), 0),
        (LocalHandoff::off(), Duration::ZERO, 0),
    ] {
        let engine = engine(set);
        let mut guard = engine.lock_with("k", &options()).await.unwrap();
        let mut newest = guard.fencing_token().unwrap();
        for _ in 0..=most {
            guard = next(&engine, guard, age).await;
            assert!(guard.fencing_token().unwrap() > newest, "{newest} was not the smaller one");
            newest = guard.fencing_token().unwrap();
        }
        assert_eq!(engine.backend().faults.granted().len(), 2, "{set:?} takes {most} hand-offs and no more");
    }
}

/// The reader that leaves first asks whether the lease is still held; the question comes behind the release of the last one.
#[test(paused)]
async fn a_reader_that_left_is_not_told_that_it_lost_what_the_others_have_released_since() {
    let engine = engine(LocalHandoff::new());
    let writer = engine.lock_with("k", &options()).await.unwrap();
    let read = async || engine.read_with("k", &options()).await.unwrap();
    let (first, last, _) = tokio::join!(read(), read(), async { writer.release().await.unwrap() });
    assert_eq!(engine.backend().faults.granted().len(), 2, "one grant for the writer, one for both readers");
    engine.backend().faults.next(Op::Renew, Fault::Slow(Duration::from_secs(1)), 1);
    let (first, last) = tokio::join!(first.release(), last.release());
    assert_eq!((first.unwrap(), last.unwrap()), (ReleaseOutcome::Released, ReleaseOutcome::Released));
}
