//! Every behaviour of the state machine with a small store and an adversary beside it, breadth first.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and tells its figures")]

mod callers;
mod carry;
mod configs;
mod encode;
mod encode_state;
mod explore;
mod key_names;
mod keys;
mod moves;
mod possible;
mod properties;
mod random;
mod settle;
mod store;
mod take;
mod ways;
mod world;

use self::explore::{SETTLED, explore};
use self::world::Config;

/// A number that a task of the project gives to a search, or 1.
fn given(name: &str) -> usize {
    std::env::var(name).map_or(1, |number| number.parse().unwrap())
}

/// Only so many times less is searched: the first look at a mutant, where most of them fail.
fn share() -> usize {
    given("LEASEHOLD_SEARCH_SHARE")
}

fn holds(config: &'static Config, must_happen: &[&str]) {
    holds_in(config, config.states, SETTLED, must_happen);
}

fn holds_in(config: &'static Config, states: usize, settled: u128, must_happen: &[&str]) {
    // More than is searched in a test: `cargo xtask model`.
    let states = states * given("LEASEHOLD_SEARCH_TIMES") / share();
    let found = explore(config, states, settled);
    println!(
        "\"{}\": {} states, {} steps deep, complete: {}: {:#?}",
        config.name, found.states, found.depth, found.complete, found.seen
    );
    if let Some((property, what)) = found.broken {
        panic!("{property:?} is broken: {what}");
    }
    for what in must_happen.iter().filter(|_| share() == 1) {
        assert!(found.seen.contains_key(what), "\"{what}\" never happened");
    }
}

/// In each of them one rule of the protocol shows soon; each state is followed to its end.
#[test]
fn few_callers() {
    for config in configs::FEW_CALLERS {
        holds_in(config, 4_000, 1, &[]);
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
        "an offer was withdrawn",
        "who is polled passes who is not",
        "who was passed is back in its place",
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
        "a release hears of a loss",
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
