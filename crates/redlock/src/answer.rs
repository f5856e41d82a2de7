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
    pub(crate) fn granted(clock: u64, floor: &str, number: &str) -> Option<Self> {
        let read = |text| read_epoch(text).filter(|epoch| *epoch <= FencingToken::MAX_EPOCH);
        let number = if number == "-" { None } else { Some(read(number)?) };
        let floor = read(floor)?;
        let make_tokens = clock < FencingToken::MAX_EPOCH && floor < FencingToken::MAX_EPOCH;
        make_tokens.then_some(Self::Granted(Told { clock, floor, number }))
    }

    /// Whether the node has no data and therefore no vote, if this answer tells.
    pub(crate) fn is_of_a_reset_node(&self) -> Option<bool> {
        match self {
            Self::Granted(_) | Self::Busy(_) => Some(false),
            Self::Failed(failure) if failure.condition == NodeCondition::Reset => Some(true),
            Self::Failed(_) => None,
        }
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

/// A node's answers to the steps of a batch.
#[derive(Debug, Default)]
pub(crate) struct BatchAnswers {
    /// The clock of the node; 0 where it did not look.
    pub(crate) clock: u64,
    pub(crate) releases: Vec<Result<LeaseStatus, Failure>>,
    pub(crate) claims: Vec<Claimed>,
}

impl BatchAnswers {
    /// One failure for so many releases and claims.
    pub(crate) fn all(failure: &Failure, (releases, claims): (usize, usize)) -> Self {
        let releases = (0..releases).map(|_| Err(failure.clone())).collect();
        Self { clock: 0, releases, claims: (0..claims).map(|_| Claimed::Failed(failure.clone())).collect() }
    }

    pub(crate) fn extend(&mut self, more: Self) {
        self.releases.extend(more.releases);
        self.claims.extend(more.claims);
    }
}

/// Reads a node's answers to a batch of so many releases and claims.
pub(crate) fn batch_answers(
    redis: &Store,
    words: &[&str],
    (releases, claims): (usize, usize),
) -> Result<BatchAnswers, Failure> {
    let [clock, lines] = *words else { return Err(failure(redis, words)) };
    let clock = read_epoch(clock).ok_or_else(|| failure(redis, &[]))?;
    let lines: Vec<&str> = lines.split('\n').collect();
    if lines.len() != releases + claims {
        return Err(failure(redis, &[]));
    }
    let (of_releases, of_claims) = lines.split_at(releases);
    Ok(BatchAnswers {
        clock,
        releases: of_releases.iter().map(|line| release_answer(redis, &words_of(line))).collect(),
        claims: of_claims.iter().map(|line| claim_answer(redis, clock, &words_of(line))).collect(),
    })
}

/// The words of a line: the first two, and the rest; behind `refused`, the rest alone.
fn words_of(line: &str) -> Vec<&str> {
    line.splitn(if line.starts_with("refused ") { 2 } else { 3 }, ' ').collect()
}

fn claim_answer(redis: &Store, clock: u64, words: &[&str]) -> Claimed {
    let answer = match *words {
        ["granted", floor, number] => Claimed::granted(clock, floor, number),
        [how @ ("taken" | "claimed"), left, owner] => left.parse().ok().map(|left| {
            let remaining = Duration::from_millis(left);
            Claimed::Busy(NodeHolder { remaining, owner: owner.to_owned(), settled: how == "taken" })
        }),
        _ => return Claimed::Failed(failure(redis, words)),
    };
    answer.unwrap_or_else(|| Claimed::Failed(failure(redis, &[])))
}

/// Reads a node's answer to a release, and warns if it could not notify those who wait.
pub(crate) fn release_answer(redis: &Store, words: &[&str]) -> Result<LeaseStatus, Failure> {
    if let ["held", reason @ ..] = words {
        redis.warn_of_waiters(reason);
    }
    lease_status(redis, words)
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
        ["foreign", ..] => Err(Failure { foreign: true, ..failure(redis, words) }),
        _ => Err(failure(redis, words)),
    }
}

/// The failure that an answer stands for which is none of the script's own results.
pub(crate) fn failure(redis: &Store, words: &[&str]) -> Failure {
    match *words {
        ["reset"] => Failure::of(NodeCondition::Reset),
        ["version", marker, number] => redis
            .refusal(&format!(
                "`{marker}` is of version {number}, and this program knows version 2: run a program of that version, or stop \
                 all that do, wait for the longest lease in use, delete this entry on all nodes, and start again"
            ))
            .into(),
        ["endless" | "foreign" | "refused", ..] => redis.script_error(words).into(),
        // An answer that nobody understands does not say what the script did.
        _ => Failure { maybe_done: true, ..redis.script_error(words).into() },
    }
}
