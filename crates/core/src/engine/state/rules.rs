//! The rules that the tests leave out one at a time, to see what each is there for. Otherwise all are kept.

/// A rule of the protocol. The line of code that keeps it asks [`left_out`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// A grant that no waiter wants any more is released.
    Compensate,
    /// A waiter that leaves gives up what it has in the store.
    GiveUp,
    /// A request on which others depend goes on also if its caller is never polled.
    NotPolled,
    /// A guard that its waiter does not collect goes to the next waiter.
    Untaken,
    /// The guards of a lease are notified of its end.
    TellEnd,
    /// A lease that is attached has an owner of its own from then on.
    OwnerOfItsOwn,
    /// A take-over whose caller is gone is released.
    TakenOverGoesBack,
    /// The writer that a downgrade may have left in the store is released.
    WriterGoesBack,
    /// A notification counts only with a larger epoch than the one that came with the queue position.
    LaterEpoch,
    /// A notification during a claim is judged together with the answer to that claim.
    AfterMessage,
    /// A release by force ends what it evicted, and nothing else.
    ForcedOnly,
    /// A lease counts from before the first request that may have begun it.
    CountsFrom,
    /// An answer that comes late never shortens a lease.
    NeverShorter,
    /// No guard is created after the engine was closed.
    ClosedForAll,
    /// A hand-off counts up.
    NewNumber,
    /// The count never goes beyond its bound.
    Bound,
    /// A guard that is over does not affect the guards of others.
    OwnGuardOnly,
    /// No hand-off of a lease that is almost over.
    Settled,
    /// No hand-off while the outcome of a renewal is unknown.
    NoDoubt,
    /// A lease that ran out is lost before anything else happens.
    LossFirst,
    /// A grant goes to another waiter only if that wants the same.
    SameRequest,
    /// An owner id is new for every claim.
    NewOwner,
    /// After the largest number of hand-offs other processes go first.
    YieldAfterBound,
    /// An offer to a caller that is gone goes to the next waiter.
    SkipGone,
    /// The next guard gets what is left of the lease.
    WhatIsLeft,
    /// A reader shares only a grant that was asked for after it came.
    CameBefore,
    /// What counts for that is when it was asked for first.
    FirstAsked,
    /// A shared lease is not handed off.
    NotShared,
    /// Under a lost guard of a session no fresh lease begins.
    LostUnder,
    /// A process claims nothing while it gives the key back, and a session nothing while it gives a level back.
    GivesBack,
    /// A session does not join what it lost.
    LostEpoch,
    /// Two leases of which one excludes the other: the older one is lost.
    OlderIsLost,
}

/// Whether a test leaves this rule out.
#[cfg(not(test))]
pub(super) const fn left_out(_: Rule) -> bool {
    false
}

#[cfg(test)]
pub(super) fn left_out(rule: Rule) -> bool {
    LEFT_OUT.get() == Some(rule)
}

#[cfg(test)]
thread_local! {
    pub(super) static LEFT_OUT: std::cell::Cell<Option<Rule>> = const { std::cell::Cell::new(None) };
}
