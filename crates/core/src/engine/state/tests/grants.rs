use super::*;
use crate::clock::lease_deadline;

/// Shorter than what is asked for, as most of the grants out of a store's queue.
const SHORT: Duration = Duration::from_secs(3);

/// A caller out of the store's queue, whose lease begins with this length.
fn out_of_the_queue(play: &mut Play, member: Member, options: LockOptions, lease: Duration) -> WaiterId {
    let id = play.join(member, "a", options, play.now.plus(Duration::from_secs(1)));
    play.answers(Ok(queued(millis(10), lease, false)));
    play.pass(millis(10));
    play.grants(2);
    id
}

#[test]
fn nobody_waits_past_its_limit_for_a_first_lease_to_be_confirmed() {
    let (mut play, member) = Play::with(QUEUES);
    let id = out_of_the_queue(&mut play, member, renewing().renew(false), SHORT);
    play.now = play.now.plus(millis(995));
    play.apply(Event::TimesUp(key(), id));
    assert!(play.outcome("a").is_none(), "the answer may come yet");
    play.now = play.state.latest(member, play.now);
    play.apply(Event::TimesUp(key(), id));
    assert_eq!(play.failed("a"), ErrorKind::Indeterminate);
    play.release();
}

#[test]
fn a_limit_that_is_over_takes_back_nothing_that_was_told() {
    let (mut play, member) = Play::with(PLAIN);
    let id = play.join(member, "a", renewing(), play.now.plus(millis(1)));
    play.grants(2);
    let granted = play.granted("a");
    play.now = play.now.plus(millis(900));
    play.apply(Event::TimesUp(key(), id));
    assert_eq!(play.collect(id, &granted), Collected::Yes);
}

#[test]
fn another_level_of_a_session_prolongs_its_lease() {
    let (mut play, member) = Play::with(session(1));
    play.holds(member, "outer", 2);
    play.now = play.now.plus(Duration::from_secs(3));
    play.waits(member, "inner");
    let (request, _) = play.claim();
    let sent_at = play.now;
    play.now = play.now.plus(Duration::from_millis(100));
    play.grant(request, 2);
    play.granted("inner");
    assert_eq!(play.limits(), [lease_deadline(sent_at, TTL)]);
}

#[test]
fn a_level_that_may_have_been_claimed_twice_is_given_back_twice() {
    let (mut play, member) = Play::with(Traits { queues: true, ..session(1) });
    let outer = play.holds(member, "outer", 2);
    let inner = play.waits(member, "inner");
    play.answers(Err(lost()));
    play.pass(millis(20));
    play.grants(2);
    let granted = play.comes(inner, "inner");
    play.release_guard(granted.guard, None);
    let (request, grant) = play.release();
    play.released(request, Ok(LeaseStatus::Held));
    play.pass(Duration::from_secs(1));
    assert_eq!(play.releases().into_iter().map(|(_, again)| again).collect::<Vec<_>>(), [grant]);
    play.release_guard(outer.guard, None);
}

#[test]
fn a_level_of_a_lease_that_was_lost_meanwhile_is_given_back_once_and_asked_for_anew() {
    let (mut play, member) = Play::with(Traits { queues: true, ..session(1) });
    let outer = play.holds(member, "outer", 2);
    play.waits(member, "inner");
    play.answers(Err(lost()));
    play.pass(millis(20));
    let (request, claim) = play.claim();
    play.forces();
    play.release_guard(outer.guard, None);
    play.grant(request, 2);
    let released: Vec<_> = play.releases().into_iter().map(|(_, grant)| grant.owner).collect();
    assert_eq!(released, [claim.owner]);
    play.pass(millis(20));
    assert!(play.claims().iter().all(|(_, again)| again.owner != claim.owner));
}

#[test]
fn a_first_lease_that_is_not_confirmed_is_given_back_and_asked_for_anew() {
    for answer in [Ok(LeaseStatus::NotHeld), Err(lost())] {
        let (mut play, member) = Play::with(QUEUES);
        out_of_the_queue(&mut play, member, renewing().renew(false), SHORT);
        let batch = play.renewals().remove(0);
        play.apply(Event::Renewed(batch, vec![answer]));
        assert!(play.outcome("a").is_none());
        assert_eq!(play.ends(), [End::Released]);
        play.frees();
        play.pass(millis(20));
        play.claim();
    }
}

#[test]
fn what_was_told_is_neither_told_again_nor_taken_back_by_the_answer_to_its_renewal() {
    for answer in [Ok(LeaseStatus::Held), Err(refused())] {
        let (mut play, member) = Play::with(QUEUES);
        let id = out_of_the_queue(&mut play, member, renewing(), SHORT);
        let granted = play.granted("a");
        play.pass(millis(20));
        let batch = play.renewals().remove(0);
        play.apply(Event::Renewed(batch, vec![answer]));
        assert!(play.outcome("a").is_none() && play.ends().is_empty());
        assert_eq!(play.collect(id, &granted), Collected::Yes);
    }
}
