use super::*;

fn hears_busy(play: &mut Play, who: &'static str) {
    let told = play.outcome(who);
    assert!(matches!(told, Some(Outcome::Busy(_))), "{who} was told {told:?}");
}

#[test]
fn who_joins_hears_whether_it_stands_behind_others() {
    let (mut play, member) = Play::with(PLAIN);
    let join = |who| Join {
        member,
        key: key(),
        mode: Mode::Exclusive,
        options: renewing(),
        limit: Moment::NEVER,
        handle: who,
    };
    assert!(!play.ask(|state, at| state.join(at, join("a"))).1);
    assert!(play.ask(|state, at| state.join(at, join("b"))).1);
}

#[test]
fn a_caller_alone_carries_its_own_requests() {
    let (mut play, member) = Play::with(PLAIN);
    let alone = |play: &mut Play| {
        play.all(|action| match action {
            Action::Send { by, alone, .. } => Some((*by, *alone)),
            _ => None,
        })
    };
    let id = play.waits(member, "a");
    let (request, _) = {
        let sent = play.out.iter().find_map(|action| match action {
            Action::Send { request: Request::Claim(id, claim), .. } => Some((*id, claim.clone())),
            _ => None,
        });
        sent.unwrap()
    };
    assert_eq!(alone(&mut play), [(Some("a"), true)]);
    play.grant(request, 2);
    let granted = play.comes(id, "a");
    play.release_guard(granted.guard, Some("a"));
    assert_eq!(alone(&mut play), [(Some("a"), true)]);
}

#[test]
fn a_dropped_guard_carries_no_release() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    play.release_guard(held.guard, None);
    let alone = play.one("a release", |action| match action {
        Action::Send { alone, .. } => Some(*alone),
        _ => None,
    });
    assert!(!alone);
}

#[test]
fn who_does_not_wait_hears_of_a_failure_of_those_before_it() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    play.join(member, "b", renewing(), play.now);
    play.answers(Err(refused()));
    assert_eq!(play.failed("b"), ErrorKind::Unavailable);
}

#[test]
fn at_the_end_of_its_wait_a_caller_asks_a_last_time() {
    let (mut play, member) = Play::with(PLAIN);
    let id = play.join(member, "a", renewing(), play.now.plus(millis(1)));
    play.answers(Ok(BUSY));
    play.now = play.now.plus(millis(1));
    play.apply(Event::TimesUp(key(), id));
    let (request, claim) = play.claim();
    assert!(!claim.waits);
    play.answer(request, Ok(BUSY));
    hears_busy(&mut play, "a");
}

#[test]
fn who_stood_behind_another_past_its_limit_hears_what_that_one_heard_unless_an_answer_is_outstanding() {
    let late = |answered: bool| {
        let (mut play, member) = Play::with(PLAIN);
        let limit = play.now.plus(millis(30));
        play.join(member, "a", renewing(), limit);
        play.join(member, "b", renewing(), limit);
        play.answers(Ok(BUSY));
        if !answered {
            play.pass(millis(25));
            play.claim();
        }
        // The process stands still past both limits.
        play.now = play.now.plus(Duration::from_secs(1));
        play.waits(member, "c");
        hears_busy(&mut play, "a");
        play
    };
    hears_busy(&mut late(true), "b");
    assert_eq!(late(false).failed("b"), ErrorKind::Indeterminate);
}

#[test]
fn readers_ask_at_once_where_they_share_no_grant_and_up_to_the_first_writer() {
    let (mut play, member) = Play::with(Traits { handoffs: 0, ..PLAIN });
    for who in ["a", "b"] {
        play.reads(member, who);
    }
    play.waits(member, "w");
    play.reads(member, "c");
    let claims = play.claims();
    assert_eq!(claims.iter().map(|(_, claim)| claim.mode).collect::<Vec<_>>(), [Mode::Shared, Mode::Shared]);
    for (request, _) in claims {
        play.answer(request, Ok(BUSY));
    }
    play.pass(millis(2));
    assert_eq!(play.claims().len(), 2, "each polls");
}

#[test]
fn a_session_behind_others_asks_where_it_has_the_key_itself() {
    let (mut play, one) = Play::with(session(1));
    let other = play.state.add(session(2));
    play.holds(one, "outer", 2);
    play.waits(other, "other");
    assert!(play.claims().is_empty(), "it waits for the session that holds the key here");
    play.waits(one, "inner");
    play.grants(2);
    play.granted("inner");
}

#[test]
fn two_levels_of_a_session_are_not_asked_for_at_once() {
    let (mut play, member) = Play::with(session(1));
    play.holds(member, "outer", 2);
    play.waits(member, "a");
    play.waits(member, "b");
    play.grants(2);
    play.claim();
}

#[test]
fn what_another_session_lost_keeps_nobody_from_asking() {
    let (mut play, one) = Play::with(session(1));
    let (two, three) = (play.state.add(session(2)), play.state.add(session(3)));
    play.holds(one, "lost", 2);
    play.forces();
    play.waits(three, "first");
    play.waits(two, "second");
    play.answers(Ok(Attempt::HeldBy { session: SessionId(2), retry_in: None }));
    play.grants(3);
    play.granted("second");
}

/// For how long the key is held, as far as one who does not wait is told.
fn remaining(play: &mut Play, member: Member) -> Option<Duration> {
    play.join(member, "hasty", renewing(), play.now);
    match play.outcome("hasty") {
        Some(Outcome::Busy(busy)) => busy.remaining,
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn who_hears_that_the_key_is_held_here_hears_for_how_long_if_there_is_an_end() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    play.now = play.now.plus(millis(7));
    assert_eq!(remaining(&mut play, member), Some(held.cell.limit.since(play.now)));
    let (mut play, member) = Play::with(Traits { leased: false, ..PLAIN });
    play.holds(member, "a", 2);
    assert_eq!(remaining(&mut play, member), None);
}

#[test]
fn who_hears_that_the_store_said_that_the_key_is_held_hears_for_how_long_until_that_is_over() {
    for (retry_in, known) in [(None, false), (Some(millis(50)), true)] {
        let (mut play, member) = Play::with(PLAIN);
        play.waits(member, "a");
        play.answers(Ok(Attempt::Busy { retry_in }));
        let told = remaining(&mut play, member);
        assert_eq!(told.is_some(), known, "{told:?}");
        let Some(left) = told else { continue };
        assert!(left >= millis(50));
        let mut later = play.fork();
        later.now = later.now.plus(left);
        assert_eq!(remaining(&mut later, member), None, "it is over");
    }
}

#[test]
fn a_try_behind_what_a_caller_left_under_way_is_answered_when_its_own_claim_would_be() {
    let (mut play, member) = Play::with(PLAIN);
    let gone = play.waits(member, "a");
    let (claim, _) = play.claim();
    play.apply(Event::Leave(key(), gone));
    let limit = play.now;
    let id = play.join(member, "b", renewing(), limit);
    play.now = limit.plus(millis(1_000));
    play.answer(claim, Err(lost()));
    assert!(play.claims().is_empty(), "it waits for the release of what may have been granted");
    play.now = limit.plus(millis(1_249));
    play.apply(Event::TimesUp(key(), id));
    assert!(play.outcome("b").is_none());
    play.now = limit.plus(millis(1_250));
    play.apply(Event::TimesUp(key(), id));
    assert_eq!(play.failed("b"), ErrorKind::Indeterminate);
}
