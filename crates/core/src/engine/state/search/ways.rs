//! Single ways, where the search does not come or does not see what is wrong with them.

use std::time::Duration;

use super::super::event::Request;
use super::configs;
use super::moves::{Fault, Move};
use super::world::{Asks, At, Config, Flight, World};

impl World {
    /// Whatever is under way is answered, but for what comes late.
    fn answers_all(&mut self) {
        while let Some(index) = self.flights.iter().position(|flight| !flight.unheard) {
            self.take(Move::RoundTrip(u8::try_from(index).unwrap())).unwrap();
        }
    }
}

/// Ways that only a larger search than that of the tests comes upon, and that once led to somebody who waits for ever.
#[test]
fn far_ways() {
    use Fault::{Leave, Pause};
    use Move::{Join, RoundTrip, Tick, TimesUp};
    let ways: [(&'static Config, &[Move]); 2] = [
        // The claim of one who is gone serves another beside whose own it is answered, and that does not come for it.
        (&configs::EXCLUSIVE, &[Join(1), Leave.at(1), Join(2), Tick, Tick, TimesUp(2), RoundTrip(0), Tick, Tick]),
        (&configs::TWO_PROCESSES, &[Join(2), Leave.at(2), Join(2), Tick, Tick, Tick, RoundTrip(0), Pause.at(0)]),
    ];
    for (config, way) in ways {
        let mut world = World::new(config);
        for step in way {
            world.take(*step).unwrap();
        }
        world.settles().unwrap();
    }
}

/// A store that forgot how far it was, beside a reader here who has its lease, and another caller who comes.
fn that_forgot(config: &'static Config) -> World {
    let mut world = World::new(config);
    world.store.newest = 100;
    for step in [Move::Join(0), Move::RoundTrip(0), Move::Collect(0)] {
        world.take(step).unwrap();
    }
    world.forget(false);
    world.store.newest = 1;
    world.take(Move::Join(1)).unwrap();
    world
}

/// A store that forgot how far it was grants an older number than that of a reader here, again and again.
#[test]
fn a_number_that_is_too_old_is_not_asked_for_without_a_pause() {
    let mut world = that_forgot(&configs::READER_AND_WRITER);
    let mut claims = 0;
    let (start, mut paused) = (world.now, Duration::ZERO);
    while claims < 5 {
        let claim = |flight: &Flight| matches!(flight.asks, Asks::Store(Request::Claim(..)));
        match world.flights.iter().position(claim) {
            Some(claim) => {
                world.take(Move::RoundTrip(u8::try_from(claim).unwrap())).unwrap();
                claims += 1;
                paused = world.now.since(start);
            }
            None if !world.flights.is_empty() => world.take(Move::RoundTrip(0)).unwrap(),
            None => {
                world.pass(Duration::from_millis(1));
                world.timer(0).unwrap();
            }
        }
    }
    assert!(paused > Duration::from_millis(150), "five claims within {paused:?}");
    assert!(matches!(world.seats[0].at, At::Holding { .. }), "the reader has lost a lease that nobody denied");
}

#[test]
fn who_does_not_wait_is_told_that_the_number_is_too_old() {
    let mut world = that_forgot(&configs::READER_AND_TRY);
    world.take(Move::RoundTrip(0)).unwrap();
    assert_eq!(world.seen.last(), Some(&"a caller hears of a failure"));
    world.take(Move::RoundTrip(0)).unwrap();
    assert!(world.flights.is_empty() && world.store.holders.is_empty(), "what was granted is not given back once");
}

#[test]
fn what_is_granted_late_to_an_owner_that_detached_is_given_back() {
    let mut world = World::new(&configs::DETACHED_IN_LINE);
    for step in [Move::Join(0), Fault::Lose.at(0), Move::Tick] {
        world.take(step).unwrap();
    }
    world.answers_all();
    for step in [Move::Collect(0), Fault::Detach.at(0), Move::Attach(1)] {
        world.take(step).unwrap();
    }
    world.answers_all();
    for step in [Move::Collect(1), Move::Release(1)] {
        world.take(step).unwrap();
    }
    world.answers_all();
    for _ in 0..3 {
        world.take(Move::Tick).unwrap();
        world.answers_all();
    }
    assert!(world.store.holders.is_empty(), "what was released is held");
    world.take(Move::Execute(0)).unwrap();
    assert_eq!(world.seen, ["a claim is carried out late"]);
    world.take(Move::Tick).unwrap();
    world.answers_all();
    assert!(world.store.holders.is_empty(), "an owner that detached keeps the key for its lease");
}
