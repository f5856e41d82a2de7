//! What an election promises (C31).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use leasehold_core::{
    Admin, Clock, Election, Engine, EngineOptions, ErrorKind, GuardHandle, LockKey, LockOptions, LockerExt, Memory,
    RwLockerExt, Wait,
};
use leasehold_testkit::{Fault, Faulty, FaultyMemory, Op, PATIENCE, eventually, faulty_memory, test};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

fn elections() -> [Election<Memory>; 2] {
    let here = Memory::new();
    [(here.contender(), "first"), (here, "second")].map(|(locks, who)| Election::new(locks, "e", who).unwrap())
}

#[test]
async fn who_resigns_is_followed_at_once_in_a_greater_term() {
    let [first, second] = elections();
    let leading = first.campaign().await.unwrap();
    let term = leading.term();
    let mut campaign = Box::pin(second.campaign());
    assert!(futures::poll!(&mut campaign).is_pending() && leading.is_leader());
    // One that gives up leaves nothing.
    assert!(timeout(Duration::from_millis(20), second.campaign()).await.is_err());
    leading.resign().await.unwrap();
    let leading = timeout(PATIENCE, campaign).await.unwrap().unwrap();
    assert!(leading.term() > term && leading.is_leader());
    let hasty = first.clone().with_options(LockOptions::new().wait(Wait::Never));
    assert_eq!(hasty.campaign().await.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(first.leader().await.unwrap().map(|leader| leader.candidate).as_deref(), Some("second"));
    drop(leading);
    assert!(timeout(PATIENCE, first.campaign()).await.unwrap().is_ok());
}

#[test]
async fn an_observer_is_told_of_each_leader_that_nobody_leads_and_of_a_store_that_fails() {
    let store = faulty_memory(&Clock::system());
    let [ours, theirs] = [(store.engine(), "it"), (store.engine(), "an observer")]
        .map(|(locks, who)| Election::new(locks, "e", who).unwrap());
    let mut seen = theirs.observe();
    let mut told = async || timeout(PATIENCE, seen.next()).await.unwrap();
    assert_eq!(told().await.unwrap().unwrap(), None);
    let mut leading = ours.campaign().await.unwrap();
    for _ in 0..2 {
        let leader = told().await.unwrap().unwrap().unwrap();
        assert_eq!((leader.candidate.as_str(), leader.term), ("it", leading.term()));
        leading.resign().await.unwrap();
        assert_eq!(told().await.unwrap().unwrap(), None);
        leading = ours.campaign().await.unwrap();
    }
    assert!(told().await.unwrap().unwrap().is_some());
    for kind in [ErrorKind::Unavailable, ErrorKind::Backend] {
        store.faults.always(Op::Inspect, Fault::Refuse(kind));
        assert_eq!(theirs.leader().await.unwrap_err().kind(), kind);
        assert_eq!(told().await.unwrap().unwrap_err().kind(), kind);
        store.faults.heal();
        if kind == ErrorKind::Unavailable {
            assert!(told().await.unwrap().unwrap().is_some(), "told again after a failure of the moment");
        }
    }
    assert!(told().await.is_none(), "a failure for good is the end");
}

/// Who begins, in which term, or stops.
type Told = (&'static str, Option<GuardHandle>);

/// Says that its work has stopped when it is dropped.
struct Working(mpsc::UnboundedSender<Told>, &'static str);

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.0.send((self.1, None));
    }
}

#[test(paused)]
async fn work_stops_before_the_next_leader_works_and_begins_anew_in_a_greater_term() {
    let clock = Clock::tokio();
    let memory = faulty_memory(&clock).inner;
    let [first, second] = [(); 2].map(|()| Faulty::new(memory.clone()));
    let (tells, mut told) = mpsc::unbounded_channel();
    let candidate = |store: &FaultyMemory, who: &'static str| {
        let engine = Engine::with(store.clone(), EngineOptions::new().clock(clock.clone()));
        let (election, tells) = (Election::new(engine.clone(), "e", who).unwrap(), tells.clone());
        let work = move |term: GuardHandle| {
            let working = Working(tells.clone(), who);
            async move {
                working.0.send((who, Some(term))).unwrap();
                std::future::pending::<()>().await;
            }
        };
        (engine, tokio::spawn(async move { election.run_while_leader(work).await }))
    };
    let mut next = async || {
        let (who, term) = timeout(Duration::from_secs(600), told.recv()).await.unwrap().unwrap();
        (who, term.map(|term| term.fencing_token()))
    };
    let (_, campaigns) = candidate(&first, "first");
    let (_, term) = next().await;
    let (engine, _campaigns) = candidate(&second, "second");
    eventually("the second waits", async || second.faults.calls(Op::TryAcquire) > 0).await;
    // From here on the first has no answer, and its lease ends.
    first.faults.choose(|_| vec![Fault::Hang]);
    assert_eq!(next().await, ("first", None));
    let (who, next_term) = next().await;
    assert!(who == "second" && next_term > term, "{who} in {next_term:?} after {term:?}");
    campaigns.abort();
    engine.force_release(&LockKey::new("e").unwrap()).await.unwrap();
    assert_eq!(next().await, ("second", None));
    assert!(next().await.1 > next_term, "it leads again in the same term");
}

#[test]
async fn a_failure_of_the_moment_ends_no_campaign_and_one_for_good_does() {
    let here = Memory::new();
    let election = Election::new(here.clone(), "e", "it").unwrap();
    here.fail_next(1, ErrorKind::Backend);
    assert_eq!(election.run_while_leader(|_| async {}).await.unwrap_err().kind(), ErrorKind::Backend);
    here.fail_next(3, ErrorKind::Unavailable);
    election.run_while_leader(|_| async {}).await.unwrap();
    for nameless in [String::new(), "x".repeat(LockOptions::MAX_TEXT_BYTES + 1)] {
        let refused = Election::new(here.clone(), "e", &nameless).unwrap_err().kind();
        assert_eq!(refused, ErrorKind::InvalidOptions, "a candidate of {} bytes", nameless.len());
    }
}

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
