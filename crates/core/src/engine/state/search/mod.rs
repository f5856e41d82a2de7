//! Every behaviour of the state machine with a small store and an adversary beside it, breadth first.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells its figures")]

mod broken;
mod callers;
mod carry;
mod configs;
mod encode;
mod encode_state;
mod explore;
mod imports;
mod keys;
mod moves;
mod properties;
mod random;
mod settle;
mod store;
mod take;
mod world;

use std::time::Duration;

use self::explore::{SETTLED, explore};
use self::moves::Move;
use self::world::{Asks, At, Config, Flight, World};
use super::event::Request;

fn holds(config: &'static Config, must_happen: &[&str]) {
    // More than is searched in a test: `cargo xtask model`.
    let times = std::env::var("LEASEHOLD_SEARCH_TIMES").map_or(1, |times| times.parse().unwrap());
    let found = explore(config, config.states * times, SETTLED);
    println!(
        "\"{}\": {} states, {} steps deep, complete: {}: {:#?}",
        config.name, found.states, found.depth, found.complete, found.seen
    );
    if let Some((property, what)) = found.broken {
        panic!("{property:?} is broken: {what}");
    }
    for what in must_happen {
        assert!(found.seen.contains_key(what), "\"{what}\" never happened");
    }
}

#[test]
fn exclusive() {
    let must_happen = [
        "a lease passes from guard to guard",
        "an heir takes what another asked for",
        "a grant that nobody wants goes back",
        "a claim is carried out late",
        "a lease runs out under a guard",
        "an offer was taken back",
        "an offer was withdrawn",
        "a key is only held",
    ];
    holds(&configs::EXCLUSIVE, &must_happen);
}

#[test]
fn two_processes() {
    holds(&configs::TWO_PROCESSES, &["a caller hears that the key is busy", "a lease runs out unconfirmed"]);
}

#[test]
fn queue() {
    holds(&configs::QUEUE, &["the store notes a waiter", "a guard hears that it is not the holder"]);
}

#[test]
fn queue_told() {
    holds(&configs::QUEUE_TOLD, &["a message grants", "a renewal is sent"]);
}

#[test]
fn shared() {
    holds(&configs::SHARED, &["a reader shares another's grant", "a guard hears that it is not the holder"]);
}

#[test]
fn sessions() {
    holds(&configs::SESSIONS, &["a session takes the key again", "a caller hears that a guard is lost"]);
}

#[test]
fn one_session() {
    holds(&configs::ONE_SESSION, &["a session takes the key again", "a claim is carried out late"]);
}

#[test]
fn lossy() {
    holds(&configs::LOSSY, &["an echo frees what a late claim took", "a caller hears of a failure"]);
}

#[test]
fn ends() {
    let must_happen = [
        "a cap ends a lease",
        "a guard hears of a release by force",
        "a guard hears of the shutdown",
        "a caller hears that the engine is closed",
        "a lease is left to the store",
        "a lock is attached",
        "a lock is not attached twice",
    ];
    holds(&configs::ENDS, &must_happen);
}

#[test]
fn attaches() {
    let must_happen = [
        "a lock is attached",
        "a lock is not attached twice",
        "what was taken over was taken back",
        "a lease begins",
        "a caller hears of a failure",
        "a caller hears that the engine is closed",
    ];
    holds(&configs::ATTACHES, &must_happen);
}

#[test]
fn downgrades() {
    let must_happen = [
        "a writer is downgraded",
        "a writer goes on as a reader",
        "a downgrade is carried out late",
        "what was taken over was taken back",
        "a lease begins",
        "a caller hears that a guard is lost",
        "a caller hears of a failure",
        "a caller hears that the engine is closed",
    ];
    holds(&configs::DOWNGRADES, &must_happen);
}

/// Ways that only a larger search than that of the tests comes upon, and that once led to somebody who waits for ever.
#[test]
fn far_ways() {
    use Move::{Join, Leave, Pause, RoundTrip, Tick, TimesUp};
    let ways: [(&'static Config, &[Move]); 2] = [
        // The claim of one who is gone serves another beside whose own it is answered, and that does not come for it.
        (&configs::EXCLUSIVE, &[Join(1), Leave(1), Join(2), Tick, Tick, TimesUp(2), RoundTrip(0), Tick, Tick]),
        (&configs::TWO_PROCESSES, &[Join(2), Leave(2), Join(2), Tick, Tick, Tick, RoundTrip(0), Pause]),
    ];
    for (config, way) in ways {
        let mut world = World::new(config);
        for step in way {
            world.take(*step).unwrap();
        }
        world.settles().unwrap();
    }
}

/// A store that forgot how far it was grants an older number than that of a reader here, again and again.
#[test]
fn a_number_that_is_too_old_is_not_asked_for_without_a_pause() {
    let mut world = World::new(&configs::READER_AND_WRITER);
    world.store.newest = 100;
    for step in [Move::Join(0), Move::RoundTrip(0), Move::Collect(0)] {
        world.take(step).unwrap();
    }
    world.forget(false);
    world.store.newest = 1;
    world.take(Move::Join(1)).unwrap();
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
    let mut world = World::new(&configs::READER_AND_TRY);
    world.store.newest = 100;
    for step in [Move::Join(0), Move::RoundTrip(0), Move::Collect(0)] {
        world.take(step).unwrap();
    }
    world.forget(false);
    world.store.newest = 1;
    world.take(Move::Join(1)).unwrap();
    world.take(Move::RoundTrip(0)).unwrap();
    assert_eq!(world.seen.last(), Some(&"a caller hears of a failure"));
    world.take(Move::RoundTrip(0)).unwrap();
    assert!(world.flights.is_empty() && world.store.holders.is_empty(), "what was granted is not given back once");
}
