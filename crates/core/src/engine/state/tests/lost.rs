use super::*;

/// An engine of a session that lost a lease, whose guard is gone.
fn that_lost(traits: Traits, epoch: u64) -> (Play, Member) {
    let (mut play, member) = Play::with(traits);
    loses(&mut play, member, epoch);
    (play, member)
}

fn loses(play: &mut Play, member: Member, epoch: u64) {
    let held = play.holds(member, "lost", epoch);
    play.forces();
    play.release_guard(held.guard, None);
}

/// What the store is told with the next claim, which finds the key busy.
fn says_lost(play: &mut Play, member: Member) -> Option<u64> {
    play.join(member, "a", renewing(), play.now);
    let (request, claim) = play.claim();
    play.answer(request, Ok(BUSY));
    play.outcome("a");
    claim.lost
}

#[test]
fn a_session_tells_the_store_the_newest_epoch_that_it_lost() {
    let (mut play, member) = Play::with(session(1));
    assert_eq!(says_lost(&mut play, member), None);
    loses(&mut play, member, 5);
    assert_eq!(says_lost(&mut play, member), Some(5));
    loses(&mut play, member, 6);
    assert_eq!(says_lost(&mut play, member), Some(6));
    let other = play.state.add(session(1));
    assert_eq!(says_lost(&mut play, other), None);
}

#[test]
fn what_was_lost_is_known_for_as_long_as_the_store_says_that_it_has_it() {
    let (mut play, member) = that_lost(session(1), 5);
    let other = play.state.add(session(2));
    for (of, session) in [(other, 2), (member, 2), (member, 1)] {
        play.join(of, "a", renewing(), play.now);
        for (request, _) in play.claims() {
            play.answer(request, Ok(Attempt::HeldBy { session: SessionId(session), retry_in: Some(TTL * 2) }));
        }
        play.outcome("a");
        let mut later = play.fork();
        later.now = later.now.plus(TTL + Duration::from_secs(65));
        assert_eq!(says_lost(&mut later, member).is_some(), (of, session) == (member, 1), "{session}");
    }
}

#[test]
fn a_place_that_brought_a_lost_lease_is_not_asked_for_again() {
    let (mut play, member) = that_lost(Traits { queues: true, ..session(1) }, 5);
    play.waits(member, "a");
    let (request, first) = play.claim();
    play.answer(request, Ok(queued(millis(10), TTL, false)));
    play.pass(millis(10));
    let (request, again) = play.claim();
    assert_eq!(again.owner, first.owner);
    play.grant(request, 5);
    play.frees();
    play.pass(Duration::from_secs(1));
    assert!(play.claims().iter().all(|(_, claim)| claim.owner != first.owner));
}

#[test]
fn a_closed_engine_has_lost_nothing() {
    let (mut play, member) = that_lost(session(1), 5);
    play.apply(Event::Close(member));
    assert_eq!(play.state.keys.iter().count(), 0);
    let (mut play, member) = that_lost(session(1), 5);
    play.ask(|state, _| state.remove(member));
    assert_eq!(play.state.keys.iter().count(), 0);
    let (mut play, member) = that_lost(session(1), 5);
    let other = play.state.add(session(2));
    play.waits(other, "b");
    play.claim();
    play.apply(Event::Close(other));
    play.ask(|state, _| state.remove(other));
    assert_eq!(says_lost(&mut play, member), Some(5));
}

#[test]
fn a_level_that_its_own_cap_ended_is_taken_again_beside_another_of_its_session() {
    let (mut play, member) = Play::with(session(1));
    let cap = Duration::from_millis(100);
    let other = play.state.add(session(1));
    play.holds(other, "outer", 5);
    play.join(member, "inner", renewing().max_hold(cap), Moment::NEVER);
    play.grants(5);
    let inner = play.granted("inner");
    play.now = play.now.plus(cap);
    play.apply(Event::Tick);
    assert_eq!(play.ends(), [End::Lost(LossReason::MaxHold)]);
    play.release_guard(inner.guard, None);
    play.frees();
    assert_eq!(says_lost(&mut play, member), None);
}
