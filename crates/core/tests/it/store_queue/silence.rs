//! Claims that get no answer, from a store that has put them in its line or granted them.

use leasehold_testkit::{Fault, Op, test};
use std::time::Duration;

use leasehold_core::{Attempt, Backend, Claim, ErrorKind, LockGuard, Mode, Wait};

use crate::store_queue::store::{ASK_AGAIN, FIRST_LEASE};
use crate::store_queue::{Bench, LEASE, WaitingTask, bench, key, options, settle, take};

/// Longer than any pause after the first failures, and shorter than that between two claims of a place.
const A_MOMENT: Duration = Duration::from_millis(200);

impl Bench {
    /// So many claims, and no others, go wrong from now on.
    fn fails(&self, fault: Fault, times: usize) {
        self.store.faults.heal();
        if times > 0 {
            self.store.faults.next(Op::TryAcquire, fault, times);
        }
    }

    fn loses_replies(&self, times: usize) {
        self.fails(Fault::LoseReply, times);
    }

    /// One of another process gets a place at the end of the line.
    async fn another_joins(&self) -> Claim {
        let claim = Claim { waits: true, ..Claim::new(&key(), Mode::Exclusive, LEASE) };
        assert!(matches!(self.store.try_acquire(&claim).await, Ok(Attempt::Queued { .. })));
        claim
    }

    fn is_in_line(&self, claim: &Claim) -> bool {
        self.store.inner.state().queue.iter().any(|queued| queued.owner == claim.owner)
    }

    fn is_nothing_left(&self) -> bool {
        self.store.inner.state().queue.is_empty()
    }

    /// The guard is the store's grant, and knows no longer lease than the store gives.
    async fn is_what_the_store_has(&self, guard: &LockGuard) {
        let holders = self.store.inner.memory.inspect(&key()).await.unwrap().holders;
        let [holder] = &holders[..] else { panic!("{holders:?}") };
        assert_eq!(guard.fencing_token(), holder.token);
        assert!(guard.is_held() && Some(guard.remaining()) <= holder.remaining, "{guard:?} of {holder:?}");
    }

    /// The last claim is carried out once more, from a connection that was given up.
    async fn carries_out_late(&self) {
        let owner = *self.claims().last().unwrap();
        let claim = Claim { owner, ..Claim::new(&key(), Mode::Exclusive, LEASE) };
        assert!(matches!(self.store.inner.memory.try_acquire(&claim).await, Ok(Attempt::Granted { .. })));
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
        bench.fails(failure, 4);
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
async fn a_claim_that_won_without_an_answer_is_found_by_asking_again() {
    let bench = bench();
    bench.loses_replies(1);
    let guard = served(bench.waiter(options()).await).await;
    bench.is_what_the_store_has(&guard).await;
    let claims = bench.claims();
    assert!(claims.len() == 2 && claims[0] == claims[1], "{claims:?}");
}

#[test(paused)]
async fn who_was_granted_the_key_out_of_the_line_meanwhile_has_no_more_than_that_lease_unless_it_is_prolonged() {
    for (claims_before, renew) in [(0, true), (0, false), (1, true), (1, false)] {
        let bench = bench();
        let held = take(&bench.theirs).await;
        bench.store.inner.state().deaf = true;
        let waiter = if claims_before == 0 {
            bench.loses_replies(4);
            bench.waiter(options().renew(renew)).await
        } else {
            let waiter = bench.waiter(options().renew(renew)).await;
            bench.loses_replies(4);
            tokio::time::sleep(ASK_AGAIN).await;
            waiter
        };
        held.release().await.unwrap();
        let guard = served(waiter).await;
        bench.is_what_the_store_has(&guard).await;
    }
}

#[test(paused)]
async fn who_heard_nothing_for_longer_than_the_first_lease_takes_the_grant_all_the_same() {
    let bench = bench();
    let held = take(&bench.theirs).await;
    let first = bench.waiter(options()).await;
    let second = bench.another_joins().await;
    bench.loses_replies(1000);
    tokio::time::sleep(FIRST_LEASE * 2).await;
    held.release().await.unwrap();
    bench.loses_replies(0);
    let guard = served(first).await;
    bench.is_what_the_store_has(&guard).await;
    assert!(bench.is_in_line(&second), "it was served before");
}

#[test(paused)]
async fn a_grant_that_was_lost_again_before_its_lease_was_prolonged_is_asked_for_anew() {
    let bench = bench();
    bench.loses_replies(1);
    bench.store.inner.state().force_before_renewal = true;
    let waiter = bench.waiter(options()).await;
    tokio::time::sleep(A_MOMENT).await;
    let guard = served(waiter).await;
    bench.is_what_the_store_has(&guard).await;
}

#[test(paused)]
async fn who_leaves_without_an_answer_leaves_nothing() {
    for (free, claims_before) in [(true, 0), (false, 0), (false, 1)] {
        for leaves_by_limit in [true, false] {
            let bench = bench();
            let held = if free { None } else { Some(take(&bench.theirs).await) };
            let limit = ASK_AGAIN * claims_before + A_MOMENT;
            let wait = if leaves_by_limit { Wait::UpTo(limit) } else { Wait::Forever };
            if claims_before == 0 {
                bench.loses_replies(20);
            }
            let waiter = bench.waiter(options().wait(wait)).await;
            bench.loses_replies(20);
            tokio::time::sleep(limit).await;
            waiter.abort();
            settle().await;
            assert!(bench.is_nothing_left(), "in line: {free} {claims_before} {leaves_by_limit}");
            drop(held);
            settle().await;
            assert_eq!(bench.holders().await, 0, "{free} {claims_before} {leaves_by_limit}");
            // A claim that was held up comes behind the release.
            bench.carries_out_late().await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(bench.holders().await, 0, "late: {free} {claims_before} {leaves_by_limit}");
        }
    }
}

#[test(paused)]
async fn a_claim_that_is_carried_out_after_its_guard_is_gone_keeps_the_key_for_about_a_second() {
    for claims_before in [0, 1] {
        let bench = bench();
        let held = take(&bench.theirs).await;
        if claims_before == 0 {
            bench.loses_replies(1);
        }
        let waiter = bench.waiter(options()).await;
        bench.loses_replies(claims_before);
        tokio::time::sleep(ASK_AGAIN + A_MOMENT).await;
        held.release().await.unwrap();
        served(waiter).await.release().await.unwrap();
        bench.carries_out_late().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(bench.holders().await, 0, "{claims_before}");
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
    bench.loses_replies(1);
    bench.store.faults.next(Op::TryAcquire, Fault::Refuse(ErrorKind::Backend), 1);
    let waiter = bench.waiter(options()).await;
    tokio::time::sleep(A_MOMENT).await;
    assert_eq!(waiter.await.unwrap().unwrap_err().kind(), ErrorKind::Backend);
    settle().await;
    assert!(bench.is_nothing_left());
}
