use super::*;
use crate::clock::lease_deadline;

/// One that holds the key with these options.
fn held(traits: Traits, options: LockOptions) -> (Play, Member, Granted<Cell>) {
    let (mut play, member) = Play::with(traits);
    let id = play.join(member, "a", options, Moment::NEVER);
    let (request, _) = play.claim();
    play.grant(request, 2);
    let granted = play.granted("a");
    play.collect(id, &granted);
    (play, member, granted)
}

fn answers(play: &mut Play, batch: Batch, answer: Result<LeaseStatus>) {
    play.apply(Event::Renewed(batch, vec![answer]));
}

#[test]
fn a_lease_is_renewed_after_a_third_of_it_and_its_limit_is_told() {
    let (mut play, _, _) = held(PLAIN, renewing());
    for _ in 0..3 {
        play.pass((TTL / 3).saturating_sub(millis(1)));
        assert!(play.renewals().is_empty());
        play.pass(millis(1));
        let batch = play.renewals().remove(0);
        let sent_at = play.now;
        assert_eq!((batch.sent_at, batch.within), (sent_at, TTL / 4));
        answers(&mut play, batch, Ok(LeaseStatus::Held));
        assert_eq!(play.limits(), [lease_deadline(sent_at, TTL)]);
    }
}

#[test]
fn leases_of_about_the_same_age_are_renewed_together_and_short_ones_on_time() {
    // From a moment that is on no grid.
    for (ttl, due) in [(900, 300), (12_000, 4013), (1000, 349)] {
        let (mut play, member) = Play::with(PLAIN);
        play.now = play.now.plus(millis(3));
        let id = play.join(member, "a", renewing().ttl(millis(ttl)), Moment::NEVER);
        let (request, _) = play.claim();
        play.grant(request, 2);
        let granted = play.granted("a");
        play.collect(id, &granted);
        play.pass(millis(due - 1));
        assert!(play.renewals().is_empty(), "of {ttl} ms");
        play.pass(millis(1));
        assert_eq!(play.renewals().len(), 1, "of {ttl} ms");
    }
}

#[test]
fn what_nobody_renews_ends_by_itself() {
    let (mut play, ..) = held(PLAIN, renewing().renew(false));
    let limit = lease_deadline(play.now, TTL);
    play.pass(limit.since(play.now).saturating_sub(millis(1)));
    assert!(play.ends().is_empty() && play.renewals().is_empty());
    play.pass(millis(1));
    assert_eq!(play.ends(), [End::Lost(LossReason::Expired)]);
}

#[test]
fn what_has_no_lease_never_ends() {
    let (mut play, _, granted) = held(Traits { leased: false, ..PLAIN }, renewing());
    assert_eq!(granted.cell.limit, Moment::NEVER);
    play.pass(TTL / 3);
    let batch = play.renewals().remove(0);
    answers(&mut play, batch, Ok(LeaseStatus::Held));
    assert_eq!(play.limits(), [Moment::NEVER]);
}

#[test]
fn a_renewal_that_failed_is_tried_again_after_a_twelfth_of_the_lease_and_a_second_at_most() {
    for (ttl, pause) in [(6000, 500), (12_000, 1000), (24_000, 1000), (12, 2)] {
        let (mut play, ..) = held(PLAIN, renewing().ttl(millis(ttl)));
        play.pass(millis(ttl / 3));
        let batch = play.renewals().remove(0);
        answers(&mut play, batch, Err(refused()));
        assert_eq!(play.state.next(), play.now.plus(millis(pause)), "of a lease of {ttl} ms");
        play.pass(millis(pause));
        assert_eq!(play.renewals().len(), 1);
    }
}

#[test]
fn a_renewal_that_gets_no_answer_is_tried_again_and_a_late_answer_counts_for_what_it_says() {
    let (mut play, ..) = held(PLAIN, renewing());
    play.pass(TTL / 3);
    let late = play.renewals().remove(0);
    play.pass((TTL / 3).saturating_sub(millis(1)));
    assert!(play.renewals().is_empty());
    play.pass(millis(1));
    let batch = play.renewals().remove(0);
    let due = play.state.next();
    answers(&mut play, late.clone(), Err(lost()));
    assert_eq!(play.state.next(), due, "the failure of an old one has nothing sent");
    answers(&mut play, late.clone(), Ok(LeaseStatus::Held));
    assert_eq!(play.limits(), [lease_deadline(late.sent_at, TTL)]);
    assert!(play.renewals().is_empty());
    answers(&mut play, batch.clone(), Ok(LeaseStatus::Held));
    assert_eq!(play.limits(), [lease_deadline(batch.sent_at, TTL)]);
}

#[test]
fn the_store_says_that_a_lease_is_anothers_or_was_released_by_force() {
    for (answer, reason) in
        [(LeaseStatus::NotHeld, LossReason::Stolen), (LeaseStatus::ForceReleased, LossReason::ForceReleased)]
    {
        let (mut play, ..) = held(PLAIN, renewing());
        play.pass(TTL / 3);
        let batch = play.renewals().remove(0);
        answers(&mut play, batch, Ok(answer));
        assert_eq!(play.ends(), [End::Lost(reason)]);
    }
}

#[test]
fn a_guard_that_asks_for_a_renewal_is_told_the_answer_and_sends_no_other() {
    let (mut play, _, granted) = held(PLAIN, renewing());
    play.pass(Duration::from_secs(2));
    assert!(play.ask(|state, at| state.renew_now(at, &granted.guard, "a")));
    let (batch, by, alone) = play.one("a renewal", |action| match action {
        Action::Send { request: Request::Renew(batch), by, alone, .. } => Some((batch.clone(), *by, *alone)),
        _ => None,
    });
    assert_eq!((by, alone), (Some("a"), false));
    play.pass((TTL / 3).saturating_sub(millis(1)));
    assert!(play.renewals().is_empty(), "one is under way");
    answers(&mut play, batch, Ok(LeaseStatus::Held));
    assert_eq!(play.limits().len(), 1);
}

#[test]
fn renewals_leave_together_up_to_a_batch() {
    let mut play = Play::new();
    let member = play.state.add(Traits { batch: 2, ..PLAIN });
    let others = [play.state.add(Traits { batch: 9, ..PLAIN })];
    for (number, of) in [member, member, member, others[0]].into_iter().enumerate() {
        let key = LockKey::new(format!("k{number}")).unwrap();
        let ttl = if number == 2 { TTL + millis(1) } else { TTL };
        let join = Join {
            member: of,
            key: key.clone(),
            mode: Mode::Exclusive,
            options: renewing().ttl(ttl),
            limit: Moment::NEVER,
            handle: "a",
        };
        let id = play.ask(|state, at| state.join(at, join)).0;
        let (request, _) = play.claim();
        play.apply(Event::Answered { request, answer: Ok(Attempt::Granted { epoch: Some(2) }) });
        let granted = play.granted("a");
        play.collect(id, &granted);
    }
    play.pass(TTL / 3 + millis(20));
    let sizes: Vec<_> = play.renewals().iter().map(|batch| batch.leases.len()).collect();
    assert_eq!(sizes, [2, 1, 1]);
}

#[test]
fn a_batch_has_an_answer_for_each_and_is_empty_when_it_is_taken() {
    let (mut play, ..) = held(PLAIN, renewing());
    play.pass(TTL / 3);
    let mut batch = play.renewals().remove(0);
    assert!(matches!(batch.answered(Vec::new()).as_slice(), [Err(error)] if error.kind() == ErrorKind::Indeterminate));
    assert!(matches!(
        batch.answered(vec![Ok(LeaseStatus::Held), Ok(LeaseStatus::NotHeld)]).as_slice(),
        [Ok(LeaseStatus::Held)]
    ));
    let taken = batch.take();
    assert_eq!((taken.leases.len(), taken.keys.len(), taken.renewals.len()), (1, 1, 1));
    assert!(batch.leases.is_empty() && batch.keys.is_empty() && batch.renewals.is_empty());
    assert_eq!((taken.id, taken.sent_at, taken.within), (batch.id, batch.sent_at, batch.within));
}

#[test]
fn a_level_that_renews_nothing_leaves_that_to_the_others() {
    let session = Traits { session: Some(SessionId(1)), reentrant: true, ..PLAIN };
    let (mut play, member, outer) = held(session, renewing().renew(false));
    let inner = play.holds(member, "inner", 2);
    play.limits();
    play.release_guard(outer.guard, None);
    play.pass(TTL / 3);
    assert_eq!(play.renewals().len(), 1);
    let _ = inner;
    let (mut play, member, _) = held(session, renewing());
    play.join(member, "inner", renewing().renew(false), Moment::NEVER);
    let (request, _) = play.claim();
    play.grant(request, 2);
    play.pass(TTL / 3);
    assert_eq!(play.renewals().len(), 1);
}

#[test]
fn why_a_lease_ends_by_the_clock_is_told() {
    let deadline = lease_deadline(Moment::default(), TTL).since(Moment::default());
    let cases = [
        (deadline, LossReason::MaxHold),
        (deadline.saturating_sub(millis(1)), LossReason::MaxHold),
        (deadline + millis(1), LossReason::Expired),
    ];
    for (cap, reason) in cases {
        let (mut play, ..) = held(PLAIN, renewing().renew(false).max_hold(cap));
        play.pass(TTL);
        assert_eq!(play.ends(), [End::Lost(reason)]);
    }
}
