//! The rules that the tests leave out one at a time, to see what each is there for. Otherwise all are kept.

/// A rule, at whose line [`left_out`] is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    /// What an answer brings that nobody wants any more is given back.
    Compensate,
    /// Who goes gives up what it has in the store.
    GiveUp,
    /// What others depend on goes on also if its caller is never polled.
    NotPolled,
    /// A grant that its waiter does not come for goes to the next.
    Untaken,
    /// The end of a lease is told to its guards.
    TellEnd,
    /// A lease that is attached has an owner of its own from then on.
    OwnerOfItsOwn,
    /// What is taken over for nobody is given back.
    TakenOverGoesBack,
    /// What a downgrade may have left of the writer is given back.
    WriterGoesBack,
    /// A late message counts only with a larger epoch than the one that came with the place.
    LaterEpoch,
    /// The answer to a claim that a message granted is about that lease.
    AfterMessage,
    /// A release by force ends what it evicted, and nothing else.
    ForcedOnly,
    /// A lease counts from before the first request that may have begun it.
    CountsFrom,
    /// An answer that comes late never shortens a lease.
    NeverShorter,
    /// No guard is born after the engine was closed.
    ClosedForAll,
    /// A hand-off counts up.
    NewNumber,
    /// The count never goes beyond its bound.
    Bound,
    /// A guard that is over does nothing to what others have now.
    OwnGuardOnly,
    /// No hand-off of a lease that is almost over.
    Settled,
    /// No hand-off while the outcome of a renewal is unknown.
    NoDoubt,
    /// A lease that ran out is lost before anything else happens.
    LossFirst,
    /// A lease goes only to an heir who asked for just that.
    SameRequest,
    /// An owner id is new for every claim.
    NewOwner,
    /// After the bound other processes go first.
    YieldAfterBound,
    /// An offer to somebody who is gone goes to the next.
    SkipGone,
    /// A successor gets what is left of the lease.
    WhatIsLeft,
    /// A reader shares only a grant that was asked for after it came.
    CameBefore,
    /// What counts for that is when it was asked for first.
    FirstAsked,
    /// A shared lease is not handed off.
    NotShared,
    /// Under a lost guard of a session no fresh lease begins.
    LostUnder,
    /// A session claims nothing while it gives a level back.
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
