use super::*;

/// How many keys are kept whole, and how many are only held.
fn kept(play: &Play) -> (usize, usize) {
    let whole = play.state.keys.iter().filter(|(_, slot)| slot.whole().is_some()).count();
    (whole, play.state.keys.iter().count() - whole)
}

#[test]
fn a_key_is_kept_whole_only_while_something_is_known_beside_its_lease() {
    let (mut play, member) = Play::with(PLAIN);
    assert_eq!(told(&play), (0, false, false));
    let held = play.holds(member, "a", 2);
    assert_eq!((kept(&play), told(&play)), ((0, 1), (1, false, false)));
    let id = play.waits(member, "b");
    assert_eq!((kept(&play), told(&play)), ((1, 0), (1, true, false)));
    assert_eq!(play.collect(id, &held), Collected::NotYet);
    play.apply(Event::Leave(key(), id));
    assert_eq!((kept(&play), told(&play)), ((0, 1), (1, false, false)));
    play.release_guard(held.guard, None);
    assert_eq!((kept(&play), told(&play)), ((1, 0), (0, false, true)));
    play.frees();
    assert_eq!((kept(&play), told(&play)), ((0, 0), (0, false, false)));
}

/// How many leases there are, whether somebody waits, and whether the key is given back.
fn told(play: &Play) -> (usize, bool, bool) {
    let leases = play.state.leases(&key(), None);
    assert_eq!(play.state.leases(&key(), Some(2)), leases);
    assert!(play.state.leases(&key(), Some(3)).is_empty());
    (leases.len(), play.state.is_wanted(&key()), play.state.gives_back(&key()))
}

#[test]
fn a_key_that_is_only_held_is_closed_with_its_engine_and_with_no_other() {
    let (mut play, member) = Play::with(PLAIN);
    let other = play.state.add(PLAIN);
    play.join(other, "b", renewing(), play.now);
    play.answers(Ok(BUSY));
    play.outcome("b");
    play.holds(member, "a", 2);
    assert_eq!(kept(&play), (0, 1));
    play.apply(Event::Close(other));
    assert!(play.ends().is_empty());
    play.apply(Event::Close(member));
    let ends = play.ends();
    assert_eq!(ends, [End::Lost(LossReason::Shutdown)]);
    assert_eq!((ends[0].loss(), End::Released.loss()), (Some(LossReason::Shutdown), None));
}
