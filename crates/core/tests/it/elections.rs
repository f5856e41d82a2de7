//! What an election promises beyond the suite.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_core::{Clock, Election, LockerExt, Memory, RwLockerExt};
use leasehold_testkit::{Fault, Op, faulty_memory, test};
use tokio::sync::Notify;

#[test]
async fn work_that_ends_in_the_moment_of_a_loss_is_done_again() {
    let (clock, times) = (Clock::system(), AtomicUsize::new(0));
    let election = Election::new(Memory::with_clock(clock.clone()), "e", "it").unwrap();
    let work = |_| {
        let (clock, time) = (clock.clone(), times.fetch_add(1, Ordering::SeqCst));
        async move {
            if time == 0 {
                clock.advance(Duration::from_secs(3600));
            }
            time
        }
    };
    assert_eq!(election.run_while_leader(work).await.unwrap(), 1);
}

#[test]
async fn a_reader_of_the_key_of_an_election_is_no_leader() {
    let locks = Memory::new();
    let _reader = locks.read("e").await.unwrap();
    assert_eq!(Election::new(locks, "e", "it").unwrap().leader().await.unwrap(), None);
}

#[test]
async fn another_can_lead_as_soon_as_it_is_said_that_the_work_has_ended_or_was_shut_down() {
    let store = faulty_memory(&Clock::system());
    store.faults.always(Op::Release, Fault::Slow(Duration::from_millis(200)));
    let [ours, theirs] = [store.engine(), store.engine()];
    let election = Election::new(ours, "e", "it").unwrap();
    let is_free = async || theirs.try_lock("e").await.unwrap().is_some();

    election.run_while_leader(|_| async {}).await.unwrap();
    assert!(is_free().await, "the work has ended");

    let led = Notify::new();
    let work = |_| async {
        led.notify_one();
        std::future::pending::<()>().await;
    };
    assert_eq!(election.run_while_leader_until(led.notified(), work).await.unwrap(), None);
    assert!(is_free().await, "it was shut down");
}
