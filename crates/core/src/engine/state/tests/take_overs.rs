use super::*;

/// It has the new owner.
const HAS: Attempt = Attempt::Granted { epoch: Some(7) };

fn taken_over(play: &mut Play, request: RequestId, answer: Result<Attempt>) {
    play.apply(Event::TakenOver { request, answer });
}

#[test]
fn who_attached_has_no_place_in_the_line_to_go_back_to() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, _) = play.attaches(member, "a", detached());
    taken_over(&mut play, request, Ok(HAS));
    let granted = play.granted("a");
    play.forces();
    assert!(play.claims().is_empty());
    assert_eq!(play.ask(|state, _| state.collect(id, &granted.guard)), Collected::TooLate);
}

#[test]
fn nobody_passes_who_attaches() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, _) = play.attaches(member, "a", detached());
    taken_over(&mut play, request, Ok(HAS));
    let granted = play.granted("a");
    let behind = play.waits(member, "b");
    play.pass(millis(25));
    assert!(play.called().is_empty());
    play.polled(behind);
    assert_eq!(play.collect(id, &granted), Collected::Yes);
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
fn what_was_attached_is_not_passed_on_for_nobody_knows_what_the_store_has_of_it() {
    let (mut play, member) = Play::with(PLAIN);
    let (id, request, _) = play.attaches(member, "a", detached());
    taken_over(&mut play, request, Ok(HAS));
    let granted = play.comes(id, "a");
    play.waits(member, "b");
    assert_eq!(play.release_guard(granted.guard, None), GuardRelease::Sent);
}
