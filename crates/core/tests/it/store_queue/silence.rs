//! Claims that get no answer, from a store that has put them in its line or granted them.

use leasehold_testkit::{Fault, Op, test};
use std::time::Duration;

use leasehold_core::{Attempt, Backend, Claim, ErrorKind, LockGuard, Mode};

use crate::store_queue::store::ASK_AGAIN;
use crate::store_queue::{Bench, LEASE, WaitingTask, bench, key, options, settle, take};

/// Longer than any pause after the first failures, and shorter than that between two claims of a place.
const A_MOMENT: Duration = Duration::from_millis(200);

impl Bench {
    /// One of another process gets a place at the end of the line.
    async fn another_joins(&self) -> Claim {
        let claim = Claim { waits: true, ..Claim::new(&key(), Mode::Exclusive, LEASE) };
        assert!(matches!(self.store.try_acquire(&claim).await, Ok(Attempt::Queued { .. })));
        claim
    }

    fn is_in_line(&self, claim: &Claim) -> bool {
        self.store.inner.state().queue.iter().any(|queued| queued.owner == claim.owner)
    }

    /// The guard is the store's grant, and knows no longer lease than the store gives.
    async fn is_what_the_store_has(&self, guard: &LockGuard) {
        let holders = self.store.inner.memory.inspect(&key()).await.unwrap().holders;
        let [holder] = &holders[..] else { panic!("{holders:?}") };
        assert_eq!(guard.fencing_token(), holder.token);
        assert!(guard.is_held() && Some(guard.remaining()) <= holder.remaining, "{guard:?} of {holder:?}");
    }
}

async fn served(waiter: WaitingTask) -> LockGuard {
    let guard = tokio::time::timeout(LEASE, waiter).await.expect("it is served");
    guard.unwrap().unwrap().unwrap()
}

#[test(paused)]
async fn whose_first_claim_got_no_answer_has_the_place_that_it_was_given() {
    let bench = bench();
    let held = take(&bench.theirs).await;
    let late = Fault::Delay(Duration::from_millis(10));
    bench.store.faults.next_in_all(Op::TryAcquire, [late, Fault::LoseReply]);
    let first = bench.waiter(options()).await;
    let second = bench.another_joins().await;
    tokio::time::sleep(A_MOMENT).await;
    held.release().await.unwrap();
    let guard = served(first).await;
    bench.is_what_the_store_has(&guard).await;
    assert!(bench.is_in_line(&second), "it was served before");
    guard.release().await.unwrap();
    assert!(!bench.is_in_line(&second), "the first one is in line twice");
}

#[test(paused)]
async fn whose_repeated_claim_fails_for_the_moment_keeps_the_place() {
    for failure in [Fault::LoseReply, Fault::Refuse(ErrorKind::Unavailable)] {
        let bench = bench();
        let held = take(&bench.theirs).await;
        let first = bench.waiter(options()).await;
        let second = bench.another_joins().await;
        bench.store.faults.next(Op::TryAcquire, failure, 4);
        while bench.store.faults.left(Op::TryAcquire) > 0 {
            tokio::time::sleep(A_MOMENT).await;
        }
        tokio::time::sleep(ASK_AGAIN).await;
        held.release().await.unwrap();
        let guard = served(first).await;
        bench.is_what_the_store_has(&guard).await;
        assert!(bench.is_in_line(&second), "it was served before, after {failure:?}");
    }
}

#[test(paused)]
async fn closing_gives_back_what_a_claim_without_an_answer_won() {
    for in_flight in [false, true] {
        let bench = bench();
        let late = in_flight.then_some(Fault::Delay(A_MOMENT));
        let faults: Vec<_> = late.into_iter().chain([Fault::LoseReply]).collect();
        bench.store.faults.next_in_all(Op::TryAcquire, faults);
        let waiter = bench.waiter(options()).await;
        assert_eq!(bench.holders().await, 1);
        bench.ours.close().await;
        assert_eq!(bench.holders().await, 0, "in flight: {in_flight}");
        assert_eq!(waiter.await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    }
}

#[test(paused)]
async fn a_refusal_for_good_ends_the_wait_and_gives_the_place_up() {
    let bench = bench();
    let _held = take(&bench.theirs).await;
    bench.store.faults.next(Op::TryAcquire, Fault::LoseReply, 1);
    bench.store.faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Backend), 1);
    let waiter = bench.waiter(options()).await;
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(waiter.await.unwrap().unwrap_err().kind(), ErrorKind::Backend);
    settle().await;
    assert!(bench.store.inner.state().queue.is_empty());
}
