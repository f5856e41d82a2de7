//! What there is to say about one setup.

use std::time::Duration;

use leasehold_chaos::checker::{Allowance, Rule};
use leasehold_core::{Connect, Health, Kind, Result as Locked, Target, Wait, connect_within};
use leasehold_redis_reentrant::RedisReentrant;
use leasehold_testkit::within;
use tokio::runtime::Runtime;

use crate::fault::Fault;
use crate::locks::Locks;
use crate::stores::{Library, Shape, Store};

/// How long a store that is under a fault may take to accept a client.
const CONNECTS_WITHIN: Wait = Wait::UpTo(Duration::from_secs(30));

/// How long an operator has until the nodes of a majority serve.
const REPAIRS_WITHIN: Duration = Duration::from_secs(30);

/// A backend on servers that are arranged in some way.
pub(crate) struct Setup {
    /// The name in commands, tables and reports.
    pub(crate) name: &'static str,
    /// How its servers are arranged, for people.
    pub(crate) in_words: &'static str,
    /// Its backend. The name is that of the crate, without its prefix.
    pub(crate) kind: Kind,
    /// Starts the servers.
    pub(crate) start: fn(&Library, &Kind) -> Result<Store, String>,
    /// Connects a client.
    pub(super) connect: Connect,
    /// The lease of every lock.
    pub(crate) ttl: Duration,
    /// What is done to its servers, to the way to them, and to its keys.
    pub(super) deck: &'static [&'static [Fault]],
    /// Two faults of which a run has one: the README says that the backend does not bear both.
    pub(super) either: Option<[Fault; 2]>,
    /// What it does not promise, beside what no backend promises.
    pub(crate) exempt: &'static [Allowance],
    /// What stays behind of keys.
    pub(crate) stays: Stays,
}

/// What stays behind of a key that was used once, as the README of the backend says: on all servers together.
#[derive(Clone, Copy, Default)]
pub(crate) struct Stays {
    pub(crate) entries: u64,
    /// How many entries more where readers held the key.
    pub(crate) more_of_readers: u64,
    pub(crate) bytes: u64,
}

/// Exclusion, and what depends on nothing else.
const EXCLUSION: &[Rule] = &[Rule::Overlap, Rule::ReaderBesideWriter, Rule::UnfencedLoss];

/// What no backend promises. Nothing excuses that a grant has the token of another or a smaller one, or a register that takes a smaller
/// one than before.
const FOR_ALL: &[Allowance] = &[
    Allowance {
        rules: &[Rule::UnfencedLoss],
        ..no_exclusion(
            Fault::StopClient,
            "a program that is stopped between its last check and its write does not notice",
        )
    },
    until_noticed(Fault::ForceRelease, "the holder learns of it at its next renewal"),
];

/// Exclusion ends for as long as the fault lasts, in words that the README of the backend has, too.
pub(super) const fn no_exclusion(fault: Fault, why: &'static str) -> Allowance {
    Allowance { fault: fault.name(), rules: EXCLUSION, why, takes_locks: false }
}

/// What the old primary granted and the new one never received is lost, also that a detached lock was attached.
pub(super) const fn lost_writes(fault: Fault) -> Allowance {
    let rules = &[Rule::Overlap, Rule::ReaderBesideWriter, Rule::UnfencedLoss, Rule::StaleAttach];
    let why = "what the old primary granted and the new one never received is lost, unless replicas confirm";
    Allowance { rules, ..no_exclusion(fault, why) }
}

/// Exclusion ends until those who held locks notice that these are gone.
pub(super) const fn until_noticed(fault: Fault, why: &'static str) -> Allowance {
    Allowance { takes_locks: true, ..no_exclusion(fault, why) }
}

impl Setup {
    /// A backend as it is used mostly, without servers and faults.
    pub(super) const fn of(kind: Kind) -> Self {
        Self {
            name: kind.name,
            in_words: "",
            kind,
            start: |_, _| Ok(Store::at(String::new(), Vec::new(), Shape::Plain)),
            connect: kind.connect,
            ttl: Duration::from_millis(1500),
            deck: &[],
            either: None,
            exempt: &[],
            stays: Stays { entries: 1, more_of_readers: 0, bytes: 200 },
        }
    }

    /// Connects a client, and tries again for a while where the store cannot be reached.
    pub(crate) async fn connect(&self, url: &str) -> Locked<Locks> {
        if self.kind.takes_session {
            return connect_within(CONNECTS_WITHIN, || RedisReentrant::connect(url)).await.map(Locks::Sessions);
        }
        connect_within(CONNECTS_WITHIN, || (self.connect)(Target::new(url))).await.map(Locks::Shared)
    }

    /// What an operator does after the servers began, or after one of them forgot everything: has all nodes of a majority serve.
    pub(crate) fn repair(&self, url: &str, runtime: &Runtime) -> Result<(), String> {
        let Some(nodes) = self.kind.nodes else { return Ok(()) };
        let mut healed = Ok(Vec::new());
        let repaired = within(REPAIRS_WITHIN, Duration::from_millis(50), || {
            healed = runtime.block_on((nodes.heal)(url));
            let serve = healed.as_ref().is_ok_and(|states| states.iter().all(|state| state.health == Health::Well));
            serve.then_some(())
        });
        repaired.ok_or_else(|| format!("the nodes were not repaired: {healed:?}"))
    }

    /// All that is done to its store.
    pub(crate) fn faults(&self) -> Vec<Fault> {
        self.deck.concat()
    }

    /// What is done to its store in one run.
    pub(crate) fn faults_of_run(&self, seed: u64) -> Vec<Fault> {
        let mut faults = self.faults();
        let other = self.either.map(|[even, odd]| if seed.is_multiple_of(2) { odd } else { even });
        faults.retain(|fault| Some(*fault) != other);
        faults
    }

    /// All that it does not promise, what no backend promises included.
    pub(crate) fn allowances(&self) -> Vec<Allowance> {
        [FOR_ALL, self.exempt].concat()
    }

    /// Why exclusion, or another rule, does not hold under a fault.
    pub(crate) fn breaks(&self, rule: Rule, fault: Fault) -> Option<&'static str> {
        self.allowances().iter().find(|one| one.fault == fault.name() && one.rules.contains(&rule)).map(|one| one.why)
    }
}
