use std::time::Duration;

use leasehold_core::{FencingToken, LeaseStatus};
use leasehold_redis::{Entry, Lease, Store, read_epoch};

use crate::error::Failure;
use crate::node_state::NodeCondition;
use crate::numbers::Told;

/// A node's answer to a claim: the first round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The node granted the key, and says what numbers it takes and has.
    Granted(Told),
    /// Another owner has the key on the node.
    Busy(NodeHolder),
    /// The node gave no vote.
    Failed(Failure),
}

/// The owner that has a key on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeHolder {
    /// The time until its lease on the node ends.
    pub(crate) remaining: Duration,
    /// The first digits of the owner id, which tell owners apart.
    pub(crate) owner: String,
    /// Whether it is more than an attempt. An owner that is not may never win.
    pub(crate) settled: bool,
}

impl Claimed {
    /// Reads an answer `granted`. `None`: no script of ours answers so.
    pub(crate) fn granted(clock: &str, numbers: &str) -> Option<Self> {
        let (floor, number) = numbers.split_once(' ')?;
        let read = |text| read_epoch(text).filter(|epoch| *epoch <= FencingToken::MAX_EPOCH);
        let number = if number == "-" { None } else { Some(read(number)?) };
        let below_the_last = |text| read(text).filter(|epoch| *epoch < FencingToken::MAX_EPOCH);
        Some(Self::Granted(Told { clock: below_the_last(clock)?, floor: below_the_last(floor)?, number }))
    }

    /// Whether the node may have granted the key to this claim.
    pub(crate) fn may_be_granted(&self) -> bool {
        match self {
            Self::Granted(_) => true,
            Self::Busy(_) => false,
            Self::Failed(failure) => failure.maybe_done,
        }
    }
}

/// A node's answer in the second round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// The node wrote the epoch.
    Written,
    /// Another owner came in between: the node does not have this owner any more, or has a number that is not smaller.
    Conflict,
    /// The number is ahead of the clock of the node.
    Early,
    /// The node gave no vote.
    Failed(Failure),
}

/// The entry of a key on a node, with the remaining lease, of which `None` is for ever. `None`: the key is free there.
pub(crate) type NodeEntry = Option<(Entry, Option<Duration>)>;

/// A node's marker, and which server the node is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) phase: Phase,
    pub(crate) incarnation: String,
    /// The run id of the server; empty if the user may not read it.
    pub(crate) run: String,
    /// The clock of the node when it told this.
    pub(crate) clock: u64,
}

/// What the marker of a node says of the node's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is no marker: the node is new, or lost its data.
    None,
    /// The deployment is being set up.
    New,
    /// Counters are being copied to the node.
    Healing,
    /// The node is in service.
    Up,
}

/// Reads a node's answer to a claim.
pub(crate) fn claimed(redis: &Store, words: &[&str]) -> Result<Claimed, Failure> {
    match *words {
        ["granted", clock, numbers] => Claimed::granted(clock, numbers).ok_or_else(|| failure(redis, &[])),
        [how @ ("taken" | "claimed"), left, owner] => match left.parse() {
            Ok(left) => Ok(Claimed::Busy(NodeHolder {
                remaining: Duration::from_millis(left),
                owner: owner.to_owned(),
                settled: how == "taken",
            })),
            Err(_) => Err(failure(redis, &[])),
        },
        _ => Err(failure(redis, words)),
    }
}

/// Reads a node's answer about its marker.
pub(crate) fn marker(redis: &Store, words: &[&str]) -> Result<Marker, Failure> {
    let [phase, incarnation, run, clock] = *words else { return Err(failure(redis, words)) };
    let phase = match phase {
        "none" => Phase::None,
        "new" => Phase::New,
        "healing" => Phase::Healing,
        "up" => Phase::Up,
        _ => return Err(failure(redis, words)),
    };
    let clock = read_epoch(clock).ok_or_else(|| failure(redis, &[]))?;
    Ok(Marker { phase, incarnation: incarnation.to_owned(), run: run.to_owned(), clock })
}

/// Reads what a script says of one grant on the node.
pub(crate) fn lease_status(redis: &Store, words: &[&str]) -> Result<LeaseStatus, Failure> {
    match *words {
        ["held"] | ["held", "refused", _] => Ok(LeaseStatus::Held),
        ["gone"] => Ok(LeaseStatus::NotHeld),
        ["forced"] => Ok(LeaseStatus::ForceReleased),
        _ => Err(failure(redis, words)),
    }
}

/// Reads what a script says of the entry of one key on the node.
pub(crate) fn node_entry(redis: &Store, words: &[&str]) -> Result<NodeEntry, Failure> {
    match *words {
        ["free"] => Ok(None),
        ["held", entry, left, ..] => match Lease::read(left) {
            Some(left) => Ok(Some((Entry::read(entry), left.remaining()))),
            None => Err(failure(redis, &[])),
        },
        ["foreign", ..] => Err(failure(redis, words).of_a_foreign_entry()),
        _ => Err(failure(redis, words)),
    }
}

/// The failure of a node whose entry `name` has no lease.
pub(crate) fn endless_entry(redis: &Store, name: &str) -> Failure {
    redis.script_error(&["endless", name]).into()
}

/// The failure that an answer stands for which is none of the script's own results.
pub(crate) fn failure(redis: &Store, words: &[&str]) -> Failure {
    match *words {
        ["reset"] => Failure::of(NodeCondition::Reset),
        ["earlier", marker] => redis
            .refusal(&format!(
                "`{marker}` was written by an earlier version of Leasehold; stop the programs that use that version, wait \
                 for the longest lease in use, delete this entry on all nodes, and start again"
            ))
            .into(),
        ["endless", name] => endless_entry(redis, name),
        ["foreign" | "refused", ..] => redis.script_error(words).into(),
        // An answer that nobody understands does not say what the script did.
        _ => Failure { maybe_done: true, ..redis.script_error(words).into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_has_numbers_that_make_tokens() {
        let told = |number| Claimed::Granted(Told { clock: 9, floor: 7, number });
        assert_eq!(Claimed::granted("9", "7 -"), Some(told(None)));
        assert_eq!(Claimed::granted("9", "7 8"), Some(told(Some(8))));
        let last = FencingToken::MAX_EPOCH;
        assert!(Claimed::granted("9", &format!("{} {last}", last - 1)).is_some());
        for (clock, numbers) in [
            ("9", ""),
            ("9", "7"),
            ("9", "- -"),
            ("9", "x -"),
            ("9", "7 "),
            ("9", "7 x"),
            ("9", "7 -7"),
            ("", "7 -"),
            ("x", "7 -"),
            ("9", "140737488355327 -"),
            ("140737488355327", "7 -"),
            ("9", "7 140737488355328"),
        ] {
            assert_eq!(Claimed::granted(clock, numbers), None, "{clock} {numbers}");
        }
    }
}
