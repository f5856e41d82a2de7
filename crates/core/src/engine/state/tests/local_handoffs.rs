use super::*;

/// What the next in line wishes, beside a holder with plain wishes.
fn passes_to(traits: Traits, mode: Mode, options: LockOptions) -> bool {
    let (mut play, member) = Play::with(traits);
    let held = play.holds(member, "a", 2);
    play.join_in(member, "b", mode, options, Moment::NEVER);
    passes(&mut play, &held)
}

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
    let (request, _) = play.release();
    play.released(request, Ok(LeaseStatus::Held));
    play.claim();
}

#[test]
fn where_readers_ask_each_for_itself_they_share_nothing() {
    let (mut play, member) = Play::with(Traits { handoffs: 0, ..PLAIN });
    reads(&mut play, member, "a", renewing());
    reads(&mut play, member, "b", renewing());
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
fn only_who_wishes_the_same_has_it() {
    let same = |options| passes_to(PLAIN, Mode::Exclusive, options);
    assert!(same(renewing()));
    assert!(!same(renewing().ttl(TTL * 2)));
    assert!(!same(renewing().renew(false)));
    assert!(!same(renewing().label("me")));
    assert!(!same(renewing().reason("because")));
    assert!(!same(renewing().max_hold(TTL)));
    assert!(!passes_to(PLAIN, Mode::Shared, renewing()));
}

#[test]
fn who_has_the_same_label_and_reason_wishes_the_same() {
    let plain = renewing();
    for options in [plain.clone().label("me"), plain.clone().reason("because"), plain.label("me").reason("because")] {
        let (mut play, member) = Play::with(PLAIN);
        let id = play.join(member, "a", options.clone(), Moment::NEVER);
        let (request, _) = play.claim();
        play.grant(request, 2);
        let held = play.granted("a");
        play.collect(id, &held);
        play.join(member, "b", options, Moment::NEVER);
        assert!(passes(&mut play, &held));
    }
}

#[test]
fn what_has_a_cap_is_not_passed_on() {
    let (mut play, member) = Play::with(PLAIN);
    let id = play.join(member, "a", renewing().max_hold(TTL), Moment::NEVER);
    let (request, _) = play.claim();
    play.grant(request, 2);
    let held = play.granted("a");
    play.collect(id, &held);
    play.waits(member, "b");
    assert!(!passes(&mut play, &held));
}

#[test]
fn only_an_engine_that_may_passes_on_and_only_to_its_own() {
    assert!(!passes_to(Traits { handoffs: 0, ..PLAIN }, Mode::Exclusive, renewing()));
    let (mut play, member) = Play::with(PLAIN);
    let other = play.state.add(PLAIN);
    let held = play.holds(member, "a", 2);
    play.waits(other, "b");
    assert!(!passes(&mut play, &held));
}

#[test]
fn nothing_is_passed_on_at_the_bound_or_at_its_age() {
    for (age, passed) in [(9, true), (10, false)] {
        let (mut play, member) = Play::with(PLAIN);
        let held = play.holds(member, "a", 2);
        play.waits(member, "b");
        aged(&mut play, millis(age));
        assert_eq!(passes(&mut play, &held), passed, "{age} ms");
    }
    let (mut play, member) = Play::with(Traits { handoffs: 1, ..PLAIN });
    let held = play.holds(member, "a", 2);
    let id = play.waits(member, "b");
    play.waits(member, "c");
    assert!(passes(&mut play, &held));
    let next = play.granted("b");
    play.collect(id, &next);
    assert!(!passes(&mut play, &next));
}

#[test]
fn nothing_is_passed_on_at_an_eighth_of_a_short_lease() {
    for (age, passed) in [(4, true), (5, false)] {
        let (mut play, member) = Play::with(PLAIN);
        let options = renewing().ttl(millis(40)).renew(false);
        let id = play.join(member, "a", options.clone(), Moment::NEVER);
        let (request, _) = play.claim();
        play.grant(request, 2);
        let held = play.granted("a");
        play.collect(id, &held);
        play.join(member, "b", options, Moment::NEVER);
        aged(&mut play, millis(age));
        assert_eq!(passes(&mut play, &held), passed, "{age} ms");
    }
}

#[test]
fn after_the_bound_others_have_a_moment_where_the_store_has_no_queue() {
    for (queues, rest) in [(false, 2), (true, 0)] {
        let (mut play, member) = Play::with(Traits { queues, ..PLAIN });
        let held = play.holds(member, "a", 2);
        play.waits(member, "b");
        aged(&mut play, millis(10));
        assert!(!passes(&mut play, &held));
        let (request, _) = play.release();
        play.released(request, Ok(LeaseStatus::Held));
        if rest > 0 {
            assert!(play.claims().is_empty());
            assert_eq!(play.state.next(), play.now.plus(millis(rest)));
            play.pass(millis(rest));
        }
        play.claim();
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
fn who_is_at_its_limit_does_not_rest() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    play.join(member, "b", renewing(), play.now.plus(millis(11)));
    aged(&mut play, millis(10));
    assert!(!passes(&mut play, &held));
    let (request, _) = play.release();
    play.released(request, Ok(LeaseStatus::Held));
    play.pass(millis(1));
    play.claim();
}

#[test]
fn nothing_is_passed_on_while_a_renewal_is_in_doubt() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    play.waits(member, "b");
    play.ask(|state, at| state.renew_now(at, &held.guard, "a"));
    let batch = play.renewals().remove(0);
    assert!(!passes(&mut play.fork(), &held));
    play.apply(Event::Renewed(batch, vec![Ok(LeaseStatus::Held)]));
    assert!(passes(&mut play, &held));
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
        let held = play.granted("a");
        play.collect(id, &held);
        play.join(member, "b", options, Moment::NEVER);
        assert_eq!(passes(&mut play, &held), passed, "{asked_before} µs");
    }
}

fn reads(play: &mut Play, member: Member, who: &'static str, options: LockOptions) -> WaiterId {
    play.join_in(member, who, Mode::Shared, options, Moment::NEVER)
}

#[test]
fn readers_who_came_before_their_claim_share_its_grant_each_with_a_number() {
    let (mut play, member) = Play::with(PLAIN);
    reads(&mut play, member, "a", renewing());
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    reads(&mut play, member, "b", renewing());
    reads(&mut play, member, "other wish", renewing().label("me"));
    reads(&mut play, member, "c", renewing());
    play.pass(millis(2));
    let (request, _) = play.claim();
    reads(&mut play, member, "late", renewing());
    play.grant(request, 2);
    let [a, b, c] = ["a", "b", "c"].map(|who| play.granted(who));
    assert_eq!([a.number, b.number, c.number], [0, 1, 2]);
    assert!(a.guard.guard != b.guard.guard && b.guard.guard != c.guard.guard);
    assert!(play.outcome("late").is_none() && play.outcome("other wish").is_none());
}

#[test]
fn readers_behind_a_writer_share_nothing_before_it() {
    let (mut play, member) = Play::with(PLAIN);
    reads(&mut play, member, "a", renewing());
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    play.waits(member, "w");
    reads(&mut play, member, "b", renewing());
    play.pass(millis(2));
    let (request, _) = play.claim();
    play.grant(request, 2);
    play.granted("a");
    assert!(play.outcome("b").is_none() && play.outcome("w").is_none());
}

#[test]
fn a_grant_that_is_almost_over_is_not_shared() {
    let (mut play, member) = Play::with(PLAIN);
    let options = || renewing().ttl(millis(40)).renew(false);
    reads(&mut play, member, "a", options());
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    reads(&mut play, member, "b", options());
    play.pass(millis(2));
    let (request, _) = play.claim();
    aged(&mut play, millis(30));
    play.grant(request, 2);
    play.granted("a");
    assert!(play.outcome("b").is_none());
}

#[test]
fn a_grant_has_as_many_readers_as_its_tokens_have_room_for() {
    let (mut play, member) = Play::with(PLAIN);
    reads(&mut play, member, "first", renewing());
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    for _ in 0..70 {
        reads(&mut play, member, "reader", renewing());
    }
    play.pass(millis(2));
    let (request, _) = play.claim();
    play.grant(request, 2);
    let numbers = play.all(|action| match action {
        Action::Wake("reader", Outcome::Granted(granted)) => Some(granted.number),
        _ => None,
    });
    assert_eq!(numbers, (1..=63).collect::<Vec<_>>());
}
