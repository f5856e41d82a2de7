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

use self::explore::{SETTLED, explore};
use self::moves::Move;
use self::world::{Config, World};

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
    holds(&configs::SESSIONS, &["a session takes the key again", "a caller hears that an outer guard is lost"]);
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
        "an attached lock was taken back",
        "a lease begins",
        "a caller hears of a failure",
        "a caller hears that the engine is closed",
    ];
    holds(&configs::ATTACHES, &must_happen);
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
