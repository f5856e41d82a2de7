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

/// A reader that does not come for what it was offered.
fn offered_to_a_reader() -> (Play, Member, WaiterId, Granted<Cell>) {
    let (mut play, member) = Play::with(PLAIN);
    let first = play.reads(member, "a");
    play.grants(2);
    let offered = play.granted("a");
    (play, member, first, offered)
}

#[test]
fn a_reader_is_in_the_way_of_no_other() {
    let (mut play, member, first, offered) = offered_to_a_reader();
    let second = play.reads(member, "b");
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
