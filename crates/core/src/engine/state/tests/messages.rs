use super::*;

const TELLS: Traits = Traits { queues: true, notifies: true, ..PLAIN };
const NOTIFIES: Traits = Traits { notifies: true, ..PLAIN };

/// One who has a place in the store's queue, and listens.
fn in_the_queue() -> (Play, WaiterId, RequestId, OwnerId) {
    let (mut play, member) = Play::with(TELLS);
    let id = play.waits(member, "a");
    let (request, claim) = play.claim();
    play.answer(request, Ok(queued(Duration::from_secs(20), TTL, true)));
    let listen = play.listens();
    (play, id, listen, claim.owner)
}

fn notified(play: &mut Play, request: RequestId, notification: Notification) {
    play.apply(Event::Notified { request, notification });
}

fn granted(owner: OwnerId) -> Notification {
    Notification::Granted { owner, epoch: Some(4) }
}

#[test]
fn who_is_told_of_a_grant_has_it_and_has_it_confirmed_soon() {
    let (mut play, _, listen, owner) = in_the_queue();
    assert!(play.claims().is_empty(), "it is told when it is its turn");
    notified(&mut play, listen, granted(owner));
    assert_eq!(play.granted("a").grant().epoch, Some(4));
    play.pass(millis(20));
    assert_eq!(play.renewals().len(), 1);
}

#[test]
fn a_message_of_a_grant_that_is_over_is_asked_about() {
    let (mut play, _, listen, owner) = in_the_queue();
    let sent_at = play.now;
    play.now = crate::clock::lease_deadline(sent_at, TTL);
    notified(&mut play, listen, granted(owner));
    assert!(play.outcome("a").is_none());
    assert_eq!(play.claim().1.owner, owner);
}

#[test]
fn only_a_claim_without_an_answer_is_released_twice_after_its_message() {
    for (answer, times) in [(lost(), 1), (refused(), 0)] {
        let (mut play, id, listen, owner) = in_the_queue();
        notified(&mut play, listen, Notification::Freed);
        let (request, _) = play.claim();
        notified(&mut play, listen, granted(owner));
        play.answer(request, Err(answer));
        let granted = play.comes(id, "a");
        play.release_guard(granted.guard, None);
        play.frees();
        play.pass(Duration::from_secs(1));
        assert_eq!(play.releases().len(), times);
    }
}

fn asks_to_listen(play: &mut Play) -> bool {
    play.out.iter().any(|action| matches!(action, Action::Send { request: Request::Subscribe(..), .. }))
}

#[test]
fn a_subscription_that_ended_is_asked_for_again_and_what_is_heard_resets_its_pauses() {
    let (mut play, member) = Play::with(NOTIFIES);
    play.waits(member, "a");
    play.answers(Ok(BUSY));
    for (notification, pause) in [
        (Notification::Ended, 500),
        (Notification::Ended, 1000),
        (Notification::Freed, 2000),
        (Notification::Ended, 500),
    ] {
        let asked_at = play.now;
        let listen = play.listens();
        notified(&mut play, listen, notification);
        notified(&mut play, listen, Notification::Ended);
        while play.now < asked_at.plus(millis(pause)) {
            assert!(!asks_to_listen(&mut play), "after {pause} ms at the soonest");
            for (request, _) in play.claims() {
                play.answer(request, Ok(BUSY));
            }
            play.pass(millis(1));
        }
    }
}

#[test]
fn the_pauses_between_subscriptions_are_kept_while_the_key_is_held() {
    let (mut play, member) = Play::with(NOTIFIES);
    let id = play.waits(member, "a");
    play.answers(Ok(BUSY));
    play.listens();
    play.grants(2);
    let held = play.comes(id, "a");
    play.release_guard(held.guard, None);
    let (release, _) = play.release();
    let id = play.join(member, "b", renewing(), play.now);
    play.released(release, Ok(LeaseStatus::Held));
    play.grants(3);
    let held = play.comes(id, "b");
    play.release_guard(held.guard, None);
    let (release, _) = play.release();
    play.waits(member, "c");
    play.released(release, Ok(LeaseStatus::Held));
    play.answers(Ok(BUSY));
    assert!(!asks_to_listen(&mut play));
    play.pass(millis(500));
    play.subscribe();
}

#[test]
fn a_claim_that_left_before_the_subscription_began_is_made_again_at_once() {
    let (mut play, member) = Play::with(NOTIFIES);
    play.waits(member, "a");
    play.answers(Ok(BUSY));
    let listen = play.subscribe();
    play.pass(millis(100));
    let (request, _) = play.claim();
    play.apply(Event::Subscribed { request: listen, begun: true });
    play.answer(request, Ok(BUSY));
    play.claim();
}

#[test]
fn a_subscription_that_says_all_the_time_that_a_held_key_is_free_becomes_few_claims() {
    let (mut play, member) = Play::with(NOTIFIES);
    play.waits(member, "a");
    play.answers(Ok(BUSY));
    let listen = play.listens();
    let mut asked = 0;
    for _ in 0..10_000 {
        notified(&mut play, listen, Notification::Freed);
        for (request, _) in play.claims() {
            asked += 1;
            play.answer(request, Ok(BUSY));
        }
        play.pass(Duration::from_micros(100));
    }
    // In a second.
    assert!((100..250).contains(&asked), "{asked}");
}

#[test]
fn who_waits_behind_a_lease_of_this_process_hears_when_that_is_taken_by_force() {
    let (mut play, member) = Play::with(NOTIFIES);
    play.holds(member, "holder", 2);
    play.waits(member, "a");
    play.pass(millis(999));
    assert!(!asks_to_listen(&mut play), "most leases are over before");
    play.pass(millis(1));
    let listen = play.listens();
    let mut renewals = play.renewals();
    assert_eq!(renewals.len(), 1, "it may have been taken before");
    play.apply(Event::Renewed(renewals.remove(0), vec![Ok(LeaseStatus::Held)]));
    notified(&mut play, listen, Notification::Freed);
    notified(&mut play, listen, Notification::Freed);
    let mut renewals = play.renewals();
    assert_eq!(renewals.len(), 1);
    play.apply(Event::Renewed(renewals.remove(0), vec![Ok(LeaseStatus::ForceReleased)]));
    assert_eq!(play.ends(), [End::Lost(LossReason::ForceReleased)]);
    play.claim();
}
