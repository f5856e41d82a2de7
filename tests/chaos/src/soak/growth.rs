//! What has grown with the number of keys and waits, and whether that is more than may be.

use std::fmt;

use serde::Serialize;

use crate::setups::Stays;

/// One key in so many is read, where there are readers.
pub(super) const READ: u64 = 4;

/// More connections and statements are no pool that is filled later than others.
const MOST_SESSIONS: u64 = 64;

/// How much there is of each measure.
pub(super) type Counts = [u64; 7];

/// What is counted after each part of a soak, and how much more of it there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Measure {
    name: &'static str,
    in_words: &'static str,
    /// However little was done: pools and buffers grow once.
    at_once: u64,
    /// Of a connection, or of a statement that is prepared on one: what a client keeps of it.
    of_a_session: u64,
    /// Of a key that was used, or of a wait that was given up: whatever is kept of each is larger than this.
    of_each: u64,
}

const HEAP: Measure = Measure {
    name: "heap",
    in_words: "heap of the client, bytes",
    at_once: 64 << 10,
    of_a_session: 32 << 10,
    of_each: 1,
};
/// Once, on a busy machine, much was under way at a time; and an allocator leaves holes.
const RESIDENT: Measure = Measure {
    name: "resident",
    in_words: "memory of the client, bytes",
    at_once: 16 << 20,
    of_a_session: 0,
    of_each: 16,
};
const DESCRIPTORS: Measure = other("descriptors", "descriptors of the client", 8);
const TASKS: Measure = other("tasks", "tasks of the client", 8);
/// Keys, rows and files, on all servers; and what these have for them.
const ENTRIES: Measure = other("entries", "entries of the store", 64);
const DATA: Measure = other("data", "data of the store, bytes", 8 << 20);
/// Connections, channels, prepared statements, scripts.
const SESSIONS: Measure = other("sessions", "sessions of the store", 1000);

const fn other(name: &'static str, in_words: &'static str, at_once: u64) -> Measure {
    Measure { name, in_words, at_once, of_a_session: 0, of_each: 0 }
}

const MEASURES: [Measure; 7] = [HEAP, RESIDENT, DESCRIPTORS, TASKS, ENTRIES, DATA, SESSIONS];

/// What was done between two counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Work {
    /// So many keys were used once.
    Keys(u64),
    /// So many waits were given up.
    Waits(u64),
}

/// How much there was before and after the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Growth {
    #[serde(serialize_with = "name")]
    measure: Measure,
    work: Work,
    before: u64,
    after: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn name<S: serde::Serializer>(measure: &Measure, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(measure.name)
}

/// What has grown, and what of that is more than may be.
pub(super) fn judged(work: Work, [before, after]: [Counts; 2], stays: Stays) -> (Vec<Growth>, Vec<String>) {
    let grown = MEASURES.into_iter().zip(before).zip(after);
    let growth: Vec<Growth> = grown.map(|((measure, before), after)| Growth { measure, work, before, after }).collect();
    let sessions = growth.iter().filter(|growth| growth.measure == SESSIONS);
    let sessions = sessions.map(|growth| growth.after.saturating_sub(growth.before)).sum();
    let failures = growth.iter().filter_map(|growth| growth.judge(stays, sessions).err()).collect();
    (growth, failures)
}

impl Growth {
    /// Fails if more has grown than may where the store has so many sessions more: a pool opens connections as they are needed.
    fn judge(&self, stays: Stays, sessions: u64) -> Result<(), String> {
        let most = match self.work {
            Work::Keys(keys) if self.measure == ENTRIES => keys * stays.entries + keys / READ * stays.more_of_readers,
            Work::Keys(keys) if self.measure == DATA => keys * stays.bytes,
            Work::Keys(times) | Work::Waits(times) => times * self.measure.of_each,
        };
        let most = most + self.measure.at_once + sessions.min(MOST_SESSIONS) * self.measure.of_a_session;
        if self.after <= self.before + most { Ok(()) } else { Err(format!("{self}; {most} more are the most")) }
    }

    /// How much has grown with each key or wait.
    #[allow(clippy::cast_precision_loss, reason = "it is told to people, with two digits")]
    fn of_each(&self) -> f64 {
        let (Work::Keys(times) | Work::Waits(times)) = self.work;
        (self.after as f64 - self.before as f64) / times.max(1) as f64
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (times, what) = match self.work {
            Work::Keys(times) => (times, "keys"),
            Work::Waits(times) => (times, "waits"),
        };
        let (before, after, each) = (self.before, self.after, self.of_each());
        write!(f, "{:26} {before:>11} > {after:>11} with {times:>7} {what:5} {each:>8.2} each", self.measure.in_words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAYS: Stays = Stays { entries: 1, more_of_readers: 2, bytes: 160 };
    const KEYS: Work = Work::Keys(1_000_000);
    const FEW: Work = Work::Keys(20_000);
    const WAITS: Work = Work::Waits(10_000);

    #[test]
    fn what_is_kept_of_each_key_or_wait_is_a_leak_and_what_grows_once_or_becomes_less_is_none() {
        let mut wrong = Vec::new();
        for (leaks, measure, work, before, after) in [
            (true, HEAP, KEYS, 900_000, 900_000 + 16 * 1_000_000),
            (true, HEAP, FEW, 900_000, 900_000 + 16 * 20_000),
            (true, HEAP, WAITS, 900_000, 900_000 + 16 * 10_000),
            (false, HEAP, KEYS, 900_000, 950_000),
            (false, HEAP, WAITS, 900_000, 950_000),
            (true, RESIDENT, KEYS, 20 << 20, (20 << 20) + 64 * 1_000_000),
            (true, DESCRIPTORS, KEYS, 20, 1_000_020),
            (true, SESSIONS, FEW, 20, 20_020),
            (true, SESSIONS, WAITS, 20, 10_020),
            // One in a thousand waits.
            (true, DESCRIPTORS, WAITS, 14, 24),
            (true, TASKS, WAITS, 14, 24),
            (false, TASKS, KEYS, 30, 4),
            // A store keeps of a key what the README says, of one in four more, and of a wait nothing.
            (false, ENTRIES, KEYS, 5, 1_000_005),
            (false, ENTRIES, KEYS, 5, 1_500_000),
            (true, ENTRIES, KEYS, 5, 2_000_005),
            (true, ENTRIES, WAITS, 1_000_000, 1_010_000),
            (false, DATA, KEYS, 1 << 20, (1 << 20) + 130 * 1_000_000),
            (true, DATA, KEYS, 1 << 20, (1 << 20) + 200 * 1_000_000),
        ] {
            let growth = Growth { measure, work, before, after };
            if growth.judge(STAYS, 0).is_err() != leaks {
                wrong.push(growth);
            }
        }
        assert_eq!(wrong, []);
    }

    #[test]
    fn a_connection_that_is_opened_late_may_take_memory_and_a_leak_behind_it_is_told_with_its_slope() {
        let growth = |work, each: u64| Growth { measure: HEAP, work, before: 0, after: 200_000 * each };
        assert!(growth(Work::Keys(200_000), 2).judge(STAYS, 0).is_err());
        assert_eq!(growth(Work::Keys(200_000), 2).judge(STAYS, 20), Ok(()));
        let told = growth(Work::Keys(200_000), 64).judge(STAYS, u64::MAX).unwrap_err();
        assert!(told.contains("64.00 each") && told.contains("2362688 more are the most"), "{told}");
    }
}
