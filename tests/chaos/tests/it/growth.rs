//! The work of the checker grows with n log n: comparisons are counted, and no time is measured.

use leasehold_chaos::checker::{Terms, check};
use leasehold_chaos::history::{Event, History, Mode, Record};
use leasehold_testkit::test;

use crate::simulator;

/// So many comparisons for each event and each halving of all events.
const MOST: u64 = 5;

fn comparisons(records: Vec<Record>) -> (u64, u64) {
    let events = records.len() as u64;
    let verdict = check(&History::of(records), &Terms::default());
    assert_eq!(verdict.figures.events, events);
    (events, verdict.comparisons)
}

#[track_caller]
fn few((events, comparisons): (u64, u64)) {
    let most = MOST * events * u64::from(events.ilog2());
    assert!(comparisons <= most, "{comparisons} comparisons for {events} events; {most} are the most");
}

#[test]
fn a_million_events_are_checked_with_few_comparisons() {
    let mut records = simulator::history(7, 260_000, 40);
    assert!(records.len() >= 1_000_000, "{}", records.len());
    records.truncate(1_000_000);
    few(comparisons(records));
}

#[test]
fn a_single_key_and_a_lock_that_always_grants_take_few_comparisons_too() {
    few(comparisons(simulator::history(7, 5_000, 1)));
    // Every window is within all that began before it.
    let ops = 20_000;
    let event = |at, op, event| Record { at, client: u32::try_from(op % 8).unwrap(), task: 0, op, event };
    let calls = (0..ops).flat_map(|op| {
        let mode = if op % 2 == 0 { Mode::Shared } else { Mode::Exclusive };
        let called = Event::Called { key: "k".into(), mode, wait_ms: None, session: None, attach: false };
        let granted = Event::Granted { token: ops - op, lease_ms: 1000 };
        [event(3 * op, op, called), event(3 * op + 1, op, granted), event(10 * ops - op, op, Event::Held {})]
    });
    few(comparisons(calls.collect()));
}

#[test]
fn ten_times_the_events_take_little_more_than_ten_times_the_comparisons() {
    let of = |ops| comparisons(simulator::history(3, ops, 4));
    let ((few_events, few), (many_events, many)) = (of(1_000), of(10_000));
    assert!(many * few_events < 2 * few * many_events, "{few} for {few_events}, {many} for {many_events}");
}
