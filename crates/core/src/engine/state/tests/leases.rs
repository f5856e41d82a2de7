use super::*;

#[test]
fn leases_of_about_the_same_age_are_renewed_together_and_short_ones_on_time() {
    // From a moment that is on no grid.
    for (ttl, due) in [(900, 300), (TTL, 4013), (1000, 349)] {
        Play::of(PLAIN).jumps(3).holds(writer("a").with(|options| options.ttl(millis(ttl))), 2).due(due);
    }
}

#[test]
fn renewals_leave_together_up_to_a_batch_and_the_shortest_says_how_long_they_take() {
    let mut play = Play::of(Traits { batch: 2, ..PLAIN });
    play.engine(Traits { batch: 9, ..PLAIN });
    let longer = writer("a").with(|options| options.ttl(millis(TTL + 4)));
    for (key, caller) in [("1", longer), ("2", writer("a")), ("3", writer("a")), ("4", writer("a").of(1))] {
        play.holds(Caller { key, ..caller }, 2);
    }
    play.passes(TTL / 3 + 20).does("renew 2 within 3000, renew 1 within 3000, renew 1 within 3001");
}

#[test]
fn a_batch_has_an_answer_for_each_and_is_empty_when_it_is_taken() {
    let mut play = Play::of(PLAIN);
    play.holds(writer("a"), 2).passes(TTL / 3);
    let mut batch = play.renewals.remove(0);
    assert!(matches!(&batch.answered(Vec::new())[..], [Err(error)] if error.kind() == ErrorKind::Indeterminate));
    assert!(matches!(&batch.answered(vec![HELD, NOT_HELD])[..], [Ok(LeaseStatus::Held)]));
    let taken = batch.take();
    assert_eq!((taken.leases.len(), taken.keys.len(), taken.renewals.len()), (1, 1, 1));
    assert!(batch.leases.is_empty() && batch.keys.is_empty() && batch.renewals.is_empty());
    assert_eq!((taken.id, taken.sent_at, taken.within), (batch.id, batch.sent_at, batch.within));
}

#[test]
fn a_renewal_that_failed_is_tried_again_after_a_twelfth_of_the_lease_and_a_second_at_most() {
    for (ttl, pause) in [(6000, 500), (12_000, 1000), (24_000, 1000), (12, 2)] {
        let mut play = Play::of(PLAIN);
        play.holds(writer("a").with(|options| options.ttl(millis(ttl))), 2);
        play.due(ttl / 3).renewed(refused()).due(pause);
    }
}

#[test]
fn a_renewal_that_gets_no_answer_is_tried_again_and_a_late_answer_counts_for_what_it_says() {
    let mut play = Play::of(PLAIN);
    play.holds(writer("a"), 2).due(4000).due(4000).does("renew 1 within 3000, renew 1 within 3000");
    play.clone().renewed(unanswered()).due(3878).does("ends: Lost(Unreachable)");
    play.renewed(HELD).renewed(HELD).does("limit 7878, limit 11878");
}

#[test]
fn a_release_that_failed_is_tried_again_after_pauses_that_grow_for_as_long_as_the_lease() {
    let mut play = Play::of(PLAIN);
    play.holds(writer("a"), 2).drops("a").does("ends: Released, release 1");
    for pause in [20, 40, 80, 160, 320, 640, 1000, 1000] {
        play.released(1, refused()).did.retain(|done| done != "keep 0");
        play.due(pause).does("release failed, release 1");
    }
    play.jumps(TTL - 3260).released(1, refused()).does("release failed, idle 0");
    assert!(play.is_idle(0));
    play.is_done();
}

#[test]
fn a_release_that_gets_no_answer_is_sent_again_until_the_lease_is_over() {
    let mut play = Play::of(PLAIN);
    play.holds(writer("a"), 2).drops("a").does("ends: Released, release 1");
    for _ in 0..5 {
        play.due(2000).does("release 1");
    }
    assert!(!play.is_idle(0));
    play.passes(2000).does("");
    assert!(play.is_idle(0));
    play.is_done();
}

#[test]
fn those_who_wait_ask_when_the_release_is_answered() {
    for answer in [HELD, refused()] {
        let mut play = Play::of(PLAIN);
        play.holds(writer("a"), 2).joins(writer("b").with(|options| options.renew(false)));
        assert_eq!(play.release("a", Some("a")), GuardRelease::Sent);
        play.passes(1000).does("ends: Released, release 1");
        play.released(1, answer).did.retain(|done| done.contains("claim"));
        play.does("claim 2 by b");
    }
}

#[test]
fn what_was_lost_before_is_given_back_by_a_close() {
    let mut play = Play::of(PLAIN);
    play.engine(PLAIN).holds(writer("a"), 2).passes(TTL).joins(writer("b").of(1)).closes(1).did.clear();
    play.closes(0).does("release 1");
    assert_eq!(play.release("a", None), GuardRelease::Gone);
    play.does("");
}

#[test]
fn an_offer_of_a_short_lease_goes_to_the_next_after_a_third_of_it() {
    let mut play = Play::of(PLAIN);
    play.joins(writer("a").with(|options| options.ttl(millis(90)))).claimed(1, granted(2)).due(30);
    play.does("claim 1 by a, a has guard 0, a is called, ends: Released, release 1");
}

#[test]
fn a_reader_that_leaves_others_and_waits_for_the_outcome_has_the_store_asked() {
    let mut play = Play::of(PLAIN);
    play.reads("a").claimed(1, BUSY).reads("b").due(2).claimed(2, granted(2)).comes("a").comes("b").did.clear();
    assert_eq!(play.release("a", Some("a")), GuardRelease::Asked);
    play.renewed(FORCED).does("renew 1 within 3000, ends: Lost(ForceReleased)");
}

#[test]
fn a_grant_that_a_reader_has_is_not_given_back_for_one_who_was_offered_it() {
    let mut play = Play::of(PLAIN);
    play.reads("a").claimed(1, BUSY).reads("b").due(2).claimed(2, granted(2)).comes("a").jumps(TTL);
    play.apply(Event::Tick);
    play.does("claim 1 by a, claim 2, a has guard 0, b has guard 1, ends: Lost(Expired), b is called")
        .drops("a")
        .does("release 2");
}

#[test]
fn what_was_attached_is_neither_waited_for_anew_nor_passed_nor_passed_on() {
    let mut play = Play::of(PLAIN);
    play.attaches("a").taken_over("take over", 1, granted(7)).does("take over 1, a has guard 3");
    let mut forced = play.clone();
    forced.forces().does("ends: Lost(ForceReleased)");
    assert_eq!(forced.collects("a"), Collected::TooLate);
    play.waits("b");
    // Nobody knows what the store has of it.
    assert_eq!(play.clone().comes("a").release("a", None), GuardRelease::Sent);
    play.passes(25).polled("b").does("").comes("a");
}

#[test]
fn a_writer_that_may_not_be_a_reader_is_given_back() {
    for (error, done) in [
        (refused(), "claim failed, release 1, a: Unavailable"),
        (unanswered(), "claim failed, release 2, release 1, a: Indeterminate"),
    ] {
        let mut play = Play::of(PLAIN);
        play.holds(writer("a"), 7).downgrades("a").does("ends: Detached, downgrade 2");
        play.taken_over("downgrade", 2, error).does(done);
    }
}
