use super::*;
use crate::engine::state::LeaseCell;
use Notification::{Ended, Freed};

/// One who has a place in the store's queue, and listens.
fn in_the_queue() -> Play {
    let mut play = Play::of(Traits { notifies: true, ..QUEUES });
    play.waits("a").claimed(1, queued(20_000, TTL, true)).subscribed().does("claim 1 by a, subscribe");
    play
}

/// One who waits for the holder of another process, and listens.
fn listens() -> Play {
    let mut play = Play::of(NOTIFIES);
    play.waits("a").claimed(1, BUSY).subscribed().claimed(2, BUSY).does("claim 1 by a, subscribe, claim 2 by a");
    play
}

#[test]
fn who_is_told_of_a_grant_has_it_and_has_it_confirmed_soon() {
    let mut play = in_the_queue();
    play.told(1, 4).does("a has guard 0, unsubscribe").due(20).does("renew 1 within 3000");
    assert_eq!(play.guards["a"].cell.epoch(), Some(4));
}

#[test]
fn a_message_of_a_grant_that_is_over_or_was_not_to_come_is_asked_about() {
    in_the_queue().jumps(HELD_FOR).told(1, 4).does("claim 1 by a");
    in_the_queue().told(1, 3).does("claim 1 by a");
}

#[test]
fn only_a_claim_without_an_answer_is_released_twice_after_its_message() {
    for (answer, again) in [(unanswered(), "release 1"), (refused(), "")] {
        let mut play = in_the_queue();
        play.notified(Freed).told(1, 4).claimed(1, answer).comes("a").drops("a");
        play.does("claim 1 by a, a has guard 0, unsubscribe, ends: Released, release 1");
        play.released(1, HELD).passes(1000).does(again);
    }
}

#[test]
fn news_that_came_while_a_claim_was_under_way_have_it_made_again_at_once() {
    let mut play = listens();
    play.notified(Freed).notified(Freed).claimed(3, BUSY).claimed(4, BUSY).does("claim 3 by a, claim 4 by a");
    play.due(200).does("claim 5 by a");
}

#[test]
fn a_claim_that_left_before_the_subscription_began_is_made_again_at_once() {
    let mut play = Play::of(NOTIFIES);
    play.waits("a").claimed(1, BUSY).due(100).subscribed().claimed(2, BUSY);
    play.does("claim 1 by a, subscribe, claim 2 by a, claim 3 by a");
}

#[test]
fn a_subscription_that_ended_is_asked_for_again_and_what_is_heard_resets_its_pauses() {
    let mut play = Play::of(NOTIFIES);
    play.waits("a").claimed(1, BUSY);
    for (notification, pause) in [(Ended, 500), (Ended, 1000), (Freed, 2000), (Ended, 500)] {
        let asked_at = play.now;
        play.subscribed().notified(notification).notified(Ended).did.clear();
        while !play.did.contains(&"subscribe".to_owned()) {
            if let Some((_, owner, _)) = play.asked.first().copied() {
                play.claimed(owner, BUSY);
            }
            play.passes(1);
        }
        assert_eq!(play.now.since(asked_at), millis(pause));
    }
}

#[test]
fn the_pauses_between_subscriptions_are_kept_while_the_key_is_held() {
    let mut play = listens();
    play.notified(Freed).claimed(3, granted(2)).comes("a").drops("a").tries("b").released(3, HELD);
    play.claimed(4, granted(3)).comes("b").drops("b").waits("c").released(4, HELD).claimed(5, BUSY).does("claim 3 by a, a has guard 0, unsubscribe, ends: Released, release 3, last claim 4 by b, b has guard 0, ends: Released, release 4, claim 5 by c");
    play.passes(499).does("claim 6 by c").due(1).does("subscribe");
}

#[test]
fn a_subscription_that_says_all_the_time_that_a_held_key_is_free_becomes_few_claims() {
    let mut play = listens();
    for _ in 0..10_000 {
        play.notified(Freed);
        if let Some((_, owner, _)) = play.asked.first().copied() {
            play.claimed(owner, BUSY);
        }
        play.now = play.now.plus(Duration::from_micros(100));
        play.apply(Event::Tick);
    }
    // In a second.
    assert!((100..250).contains(&play.did.len()), "{}", play.did.len());
}

#[test]
fn who_waits_behind_a_lease_of_this_process_hears_when_that_is_taken_by_force() {
    let mut play = Play::of(NOTIFIES);
    // Most leases are over before.
    play.holds(writer("holder"), 2).waits("a").due(1000).does("subscribe");
    // It may have been taken before.
    play.subscribed().renewed(HELD).does("renew 1 within 3000, limit 11878");
    play.notified(Freed).notified(Freed).renewed(FORCED);
    play.does("renew 1 within 3000, ends: Lost(ForceReleased), claim 2 by a");
}
