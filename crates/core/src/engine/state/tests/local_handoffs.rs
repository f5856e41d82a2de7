use super::*;

/// Whether the guard's lease passes to another of this process.
fn passes(play: &mut Play, held: &Granted<Cell>) -> bool {
    let told = play.release_guard(held.guard, None) == GuardRelease::Passed;
    let counted = play.all(|action| matches!(action, Action::HandedOff).then_some(())).len();
    assert_eq!(counted, usize::from(told));
    told
}

fn aged(play: &mut Play, age: Duration) {
    play.now = play.now.plus(age);
}

#[test]
fn the_next_in_line_has_the_same_grant_with_the_next_number() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    play.waits(member, "b");
    assert!(passes(&mut play, &held));
    let next = play.granted("b");
    assert_eq!((next.number, next.grant().owner, next.grant().epoch), (1, held.grant().owner, Some(2)));
    assert!(play.releases().is_empty());
    assert_ne!(next.guard.guard, held.guard.guard);
    assert_eq!(play.release_guard(held.guard, None), GuardRelease::Gone, "what is over does nothing to its successor");
}

#[test]
fn where_nothing_is_passed_on_nobody_rests() {
    let (mut play, member) = Play::with(Traits { handoffs: 0, ..PLAIN });
    let held = play.holds(member, "a", 2);
    play.waits(member, "b");
    assert!(!passes(&mut play, &held));
    play.frees();
    play.claim();
}

#[test]
fn where_readers_ask_each_for_itself_they_share_nothing() {
    let (mut play, member) = Play::with(Traits { handoffs: 0, ..PLAIN });
    play.reads(member, "a");
    play.reads(member, "b");
    for (request, _) in play.claims() {
        play.answer(request, Ok(BUSY));
    }
    play.pass(millis(2));
    let (request, _) = play.claims().remove(0);
    play.grant(request, 2);
    play.granted("a");
    assert!(play.outcome("b").is_none());
}

#[test]
fn nothing_is_passed_on_at_an_eighth_of_a_short_lease() {
    for (age, passed) in [(4, true), (5, false)] {
        let (mut play, member) = Play::with(PLAIN);
        let options = renewing().ttl(millis(40)).renew(false);
        let held = play.holds_in(member, "a", Mode::Exclusive, options.clone(), 2);
        play.join(member, "b", options, Moment::NEVER);
        aged(&mut play, millis(age));
        assert_eq!(passes(&mut play, &held), passed, "{age} ms");
    }
}

#[test]
fn nobody_rests_for_a_release_that_nobody_waited_for() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    aged(&mut play, millis(10));
    play.release_guard(held.guard, None);
    let (request, _) = play.release();
    play.waits(member, "b");
    play.released(request, Ok(LeaseStatus::Held));
    play.claim();
}

#[test]
fn a_lease_that_is_almost_over_is_not_passed_on() {
    // A quarter of 40 ms has to be left of what the margin leaves, 37.6 ms.
    let traits = Traits { handoff_age: Duration::from_secs(1), ..PLAIN };
    for (asked_before, passed) in [(27_599, true), (27_600, false)] {
        let (mut play, member) = Play::with(traits);
        let options = renewing().ttl(millis(40)).renew(false);
        let id = play.join(member, "a", options.clone(), Moment::NEVER);
        let (request, _) = play.claim();
        aged(&mut play, Duration::from_micros(asked_before));
        play.grant(request, 2);
        let held = play.comes(id, "a");
        play.join(member, "b", options, Moment::NEVER);
        assert_eq!(passes(&mut play, &held), passed, "{asked_before} µs");
    }
}

#[test]
fn readers_who_came_before_their_claim_share_its_grant_each_with_a_number() {
    let (mut play, member) = Play::with(PLAIN);
    play.reads(member, "a");
    play.answers(Ok(BUSY));
    play.reads(member, "b");
    play.join_in(member, "other wish", Mode::Shared, renewing().label("me"), Moment::NEVER);
    play.reads(member, "c");
    play.pass(millis(2));
    let (request, _) = play.claim();
    play.reads(member, "late");
    play.grant(request, 2);
    let [a, b, c] = ["a", "b", "c"].map(|who| play.granted(who));
    assert_eq!([a.number, b.number, c.number], [0, 1, 2]);
    assert!(a.guard.guard != b.guard.guard && b.guard.guard != c.guard.guard);
    assert!(play.outcome("late").is_none() && play.outcome("other wish").is_none());
}

#[test]
fn a_grant_has_as_many_readers_as_its_tokens_have_room_for() {
    let (mut play, member) = Play::with(PLAIN);
    play.reads(member, "first");
    play.answers(Ok(BUSY));
    for _ in 0..70 {
        play.reads(member, "reader");
    }
    play.pass(millis(2));
    play.grants(2);
    let numbers = play.all(|action| match action {
        Action::Wake("reader", Outcome::Granted(granted)) => Some(granted.number),
        _ => None,
    });
    assert_eq!(numbers, (1..=63).collect::<Vec<_>>());
}
