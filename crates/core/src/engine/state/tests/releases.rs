use super::*;

/// Two readers, the second of whom shares what the first was granted.
fn readers_of_one_grant() -> (Play, [Granted<Cell>; 2]) {
    let (mut play, member) = Play::with(PLAIN);
    let a = play.join_in(member, "a", Mode::Shared, renewing(), Moment::NEVER);
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    let b = play.join_in(member, "b", Mode::Shared, renewing(), Moment::NEVER);
    play.pass(millis(2));
    let (request, _) = play.claim();
    play.grant(request, 2);
    let granted = [play.granted("a"), play.granted("b")];
    play.collect(a, &granted[0]);
    play.collect(b, &granted[1]);
    (play, granted)
}

fn session() -> Traits {
    Traits { session: Some(SessionId(1)), reentrant: true, ..PLAIN }
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
fn a_release_that_is_refused_for_good_is_not_tried_again() {
    let (mut play, member, request, _) = released(PLAIN);
    play.released(request, Err(Error::new(ErrorKind::Backend, "release")));
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
fn a_session_claims_nothing_before_it_has_given_back_and_its_echoes_keep_nobody() {
    let (mut play, member, request, _) = released(session());
    play.waits(member, "b");
    assert!(play.claims().is_empty());
    play.released(request, Ok(LeaseStatus::Held));
    play.claim();
    let (mut play, member) = Play::with(session());
    let id = play.waits(member, "a");
    let (request, _) = play.claim();
    play.answer(request, Err(lost()));
    play.apply(Event::Leave(key(), id));
    let (request, _) = play.release();
    play.released(request, Ok(LeaseStatus::NotHeld));
    play.waits(member, "b");
    play.claim();
}

#[test]
fn a_session_that_cannot_give_back_hears_so_at_the_end_of_its_wait() {
    let (mut play, member, request, _) = released(session());
    play.join(member, "hasty", renewing(), play.now);
    play.waits(member, "patient");
    play.released(request, Err(refused()));
    assert_eq!(play.failed("hasty"), ErrorKind::Unavailable);
    assert!(play.outcome("patient").is_none());
}

#[test]
fn a_try_after_its_own_release_says_busy_only_if_another_holds_the_key() {
    for answer in [Ok(LeaseStatus::Held), Err(refused())] {
        let (mut play, member, request, _) = released(PLAIN);
        play.join(member, "hasty", renewing(), play.now);
        assert!(play.claims().is_empty());
        let applied = answer.is_ok();
        play.released(request, answer);
        if applied {
            let (claim, _) = play.claim();
            play.answer(claim, Ok(BUSY));
            assert!(matches!(play.outcome("hasty"), Some(Outcome::Busy(_))));
        } else {
            assert_eq!(play.failed("hasty"), ErrorKind::Unavailable);
            // Whether the release was carried out is not known: the next try asks, and says so if that does not tell.
            play.join(member, "next", renewing(), play.now);
            let (claim, _) = play.claim();
            play.answer(claim, Ok(BUSY));
            assert_eq!(play.failed("next"), ErrorKind::Indeterminate);
        }
    }
}

#[test]
fn readers_claim_beside_the_release_of_a_reader() {
    let (mut play, member) = Play::with(PLAIN);
    let reader = play.join_in(member, "a", Mode::Shared, renewing(), Moment::NEVER);
    let (request, _) = play.claim();
    play.grant(request, 2);
    let granted = play.granted("a");
    assert_eq!(play.state.collect(reader, &granted.guard), Collected::Yes);
    assert_eq!(play.release_guard(granted.guard, None), GuardRelease::Sent);
    play.join_in(member, "b", Mode::Shared, renewing(), Moment::NEVER);
    play.claim();
    play.join(member, "writer", renewing(), Moment::NEVER);
    assert!(play.claims().is_empty());
}

#[test]
fn a_guard_ends_once() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    assert_eq!(play.release_guard(held.guard, None), GuardRelease::Sent);
    assert_eq!(play.release_guard(held.guard, None), GuardRelease::Gone);
    assert_eq!(play.ends(), [End::Released]);
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
fn readers_of_one_grant_give_it_back_with_the_last_of_them() {
    let (mut play, [first, second]) = readers_of_one_grant();
    assert_eq!(play.release_guard(first.guard, None), GuardRelease::Passed);
    assert!(play.releases().is_empty() && play.renewals().is_empty() && play.ends().is_empty());
    assert_eq!(play.release_guard(second.guard, None), GuardRelease::Sent);
    play.release();
    assert_eq!(play.ends(), [End::Released]);
}

#[test]
fn each_level_of_a_session_is_given_back_and_its_cap_goes_with_it() {
    let (mut play, member) = Play::with(session());
    let outer = play.holds(member, "outer", 2);
    let id = play.join(member, "inner", renewing().max_hold(Duration::from_secs(1)), Moment::NEVER);
    let (request, claim) = play.claim();
    play.grant(request, 2);
    let inner = play.granted("inner");
    play.collect(id, &inner);
    assert_eq!(play.limits(), [play.now.plus(Duration::from_secs(1))]);
    assert_eq!(play.release_guard(inner.guard, None), GuardRelease::Sent);
    assert_eq!(play.limits(), [outer.cell.limit]);
    assert_eq!(play.release().1.owner, claim.owner);
    assert!(play.ends().is_empty());
    play.release_guard(outer.guard, None);
    assert!(play.limits().is_empty());
    assert_eq!(play.release().1.owner, outer.grant().owner);
}

#[test]
fn what_ran_out_is_given_back_with_its_guard() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    play.pass(Duration::from_secs(4));
    play.pass(TTL);
    assert_eq!(play.ends(), [End::Lost(LossReason::Unreachable)]);
    assert!(play.releases().is_empty());
    assert_eq!(play.release_guard(held.guard, None), GuardRelease::Gone);
    assert_eq!(play.release().1, held.grant());
}

#[test]
fn what_does_not_end_by_itself_is_given_back_at_once() {
    let (mut play, member) = Play::with(PLAIN);
    let id = play.join(member, "a", renewing().max_hold(millis(5)), Moment::NEVER);
    let (request, _) = play.claim();
    play.grant(request, 2);
    let held = play.granted("a");
    play.collect(id, &held);
    play.pass(millis(5));
    assert_eq!(play.ends(), [End::Lost(LossReason::MaxHold)]);
    assert_eq!(play.release().1, held.grant());
    assert_eq!(play.release_guard(held.guard, None), GuardRelease::Gone);
    assert!(play.releases().is_empty());
}

#[test]
fn what_was_released_by_force_is_not_given_back() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    let leases = play.state.leases(&key(), None);
    play.apply(Event::ForceReleased { key: key(), leases });
    assert_eq!(play.ends(), [End::Lost(LossReason::ForceReleased)]);
    assert_eq!(play.release_guard(held.guard, None), GuardRelease::Gone);
    assert!(play.releases().is_empty());
}

#[test]
fn a_key_that_was_released_by_force_elsewhere_is_asked_for_at_once() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    play.apply(Event::ForceReleased { key: key(), leases: Vec::new() });
    play.claim();
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
fn what_another_engine_holds_is_not_ended_by_a_close() {
    let (mut play, member) = Play::with(PLAIN);
    let other = play.state.add(PLAIN);
    let held = play.holds(member, "a", 2);
    play.waits(other, "b");
    play.waits(member, "c");
    play.apply(Event::Close(other));
    assert_eq!(play.failed("b"), ErrorKind::Closed);
    assert!(play.outcome("c").is_none());
    assert!(play.ends().is_empty());
    play.release_guard(held.guard, None);
    play.granted("c");
}

#[test]
fn the_rest_of_a_lease_is_detached_with_its_last_guard() {
    let (mut play, member) = Play::with(session());
    let outer = play.holds(member, "outer", 2);
    let inner = play.holds(member, "inner", 2);
    assert!(play.ask(|state, at| state.detach(at, &inner.guard)));
    assert!(play.ends().is_empty());
    assert!(play.ask(|state, at| state.detach(at, &outer.guard)));
    assert_eq!(play.ends(), [End::Detached]);
    assert!(play.releases().is_empty());
}

#[test]
fn what_was_offered_on_a_lease_that_ends_is_given_back_but_for_what_guards_have() {
    let (mut play, member) = Play::with(session());
    let outer = play.holds(member, "outer", 2);
    play.waits(member, "inner");
    let (request, offered) = play.claim();
    play.grant(request, 2);
    play.granted("inner");
    play.pass(Duration::from_secs(4));
    play.renewals();
    play.now = play.now.plus(TTL);
    play.apply(Event::Tick);
    assert_eq!(play.ends(), [End::Lost(LossReason::Unreachable)]);
    assert!(play.releases().iter().all(|(_, grant)| grant.owner == offered.owner));
    play.release_guard(outer.guard, None);
    assert_eq!(play.release().1.owner, outer.grant().owner);
}

#[test]
fn a_grant_that_several_were_offered_is_given_back_once() {
    let (mut play, member) = Play::with(PLAIN);
    play.join_in(member, "a", Mode::Shared, renewing(), Moment::NEVER);
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    play.join_in(member, "b", Mode::Shared, renewing(), Moment::NEVER);
    play.pass(millis(2));
    let (request, _) = play.claim();
    play.grant(request, 2);
    play.apply(Event::Close(member));
    play.release();
}

#[test]
fn an_offer_that_nobody_takes_goes_to_the_next_after_a_second() {
    let (mut play, member) = Play::with(Traits { handoff_age: Duration::from_secs(2), ..PLAIN });
    let id = play.waits(member, "a");
    let (request, _) = play.claim();
    play.grant(request, 2);
    let granted = play.granted("a");
    let behind = play.waits(member, "b");
    play.pass(millis(999));
    assert!(!matches!(play.outcome("b"), Some(Outcome::Granted(_))));
    play.pass(millis(1));
    let next = play.granted("b");
    assert_eq!(play.collect(id, &granted), Collected::NotYet, "it keeps its place");
    assert_eq!(play.collect(behind, &next), Collected::Yes);
}

#[test]
fn an_offer_of_a_short_lease_goes_to_the_next_after_a_third_of_it() {
    let (mut play, member) = Play::with(PLAIN);
    play.join(member, "a", renewing().ttl(millis(90)), Moment::NEVER);
    let (request, _) = play.claim();
    play.grant(request, 2);
    play.pass(millis(29));
    assert!(play.releases().is_empty());
    play.pass(millis(1));
    play.release();
}

#[test]
fn a_level_without_a_cap_that_goes_changes_no_limit() {
    let (mut play, member) = Play::with(session());
    play.holds(member, "outer", 2);
    let inner = play.holds(member, "inner", 2);
    play.limits();
    assert_eq!(play.release_guard(inner.guard, None), GuardRelease::Sent);
    assert!(play.limits().is_empty());
}

#[test]
fn of_two_readers_with_a_grant_each_only_the_one_that_was_released_by_force_has_lost_it() {
    let (mut play, member) = Play::with(Traits { handoffs: 0, ..PLAIN });
    let held = [("a", 2), ("b", 3)].map(|(who, epoch)| {
        let id = play.join_in(member, who, Mode::Shared, renewing(), Moment::NEVER);
        let (request, _) = play.claim();
        play.grant(request, epoch);
        let granted = play.granted(who);
        play.collect(id, &granted);
        granted
    });
    play.apply(Event::ForceReleased { key: key(), leases: vec![held[1].guard.lease] });
    assert_eq!(play.state.leases(&key(), None), [held[0].guard.lease]);
}

#[test]
fn the_claim_of_one_who_waits_goes_on_when_a_lease_ends_and_nobodys_does() {
    let begin = || {
        let (mut play, member) = Play::with(PLAIN);
        let id = play.join_in(member, "reader", Mode::Shared, renewing(), Moment::NEVER);
        let (request, _) = play.claim();
        play.grant(request, 2);
        let granted = play.granted("reader");
        play.collect(id, &granted);
        let id = play.waits(member, "writer");
        play.claim();
        (play, id)
    };
    let ends = |play: &mut Play| {
        let leases = play.state.leases(&key(), None);
        play.apply(Event::ForceReleased { key: key(), leases });
        play.detached()
    };
    let (mut play, _) = begin();
    assert_eq!(ends(&mut play), ["writer"]);
    let (mut play, id) = begin();
    play.apply(Event::Leave(key(), id));
    assert_eq!(ends(&mut play), Vec::<&str>::new());
}

#[test]
fn who_has_asked_is_not_told_that_another_level_cannot_be_given_back() {
    let (mut play, member) = Play::with(session());
    play.holds(member, "outer", 2);
    let inner = play.holds(member, "inner", 2);
    play.join(member, "hasty", renewing(), play.now);
    let (claim, _) = play.claim();
    play.release_guard(inner.guard, None);
    let (request, _) = play.release();
    play.released(request, Err(refused()));
    assert!(play.outcome("hasty").is_none());
    play.grant(claim, 2);
    play.granted("hasty");
}

#[test]
fn a_reader_that_leaves_others_and_waits_for_the_outcome_has_the_store_asked() {
    let (mut play, [first, _]) = readers_of_one_grant();
    assert_eq!(play.release_guard(first.guard, Some("a")), GuardRelease::Sent);
    let batch = play.renewals().remove(0);
    play.apply(Event::Renewed(batch, vec![Ok(LeaseStatus::ForceReleased)]));
    assert_eq!(play.ends(), [End::Lost(LossReason::ForceReleased)]);
}

#[test]
fn many_releases_that_failed_do_not_keep_a_store_down() {
    let (mut play, member) = Play::with(PLAIN);
    let mut guards = Vec::new();
    for number in 0..200 {
        let key = LockKey::new(format!("k{number}")).unwrap();
        let join =
            Join { member, key, mode: Mode::Exclusive, options: renewing(), limit: Moment::NEVER, handle: "holder" };
        let id = play.ask(|state, at| state.join(at, join)).0;
        let (request, _) = play.claim();
        play.grant(request, 2);
        let granted = play.granted("holder");
        play.collect(id, &granted);
        guards.push(granted.guard);
    }
    for guard in guards {
        play.release_guard(guard, None);
    }
    let mut sent = 0;
    for _ in 0..1_000 {
        for (request, _) in play.releases() {
            sent += 1;
            play.released(request, Err(refused()));
        }
        play.pass(millis(1));
    }
    assert!((400..=200 + 500).contains(&sent), "{sent}");
}
