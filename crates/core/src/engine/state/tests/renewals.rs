use super::*;
use crate::clock::lease_deadline;

/// One that holds the key with these options.
fn held(traits: Traits, options: LockOptions) -> (Play, Member, Granted<Cell>) {
    let (mut play, member) = Play::with(traits);
    let granted = play.holds_in(member, "a", Mode::Exclusive, options, 2);
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
        play.holds_in(member, "a", Mode::Exclusive, renewing().ttl(millis(ttl)), 2);
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
        play.comes(id, "a");
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
