use std::time::Duration;

use leasehold_core::{FencingToken, LeaseStatus};
use leasehold_redis::{Entry, Lease, Store, read_epoch};

use crate::error::Failure;
use crate::node_state::NodeCondition;

/// A node's answer to a claim: the first round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The node granted the key. The epoch must exceed `seed`, or is `epoch` if the node has one for this owner already.
    Granted { seed: u64, epoch: Option<u64> },
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
    /// Whether it has been through the second round on the node. An owner that has not may never win.
    pub(crate) confirmed: bool,
}

impl Claimed {
    /// Reads an answer `granted`. `None`: no script of ours answers so.
    pub(crate) fn granted(seed: &str, epoch: &str) -> Option<Self> {
        let read = |text| read_epoch(text).filter(|epoch| *epoch <= FencingToken::MAX_EPOCH);
        let epoch = if epoch == "-" { None } else { Some(read(epoch)?) };
        let seed = read(seed).filter(|seed| *seed < FencingToken::MAX_EPOCH)?;
        Some(Self::Granted { seed, epoch })
    }

    /// Whether the node may have granted the key to this claim.
    pub(crate) fn may_be_granted(&self) -> bool {
        match self {
            Self::Granted { .. } => true,
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
        assert_eq!(Claimed::granted("7", "-"), Some(Claimed::Granted { seed: 7, epoch: None }));
        assert_eq!(Claimed::granted("7", "6"), Some(Claimed::Granted { seed: 7, epoch: Some(6) }));
        let last = FencingToken::MAX_EPOCH;
        assert!(Claimed::granted(&(last - 1).to_string(), &last.to_string()).is_some());
        for (seed, epoch) in [
            ("", "-"),
            ("-", "-"),
            ("x", "-"),
            ("7", ""),
            ("7", "x"),
            ("7", "-7"),
            ("140737488355327", "-"),
            ("7", "140737488355328"),
        ] {
            assert_eq!(Claimed::granted(seed, epoch), None, "{seed} {epoch}");
        }
    }
}
