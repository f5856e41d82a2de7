use super::*;

/// Two readers, the second of whom shares what the first was granted.
fn readers_of_one_grant() -> (Play, [Granted<Cell>; 2]) {
    let (mut play, member) = Play::with(PLAIN);
    let a = play.reads(member, "a");
    play.answers(Ok(BUSY));
    let b = play.reads(member, "b");
    play.pass(millis(2));
    play.grants(2);
    let granted = [play.granted("a"), play.granted("b")];
    play.collect(a, &granted[0]);
    play.collect(b, &granted[1]);
    (play, granted)
}

/// One whose grant is being given back.
fn released(traits: Traits) -> (Play, Member, RequestId, GrantRef) {
    let (mut play, member) = Play::with(traits);
    let held = play.holds(member, "a", 2);
    assert_eq!(play.release_guard(held.guard, None), GuardRelease::Sent);
    let (request, grant) = play.release();
    (play, member, request, grant)
}

#[test]
fn a_release_that_failed_is_tried_again_after_pauses_that_grow_for_as_long_as_the_lease() {
    let (mut play, member, mut request, grant) = released(PLAIN);
    let end = play.now.plus(TTL);
    for pause in [20, 40, 80, 160, 320, 640, 1000, 1000] {
        play.released(request, Err(refused()));
        assert_eq!(play.state.next(), play.now.plus(millis(pause)));
        play.pass(millis(pause));
        let (again, of) = play.release();
        assert_eq!(of, grant);
        request = again;
    }
    let failed = play.all(|action| matches!(action, Action::ReleaseFailed(..)).then_some(())).len();
    assert_eq!(failed, 8);
    play.now = end;
    play.released(request, Err(refused()));
    assert!(play.state.is_idle(member));
    assert_eq!(play.state.next(), Moment::NEVER);
}

#[test]
fn a_release_that_gets_no_answer_is_sent_again_until_the_lease_is_over() {
    let (mut play, member, _, grant) = released(PLAIN);
    for _ in 0..5 {
        play.pass(millis(2 * 1000 - 1));
        assert!(play.releases().is_empty());
        play.pass(millis(1));
        assert_eq!(play.release().1, grant);
    }
    assert!(!play.state.is_idle(member));
    play.pass(Duration::from_secs(2));
    assert!(play.releases().is_empty());
    assert!(play.state.is_idle(member));
    assert_eq!(play.state.next(), Moment::NEVER);
}

#[test]
fn a_session_that_cannot_give_back_hears_so_at_the_end_of_its_wait() {
    let (mut play, member, request, _) = released(session(1));
    play.join(member, "hasty", renewing(), play.now);
    play.waits(member, "patient");
    play.released(request, Err(refused()));
    assert_eq!(play.failed("hasty"), ErrorKind::Unavailable);
    assert!(play.outcome("patient").is_none());
}

#[test]
fn those_who_wait_ask_when_the_release_is_answered() {
    for answer in [Ok(LeaseStatus::Held), Err(refused())] {
        let (mut play, member) = Play::with(PLAIN);
        let held = play.holds(member, "a", 2);
        play.join(member, "b", renewing().renew(false), Moment::NEVER);
        play.release_guard(held.guard, Some("a"));
        assert_eq!(play.detached(), Vec::<&str>::new());
        play.pass(millis(1000));
        assert!(play.claims().is_empty());
        let (request, _) = play.release();
        play.released(request, answer);
        play.claim();
    }
}

#[test]
fn what_was_lost_before_is_given_back_by_a_close() {
    let (mut play, member) = Play::with(PLAIN);
    let other = play.state.add(PLAIN);
    let held = play.holds(member, "a", 2);
    play.pass(TTL);
    play.waits(other, "b");
    play.renewals();
    play.claim();
    play.apply(Event::Close(other));
    assert!(play.releases().is_empty());
    play.apply(Event::Close(member));
    assert_eq!(play.release().1, held.grant());
    assert_eq!(play.release_guard(held.guard, None), GuardRelease::Gone);
    assert!(play.releases().is_empty());
}

#[test]
fn an_offer_of_a_short_lease_goes_to_the_next_after_a_third_of_it() {
    let (mut play, member) = Play::with(PLAIN);
    play.join(member, "a", renewing().ttl(millis(90)), Moment::NEVER);
    play.grants(2);
    play.pass(millis(29));
    assert!(play.releases().is_empty());
    play.pass(millis(1));
    play.release();
}

#[test]
fn a_level_without_a_cap_that_goes_changes_no_limit() {
    let (mut play, member) = Play::with(session(1));
    play.holds(member, "outer", 2);
    let inner = play.holds(member, "inner", 2);
    play.limits();
    assert_eq!(play.release_guard(inner.guard, None), GuardRelease::Sent);
    assert!(play.limits().is_empty());
}

#[test]
fn of_two_readers_with_a_grant_each_only_the_one_that_was_released_by_force_has_lost_it() {
    let (mut play, member) = Play::with(Traits { handoffs: 0, ..PLAIN });
    let held = [("a", 2), ("b", 3)].map(|(who, epoch)| play.holds_in(member, who, Mode::Shared, renewing(), epoch));
    play.apply(Event::ForceReleased { key: key(), leases: vec![held[1].guard.lease] });
    assert_eq!(play.state.leases(&key(), None), [held[0].guard.lease]);
}

#[test]
fn the_claim_of_one_who_waits_goes_on_when_a_lease_ends_and_nobodys_does() {
    let begin = || {
        let (mut play, member) = Play::with(PLAIN);
        play.holds_in(member, "reader", Mode::Shared, renewing(), 2);
        let id = play.waits(member, "writer");
        play.claim();
        (play, id)
    };
    let ends = |play: &mut Play| {
        play.forces();
        play.detached()
    };
    let (mut play, _) = begin();
    assert_eq!(ends(&mut play), ["writer"]);
    let (mut play, id) = begin();
    play.apply(Event::Leave(key(), id));
    assert_eq!(ends(&mut play), Vec::<&str>::new());
}

#[test]
fn a_reader_that_leaves_others_and_waits_for_the_outcome_has_the_store_asked() {
    let (mut play, [first, _]) = readers_of_one_grant();
    assert_eq!(play.release_guard(first.guard, Some("a")), GuardRelease::Asked);
    let batch = play.renewals().remove(0);
    play.apply(Event::Renewed(batch, vec![Ok(LeaseStatus::ForceReleased)]));
    assert_eq!(play.ends(), [End::Lost(LossReason::ForceReleased)]);
}
