//! What has grown with the number of keys and waits, and whether that is more than may be.

use std::fmt;

use serde::Serialize;

use crate::client::READ;
use crate::setups::Stays;

/// More connections and statements are no pool that is filled later than others.
const MOST_SESSIONS: u64 = 64;

/// What is counted after each part of a soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Measure {
    /// Bytes that the client has allocated and not freed.
    Heap,
    /// Bytes of the client that are in the machine's memory.
    Resident,
    /// Files and sockets that the client has open.
    Descriptors,
    /// Tasks of the client's runtime that have not ended.
    Tasks,
    /// Keys, rows and files of the store, on all servers.
    Entries,
    /// Bytes that the store has for them.
    Data,
    /// What servers keep for clients: connections, channels, prepared statements, scripts.
    Sessions,
}

/// What was done between two counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Work {
    /// So many keys were used once.
    Keys(u64),
    /// So many waits were given up.
    Waits(u64),
}

/// How much there was before and after the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Growth {
    pub(crate) measure: Measure,
    pub(crate) work: Work,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

impl Growth {
    /// Fails if more has grown than may where the store has so many sessions more: a pool opens connections as they are needed.
    pub(crate) fn judge(&self, stays: Stays, sessions: u64) -> Result<(), String> {
        let most = match self.work {
            Work::Keys(times) => self.measure.of_keys(times, stays),
            Work::Waits(times) => times * self.measure.of_a_wait(),
        };
        let most = most + self.measure.at_once() + sessions.min(MOST_SESSIONS) * self.measure.of_a_session();
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
        write!(f, "{:26} {before:>11} > {after:>11} with {times:>7} {what:5} {each:>8.2} each", self.measure.in_words())
    }
}

impl Measure {
    fn in_words(self) -> &'static str {
        match self {
            Self::Heap => "heap of the client, bytes",
            Self::Resident => "memory of the client, bytes",
            Self::Descriptors => "descriptors of the client",
            Self::Tasks => "tasks of the client",
            Self::Entries => "entries of the store",
            Self::Data => "data of the store, bytes",
            Self::Sessions => "sessions of the store",
        }
    }

    /// How much may be more however little was done: pools and buffers grow once.
    fn at_once(self) -> u64 {
        match self {
            Self::Heap => 64 << 10,
            // Once, on a busy machine, much was under way at a time.
            Self::Resident => 16 << 20,
            Self::Data => 8 << 20,
            Self::Descriptors | Self::Tasks => 8,
            Self::Entries => 64,
            Self::Sessions => 1000,
        }
    }

    /// What a client keeps of a connection, or of a statement that is prepared on one.
    fn of_a_session(self) -> u64 {
        if self == Self::Heap { 32 << 10 } else { 0 }
    }

    fn of_keys(self, times: u64, stays: Stays) -> u64 {
        match self {
            Self::Entries => times * stays.entries + times / READ * stays.more_of_readers,
            Self::Data => times * stays.bytes,
            _ => times * self.of_a_wait(),
        }
    }

    /// Whatever is kept of each is larger than this.
    fn of_a_wait(self) -> u64 {
        match self {
            Self::Heap => 1,
            // An allocator leaves holes.
            Self::Resident => 16,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAYS: Stays = Stays { entries: 1, more_of_readers: 2, bytes: 160 };
    const KEYS: Work = Work::Keys(1_000_000);
    const WAITS: Work = Work::Waits(10_000);

    /// The growth of what began so large and kept so much of each key or wait.
    fn kept(measure: Measure, work: Work, before: u64, each: u64) -> Growth {
        let (Work::Keys(times) | Work::Waits(times)) = work;
        Growth { measure, work, before, after: before + times * each }
    }

    fn is_leak(growth: Growth) -> bool {
        growth.judge(STAYS, 0).is_err()
    }

    #[test]
    fn a_client_that_keeps_something_of_each_key_or_wait_leaks() {
        for work in [KEYS, WAITS, Work::Keys(20_000)] {
            for bytes in [16, 64, 200] {
                assert!(is_leak(kept(Measure::Heap, work, 900_000, bytes)), "{bytes} bytes with each of {work:?}");
            }
            for measure in [Measure::Descriptors, Measure::Tasks, Measure::Sessions] {
                assert!(is_leak(kept(measure, work, 20, 1)), "{measure:?} with {work:?}");
            }
        }
        assert!(is_leak(kept(Measure::Resident, KEYS, 20 << 20, 64)));
    }

    #[test]
    fn one_task_or_descriptor_in_a_thousand_waits_leaks() {
        for measure in [Measure::Descriptors, Measure::Tasks] {
            assert!(is_leak(Growth { measure, work: WAITS, before: 14, after: 24 }), "{measure:?}");
        }
    }

    #[test]
    fn a_store_keeps_of_a_key_what_the_readme_says_and_of_a_wait_nothing() {
        assert!(!is_leak(kept(Measure::Entries, KEYS, 5, 1)));
        assert!(!is_leak(Growth { after: 1_500_000, ..kept(Measure::Entries, KEYS, 5, 1) }));
        assert!(is_leak(kept(Measure::Entries, KEYS, 5, 2)));
        assert!(is_leak(kept(Measure::Entries, WAITS, 1_000_000, 1)));
        assert!(!is_leak(kept(Measure::Data, KEYS, 1 << 20, 130)));
        assert!(is_leak(kept(Measure::Data, KEYS, 1 << 20, 200)));
    }

    #[test]
    fn what_grows_once_or_becomes_less_is_no_leak() {
        for work in [KEYS, WAITS] {
            assert!(!is_leak(Growth { measure: Measure::Heap, work, before: 900_000, after: 950_000 }));
            assert!(!is_leak(Growth { measure: Measure::Tasks, work, before: 30, after: 4 }));
        }
    }

    #[test]
    fn a_connection_that_is_opened_late_may_take_memory_and_a_leak_behind_it_is_found() {
        let growth = kept(Measure::Heap, Work::Keys(200_000), 900_000, 2);
        assert!(growth.judge(STAYS, 0).is_err());
        assert_eq!(growth.judge(STAYS, 20), Ok(()));
        assert!(kept(Measure::Heap, KEYS, 900_000, 16).judge(STAYS, u64::MAX).is_err());
    }

    #[test]
    fn growth_is_told_with_its_slope() {
        let told = kept(Measure::Heap, KEYS, 900_000, 64).judge(STAYS, 0).unwrap_err();
        assert!(told.contains("64.00 each") && told.contains("1065536 more are the most"), "{told}");
    }
}
