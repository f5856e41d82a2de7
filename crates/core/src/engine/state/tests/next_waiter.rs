use super::*;

fn reads(play: &mut Play, member: Member, who: &'static str) -> WaiterId {
    play.join_in(member, who, Mode::Shared, renewing(), Moment::NEVER)
}

#[test]
fn a_reader_has_the_grant_of_one_who_is_gone_if_it_came_before_that_was_asked_for() {
    let (mut play, member) = Play::with(PLAIN);
    let gone = reads(&mut play, member, "a");
    let (request, _) = play.claim();
    play.answer(request, Ok(BUSY));
    reads(&mut play, member, "b");
    play.pass(millis(2));
    let (request, _) = play.claim();
    play.apply(Event::Leave(key(), gone));
    play.grant(request, 2);
    play.granted("b");
}

#[test]
fn a_reader_who_came_later_has_no_grant_of_one_who_is_gone() {
    let (mut play, member) = Play::with(PLAIN);
    let gone = reads(&mut play, member, "a");
    let (request, claim) = play.claim();
    reads(&mut play, member, "b");
    play.apply(Event::Leave(key(), gone));
    play.grant(request, 2);
    assert!(play.outcome("b").is_none());
    assert_eq!(play.release().1.owner, claim.owner);
}

#[test]
fn the_grant_of_one_who_is_gone_is_for_the_same_wish_on_the_same_engine() {
    let wishes: [(LockOptions, Mode, bool); 6] = [
        (renewing(), Mode::Exclusive, true),
        (renewing(), Mode::Shared, false),
        (renewing().ttl(TTL * 2), Mode::Exclusive, false),
        (renewing().renew(false), Mode::Exclusive, false),
        (renewing().label("me"), Mode::Exclusive, false),
        (renewing().reason("because"), Mode::Exclusive, false),
    ];
    for (wish, mode, has) in wishes {
        let (mut play, member) = Play::with(PLAIN);
        let gone = play.waits(member, "a");
        let (request, _) = play.claim();
        play.join_in(member, "b", mode, wish, Moment::NEVER);
        play.apply(Event::Leave(key(), gone));
        play.grant(request, 2);
        assert_eq!(play.outcome("b").is_some(), has);
    }
    let (mut play, member) = Play::with(PLAIN);
    let other = play.state.add(PLAIN);
    let gone = play.waits(member, "a");
    let (request, _) = play.claim();
    play.waits(other, "b");
    play.apply(Event::Leave(key(), gone));
    play.grant(request, 2);
    assert!(play.outcome("b").is_none());
}

#[test]
fn one_with_a_cap_has_the_grant_of_one_who_is_gone_up_to_its_cap() {
    let (mut play, member) = Play::with(PLAIN);
    let gone = play.waits(member, "a");
    let (request, _) = play.claim();
    play.join(member, "b", renewing().max_hold(Duration::from_secs(1)), Moment::NEVER);
    play.apply(Event::Leave(key(), gone));
    play.grant(request, 2);
    let granted = play.granted("b");
    assert_eq!(granted.cell.limit, play.now.plus(Duration::from_secs(1)));
}
