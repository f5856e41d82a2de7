use super::*;

/// A claim that may be carried out late, and was given back.
fn may_be_late(ttl: Duration) -> (Play, Member) {
    let (mut play, member) = Play::with(PLAIN);
    let id = play.join(member, "a", renewing().ttl(ttl), Moment::NEVER);
    let (request, _) = play.claim();
    play.answer(request, Err(lost()));
    play.apply(Event::Leave(key(), id));
    let (request, _) = play.release();
    play.released(request, Ok(LeaseStatus::NotHeld));
    (play, member)
}

#[test]
fn a_claim_that_may_come_late_is_released_again_for_about_a_minute() {
    let (mut play, member) = may_be_late(Duration::from_secs(60));
    for pause in [1, 2, 4, 8, 16, 32] {
        assert!(play.state.is_idle(member), "nobody waits for that");
        play.pass(millis(pause * 1000 - 1));
        assert!(play.releases().is_empty());
        play.pass(millis(1));
        let (request, _) = play.release();
        play.released(request, Ok(LeaseStatus::NotHeld));
    }
    assert_eq!(play.state.next(), Moment::NEVER);
}

#[test]
fn a_claim_that_may_come_late_is_released_again_for_as_long_as_its_lease_at_most() {
    for (ttl, times) in [(999, 0), (1000, 1), (1999, 1), (2000, 2), (12_000, 4)] {
        let (mut play, _) = may_be_late(millis(ttl));
        let mut released = 0;
        while play.state.next() != Moment::NEVER {
            play.pass(play.state.next().since(play.now));
            for (request, _) in play.releases() {
                released += 1;
                play.released(request, Err(lost()));
            }
        }
        assert_eq!(released, times, "of a lease of {ttl} ms");
    }
}

#[test]
fn what_was_released_at_last_is_not_released_again() {
    let (mut play, _) = may_be_late(TTL);
    play.pass(Duration::from_secs(1));
    let (request, _) = play.release();
    play.released(request, Ok(LeaseStatus::Held));
    assert_eq!(play.state.next(), Moment::NEVER);
}

#[test]
fn an_echo_that_gets_no_answer_is_the_last() {
    let (mut play, _) = may_be_late(Duration::from_secs(60));
    play.pass(Duration::from_secs(1));
    play.release();
    play.pass(Duration::from_secs(2));
    assert!(play.releases().is_empty());
    assert_eq!(play.state.next(), Moment::NEVER);
}

#[test]
fn an_echo_that_freed_the_key_has_those_who_wait_ask_at_once() {
    let (mut play, member) = may_be_late(TTL);
    play.waits(member, "b");
    let (request, _) = play.claim();
    play.answer(request, Ok(Attempt::Busy { retry_in: Some(TTL) }));
    play.now = play.now.plus(millis(1));
    play.pass(millis(999));
    for (request, _) in play.claims() {
        play.answer(request, Ok(Attempt::Busy { retry_in: Some(TTL) }));
    }
    let (request, _) = play.release();
    play.released(request, Ok(LeaseStatus::Held));
    play.claim();
}

#[test]
fn a_closed_engine_releases_nothing_again() {
    let (mut play, member) = may_be_late(TTL);
    play.apply(Event::Close(member));
    assert_eq!(play.state.next(), Moment::NEVER);
    let (mut play, member) = Play::with(PLAIN);
    let id = play.waits(member, "a");
    let (request, _) = play.claim();
    play.answer(request, Err(lost()));
    play.apply(Event::Leave(key(), id));
    let (request, _) = play.release();
    play.apply(Event::Close(member));
    assert!(!play.state.is_idle(member));
    play.released(request, Ok(LeaseStatus::NotHeld));
    assert_eq!(play.state.next(), Moment::NEVER);
}

#[test]
fn another_engine_goes_on_with_what_it_releases_when_one_is_closed() {
    let (mut play, member) = may_be_late(TTL);
    let other = play.state.add(PLAIN);
    let _ = member;
    play.waits(other, "b");
    play.claim();
    play.apply(Event::Close(other));
    assert_eq!(play.failed("b"), ErrorKind::Closed);
    play.pass(Duration::from_secs(1));
    play.release();
}
