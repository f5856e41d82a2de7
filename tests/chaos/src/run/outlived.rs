//! Locks that a fault took from those who held them: a holder that goes on believes in what the store does not have.

use std::collections::HashMap;

use leasehold_chaos::history::{Event, History, Phase, Record, Target};

/// A fault that took locks away.
struct Taken<'h> {
    fault: &'h str,
    /// `None`: of all keys.
    key: Option<&'h str>,
    began: u64,
    ended: u64,
}

/// What is known of one grant.
#[derive(Clone, Copy)]
struct Grant<'h> {
    key: &'h str,
    at: u64,
    lease: u64,
}

/// When a client was under a fault of its own.
struct Hit {
    client: u32,
    began: u64,
    ended: u64,
}

/// Each guard that was granted before one of these faults began, and was held longer than a lease after it ended: its renewal
/// did not tell that the lock was gone. A client that was stopped meanwhile had no renewal, and has no deadline either where
/// there are no leases.
pub(super) fn outlived(history: &History, takes_locks: &[&str]) -> Vec<String> {
    let (taken, hits) = taken(history, takes_locks);
    let (mut keys, mut grants) = (HashMap::new(), HashMap::new());
    let mut found = Vec::new();
    for line in &history.lines {
        let Record { at, client, op, ref event, .. } = line.record;
        match event {
            Event::Called { key, .. } => drop(keys.insert((client, op), key.as_str())),
            Event::Granted { lease_ms, .. } => {
                let key = keys.remove(&(client, op)).unwrap_or_default();
                grants.insert((client, op), Grant { key, at, lease: lease_ms * 1_000_000 });
            }
            Event::Held {} => {
                let Some(grant) = grants.get(&(client, op)).copied() else { continue };
                let outlives = |one: &&Taken<'_>| {
                    let of_it = one.key.is_none_or(|key| key == grant.key);
                    let was_hit =
                        hits.iter().any(|hit| hit.client == client && hit.ended >= one.began && hit.began <= at);
                    of_it && grant.at < one.began && at > one.ended + grant.lease && !was_hit
                };
                if let Some(Taken { fault, ended, .. }) = taken.iter().find(outlives) {
                    let late = (at - ended) / 1_000_000;
                    let (key, place) = (grant.key, history.place(line));
                    found.push(format!("outlived: client {client} held {key} {late} ms after {fault}: {place}"));
                    grants.remove(&(client, op));
                }
            }
            _ => {}
        }
    }
    found
}

fn taken<'h>(history: &'h History, takes_locks: &[&str]) -> (Vec<Taken<'h>>, Vec<Hit>) {
    let (mut under_way, mut taken, mut hits) = (HashMap::new(), Vec::new(), Vec::new());
    for line in &history.lines {
        let Event::Fault { fault, target, phase, proved } = &line.record.event else { continue };
        let key = if let Target::Key(key) = target { Some(key.as_str()) } else { None };
        match phase {
            Phase::Began => drop(under_way.insert(fault.as_str(), line.record.at)),
            Phase::Ended => {
                let Some(began) = under_way.remove(fault.as_str()) else { continue };
                let ended = line.record.at;
                if let Target::Client(client) = *target {
                    hits.push(Hit { client, began, ended });
                } else if *proved > 0 && takes_locks.contains(&fault.as_str()) {
                    taken.push(Taken { fault, key, began, ended });
                }
            }
        }
    }
    (taken, hits)
}

#[cfg(test)]
mod tests {
    use leasehold_chaos::history::{Mode, NEMESIS};

    use super::*;

    const MS: u64 = 1_000_000;

    fn record(at: u64, client: u32, event: Event) -> Record {
        Record { at: at * MS, client, task: 0, op: 1, event }
    }

    fn called() -> Event {
        Event::Called { key: "k".into(), mode: Mode::Exclusive, wait_ms: None, session: None, attach: false }
    }

    /// Client 1 holds `k` from 10 ms on with a lease of 100 ms; the fault is from 20 to 30 ms; it says at `held` that it holds.
    fn story(fault: &str, target: &Target, proved: u64, held: u64) -> Vec<String> {
        let event = |phase, proved| Event::Fault { fault: fault.into(), target: target.clone(), phase, proved };
        let history = History::of([
            record(9, 1, called()),
            record(10, 1, Event::Granted { token: 1, lease_ms: 100 }),
            record(20, NEMESIS, event(Phase::Began, 0)),
            record(30, NEMESIS, event(Phase::Ended, proved)),
            record(held, 1, Event::Held {}),
            record(held + 1, 1, Event::Held {}),
        ]);
        outlived(&history, &["force_release", "empty_server"])
    }

    fn key(key: &str) -> Target {
        Target::Key(key.to_owned())
    }

    #[test]
    fn who_holds_on_for_longer_than_a_lease_after_the_lock_was_taken_is_told_once() {
        let found = story("force_release", &key("k"), 1, 131);
        assert_eq!(found, ["outlived: client 1 held k 101 ms after force_release: history:5"]);
        assert_eq!(story("empty_server", &Target::Server("redis-0".into()), 1, 200).len(), 1);
    }

    #[test]
    fn who_notices_within_a_lease_is_right() {
        assert_eq!(story("force_release", &key("k"), 1, 129), [""; 0]);
    }

    #[test]
    fn who_was_stopped_meanwhile_could_not_notice() {
        let (key, event) = (key("k"), |fault: &str, target: Target, phase, proved| Event::Fault {
            fault: fault.into(),
            target,
            phase,
            proved,
        });
        let story = |stopped| {
            History::of([
                record(9, 1, called()),
                record(10, 1, Event::Granted { token: 1, lease_ms: 100 }),
                record(20, NEMESIS, event("force_release", key.clone(), Phase::Began, 0)),
                record(25, NEMESIS, event("stop_client", Target::Client(stopped), Phase::Began, 0)),
                record(30, NEMESIS, event("force_release", key.clone(), Phase::Ended, 1)),
                record(200, NEMESIS, event("stop_client", Target::Client(stopped), Phase::Ended, 1)),
                record(201, 1, Event::Held {}),
            ])
        };
        assert_eq!(outlived(&story(1), &["force_release"]), [""; 0]);
        assert_eq!(outlived(&story(2), &["force_release"]).len(), 1);
    }

    #[test]
    fn another_key_another_fault_and_a_fault_without_effect_take_nothing() {
        assert_eq!(story("force_release", &key("other"), 1, 200), [""; 0]);
        assert_eq!(story("stop_server", &key("k"), 1, 200), [""; 0]);
        assert_eq!(story("force_release", &key("k"), 0, 200), [""; 0]);
    }
}
