use super::*;

#[test]
fn who_joins_hears_whether_it_stands_behind_others() {
    let mut play = Play::of(PLAIN);
    assert_eq!(["a", "b"].map(|name| play.join(writer(name))), [false, true]);
}

#[test]
fn who_stood_behind_another_past_its_limit_hears_what_that_one_heard_unless_an_answer_is_outstanding() {
    let mut play = Play::of(PLAIN);
    play.joins(writer("a").within(30)).joins(writer("b").within(30)).claimed(1, BUSY);
    // The process stands still past both limits.
    play.clone().jumps(1000).waits("c").does("claim 1 by a, a is detached, a: busy, b: busy, claim 2 by c");
    play.due(2).jumps(1000).waits("c").does("claim 1 by a, a is detached, claim 2, a: busy, b: Indeterminate");
}

#[test]
fn readers_ask_at_once_where_they_share_no_grant_and_up_to_the_first_writer() {
    let mut play = Play::of(APART);
    play.reads("a").reads("b").waits("w").reads("c").does("claim 1 by a, a is detached, claim 2");
    play.claimed(1, BUSY).claimed(2, BUSY).due(2).does("claim 3, claim 4");
    play.claimed(3, granted(2)).does("a has guard 0");
}

#[test]
fn who_hears_that_the_key_is_held_hears_for_how_long_if_there_is_an_end() {
    Play::of(PLAIN).holds(writer("a"), 2).jumps(7).tries("b").does("b: busy for 11871");
    Play::of(Traits { leased: false, ..PLAIN }).holds(writer("a"), 2).tries("b").does("b: busy");
    Play::of(PLAIN).waits("a").claimed(1, BUSY).tries("b").does("claim 1 by a, b: busy");
    let left = Ok(Attempt::Busy { retry_in: Some(millis(50)) });
    let mut play = Play::of(PLAIN);
    play.waits("a").claimed(1, left).tries("b").jumps(50).tries("b");
    play.does("claim 1 by a, b: busy for 50, claim 2, b: busy");
}

#[test]
fn a_try_behind_what_a_caller_left_under_way_is_answered_when_its_own_claim_would_be() {
    let mut play = Play::of(PLAIN);
    play.waits("a").leaves("a").tries("b").jumps(1000).claimed(1, unanswered());
    play.does("claim 1 by a, a is detached, claim failed, release 1");
    play.jumps(249).times_up("b").does("");
    play.jumps(1).times_up("b").does("b: Indeterminate");
}

#[test]
fn the_next_in_line_has_the_same_grant_with_the_next_number() {
    let mut play = Play::of(PLAIN);
    play.holds(writer("a"), 2).waits("b");
    let before = play.guards["a"].clone();
    assert_eq!(play.release("a", None), GuardRelease::Passed);
    play.does("b has guard 1, handed off");
    let next = &play.guards["b"];
    assert_eq!((next.owner, &next.cell, next.guard.lease), (before.owner, &before.cell, before.guard.lease));
    assert_eq!(play.release("a", None), GuardRelease::Gone, "what is over does nothing to its successor");
}

#[test]
fn where_nothing_is_passed_on_nobody_rests_and_not_behind_a_release_that_nobody_waited_for() {
    let mut play = Play::of(APART);
    play.holds(writer("a"), 2).waits("b").drops("a").released(1, HELD);
    play.does("ends: Released, release 1, claim 2 by b");
    let mut play = Play::of(PLAIN);
    play.holds(writer("a"), 2).jumps(10).drops("a").waits("b").released(1, HELD);
    play.does("ends: Released, release 1, claim 2 by b");
}

#[test]
fn nothing_is_passed_on_at_an_eighth_of_a_short_lease_or_when_less_than_a_quarter_is_left() {
    let brief = |name| writer(name).with(|options| options.ttl(millis(40)).renew(false));
    for (age, passes) in [(4, GuardRelease::Passed), (5, GuardRelease::Sent)] {
        let mut play = Play::of(PLAIN);
        play.holds(brief("a"), 2).joins(brief("b")).jumps(age);
        assert_eq!(play.release("a", None), passes, "{age} ms");
    }
    // Of what the margin leaves, 37.6 ms.
    for (asked_before, passes) in [(27_599, GuardRelease::Passed), (27_600, GuardRelease::Sent)] {
        let mut play = Play::of(Traits { handoff_age: millis(1000), ..PLAIN });
        play.joins(brief("a"));
        play.now = play.now.plus(Duration::from_micros(asked_before));
        play.claimed(1, granted(2)).comes("a").joins(brief("b"));
        assert_eq!(play.release("a", None), passes, "{asked_before} µs");
    }
}

#[test]
fn only_what_is_alike_is_served_by_a_hand_off() {
    let changes: [fn(LockOptions) -> LockOptions; 5] = [
        |options| options.ttl(millis(TTL / 2)),
        |options| options.reason("another"),
        |options| options.label("another"),
        |options| options.renew(false),
        |options| options.max_hold(millis(TTL)),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut play = Play::of(PLAIN);
        play.holds(writer("a"), 2).joins(writer("b").with(change));
        assert_eq!(play.release("a", None), GuardRelease::Sent, "{number}");
    }
}

#[test]
fn readers_who_came_before_their_claim_share_its_grant_as_far_as_numbers_go() {
    let mut play = Play::of(PLAIN);
    play.reads("a").claimed(1, BUSY).reads("b").joins(reader("c").with(|options| options.label("me"))).reads("d");
    play.due(2).reads("late").did.clear();
    play.claimed(2, granted(2)).does("a has guard 0, b has guard 1, d has guard 2, claim 3");
    assert!(play.guards["a"].guard != play.guards["b"].guard && play.guards["b"].guard != play.guards["d"].guard);
    let mut play = Play::of(PLAIN);
    play.reads("a").claimed(1, BUSY);
    for _ in 0..70 {
        play.reads("b");
    }
    play.due(2).did.clear();
    play.claimed(2, granted(2));
    let numbers = (0..64).map(|number| format!("{} has guard {number}", if number == 0 { "a" } else { "b" }));
    play.does(&numbers.chain(["claim 3".to_owned()]).collect::<Vec<_>>().join(", "));
}

/// Callers behind a lease that was just offered to the first of them, who does not come for it.
fn asleep(names: &[&'static str]) -> Play {
    // A lease may pass from guard to guard for as long as the test takes.
    let mut play = Play::of(Traits { handoff_age: millis(TTL), ..PLAIN });
    play.holds(writer("holder"), 2);
    names.iter().fold(&mut play, |play, name| play.waits(name)).drops("holder").did.clear();
    play
}

#[test]
fn who_comes_late_has_its_guard_if_nobody_else_is_polled() {
    let mut play = asleep(&["a", "b"]);
    play.due(20).passes(5);
    assert!(play.state.next() > play.now.plus(millis(100)), "all are called");
    play.passes(875).does("b is called").comes("a").polled("b").drops("a").does("b has guard 2, handed off");
}

#[test]
fn on_a_machine_on_which_all_come_late_somebody_comes_in_time() {
    let mut play = asleep(&["a", "b"]);
    // Each is polled just after the other was called, and so passes it.
    for (turn, wait) in [20, 40, 80, 160, 320].into_iter().enumerate() {
        let (offered, called) = [("a", "b"), ("b", "a")][turn % 2];
        play.due(wait).does(&format!("{called} is called")).polled(called).polled(offered).did.clear();
    }
}

#[test]
fn a_reader_is_in_the_way_of_writers_alone() {
    let mut play = Play::of(PLAIN);
    play.reads("a").claimed(1, granted(2)).did.clear();
    let mut passed = play.clone();
    passed.waits("b").due(20).does("claim 2 by b, b is called");
    passed.polled("b").does("a is called, ends: Released, b is detached, release 1");
    assert_eq!(passed.collects("a"), Collected::NotYet);
    // Also where it was called for a writer.
    play.reads("b").passes(25).waits("c").passes(25).polled("b");
    play.does("claim 2 by b, b is detached, b is called, c is called").comes("a");
}
