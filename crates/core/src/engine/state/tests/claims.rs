use super::*;

#[test]
fn a_reader_has_the_grant_of_another_if_it_came_before_that_was_first_asked_for() {
    let mut play = Play::of(PLAIN);
    play.reads("a").claimed(1, BUSY).reads("b").due(2).leaves("a").claimed(2, granted(2));
    play.does("claim 1 by a, claim 2, b has guard 0");
    let mut play = Play::of(PLAIN);
    play.reads("a").reads("b").leaves("a").claimed(1, granted(2));
    play.does("claim 1 by a, a is detached, release 1, claim 2 by b");
    let mut play = Play::of(QUEUES);
    play.reads("a").claimed(1, queued(10, TTL, false)).reads("b").due(2).claimed(1, granted(2));
    play.does("claim 1 by a, claim 1, a has guard 0, claim 2 by b");
}

#[test]
fn a_claim_that_gets_no_answer_is_made_again_and_what_it_brings_late_goes_back() {
    let mut play = Play::of(PLAIN);
    play.waits("a").waits("b").due(2000).does("claim 1 by a, a is detached, claim failed, release 1, a is called");
    play.passes(20).released(1, NOT_HELD).does("claim 2 by b");
    play.claimed(1, granted(2)).does("release 1");
}

#[test]
fn what_comes_late_is_kept_where_its_owner_id_asks_again_or_has_the_lease() {
    let mut play = Play::of(QUEUES);
    play.waits("a").waits("b").leaves("b").due(2000).due(20);
    play.does("claim 1 by a, a is detached, claim failed, claim 1 by a");
    play.claimed(1, granted(2)).does("");
    play.waits("b").leaves("b").passes(2000).passes(40).does("a is detached, claim failed, claim 1 by a");
    play.claimed_last(1, granted(2)).claimed(1, granted(2)).does("renew 1 within 3000");
    play.renewed(HELD).does("limit 11878, a has guard 0");
}

#[test]
fn the_mark_of_writers_is_taken_back_when_none_of_them_waits_here_and_is_granted() {
    let mut play = Play::of(Traits { marks: true, ..PLAIN });
    play.waits("a").waits("b").claimed(1, BUSY).leaves("a").does("claim 1 by a, a is detached, claim 2 by b");
    play.leaves("b").does("");
    play.claimed(2, BUSY).does("release 2");
    let mut play = Play::of(Traits { marks: true, ..PLAIN });
    play.waits("a").claimed(1, granted(2)).does("claim 1 by a, a has guard 0");
}

#[test]
fn a_claim_that_may_come_late_is_released_again_for_about_a_minute_by_an_engine_that_is_not_closed() {
    let mut play = Play::of(PLAIN);
    play.joins(writer("a").with(|options| options.ttl(millis(60_000)))).claimed(1, unanswered()).leaves("a");
    play.released(1, NOT_HELD).engine(PLAIN).joins(writer("b").of(1)).closes(1).claimed(2, BUSY).did.clear();
    for pause in [1, 2, 4, 8, 16, 32] {
        assert!(play.is_idle(0), "nobody waits for that");
        play.due(pause * 1000).does("release 1");
        play.released(1, NOT_HELD);
    }
    play.is_done();
}

#[test]
fn a_grant_out_of_the_stores_queue_that_may_be_over_is_confirmed_first() {
    let mut play = Play::of(QUEUES);
    play.waits("a").claimed(1, queued(100, TTL, false)).due(2).does("claim 1 by a, claim 1 by a");
    play.jumps(HELD_FOR - 2).claimed(1, granted(4)).does("renew 1 within 3000");
}

#[test]
fn what_a_waiter_learns_too_late_is_not_handed_over_while_its_place_is_given_up() {
    let mut play = Play::of(QUEUES);
    play.waits("a").claimed(1, queued(100, TTL, false)).due(2).waits("b").leaves("a");
    // Its place is not given up: the answer under way may be a grant, which the release would end.
    play.does("claim 1 by a, claim 1 by a, a is detached");
    play.claimed(1, granted(4)).does("b has guard 0");
}

#[test]
fn who_is_told_of_its_turn_does_not_ask_when_the_key_is_freed_here_also_while_its_claim_is_under_way() {
    for (notifies, asks) in [(true, ""), (false, "claim 1 by a")] {
        let mut play = Play::of(QUEUES);
        play.waits("a").claimed(1, queued(100, TTL, notifies));
        let mut later = play.clone();
        play.did.clear();
        play.forces().does(asks);
        later.due(2).forces().did.clear();
        later.claimed(1, queued(100, TTL, notifies)).does(asks);
    }
}

#[test]
fn a_caller_alone_carries_its_own_requests_and_a_dropped_guard_none() {
    let mut play = Play::of(PLAIN);
    play.waits("a").claimed(1, granted(2)).comes("a").does("claim 1 by a, a has guard 0");
    play.clone().drops("a").does("ends: Released, release 1");
    assert_eq!(play.release("a", Some("a")), GuardRelease::Sent);
    play.does("ends: Released, release 1 by a");
}

#[test]
fn nobody_waits_past_its_limit_for_a_first_lease_to_be_confirmed() {
    let mut play = in_confirmation();
    play.jumps(998).times_up("a").jumps(49).times_up("a").does("");
    play.jumps(1).times_up("a").does("ends: Released, release 1, a: Indeterminate");
}

/// A caller out of the store's queue, whose lease nothing renews and begins with a shorter length.
fn in_confirmation() -> Play {
    let mut play = Play::of(QUEUES);
    play.joins(writer("a").within(1000).with(|options| options.renew(false)));
    play.claimed(1, queued(10, 3000, false)).due(2).claimed(1, granted(2));
    play.does("claim 1 by a, claim 1 by a, renew 1 within 3000");
    play
}

#[test]
fn a_first_lease_that_is_not_confirmed_is_given_back_and_asked_for_anew() {
    for answer in [NOT_HELD, unanswered()] {
        let mut play = in_confirmation();
        play.renewed(answer).does("claim failed, ends: Released, release 1");
        play.released(1, HELD).does("claim 2 by a");
    }
}

#[test]
fn what_was_told_is_neither_told_again_nor_taken_back() {
    for answer in [HELD, refused()] {
        let mut play = Play::of(QUEUES);
        play.waits("a").claimed(1, queued(10, 3000, false)).due(2).claimed(1, granted(2)).due(20).did.clear();
        let limit = if answer.is_ok() { "limit 11878" } else { "" };
        play.renewed(answer).does(limit).comes("a");
    }
    let mut play = Play::of(PLAIN);
    play.joins(writer("a").within(1)).claimed(1, granted(2)).jumps(900).times_up("a");
    play.does("claim 1 by a, a has guard 0").comes("a");
}
