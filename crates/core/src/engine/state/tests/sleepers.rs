use super::*;

/// Callers behind a lease that was just offered to the first of them, who does not come for it.
struct Asleep {
    play: Play,
    ids: Vec<WaiterId>,
    offered: Granted<Cell>,
}

fn asleep(wishes: impl IntoIterator<Item = (&'static str, Mode, LockOptions)>) -> Asleep {
    // A lease may pass from guard to guard for as long as the test takes.
    let (mut play, member) = Play::with(Traits { handoff_age: TTL, ..PLAIN });
    let held = play.holds(member, "holder", 2);
    let wishes: Vec<_> = wishes.into_iter().collect();
    let joins =
        wishes.iter().map(|(who, mode, options)| play.join_in(member, who, *mode, options.clone(), Moment::NEVER));
    let ids = joins.collect();
    play.release_guard(held.guard, None);
    let offered = play.granted(wishes[0].0);
    Asleep { play, ids, offered }
}

fn alike(names: &[&'static str]) -> Asleep {
    asleep(names.iter().map(|name| (*name, Mode::Exclusive, renewing())))
}

#[test]
fn of_many_who_are_not_polled_the_next_who_is_waits_for_fifty_milliseconds() {
    for options in [renewing(), renewing().label("me"), renewing().max_hold(TTL)] {
        let names: [&'static str; 1001] =
            std::array::from_fn(|index| &*Box::leak(format!("waiter {index}").into_boxed_str()));
        let wish = |name| (name, Mode::Exclusive, if name == names[1000] { options.clone() } else { renewing() });
        let Asleep { mut play, ids, offered } = asleep(names.into_iter().map(wish));
        play.pass(millis(50));
        assert!(play.called().contains(&names[1000]));
        play.polled(ids[1000]);
        if options == renewing() {
            play.granted(names[1000]);
        } else {
            let (request, _) = play.release();
            play.released(request, Ok(LeaseStatus::Held));
            let (request, _) = play.claim();
            play.grant(request, 3);
            play.granted(names[1000]);
        }
        assert_eq!(play.collect(ids[0], &offered), Collected::NotYet, "it keeps its place");
    }
}

#[test]
fn who_was_passed_is_back_in_its_place_when_it_is_polled() {
    let Asleep { mut play, ids, .. } = alike(&["a", "b", "c"]);
    play.pass(millis(20));
    assert_eq!(play.called(), ["b"]);
    play.polled(ids[1]);
    let granted = play.granted("b");
    play.collect(ids[1], &granted);
    // While it is not polled, those behind it go first.
    let mut fork = play.fork();
    fork.release_guard(granted.guard, None);
    fork.granted("c");
    assert_eq!(play.called(), ["a"]);
    play.polled(ids[0]);
    play.release_guard(granted.guard, None);
    play.granted("a");
}

#[test]
fn who_comes_late_has_its_guard_if_nobody_else_is_polled() {
    let Asleep { mut play, ids, offered } = alike(&["a", "b"]);
    play.pass(millis(25));
    assert!(play.state.next() > play.now.plus(millis(100)), "all are called, and it is looked at again");
    play.pass(millis(875));
    assert_eq!(play.called(), ["b"], "once");
    assert_eq!(play.collect(ids[0], &offered), Collected::Yes);
    play.polled(ids[1]);
    play.release_guard(offered.guard, None);
    play.granted("b");
}

#[test]
fn on_a_machine_on_which_all_come_late_somebody_comes_in_time() {
    let Asleep { mut play, ids, .. } = alike(&["a", "b"]);
    // Each is polled just after the other was called, and so passes it.
    for (turn, wait) in [20, 40, 80, 160, 320].into_iter().enumerate() {
        let (offered, called) = [(0, 1), (1, 0)][turn % 2];
        play.out.clear();
        play.pass(millis(wait - 1));
        assert!(play.called().is_empty());
        play.pass(millis(1));
        assert_eq!(play.called(), [["a", "b"][called]]);
        play.polled(ids[called]);
        play.polled(ids[offered]);
    }
}

#[test]
fn readers_and_writers_are_called_behind_a_writer_and_pass_it() {
    for second in [Mode::Shared, Mode::Exclusive] {
        let wishes = [("a", Mode::Exclusive, renewing()), ("b", second, renewing())];
        let Asleep { mut play, ids, offered } = asleep(wishes);
        play.pass(millis(25));
        assert_eq!(play.called(), ["b"]);
        play.polled(ids[1]);
        assert_eq!(play.collect(ids[0], &offered), Collected::NotYet, "it was passed by a {second} one");
    }
}

/// A reader that does not come for what it was offered.
fn offered_to_a_reader() -> (Play, Member, WaiterId, Granted<Cell>) {
    let (mut play, member) = Play::with(PLAIN);
    let first = play.join_in(member, "a", Mode::Shared, renewing(), Moment::NEVER);
    let (request, _) = play.claim();
    play.grant(request, 2);
    let offered = play.granted("a");
    (play, member, first, offered)
}

#[test]
fn a_reader_is_in_the_way_of_no_other() {
    let (mut play, member, first, offered) = offered_to_a_reader();
    let second = play.join_in(member, "b", Mode::Shared, renewing(), Moment::NEVER);
    play.pass(millis(25));
    assert!(play.called().is_empty());
    // Also where it was called for a writer.
    play.join(member, "c", renewing(), Moment::NEVER);
    play.pass(millis(25));
    assert!(!play.called().is_empty());
    play.polled(second);
    assert_eq!(play.collect(first, &offered), Collected::Yes);
}

#[test]
fn a_writer_is_called_behind_a_reader_and_passes_it() {
    let (mut play, member, first, offered) = offered_to_a_reader();
    let second = play.join(member, "b", renewing(), Moment::NEVER);
    play.pass(millis(25));
    assert_eq!(play.called(), ["b"]);
    play.polled(second);
    assert_eq!(play.collect(first, &offered), Collected::NotYet);
}

#[test]
fn whose_runtime_carries_no_claims_is_passed() {
    let (mut play, member) = Play::with(PLAIN);
    let first = play.waits(member, "a");
    play.claim();
    let second = play.waits(member, "b");
    play.pass(Duration::from_secs(2));
    assert_eq!(play.called(), ["a"]);
    let (request, _) = play.release();
    play.released(request, Ok(LeaseStatus::NotHeld));
    let (request, _) = play.claim();
    play.grant(request, 2);
    let granted = play.granted("b");
    assert_eq!(play.collect(second, &granted), Collected::Yes);
    play.polled(first);
    play.release_guard(granted.guard, None);
    play.granted("a");
}

#[test]
fn whose_max_hold_ends_before_it_comes_does_not_ask_again() {
    let (mut play, member) = Play::with(PLAIN);
    let first = play.join(member, "a", renewing().max_hold(millis(15)), Moment::NEVER);
    let (request, _) = play.claim();
    play.waits(member, "b");
    play.grant(request, 2);
    let offered = play.granted("a");
    play.pass(millis(15));
    assert_eq!(play.ends(), [End::Lost(LossReason::MaxHold)]);
    let (request, _) = play.release();
    play.released(request, Ok(LeaseStatus::Held));
    let (request, _) = play.claim();
    play.grant(request, 3);
    play.granted("b");
    assert_eq!(play.collect(first, &offered), Collected::NotYet, "it keeps its place");
}
