use std::num::ParseIntError;
use std::time::Duration;

use leasehold_core::{Error, ErrorKind, FencingToken};
use leasehold_redis::{Entry, number, script_error};

use crate::condition::{Failure, NodeCondition};
use crate::node::Peer;

/// A node's answer in the first round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// It is ours there; a token must exceed `seed`, or is `token` if this owner has one there already.
    Granted { seed: u64, token: Option<u64> },
    /// It is somebody else's there.
    Busy(Standing),
    /// No vote.
    Failed(Failure),
}

/// Who has a key on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) left: Duration,
    /// Tells owners apart.
    pub(crate) by: String,
    /// It has been through the second round there. An attempt that has not may never win.
    pub(crate) confirmed: bool,
}

impl Claimed {
    /// `None`: no node says so.
    pub(crate) fn granted(seed: &str, token: &str) -> Option<Self> {
        let epoch = |text| number(text).filter(|epoch| *epoch <= FencingToken::MAX_EPOCH);
        let token = if token == "-" { None } else { Some(epoch(token)?) };
        let seed = epoch(seed).filter(|seed| *seed < FencingToken::MAX_EPOCH)?;
        Some(Self::Granted { seed, token })
    }

    /// Whether the node may have the key as ours.
    pub(crate) fn may_be_ours(&self) -> bool {
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
    Yes,
    /// Another came in between: the key is not ours there any more, or a number was not smaller.
    Beaten,
    Failed(Failure),
}

/// What a node says of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    Gone,
    Forced,
}

/// What a node says of a key: who holds it there, and for how long; `None` is for ever.
pub(crate) type Seen = Option<(Entry, Option<Duration>)>;

/// A node's marker, and which server it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    pub(crate) phase: Phase,
    pub(crate) incarnation: String,
    /// Empty: we may not know.
    pub(crate) run: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    None,
    New,
    Healing,
    Up,
}

pub(crate) fn kept(peer: &Peer, words: &[&str]) -> Result<Kept, Failure> {
    match *words {
        ["held"] | ["held", "refused", _] => Ok(Kept::Yes),
        ["gone"] => Ok(Kept::Gone),
        ["forced"] => Ok(Kept::Forced),
        _ => Err(not_understood(peer, words)),
    }
}

pub(crate) fn seen(peer: &Peer, words: &[&str]) -> Result<Seen, Failure> {
    match *words {
        ["free"] => Ok(None),
        ["held", entry, left, ..] => match lease(left) {
            Ok(left) => Ok(Some((Entry::read(entry).unwrap_or_else(Entry::of_somebody_else), left))),
            Err(_) => Err(not_understood(peer, &[])),
        },
        ["foreign", ..] => Err(not_understood(peer, words).of_a_foreign_entry()),
        _ => Err(not_understood(peer, words)),
    }
}

/// What is left of a lease; `None` is for ever.
fn lease(left: &str) -> Result<Option<Duration>, ParseIntError> {
    if left == "-1" { Ok(None) } else { Ok(Some(Duration::from_millis(left.parse()?))) }
}

/// There is an entry without a lease.
pub(crate) fn endless(peer: &Peer, key: &str) -> Failure {
    let told = format!("the entry `{key}` never expires, so Leasehold did not write it; force-release frees it");
    Failure::from(Error::new(ErrorKind::Backend, "ask Redis").detail(peer.connection.quote(&told)))
}

/// The answers that scripts give instead of their own.
pub(crate) fn not_understood(peer: &Peer, words: &[&str]) -> Failure {
    match *words {
        ["reset"] => Failure::of(NodeCondition::Reset),
        ["endless", key] => endless(peer, key),
        ["foreign" | "refused", ..] => script_error(&peer.connection, words).into(),
        // Nobody knows what it did.
        _ => Failure { maybe_done: true, ..script_error(&peer.connection, words).into() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_has_numbers_that_make_tokens() {
        assert_eq!(Claimed::granted("7", "-"), Some(Claimed::Granted { seed: 7, token: None }));
        assert_eq!(Claimed::granted("7", "6"), Some(Claimed::Granted { seed: 7, token: Some(6) }));
        let last = FencingToken::MAX_EPOCH;
        assert!(Claimed::granted(&(last - 1).to_string(), &last.to_string()).is_some());
        for (seed, token) in [
            ("", "-"),
            ("-", "-"),
            ("x", "-"),
            ("7", ""),
            ("7", "x"),
            ("7", "-7"),
            ("8796093022207", "-"),
            ("7", "8796093022208"),
        ] {
            assert_eq!(Claimed::granted(seed, token), None, "{seed} {token}");
        }
    }
}
