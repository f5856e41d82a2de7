use super::*;

/// A claim that may be carried out late, and was given back.
fn may_be_late(ttl: Duration) -> (Play, Member) {
    let (mut play, member) = Play::with(PLAIN);
    let id = play.join(member, "a", renewing().ttl(ttl), Moment::NEVER);
    play.answers(Err(lost()));
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
