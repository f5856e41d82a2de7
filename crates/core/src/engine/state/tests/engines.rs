use super::*;

fn idle(play: &mut Play) -> Vec<Member> {
    play.all(|action| match action {
        Action::Idle(member) => Some(*member),
        _ => None,
    })
}

fn kept(play: &mut Play) -> Vec<Member> {
    play.all(|action| match action {
        Action::Keep(member) => Some(*member),
        _ => None,
    })
}

#[test]
fn of_an_engine_that_is_gone_no_release_is_left_and_no_attach() {
    let (mut play, gone) = Play::with(PLAIN);
    let held = play.holds(gone, "a", 2);
    play.release_guard(held.guard, None);
    let (_, grant) = play.release();
    play.attaches(gone, "b", grant);
    play.ask(|state, _| state.remove(gone));
    assert_eq!((play.state.next(), play.state.keys.iter().count()), (Moment::NEVER, 0));
}

#[test]
fn what_another_engine_has_of_a_key_stays_when_one_is_gone() {
    let (mut play, gone) = Play::with(Traits { handoffs: 0, ..PLAIN });
    let other = play.state.add(Traits { handoffs: 0, ..PLAIN });
    for (member, epoch, who) in [(gone, 2, "a"), (other, 3, "b")] {
        play.reads(member, who);
        play.grants(epoch);
    }
    let of_other = play.granted("b").guard.lease;
    play.reads(other, "c");
    let (request, _) = play.claim();
    play.ask(|state, _| state.remove(gone));
    assert_eq!(play.state.leases(&key(), None), [of_other]);
    play.grant(request, 4);
    play.granted("c");
}

#[test]
fn a_closed_engine_that_waits_no_longer_is_idle_at_once() {
    let (mut play, member) = Play::with(PLAIN);
    let other = play.state.add(PLAIN);
    let held = play.holds(member, "a", 2);
    play.apply(Event::Close(member));
    play.release_guard(held.guard, None);
    play.release();
    play.apply(Event::Abandon(other));
    assert!(!play.state.is_idle(member), "what another waits for is its own business");
    play.apply(Event::Abandon(member));
    assert!(play.state.is_idle(member));
    assert_eq!(idle(&mut play), [member]);
    play.pass(Duration::from_secs(20));
    assert!(play.releases().is_empty());
}

#[test]
fn an_engine_is_kept_until_what_failed_is_released() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    play.release_guard(held.guard, None);
    for time in 0..3 {
        let (request, _) = play.release();
        play.released(request, Err(refused()));
        assert_eq!(kept(&mut play).len(), usize::from(time == 0), "it is told once");
        assert!(idle(&mut play).is_empty());
        play.pass(Duration::from_secs(1));
    }
    play.frees();
    assert_eq!(idle(&mut play), [member]);
    let held = play.holds(member, "b", 3);
    play.release_guard(held.guard, None);
    play.frees();
    assert!(idle(&mut play).is_empty(), "it is not kept any more");
}

#[test]
fn an_answer_is_waited_for_as_long_as_answers_usually_take_twice_and_not_for_less_than_a_moment() {
    let (mut play, member) = Play::with(PLAIN);
    play.waits(member, "a");
    assert_eq!(play.state.latest(member, play.now), play.now.plus(millis(200)));
    // Those that are heard late say nothing, unless all of ten seconds are.
    let answers = [(840, 200), (40, 80), (840, 80), (10, 50), (800, 50), (8000, 50), (8000, 1000), (40, 80)];
    for ((took, waits), pause) in answers.into_iter().zip([2, 4, 8, 16, 32, 50, 50, 50]) {
        let (request, _) = play.claim();
        play.now = play.now.plus(millis(took));
        play.answer(request, Ok(BUSY));
        let waited = play.state.latest(member, play.now).since(play.now);
        assert_eq!(waited.as_millis(), waits, "after {took} ms");
        play.pass(millis(pause));
    }
}

#[test]
fn a_guard_that_asks_for_a_renewal_or_detaches_hears_whether_it_is_held() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "a", 2);
    assert!(play.ask(|state, at| state.renew_now(at, &held.guard, "a")));
    assert!(play.ask(|state, at| state.detach(at, &held.guard)));
    assert!(!play.ask(|state, at| state.renew_now(at, &held.guard, "a")));
    assert!(!play.ask(|state, at| state.detach(at, &held.guard)));
}

#[test]
fn a_subscription_ends_with_its_engine_also_where_only_others_wait() {
    let traits = Traits { notifies: true, ..PLAIN };
    let (mut play, member) = Play::with(traits);
    let other = play.state.add(traits);
    let id = play.waits(member, "a");
    play.waits(other, "b");
    play.answers(Ok(BUSY));
    let listen = play.listens();
    play.answers(Ok(BUSY));
    play.apply(Event::Leave(key(), id));
    assert!(play.state.is_subscribed(listen));
    play.apply(Event::Close(member));
    assert!(!play.state.is_subscribed(listen));
}

#[test]
fn an_engine_that_waits_no_longer_leaves_the_releases_of_others_on_its_keys() {
    let (mut play, member) = Play::with(PLAIN);
    let other = play.state.add(PLAIN);
    let held = play.holds(member, "a", 2);
    play.release_guard(held.guard, None);
    play.waits(other, "b");
    play.apply(Event::Abandon(other));
    assert!(!play.state.is_idle(member));
}

#[test]
fn a_grant_that_a_reader_has_is_not_given_back_for_one_who_was_offered_it() {
    let (mut play, member) = Play::with(PLAIN);
    let id = play.reads(member, "a");
    play.answers(Ok(BUSY));
    play.reads(member, "b");
    play.pass(millis(2));
    play.grants(2);
    let held = play.comes(id, "a");
    play.granted("b");
    play.now = play.now.plus(TTL);
    play.apply(Event::Tick);
    assert!(play.releases().is_empty());
    play.release_guard(held.guard, None);
    assert_eq!(play.release().1.owner, held.grant().owner);
}
