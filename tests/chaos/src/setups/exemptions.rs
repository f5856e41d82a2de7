//! What a backend does not promise under which fault, in words that its README has, too.
//!
//! Nothing excuses that a grant has the token of another or a smaller one, or a register that takes a smaller one than before.

use leasehold_chaos::checker::Rule;

use crate::fault::Fault;

/// A fault under which something is not promised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exemption {
    pub(crate) fault: Fault,
    /// What may break.
    pub(crate) rules: &'static [Rule],
    /// For people.
    pub(crate) why: &'static str,
    /// The fault takes locks away from those who hold them, and they have to notice within a lease.
    pub(crate) takes_locks: bool,
}

/// Exclusion, and what depends on nothing else.
pub(super) const EXCLUSION: &[Rule] = &[Rule::Overlap, Rule::ReaderBesideWriter, Rule::UnfencedLoss];

impl Exemption {
    /// Exclusion ends for as long as the fault lasts.
    pub(super) const fn from_exclusion(fault: Fault, why: &'static str) -> Self {
        Self { fault, rules: EXCLUSION, why, takes_locks: false }
    }

    /// What the old primary granted and the new one never received is lost, also that a detached lock was attached.
    pub(super) const fn of_lost_writes(fault: Fault) -> Self {
        let rules = &[Rule::Overlap, Rule::ReaderBesideWriter, Rule::UnfencedLoss, Rule::StaleAttach];
        Self { fault, rules, why: FAIL_OVER, takes_locks: false }
    }

    /// Exclusion ends until those who held locks notice that these are gone.
    pub(super) const fn until_noticed(fault: Fault, why: &'static str) -> Self {
        Self { fault, rules: EXCLUSION, why, takes_locks: true }
    }
}

/// What no backend promises.
pub(super) const FOR_ALL: &[Exemption] = &[
    Exemption {
        fault: Fault::StopClient,
        rules: &[Rule::UnfencedLoss],
        why: "a program that is stopped between its last check and its write does not notice",
        takes_locks: false,
    },
    Exemption::until_noticed(Fault::ForceRelease, "the holder learns of it at its next renewal"),
];

/// What single Redis servers do not promise.
pub(super) const OF_ONE_REDIS: &[Exemption] =
    &[Exemption::until_noticed(Fault::EmptyServer, "holders learn of it at their next renewal"), CLOCK_AHEAD];

/// Where no replica confirms what is granted.
const FAIL_OVER: &str = "what the old primary granted and the new one never received is lost, unless replicas confirm";

/// What a primary and its replicas do not promise where no replica confirms.
pub(super) const OF_A_SENTINEL_SET: &[Exemption] = &[
    Exemption::of_lost_writes(Fault::FailOver),
    Exemption::of_lost_writes(Fault::FallBehind),
    Exemption::of_lost_writes(Fault::StopServer),
    Exemption::of_lost_writes(Fault::RestartServer),
];

/// What leases that one server ends do not promise.
pub(super) const CLOCK_AHEAD: Exemption =
    Exemption::from_exclusion(Fault::ServerClockAhead, "leases end early by as much");
