//! What a run is judged by: which faults excuse what, and the limits in time. All of it is data of the runner.

use std::fmt;

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident $name:literal;)*) => {
        /// What a history can be found guilty of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[$doc])* $rule,)*
        }

        impl fmt::Display for Rule {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$rule => $name,)*
                })
            }
        }
    };
}

rules! {
    /// The lines contradict each other or the format: the fault is in the client, and nothing else that is found is certain.
    Malformed "malformed history";
    /// Two clients held a key exclusively at the same time.
    Overlap "overlap";
    /// A client held a key shared while another held it exclusively.
    ReaderBesideWriter "reader beside writer";
    /// Two grants of a key have one token.
    DuplicateToken "duplicate token";
    /// A grant that was called after another had returned has a smaller token.
    BackwardToken "backward token";
    /// A detached lock was attached, and had been attached before, or a later holder had been granted its key.
    StaleAttach "stale attach";
    /// A writer went on as a reader, and another writer was granted the key in between.
    TornDowngrade "torn downgrade";
    /// A register took a smaller token after a larger one, or a write of an earlier holder after one of a later holder.
    StaleWrite "stale write accepted";
    /// An update that went with tokens overwrote a value that it had not read.
    LostUpdate "lost update";
    /// The same on a register without a fence. A correct lock does not prevent it when a client is stopped.
    UnfencedLoss "lost update without a fence";
    /// A guard said that it is held after its client had learned of its loss, or had detached it; or after a loss that reached
    /// another level of its session; or a session joined what it had lost.
    HeldAfterEnd "held after its end";
    /// A fault took locks away, and a holder went on for longer than a lease.
    Outlived "outlived";
    /// A call never returned although its client went on.
    Unresolved "unresolved";
    /// Calls returned later after their wait limit than the limit allows.
    LateAnswer "late answer";
    /// Keys that had been given back went to those who waited for them later than the limit allows.
    SlowHandOver "slow hand-over";
    /// Nobody was known to hold a key, somebody asked for it, and nobody was granted it for longer than the limit allows.
    Stalled "stalled";
}

/// A fault under which a backend does not promise something, by its README.
///
/// It excuses what happened between the first grant concerned and the last moment concerned, if the fault was on at some time
/// in between, was over for no longer than a lease, in which holders have to notice, was seen to have an effect, and hit what
/// is concerned: a fault of a client excuses what that client does, one of a key what happens to that key, one of a server or
/// of the way to it everything.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    pub fault: &'static str,
    /// What may break.
    pub rules: &'static [Rule],
    /// For people.
    pub why: &'static str,
    /// The fault takes locks away from those who hold them, and they have to notice within a lease.
    pub takes_locks: bool,
}

/// How late is too late, in milliseconds; `None`: it is not judged. A busy machine makes single things late, so most is typical.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// From the end of a wait limit to the answer, of the calls that came to that end: the median.
    pub wait_overshoot_ms: Option<u64>,
    /// From when a key had been given back and somebody asked for it, to the next grant: the 90th percentile of releases, and
    /// the median of guards that were dropped, whose releases come later.
    pub hand_over_ms: Option<u64>,
    /// How long a key is asked for while no fault is on, and nobody is known to hold it: each time.
    pub stalled_ms: Option<u64>,
}

/// What a run is judged by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'t> {
    /// What the backend under test does not promise.
    pub allowances: &'t [Allowance],
    pub limits: Limits,
}
