use super::*;

/// A key that was released to the first of these, who do not come for it.
fn asleep(names: &[&'static str]) -> (Play, Vec<WaiterId>, Granted<Cell>) {
    let (mut play, member) = Play::with(Traits { handoff_age: TTL, ..PLAIN });
    let held = play.holds(member, "holder", 2);
    let ids = names.iter().map(|name| play.waits(member, name)).collect();
    play.release_guard(held.guard, None);
    let granted = play.granted(names[0]);
    (play, ids, granted)
}

#[test]
fn of_many_who_are_not_polled_the_next_who_is_waits_for_fifty_milliseconds() {
    let names: [&'static str; 101] =
        std::array::from_fn(|index| &*Box::leak(format!("waiter {index}").into_boxed_str()));
    let (mut play, ids, offered) = asleep(&names);
    play.pass(millis(50));
    let granted = play.granted(names[100]);
    assert_eq!(granted.guard, offered.guard);
    assert_eq!(play.collect(ids[100], &granted), Collected::NotYet);
    assert!(play.take_up(ids[100], &granted));
    assert_eq!(play.collect(ids[0], &offered), Collected::NotYet, "it keeps its place");
    assert!(!play.take_up(ids[0], &offered));
    // Only the one that was polled since counts as awake, so the others delay the next turn by nothing.
    play.out.clear();
    play.release_guard(granted.guard, None);
    play.granted(names[0]);
}

#[test]
fn who_was_passed_has_its_turn_when_it_is_polled() {
    let (mut play, ids, offered) = asleep(&["a", "b", "c"]);
    play.pass(millis(20));
    let granted = play.granted("b");
    assert!(play.take_up(ids[1], &granted));
    // While it is not polled, those behind it go first.
    let mut fork = play.fork();
    fork.release_guard(granted.guard, None);
    fork.granted("c");
    assert!(!play.take_up(ids[0], &offered));
    play.release_guard(granted.guard, None);
    play.granted("a");
}

#[test]
fn who_comes_in_time_has_the_guard_and_the_others_wait_on() {
    let (mut play, ids, offered) = asleep(&["a", "b"]);
    play.pass(millis(20));
    play.granted("b");
    assert_eq!(play.collect(ids[0], &offered), Collected::Yes);
    assert!(!play.take_up(ids[1], &offered));
    play.release_guard(offered.guard, None);
    play.granted("b");
}

#[test]
fn an_offer_goes_only_to_who_wants_the_same() {
    let others: [(LockOptions, Mode); 3] = [
        (renewing(), Mode::Shared),
        (renewing().ttl(TTL * 2), Mode::Exclusive),
        (renewing().max_hold(TTL), Mode::Exclusive),
    ];
    for (options, mode) in others {
        let (mut play, member) = Play::with(PLAIN);
        let held = play.holds(member, "holder", 2);
        play.waits(member, "a");
        play.join_in(member, "b", mode, options, Moment::NEVER);
        play.release_guard(held.guard, None);
        play.granted("a");
        play.pass(millis(100));
        assert!(play.outcome("b").is_none());
    }
}

#[test]
fn a_grant_is_not_for_who_sleeps_if_another_wants_the_same() {
    let (mut play, ids, _) = asleep(&["a", "b", "c"]);
    play.pass(millis(20));
    let granted = play.granted("b");
    assert!(play.take_up(ids[1], &granted));
    // The lease is lost, and the first in the queue asks.
    play.apply(Event::ForceReleased { key: key(), leases: vec![granted.guard.lease] });
    let (request, _) = play.claim();
    play.grant(request, 3);
    play.granted("c");
}
