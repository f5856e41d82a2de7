use super::*;

fn grant() -> GrantRef {
    let owner = OwnerId::parse_hex(&"f".repeat(32)).unwrap();
    GrantRef { key: key(), owner, mode: Mode::Exclusive, epoch: Some(7) }
}

/// It has the new owner.
const HAS: Attempt = Attempt::Granted { epoch: Some(7) };

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

fn taken_over(play: &mut Play, request: RequestId, answer: Result<Attempt>) {
    play.apply(Event::TakenOver { request, answer });
}

#[test]
fn who_attaches_goes_on_with_the_number_and_an_owner_id_of_its_own() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, owner) = attaches(&mut play, member);
    taken_over(&mut play, request, Ok(HAS));
    let granted = play.granted("a");
    assert_eq!((granted.number, granted.grant().owner, granted.grant().epoch), (3, owner, Some(7)));
    assert_eq!(play.ask(|state, _| state.collect(id, &granted.guard)), Collected::Yes);
}

#[test]
fn what_is_taken_over_when_its_lease_is_over_goes_back() {
    let (mut play, member) = Play::with(PLAIN);
    let (_, request, owner) = attaches(&mut play, member);
    play.now = crate::clock::lease_deadline(play.now, TTL);
    taken_over(&mut play, request, Ok(HAS));
    assert_eq!(play.failed("a"), ErrorKind::Unavailable);
    assert_eq!(play.release().1.owner, owner);
}

#[test]
fn who_attached_has_no_place_in_the_line_to_go_back_to() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, _) = attaches(&mut play, member);
    taken_over(&mut play, request, Ok(HAS));
    let granted = play.granted("a");
    let leases = play.state.leases(&key(), None);
    play.apply(Event::ForceReleased { key: key(), leases });
    assert!(play.claims().is_empty());
    assert_eq!(play.ask(|state, _| state.collect(id, &granted.guard)), Collected::TooLate);
}

#[test]
fn nobody_passes_who_attaches() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, _) = attaches(&mut play, member);
    taken_over(&mut play, request, Ok(HAS));
    let granted = play.granted("a");
    let behind = play.waits(member, "b");
    play.pass(millis(25));
    assert!(play.called().is_empty());
    play.polled(behind);
    assert_eq!(play.collect(id, &granted), Collected::Yes);
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
    play.released(request, Ok(LeaseStatus::NotHeld));
    play.pass(Duration::from_secs(1));
    assert_eq!(play.release().1.owner, owner, "it may come late");
}

#[test]
fn who_attaches_is_told_when_no_answer_comes() {
    let (mut play, member) = Play::with(PLAIN);
    let (_, request, owner) = attaches(&mut play, member);
    play.pass(millis(2 * 1000 - 1));
    assert!(play.outcome("a").is_none());
    play.pass(millis(1));
    assert_eq!(play.failed("a"), ErrorKind::Indeterminate);
    assert_eq!(play.release().1.owner, owner);
    taken_over(&mut play, request, Ok(HAS));
    assert!(play.releases().iter().all(|(_, grant)| grant.owner == owner));
    assert!(play.state.leases(&key(), None).is_empty());
}

#[test]
fn only_who_attaches_on_the_engine_that_is_closed_is_told_of_it() {
    let (mut play, member) = Play::with(PLAIN);
    let other = play.state.add(PLAIN);
    let (_, request, _) = attaches(&mut play, member);
    play.apply(Event::Close(other));
    assert!(play.outcome("a").is_none());
    play.apply(Event::Close(member));
    assert_eq!(play.failed("a"), ErrorKind::Closed);
    taken_over(&mut play, request, Ok(BUSY));
    assert!(play.state.is_idle(member));
}

/// A writer that goes on as a reader.
fn downgrades(play: &mut Play, member: Member) -> (GrantRef, WaiterId, RequestId, OwnerId) {
    let held = play.holds(member, "writer", 7);
    let options = renewing().label("me").reason("because");
    let join = Join { member, key: key(), mode: Mode::Shared, options, limit: play.now, handle: "a" };
    let id = play.ask(|state, at| state.downgrade(at, &held.guard, join)).unwrap();
    assert_eq!(play.ends(), [End::Detached]);
    let (request, writer, claim) = play.one("a downgrade", |action| match action {
        Action::Send { request: Request::Downgrade(request, writer, claim), .. } => {
            Some((*request, writer.clone(), claim.clone()))
        }
        _ => None,
    });
    assert_eq!(writer, held.grant());
    assert_eq!((claim.mode, claim.ttl, claim.waits), (Mode::Shared, TTL, false));
    assert_eq!((claim.label.as_deref(), claim.reason.as_deref()), (Some("me"), Some("because")));
    (held.grant(), id, request, claim.owner)
}

#[test]
fn a_writer_goes_on_as_a_reader_with_what_the_store_gave_it() {
    let (mut play, member) = Play::with(PLAIN);
    let (_, id, request, owner) = downgrades(&mut play, member);
    taken_over(&mut play, request, Ok(Attempt::Granted { epoch: Some(8) }));
    let granted = play.granted("a");
    assert_eq!((granted.number, granted.grant().owner, granted.grant().epoch), (0, owner, Some(8)));
    assert_eq!(play.collect(id, &granted), Collected::Yes);
    assert!(play.releases().is_empty());
}

#[test]
fn a_writer_that_is_not_the_stores_has_lost_it_and_who_attaches_hears_that_it_is_busy() {
    let (mut play, member) = Play::with(PLAIN);
    let (_, _, request, _) = downgrades(&mut play, member);
    taken_over(&mut play, request, Ok(BUSY));
    assert_eq!(play.failed("a"), ErrorKind::Lost(LossReason::Stolen));
    let (_, request, _) = attaches(&mut play, member);
    taken_over(&mut play, request, Ok(BUSY));
    assert!(matches!(play.outcome("a"), Some(Outcome::Busy(_))));
}

#[test]
fn a_writer_that_may_not_be_a_reader_is_given_back() {
    for (error, both) in [(refused(), false), (lost(), true)] {
        let (mut play, member) = Play::with(PLAIN);
        let (writer, _, request, owner) = downgrades(&mut play, member);
        taken_over(&mut play, request, Err(error));
        let released: Vec<_> = play.releases().into_iter().map(|(_, grant)| grant.owner).collect();
        assert!(released.contains(&writer.owner));
        assert_eq!(released.contains(&owner), both);
        assert!(matches!(play.outcome("a"), Some(Outcome::Failed(_))));
    }
}

#[test]
fn a_downgrade_that_gets_no_answer_is_called_so() {
    let (mut play, member) = Play::with(PLAIN);
    downgrades(&mut play, member);
    play.pass(Duration::from_secs(2));
    match play.outcome("a") {
        Some(Outcome::Failed(error)) => assert_eq!(error.operation(), "downgrade"),
        outcome => panic!("{outcome:?}"),
    }
    let (mut play, member) = Play::with(PLAIN);
    attaches(&mut play, member);
    play.pass(Duration::from_secs(2));
    match play.outcome("a") {
        Some(Outcome::Failed(error)) => assert_eq!(error.operation(), "attach"),
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn what_is_held_no_more_is_not_downgraded() {
    let (mut play, member) = Play::with(PLAIN);
    let held = play.holds(member, "writer", 7);
    let leases = play.state.leases(&key(), None);
    play.apply(Event::ForceReleased { key: key(), leases });
    let join = Join { member, key: key(), mode: Mode::Shared, options: renewing(), limit: play.now, handle: "a" };
    assert_eq!(play.ask(|state, at| state.downgrade(at, &held.guard, join)), None);
}

#[test]
fn what_is_taken_over_for_one_who_is_gone_goes_back() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, owner) = attaches(&mut play, member);
    play.apply(Event::Leave(key(), id));
    taken_over(&mut play, request, Ok(HAS));
    assert!(play.outcome("a").is_none());
    assert_eq!(play.release().1.owner, owner);
}

#[test]
fn an_older_lease_than_that_which_is_held_is_not_taken_over() {
    let (mut play, member) = Play::with(PLAIN);
    let (_, request, owner) = attaches(&mut play, member);
    play.holds(member, "b", 8);
    taken_over(&mut play, request, Ok(HAS));
    assert!(matches!(play.outcome("a"), Some(Outcome::Busy(_))));
    assert_eq!(play.release().1.owner, owner);
    assert!(play.ends().is_empty());
}

#[test]
fn what_was_attached_is_not_passed_on_for_nobody_knows_what_the_store_has_of_it() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, _) = attaches(&mut play, member);
    taken_over(&mut play, request, Ok(HAS));
    let granted = play.granted("a");
    play.collect(id, &granted);
    play.waits(member, "b");
    assert_eq!(play.release_guard(granted.guard, None), GuardRelease::Sent);
}
