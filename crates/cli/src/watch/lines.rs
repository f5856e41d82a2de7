use std::collections::BTreeMap;
use std::io;

use leasehold::{Holders, LockKey};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::admin::print;
use crate::exit::Failure;
use crate::wording::{HolderFields, json_event};

/// The lines of `watch --json`. Their names and fields are an interface: see the README.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Held { key: &'a str, waiters: Option<u64>, holders: Vec<HolderFields<'a>> },
    Free { key: &'a str },
    Listed { keys: usize },
    Unanswered { message: &'a str },
}

/// What was said of the store so far.
#[derive(Debug, Default)]
pub(super) struct Lines {
    held: BTreeMap<LockKey, Holders>,
    /// Whether the store answered when it was last asked.
    answered: Option<bool>,
}

impl Lines {
    /// The lines that an answer of the store is worth: what differs from the answer before.
    pub(super) fn of(&mut self, held: BTreeMap<LockKey, Holders>) -> String {
        let mut lines = String::new();
        for key in self.held.keys().filter(|key| !held.contains_key(*key)) {
            lines.push_str(&json_event(&Event::Free { key: key.as_str() }));
        }
        for (key, holders) in &held {
            if self.held.get(key).is_none_or(|before| differ(before, holders)) {
                let all = HolderFields::all(holders);
                lines.push_str(&json_event(&Event::Held { key: key.as_str(), waiters: holders.waiters, holders: all }));
            }
        }
        if self.answered.replace(true) != Some(true) {
            lines.push_str(&json_event(&Event::Listed { keys: held.len() }));
        }
        self.held = held;
        lines
    }

    /// The lines that a failure is worth: none if the store had failed before.
    pub(super) fn of_failure(&mut self, message: &str) -> String {
        match self.answered.replace(false) {
            Some(false) => String::new(),
            Some(true) | None => json_event(&Event::Unanswered { message }),
        }
    }
}

/// Whether another than before holds the key or waits for it. A renewal changes nothing.
fn differ(before: &Holders, after: &Holders) -> bool {
    let who = |holders: &Holders| {
        let mut who: Vec<_> = holders.holders.iter().map(|holder| (holder.token, holder.label.clone())).collect();
        who.sort_unstable();
        (who, holders.waiters)
    };
    who(before) != who(after)
}

/// Writes lines to standard output. `false`: nobody reads it any more.
pub(super) fn write(lines: &str) -> Result<bool, Failure> {
    Ok(print(lines)? && !is_closed())
}

/// Whether standard output is a pipe that nobody reads any more, which a program that has nothing to write does not learn
/// otherwise: `leasehold watch --json | grep -m 1 free` would wait for the next change.
fn is_closed() -> bool {
    let stdout = io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::ERR)
}

#[cfg(test)]
mod tests {
    use leasehold::{Holder, Mode};

    use super::*;

    fn held(keys: &[(&str, u64, Option<u64>)]) -> BTreeMap<LockKey, Holders> {
        let of_one = |(key, token, waiters): &(&str, u64, Option<u64>)| {
            let mut holder = Holder::new(Mode::Exclusive);
            holder.token = Some((*token).into());
            let mut holders = Holders::new(&LockKey::new(*key).unwrap(), vec![holder]);
            holders.waiters = *waiters;
            (holders.key.clone(), holders)
        };
        keys.iter().map(of_one).collect()
    }

    /// Event and key of each line.
    fn names(lines: &str) -> Vec<String> {
        let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.map(|line| format!("{} {}", line["event"], line["key"]).replace('"', "")).collect()
    }

    #[test]
    fn a_line_is_a_change_and_a_renewal_is_none() {
        let mut lines = Lines::default();
        assert_eq!(names(&lines.of(held(&[("a", 1, None), ("b", 2, Some(0))]))), ["held a", "held b", "listed null"]);
        let mut renewed = held(&[("a", 1, None), ("b", 2, Some(0))]);
        for holders in renewed.values_mut() {
            holders.holders[0].remaining = Some(std::time::Duration::from_secs(9));
        }
        assert_eq!(lines.of(renewed), "");
        assert_eq!(names(&lines.of(held(&[("a", 3, None), ("b", 2, Some(0))]))), ["held a"], "it changed hands");
        assert_eq!(names(&lines.of(held(&[("a", 3, None), ("b", 2, Some(4))]))), ["held b"], "somebody waits");
        assert_eq!(names(&lines.of(held(&[("c", 9, None)]))), ["free a", "free b", "held c"]);
    }
}
