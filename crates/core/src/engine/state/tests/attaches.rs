use super::*;

fn grant() -> GrantRef {
    let owner = OwnerId::parse_hex(&"f".repeat(32)).unwrap();
    GrantRef { key: key(), owner, mode: Mode::Exclusive, tenure: Some(7) }
}

/// One who asks for a detached lock.
fn attaches(play: &mut Play, member: Member) -> (WaiterId, RequestId, OwnerId) {
    let join = Join { member, key: key(), mode: Mode::Exclusive, options: renewing(), limit: play.now, handle: "a" };
    let id = play.ask(|state, at| state.attach(at, Attach { join, grant: grant(), number: 3 }));
    let (request, owner) = play.one("a lock to be taken over", |action| match action {
        Action::Send { request: Request::TakeOver(request, _, owner, _), .. } => Some((*request, *owner)),
        _ => None,
    });
    (id, request, owner)
}

fn taken_over(play: &mut Play, request: RequestId, answer: Result<Held>) {
    play.apply(Event::TakenOver { key: key(), request, answer });
}

#[test]
fn who_attaches_goes_on_with_the_number_and_an_owner_id_of_its_own() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, owner) = attaches(&mut play, member);
    taken_over(&mut play, request, Ok(Held::Yes));
    let granted = play.granted("a");
    assert_eq!((granted.number, granted.grant.owner, granted.grant.tenure), (3, owner, Some(7)));
    assert_eq!(play.ask(|state, _| state.collect(id, &granted.guard)), Collected::Yes);
}

#[test]
fn what_is_taken_over_when_its_lease_is_over_goes_back() {
    let (mut play, member) = Play::with(PLAIN);
    let (_, request, owner) = attaches(&mut play, member);
    play.now = crate::clock::lease_deadline(play.now, TTL);
    taken_over(&mut play, request, Ok(Held::Yes));
    assert_eq!(play.failed("a"), ErrorKind::Unavailable);
    assert_eq!(play.release().1.owner, owner);
}

#[test]
fn who_attached_has_no_place_in_the_line_to_go_back_to() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, _) = attaches(&mut play, member);
    taken_over(&mut play, request, Ok(Held::Yes));
    let granted = play.granted("a");
    let leases = play.state.leases(&key());
    play.apply(Event::ForceReleased { key: key(), leases });
    assert!(play.claims().is_empty());
    assert_eq!(play.ask(|state, _| state.collect(id, &granted.guard)), Collected::TooLate);
}

#[test]
fn only_what_may_have_been_taken_over_goes_back() {
    let (mut play, member) = Play::with(PLAIN);
    let (_, request, _) = attaches(&mut play, member);
    taken_over(&mut play, request, Err(refused()));
    assert_eq!(play.failed("a"), ErrorKind::Unavailable);
    assert!(play.releases().is_empty());
    let (_, request, owner) = attaches(&mut play, member);
    taken_over(&mut play, request, Err(lost()));
    assert_eq!(play.failed("a"), ErrorKind::Indeterminate);
    let (request, released) = play.release();
    assert_eq!(released.owner, owner);
    play.released(request, Ok(Held::No));
    play.pass(Duration::from_secs(1));
    assert_eq!(play.release().1.owner, owner, "it may come late");
}

#[test]
fn who_attaches_is_told_when_no_answer_comes() {
    let (mut play, member) = Play::with(PLAIN);
    let (_, request, owner) = attaches(&mut play, member);
    play.pass(millis(5 * 1000 - 1));
    assert!(play.told("a").is_none());
    play.pass(millis(1));
    assert_eq!(play.failed("a"), ErrorKind::Indeterminate);
    assert_eq!(play.release().1.owner, owner);
    taken_over(&mut play, request, Ok(Held::Yes));
    assert!(play.releases().iter().all(|(_, grant)| grant.owner == owner));
    assert!(play.state.leases(&key()).is_empty());
}

#[test]
fn only_who_attaches_on_the_engine_that_is_closed_is_told_of_it() {
    let (mut play, member) = Play::with(PLAIN);
    let other = play.state.add(PLAIN);
    let (_, request, _) = attaches(&mut play, member);
    play.apply(Event::Close(other));
    assert!(play.told("a").is_none());
    play.apply(Event::Close(member));
    assert_eq!(play.failed("a"), ErrorKind::Closed);
    taken_over(&mut play, request, Ok(Held::No));
    assert!(play.state.is_idle(member));
}
