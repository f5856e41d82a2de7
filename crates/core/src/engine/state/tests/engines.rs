use super::*;
use crate::LossReason;
use crate::engine::state::End;

#[test]
fn of_an_engine_that_is_gone_no_release_is_left_and_no_attach_and_of_another_all() {
    let mut play = Play::of(PLAIN);
    play.holds(writer("a"), 2).drops("a").attaches("b").removes(0).is_done();
    assert_eq!(play.state.keys.iter().count(), 0);
    let mut play = Play::of(APART);
    play.engine(APART).holds(reader("a"), 2).joins(reader("b").of(1)).claimed(2, granted(3));
    play.joins(reader("c").of(1)).removes(0).comes("b").did.clear();
    assert_eq!(play.state.leases(&key(), None), [play.guards["b"].guard.lease]);
    play.claimed(3, granted(4)).does("c has guard 0");
}

#[test]
fn a_closed_engine_that_waits_no_longer_is_idle_at_once_and_leaves_the_releases_of_others() {
    let mut play = Play::of(PLAIN);
    play.engine(PLAIN).holds(writer("a"), 2).closes(0).drops("a").does("ends: Lost(Shutdown), release 1");
    play.joins(writer("b").of(1)).abandons(1).does("");
    assert!(!play.is_idle(0), "what another waits for is its own business");
    play.abandons(0).passes(20_000).does("idle 0, claim 2 by b");
    assert!(play.is_idle(0));
}

#[test]
fn an_answer_is_waited_for_as_long_as_answers_usually_take_twice_and_not_for_less_than_a_moment() {
    let mut play = Play::of(PLAIN);
    let waits = |play: &Play| play.state.latest(play.engines[0], play.now).since(play.now).as_millis();
    assert_eq!(waits(play.waits("a")), 200);
    // Those that are heard late say nothing, unless all of ten seconds are.
    let answers = [(840, 200), (40, 80), (840, 80), (10, 50), (800, 50), (8000, 50), (8000, 1000), (40, 80)];
    for ((took, waited), pause) in answers.into_iter().zip([2, 4, 8, 16, 32, 50, 50, 50]) {
        let last = play.owners;
        play.jumps(took).claimed(last, BUSY);
        assert_eq!(waits(&play), waited, "after {took} ms");
        play.passes(pause);
    }
}

#[test]
fn a_guard_that_asks_for_a_renewal_or_detaches_hears_whether_it_is_held() {
    let mut play = Play::of(PLAIN);
    let guard = play.holds(writer("a"), 2).guards["a"].guard;
    for is_held in [true, false] {
        assert!(play.ask(|state, at| state.renew_now(at, &guard, "a")) == is_held);
        assert!(play.ask(|state, at| state.detach(at, &guard)) == is_held);
    }
    play.does("renew 1 within 3000, ends: Detached");
}

#[test]
fn a_subscription_ends_with_its_engine_also_where_only_others_wait() {
    let mut play = Play::of(NOTIFIES);
    play.engine(NOTIFIES).waits("a").joins(writer("b").of(1)).claimed(1, BUSY).subscribed().claimed(2, BUSY);
    let is_subscribed = |play: &Play| play.state.is_subscribed(play.subscription.unwrap());
    assert!(is_subscribed(play.leaves("a")));
    assert!(!is_subscribed(play.closes(0)));
}

/// How many keys are kept whole and how many are only held, how many leases there are, whether somebody waits, and whether the key
/// is given back.
fn known(play: &Play) -> (usize, usize, usize, bool, bool) {
    let (all, leases) = (play.state.keys.iter().count(), play.state.leases(&key(), None));
    let whole = play.state.keys.iter().filter(|(_, slot)| slot.whole().is_some()).count();
    assert_eq!((play.state.leases(&key(), Some(2)), play.state.leases(&key(), Some(3)).len()), (leases.clone(), 0));
    (whole, all - whole, leases.len(), play.state.is_wanted(&key()), play.state.gives_back(&key()))
}

#[test]
fn a_key_is_kept_whole_only_while_something_is_known_beside_its_lease() {
    let mut play = Play::of(PLAIN);
    assert_eq!(known(&play), (0, 0, 0, false, false));
    assert_eq!(known(play.holds(writer("a"), 2)), (0, 1, 1, false, false));
    assert_eq!(known(play.waits("b")), (1, 0, 1, true, false));
    play.guards.insert("b", play.guards["a"].clone());
    assert_eq!(play.collects("b"), Collected::NotYet);
    assert_eq!(known(play.leaves("b")), (0, 1, 1, false, false));
    assert_eq!(known(play.drops("a")), (1, 0, 0, false, true));
    assert_eq!(known(play.released(1, HELD)), (0, 0, 0, false, false));
}

#[test]
fn a_key_that_is_only_held_is_closed_with_its_engine_and_with_no_other() {
    let mut play = Play::of(PLAIN);
    play.engine(PLAIN).joins(writer("b").of(1).within(0)).claimed(1, BUSY).holds(writer("a"), 2);
    play.closes(1).does("").closes(0).does("ends: Lost(Shutdown), release 2");
    assert_eq!((End::Lost(LossReason::Shutdown).loss(), End::Released.loss()), (Some(LossReason::Shutdown), None));
}
