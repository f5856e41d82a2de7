use super::*;

#[test]
fn a_reader_has_the_grant_of_one_who_is_gone_if_it_came_before_that_was_asked_for() {
    let (mut play, member) = Play::with(PLAIN);
    let gone = play.reads(member, "a");
    play.answers(Ok(BUSY));
    play.reads(member, "b");
    play.pass(millis(2));
    let (request, _) = play.claim();
    play.apply(Event::Leave(key(), gone));
    play.grant(request, 2);
    play.granted("b");
}

#[test]
fn a_reader_who_came_later_has_no_grant_of_one_who_is_gone() {
    let (mut play, member) = Play::with(PLAIN);
    let gone = play.reads(member, "a");
    let (request, claim) = play.claim();
    play.reads(member, "b");
    play.apply(Event::Leave(key(), gone));
    play.grant(request, 2);
    assert!(play.outcome("b").is_none());
    assert_eq!(play.release().1.owner, claim.owner);
}
