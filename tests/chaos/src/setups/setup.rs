//! What there is to say about one setup.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use futures::future::BoxFuture;
use leasehold_chaos::checker::{Allowance, Rule};
use leasehold_core::Result as Locked;

use super::exemptions::{Exemption, FOR_ALL};
use crate::fault::Fault;
use crate::locks::Locks;
use crate::stores::{Library, Store};

/// A backend on servers that are arranged in some way.
pub(crate) struct Setup {
    /// The name in commands, tables and reports.
    pub(crate) name: &'static str,
    /// The name of the crate, without its prefix.
    pub(crate) backend: &'static str,
    /// How its servers are arranged, for people.
    pub(crate) in_words: &'static str,
    /// Starts the servers, with their files below this folder.
    pub(crate) start: fn(&Path, Option<&Library>) -> Result<Store, String>,
    /// Connects a client, and tries again for a while where the store cannot be reached.
    pub(crate) connect: fn(&str) -> BoxFuture<'_, Locked<Locks>>,
    /// What an operator does after the servers began, or after one of them forgot everything.
    pub(crate) repair: Option<Repair>,
    /// The lease of every lock, in milliseconds.
    pub(crate) ttl_ms: u64,
    /// What is done to its servers, to the way to them, and to its keys.
    pub(crate) deck: &'static [&'static [Fault]],
    /// Two faults of which a run has one: the README says that the backend does not bear both.
    pub(crate) either: Option<[Fault; 2]>,
    /// What it does not promise, beside what no backend promises.
    pub(crate) exempt: &'static [Exemption],
    /// What stays behind of keys.
    pub(crate) stays: Stays,
}

/// The lease of every lock where the store can time one so short.
pub(super) const TTL_MS: u64 = 1500;

/// Has the servers at this address serve.
pub(crate) type Repair = fn(&str) -> BoxFuture<'_, Result<(), String>>;

/// What stays behind of a key that was used once, as the README of the backend says: on all servers together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stays {
    pub(crate) entries: u64,
    /// How many entries more where readers held the key.
    pub(crate) more_of_readers: u64,
    pub(crate) bytes: u64,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Setup {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Setup {}

impl Setup {
    /// The lease of every lock.
    pub(crate) fn ttl(&self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }

    /// All that is done to its store.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.deck.concat()
    }

    /// What is done to its store in one run.
    pub(crate) fn faults_of_run(&self, seed: u64) -> Vec<Fault> {
        let mut faults = self.faults();
        if let Some([even, odd]) = self.either {
            let other = if seed.is_multiple_of(2) { odd } else { even };
            faults.retain(|fault| *fault != other);
        }
        faults
    }

    /// All that it does not promise, what no backend promises included.
    pub(crate) fn exemptions(&self) -> impl Iterator<Item = &'static Exemption> {
        FOR_ALL.iter().chain(self.exempt)
    }

    /// The same for the checker.
    pub(crate) fn allowances(&self) -> Vec<Allowance> {
        let allowance =
            |one: &Exemption| Allowance { backends: &[], fault: one.fault.name(), rules: one.rules, why: one.why };
        self.exemptions().map(allowance).collect()
    }

    /// Whether exclusion holds under a fault; else why it does not.
    pub(crate) fn exclusion(&self, fault: Fault) -> Result<(), &'static str> {
        let concerns = |one: &&Exemption| one.fault == fault && one.rules.contains(&Rule::Overlap);
        self.exemptions().find(concerns).map_or(Ok(()), |one| Err(one.why))
    }

    /// Whether a detached lock is attached once at most under a fault, so that no two holders have its token.
    pub(crate) fn attaches_once(&self, fault: Fault) -> bool {
        !self.exemptions().any(|one| one.fault == fault && one.rules.contains(&Rule::StaleAttach))
    }
}
