use super::*;

/// An engine of a session that lost a lease, whose guard is gone.
fn that_lost(epoch: u64, traits: Traits) -> Play {
    let mut play = Play::of(traits);
    play.holds(writer("lost"), epoch).forces().drops("lost").did.clear();
    play
}

#[test]
fn a_level_that_may_have_been_claimed_twice_is_given_back_twice_and_once_if_its_lease_was_lost_meanwhile() {
    let mut play = Play::of(Traits { queues: true, ..session(1) });
    play.holds(writer("outer"), 2).waits("inner").claimed(2, unanswered()).due(20).did.clear();
    let mut lost = play.clone();
    play.claimed(2, granted(2)).comes("inner").drops("inner").does("inner has guard 0, limit 11878, release 2");
    play.released(2, HELD).due(1000).does("release 2");
    lost.forces().drops("outer").claimed(2, granted(2)).passes(20);
    lost.does("ends: Lost(ForceReleased), inner is detached, inner: Lost(ForceReleased), release 2, claim failed");
}

#[test]
fn a_session_that_cannot_give_back_hears_so_at_the_end_of_its_wait() {
    let mut play = Play::of(session(1));
    play.holds(writer("a"), 2).drops("a").tries("b").waits("c").released(1, refused());
    play.does("ends: Released, release 1, release failed, keep 0, b: Unavailable");
}

#[test]
fn a_session_that_hears_that_another_has_its_key_has_lost_it() {
    let mut play = Play::of(session(1));
    play.holds(writer("outer"), 2).waits("inner").claimed(2, held_by(2));
    play.does("claim 2 by inner, ends: Lost(Stolen), inner: Lost(Stolen)");
}

#[test]
fn a_session_behind_others_asks_where_it_has_the_key_itself_for_one_level_after_the_other() {
    let mut play = Play::of(session(1));
    play.engine(session(2)).holds(writer("outer"), 2).joins(writer("other").of(1)).does("");
    play.waits("a").waits("b").does("claim 2");
    play.claimed(2, granted(2)).does("a has guard 0, limit 11878, claim 3");
}

#[test]
fn what_another_session_lost_keeps_nobody_from_asking() {
    let mut play = Play::of(session(1));
    play.engine(session(2)).engine(session(3)).holds(writer("lost"), 2).forces().did.clear();
    play.joins(writer("first").of(2)).joins(writer("second").of(1)).claimed(2, held_by(2));
    play.does("claim 2 by first, first is detached, claim 3");
    play.claimed(3, granted(3)).does("second has guard 0");
}

#[test]
fn a_session_tells_the_store_the_newest_epoch_that_it_lost() {
    let mut play = that_lost(5, session(1));
    play.tries("a").claimed(2, BUSY).does("last claim 2 that lost 5 by a, a: busy");
    play.holds(writer("lost"), 6).forces().drops("lost").did.clear();
    play.tries("a").engine(session(1)).joins(writer("other").of(1).within(0)).claimed(4, BUSY);
    play.does("last claim 4 that lost 6 by a, a is detached, a: busy, last claim 5 by other");
}

#[test]
fn what_was_lost_is_known_for_as_long_as_the_store_says_that_it_has_it() {
    let mut play = that_lost(5, session(1));
    play.engine(session(2));
    for (asks, (engine, session, words)) in
        (2..).zip([(1, 2, "last claim 3 by a"), (0, 2, "last claim 4 by a"), (0, 1, "last claim 5 that lost 5 by a")])
    {
        let answer = Attempt::HeldBy { session: SessionId(session), retry_in: Some(millis(TTL * 2)) };
        play.joins(writer("a").of(engine).within(0)).claimed(asks, Ok(answer)).did.clear();
        play.clone().jumps(TTL + 65_000).tries("a").does(words);
    }
}

#[test]
fn a_place_that_brought_a_lost_lease_is_not_asked_for_again() {
    let mut play = that_lost(5, Traits { queues: true, ..session(1) });
    play.waits("a").claimed(2, queued(10, TTL, false)).due(2);
    play.does("claim 2 that lost 5 by a, claim 2 that lost 5 by a");
    play.claimed(2, granted(5)).released(2, HELD).passes(1000);
    play.does("release 2, claim failed, claim 3 that lost 5 by a");
}

#[test]
fn a_closed_engine_has_lost_nothing() {
    let mut play = that_lost(5, session(1));
    play.clone().closes(0).is_done();
    play.clone().removes(0).is_done();
    play.engine(session(2)).joins(writer("b").of(1)).closes(1).removes(1).did.clear();
    play.tries("a").does("last claim 3 that lost 5 by a");
}

#[test]
fn a_level_that_its_own_cap_ended_is_taken_again_beside_another_of_its_session() {
    let mut play = Play::of(session(1));
    play.engine(session(1)).holds(writer("outer").of(1), 5);
    play.joins(writer("inner").with(|options| options.max_hold(millis(100)))).claimed(2, granted(5)).did.clear();
    play.jumps(100).apply(Event::Tick).does("ends: Lost(MaxHold), inner is called, release 2");
    play.drops("inner").released(2, HELD).tries("a").does("last claim 3 by a");
}
