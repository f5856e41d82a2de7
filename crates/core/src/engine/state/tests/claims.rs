use super::*;
use crate::engine::state::lease::FirstLease;
use crate::engine::state::pending::QueuePosition;

const QUEUES: Traits = Traits { queues: true, ..PLAIN };

fn queued() -> Attempt {
    Attempt::Queued {
        epoch_of_holder: Some(3),
        latest_epoch: Some(7),
        retry_in: millis(100),
        notifies: false,
        lease: TTL,
    }
}

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
fn a_try_does_not_take_the_claim_of_one_who_is_gone_for_another_holder() {
    let (mut play, member) = Play::with(PLAIN);
    let gone = play.waits(member, "a");
    let (request, _) = play.claim();
    play.apply(Event::Leave(key(), gone));
    play.join(member, "b", renewing(), play.now);
    assert!(play.claims().is_empty());
    play.grant(request, 2);
    play.granted("b");
}

#[test]
fn the_store_is_told_who_asks_and_how() {
    let (mut play, member) = Play::with(PLAIN);
    let options = renewing().label("me").reason("because");
    play.join(member, "a", options, play.now.plus(TTL));
    let (_, claim) = play.claim();
    assert_eq!((claim.key, claim.mode, claim.ttl, claim.waits), (key(), Mode::Exclusive, TTL, true));
    assert_eq!((claim.label.as_deref(), claim.reason.as_deref()), (Some("me"), Some("because")));
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
fn an_answer_that_comes_late_and_brings_nothing_has_nothing_given_back() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    play.waits(member, "b");
    let (late, _) = play.claim();
    overdue(&mut play);
    play.release();
    play.answer(late, Ok(BUSY));
    assert!(play.releases().is_empty());
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
    let (request, _) = play.claim();
    play.grant(request, 2);
    let batch = play.renewals().remove(0);
    play.grant(late, 2);
    assert!(play.releases().is_empty());
    play.apply(Event::Renewed(batch, vec![Ok(LeaseStatus::Held)]));
    play.granted("a");
}

#[test]
fn a_caller_that_polls_its_claim_alone_has_a_limit_of_its_own() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    play.claim();
    assert_eq!(play.state.next(), Moment::NEVER);
    play.waits(member, "b");
    assert_eq!(play.state.next(), play.now.plus(Duration::from_secs(2)));
}

#[test]
fn only_an_answer_says_how_long_answers_take() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    let (request, _) = play.claim();
    play.now = play.now.plus(millis(40));
    play.answer(request, Err(refused()));
    assert_eq!(play.state.latest(member, play.now), play.now.plus(millis(200)));
}

#[test]
fn polls_are_made_after_pauses_that_grow() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    for pause in [2, 4, 8, 16, 32, 50, 50] {
        let (request, _) = play.claim();
        play.answer(request, Ok(BUSY));
        assert_eq!(play.state.next(), play.now.plus(millis(pause)));
        play.pass(millis(pause));
    }
}

#[test]
fn a_poll_comes_just_after_the_lease_in_the_way_has_run_out() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    let (request, _) = play.claim();
    play.answer(request, Ok(Attempt::Busy { retry_in: Some(Duration::from_micros(300)) }));
    assert_eq!(play.state.next(), play.now.plus(Duration::from_micros(1300)));
}

#[test]
fn what_failed_is_tried_again_after_pauses_that_grow_from_anew_when_the_store_answers() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    let fails = |play: &mut Play, pause: u64| {
        let (request, _) = play.claim();
        play.answer(request, Err(refused()));
        assert_eq!(play.state.next(), play.now.plus(millis(pause)));
        play.pass(millis(pause));
    };
    for pause in [20, 40, 80, 160, 320, 640, 1000, 1000] {
        fails(&mut play, pause);
    }
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    play.pass(millis(2));
    fails(&mut play, 20);
}

#[test]
fn what_the_store_refuses_for_good_is_told_and_not_tried_again() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    let (request, _) = play.claim();
    play.answer(request, Err(Error::new(ErrorKind::Backend, "ask")));
    assert_eq!(play.failed("a"), ErrorKind::Backend);
    assert_eq!(play.state.next(), Moment::NEVER);
}

#[test]
fn a_place_in_the_stores_queue_is_asked_for_again_with_the_same_owner_id_also_after_a_failure() {
    let (mut play, member) = Play::with(QUEUES);
    play.waits(member, "a");
    let (request, first) = play.claim();
    play.answer(request, Ok(queued()));
    play.pass(millis(101));
    let (request, second) = play.claim();
    play.answer(request, Err(refused()));
    play.pass(millis(20));
    let (_, third) = play.claim();
    assert_eq!([first.owner, second.owner], [second.owner, third.owner]);
    assert!(play.releases().is_empty());
}

#[test]
fn what_was_refused_without_a_place_is_asked_for_with_a_new_owner_id() {
    let (mut play, member) = Play::with(QUEUES);
    play.waits(member, "a");
    let (request, first) = play.claim();
    play.answer(request, Err(refused()));
    play.pass(millis(20));
    assert_ne!(play.claim().1.owner, first.owner);
    assert!(play.releases().is_empty());
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
fn who_is_at_its_limit_gives_its_place_in_the_stores_queue_up() {
    let (mut play, member) = Play::with(QUEUES);
    play.join(member, "a", renewing(), play.now);
    let (request, claim) = play.claim();
    play.answer(request, Ok(queued()));
    assert!(matches!(play.outcome("a"), Some(Outcome::Busy(_))));
    assert_eq!(play.release().1.owner, claim.owner);
}

#[test]
fn a_grant_out_of_the_stores_queue_counts_from_when_the_place_was_confirmed() {
    let (mut play, member) = Play::with(QUEUES);
    play.waits(member, "a");
    let (request, _) = play.claim();
    let sent_at = play.now;
    play.answer(request, Ok(queued()));
    play.pass(millis(101));
    let (request, _) = play.claim();
    play.grant(request, 4);
    assert_eq!(play.granted("a").cell.limit, crate::clock::lease_deadline(sent_at, TTL));
}

#[test]
fn a_grant_out_of_the_stores_queue_that_may_be_over_is_confirmed_first() {
    let (mut play, member) = Play::with(QUEUES);
    play.waits(member, "a");
    let (request, _) = play.claim();
    let sent_at = play.now;
    play.answer(request, Ok(queued()));
    play.pass(millis(101));
    let (request, _) = play.claim();
    play.now = crate::clock::lease_deadline(sent_at, TTL);
    play.grant(request, 4);
    assert!(play.outcome("a").is_none());
    assert_eq!(play.renewals().len(), 1);
}

#[test]
fn a_session_that_hears_that_another_has_its_key_has_lost_it() {
    let (mut play, member) = Play::with(Traits { session: Some(SessionId(1)), reentrant: true, ..PLAIN });
    play.holds(member, "outer", 2);
    play.waits(member, "inner");
    let (request, _) = play.claim();
    play.answer(request, Ok(Attempt::HeldBy { session: SessionId(2), retry_in: None }));
    assert_eq!(play.ends(), [End::Lost(LossReason::Stolen)]);
    assert_eq!(play.failed("inner"), ErrorKind::Lost(LossReason::Stolen));
}

#[test]
fn what_another_session_had_before_says_nothing_of_a_lease_that_began_since() {
    let (mut play, member) = Play::with(Traits { session: Some(SessionId(1)), reentrant: true, ..PLAIN });
    play.waits(member, "a");
    let (late, _) = play.claim();
    play.now = play.now.plus(millis(1));
    let owner = OwnerId::parse_hex(&"f".repeat(32)).unwrap();
    let grant = GrantRef { key: key(), owner, mode: Mode::Exclusive, epoch: Some(7) };
    let join = Join { member, key: key(), mode: Mode::Exclusive, options: renewing(), limit: play.now, handle: "b" };
    play.ask(|state, at| state.attach(at, Attach { join, grant, number: 0 }));
    let request = play.one("a lock to be taken over", |action| match action {
        Action::Send { request: Request::TakeOver(request, ..), .. } => Some(*request),
        _ => None,
    });
    play.apply(Event::TakenOver { request, answer: Ok(Attempt::Granted { epoch: Some(7) }) });
    play.granted("b");
    play.answer(late, Ok(BUSY));
    assert!(play.ends().is_empty());
}

#[test]
fn news_that_came_while_a_claim_was_under_way_have_it_made_again_at_once() {
    let (mut play, member) = Play::with(Traits { notifies: true, ..PLAIN });
    play.waits(member, "a");
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    let listen = play.one("a subscription", |action| match action {
        Action::Send { request: Request::Subscribe(request, _), .. } => Some(*request),
        _ => None,
    });
    play.apply(Event::Subscribed { request: listen, begun: true });
    let (request, _) = play.claim();
    play.apply(Event::Notified { request: listen, notification: Notification::Freed });
    play.answer(request, Ok(BUSY));
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    assert!(play.claims().is_empty());
    assert_eq!(play.state.next(), play.now.plus(millis(200)), "the safety net below the signals");
}

/// One with a place in the store's queue, told of its turn or not.
fn has_a_place(notifies: bool) -> Play {
    let (mut play, member) = Play::with(QUEUES);
    play.waits(member, "a");
    let (request, _) = play.claim();
    play.answer(
        request,
        Ok(Attempt::Queued {
            epoch_of_holder: Some(3),
            latest_epoch: Some(7),
            retry_in: millis(100),
            notifies,
            lease: TTL,
        }),
    );
    play
}

#[test]
fn who_is_told_of_its_turn_does_not_ask_when_the_key_is_freed_here() {
    for (notifies, asks) in [(true, 0), (false, 1)] {
        let mut play = has_a_place(notifies);
        play.apply(Event::ForceReleased { key: key(), leases: Vec::new() });
        assert_eq!(play.claims().len(), asks);
    }
}

#[test]
fn a_key_freed_here_while_a_claim_is_under_way_has_it_made_again_but_for_who_is_told_of_its_turn() {
    for (notifies, asks) in [(true, 0), (false, 1)] {
        let mut play = has_a_place(notifies);
        play.pass(millis(101));
        let (request, _) = play.claim();
        play.apply(Event::ForceReleased { key: key(), leases: Vec::new() });
        play.answer(
            request,
            Ok(Attempt::Queued {
                epoch_of_holder: Some(3),
                latest_epoch: Some(7),
                retry_in: millis(100),
                notifies,
                lease: TTL,
            }),
        );
        assert_eq!(play.claims().len(), asks);
    }
}

#[test]
fn who_asks_first_when_others_listen_already_polls_as_seldom_as_they() {
    let (mut play, member) = Play::with(Traits { notifies: true, ..PLAIN });
    let first = play.waits(member, "a");
    play.waits(member, "b");
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    let listen = play.subscribe();
    play.apply(Event::Subscribed { request: listen, begun: true });
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    play.apply(Event::Leave(key(), first));
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    assert_eq!(play.state.next(), play.now.plus(millis(100)));
}
