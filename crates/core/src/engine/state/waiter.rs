//! A waiter in the wait queue of a key, and what is known that it may be answered with.

use super::backoff::BackOff;
use super::event::{GuardRef, LeaseCell, Member, WaiterId};
use super::lease::Lease;
use crate::clock::Moment;
use crate::{Error, ErrorKind, LockOptions, Mode, SessionId};

/// A caller in the wait queue of a key.
#[derive(Clone, Debug)]
pub(super) struct Waiter<W> {
    pub(super) id: WaiterId,
    pub(super) handle: W,
    pub(super) member: Member,
    pub(super) session: Option<SessionId>,
    pub(super) mode: Mode,
    pub(super) options: LockOptions,
    pub(super) limit: Moment,
    /// The caller tries once. It is answered when the backend answers, and has no limit of its own.
    pub(super) is_try: bool,
    /// The waiter ends with the next answer.
    pub(super) is_over: bool,
    pub(super) claim_under_way: bool,
    /// The waiter sends no claim before this moment.
    pub(super) next_claim_at: Moment,
    pub(super) polling: BackOff,
    pub(super) failing: BackOff,
    /// The answer to the last claim of this waiter.
    pub(super) last: Option<LastAnswer>,
}

/// A guard that a waiter was told of and has not collected yet.
#[derive(Clone, Debug)]
pub(super) struct Offer<W> {
    pub(super) waiter: Waiter<W>,
    /// When the guard goes to the next waiter. `None` while the lease has to be confirmed by a renewal first.
    pub(super) until: Option<Moment>,
    /// When those behind are called: if one of them is polled and this waiter is not, it is passed.
    pub(super) calls_at: Moment,
    /// Who was called last.
    pub(super) called: WaiterId,
    /// How many are called next.
    pub(super) calls: usize,
    pub(super) guard: GuardRef,
    /// The offer comes from an attach or a downgrade: its waiter has no place in the queue to go back to.
    pub(super) taken_over: bool,
}

impl<W> Offer<W> {
    /// An offer of a guard whose lease has to be confirmed first.
    pub(super) fn unconfirmed(waiter: Waiter<W>, guard: GuardRef) -> Self {
        let called = WaiterId::default();
        Self { waiter, until: None, calls_at: Moment::NEVER, called, calls: 1, guard, taken_over: false }
    }

    /// The waiter is told. `vain`: how many offers of the key nobody came for since somebody did.
    pub(super) fn begin<L: LeaseCell>(&mut self, lease: &Lease<L>, now: Moment, vain: u32) {
        (self.until, self.calls_at) = (Some(lease.offered_until(now)), lease.calls_at(now, vain));
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Changes {
    pub(super) freed: u64,
    pub(super) notified: u64,
}

#[derive(Clone, Debug)]
pub(super) enum LastAnswer {
    Busy,
    Failed(Error),
}

pub(super) fn no_answer() -> LastAnswer {
    let error = Error::new(ErrorKind::Indeterminate, "acquire");
    LastAnswer::Failed(error.detail("the store gave no answer within the wait"))
}

impl<W> Waiter<W> {
    /// Whether the waiter has sent a claim before, or waits for the answer to another's.
    pub(super) fn has_claimed(&self) -> bool {
        self.next_claim_at > Moment::default()
    }
}
