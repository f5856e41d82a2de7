use super::*;
use crate::engine::state::lease::FirstLease;
use crate::engine::state::pending::QueuePosition;

/// Has an answer come so late that nobody waits for it.
fn overdue(play: &mut Play) {
    play.pass(Duration::from_secs(2));
}

#[test]
fn a_message_grants_what_came_after_the_place_and_not_after_the_newest_that_there_was() {
    let lease = FirstLease { length: TTL, sent_at: Moment::default(), ends: true, from_notification: false };
    let place = |epochs| QueuePosition { epochs, lease, notifies: true };
    let may = |epoch| place(Some((3, 7))).may_have_become(epoch);
    assert_eq!([Some(2), Some(3), Some(4), Some(7), Some(8), None].map(may), [false, false, true, true, false, false]);
    assert!(!place(None).may_have_become(Some(4)));
}

#[test]
fn nobody_asks_beside_the_claim_of_one_who_is_gone_and_the_next_has_what_it_brings() {
    let (mut play, member) = Play::with(PLAIN);
    let gone = play.waits(member, "a");
    let (request, _) = play.claim();
    play.apply(Event::Leave(key(), gone));
    play.waits(member, "b");
    assert!(play.claims().is_empty());
    play.grant(request, 2);
    play.granted("b");
}

#[test]
fn a_claim_that_gets_no_answer_is_made_again_and_what_it_brings_late_goes_back() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    play.waits(member, "b");
    let (late, before) = play.claim();
    overdue(&mut play);
    play.pass(millis(20));
    assert!(play.claims().is_empty());
    let (request, given_up) = play.release();
    assert_eq!(given_up.owner, before.owner);
    play.released(request, Ok(LeaseStatus::NotHeld));
    assert_ne!(play.claim().1.owner, before.owner);
    play.grant(late, 2);
    assert_eq!(play.release().1.owner, before.owner);
    assert_eq!(play.called(), ["a"]);
    assert!(play.outcome("b").is_none());
}

#[test]
fn what_comes_late_is_kept_where_its_owner_id_asks_again_or_has_the_lease() {
    let (mut play, member) = Play::with(QUEUES);
    play.waits(member, "a");
    let leaves = play.waits(member, "b");
    play.apply(Event::Leave(key(), leaves));
    let (late, before) = play.claim();
    overdue(&mut play);
    play.pass(millis(20));
    let (second, again) = play.claim();
    assert_eq!(again.owner, before.owner, "it may have a place in the store's queue");
    play.grant(late, 2);
    assert!(play.releases().is_empty());
    let late = second;
    let leaves = play.waits(member, "b");
    play.apply(Event::Leave(key(), leaves));
    overdue(&mut play);
    play.pass(millis(40));
    play.grants(2);
    let batch = play.renewals().remove(0);
    play.grant(late, 2);
    assert!(play.releases().is_empty());
    play.apply(Event::Renewed(batch, vec![Ok(LeaseStatus::Held)]));
    play.granted("a");
}

#[test]
fn what_may_have_been_carried_out_is_given_back_where_the_store_has_no_queue() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    let (request, first) = play.claim();
    play.answer(request, Err(lost()));
    let (request, given_up) = play.release();
    assert_eq!(given_up.owner, first.owner);
    play.released(request, Ok(LeaseStatus::Held));
    assert_ne!(play.claim().1.owner, first.owner);
}

#[test]
fn the_mark_of_writers_is_taken_back_when_none_of_them_waits_here() {
    let (mut play, member) = Play::with(Traits { marks: true, ..PLAIN });
    let [first, last] = ["a", "b"].map(|who| play.waits(member, who));
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    play.apply(Event::Leave(key(), first));
    assert!(play.releases().is_empty(), "it keeps the place of those who wait");
    let (request, marked) = play.claim();
    play.apply(Event::Leave(key(), last));
    assert!(play.releases().is_empty(), "the claim would come behind it");
    play.answer(request, Ok(BUSY));
    assert_eq!(play.release().1.owner, marked.owner);
}

#[test]
fn a_writer_that_is_granted_keeps_what_was_its_mark() {
    let (mut play, member) = Play::with(Traits { marks: true, ..PLAIN });
    play.waits(member, "a");
    play.grants(2);
    play.granted("a");
    assert!(play.releases().is_empty());
}

#[test]
fn a_grant_out_of_the_stores_queue_that_may_be_over_is_confirmed_first() {
    let (mut play, member) = Play::with(QUEUES);
    play.waits(member, "a");
    let (request, _) = play.claim();
    let sent_at = play.now;
    play.answer(request, Ok(queued(millis(100), TTL, false)));
    play.pass(millis(101));
    let (request, _) = play.claim();
    play.now = crate::clock::lease_deadline(sent_at, TTL);
    play.grant(request, 4);
    assert!(play.outcome("a").is_none());
    assert_eq!(play.renewals().len(), 1);
}

#[test]
fn a_session_that_hears_that_another_has_its_key_has_lost_it() {
    let (mut play, member) = Play::with(session(1));
    play.holds(member, "outer", 2);
    play.waits(member, "inner");
    play.answers(Ok(Attempt::HeldBy { session: SessionId(2), retry_in: None }));
    assert_eq!(play.ends(), [End::Lost(LossReason::Stolen)]);
    assert_eq!(play.failed("inner"), ErrorKind::Lost(LossReason::Stolen));
}

#[test]
fn what_another_session_had_before_says_nothing_of_a_lease_that_began_since() {
    let (mut play, member) = Play::with(session(1));
    play.waits(member, "a");
    let (late, _) = play.claim();
    play.now = play.now.plus(millis(1));
    let (_, request, _) = play.attaches(member, "b", detached());
    play.apply(Event::TakenOver { request, answer: Ok(Attempt::Granted { epoch: Some(7) }) });
    play.granted("b");
    play.answer(late, Ok(BUSY));
    assert!(play.ends().is_empty());
}

#[test]
fn news_that_came_while_a_claim_was_under_way_have_it_made_again_at_once() {
    let (mut play, member) = Play::with(Traits { notifies: true, ..PLAIN });
    play.waits(member, "a");
    play.answers(Ok(BUSY));
    let listen = play.listens();
    let (request, _) = play.claim();
    play.apply(Event::Notified { request: listen, notification: Notification::Freed });
    play.answer(request, Ok(BUSY));
    play.answers(Ok(BUSY));
    assert!(play.claims().is_empty());
    assert_eq!(play.state.next(), play.now.plus(millis(200)), "the safety net below the signals");
}

/// One with a place in the store's queue, told of its turn or not.
fn has_a_place(notifies: bool) -> Play {
    let (mut play, member) = Play::with(QUEUES);
    play.waits(member, "a");
    play.answers(Ok(queued(millis(100), TTL, notifies)));
    play
}

#[test]
fn who_is_told_of_its_turn_does_not_ask_when_the_key_is_freed_here_also_while_its_claim_is_under_way() {
    for (notifies, asks) in [(true, 0), (false, 1)] {
        let mut play = has_a_place(notifies);
        play.apply(Event::ForceReleased { key: key(), leases: Vec::new() });
        assert_eq!(play.claims().len(), asks);
        let mut play = has_a_place(notifies);
        play.pass(millis(101));
        let (request, _) = play.claim();
        play.apply(Event::ForceReleased { key: key(), leases: Vec::new() });
        play.answer(request, Ok(queued(millis(100), TTL, notifies)));
        assert_eq!(play.claims().len(), asks);
    }
}
