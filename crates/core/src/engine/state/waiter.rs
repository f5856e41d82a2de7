//! A waiter in the wait queue of a key, and what is known that it may be answered with.

use super::backoff::BackOff;
use super::event::{GuardId, GuardRef, LeaseCell, Member, WaiterId};
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
    /// A claim of this waiter is under way.
    pub(super) asks: bool,
    /// The waiter sends no claim before this moment.
    pub(super) ask_at: Moment,
    pub(super) polling: BackOff,
    pub(super) failing: BackOff,
    /// The answer to the last claim of this waiter.
    pub(super) last: Option<LastAnswer>,
    pub(super) told: Told,
}

/// What a waiter in the queue was told of a guard that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    /// That it may have the guard that was offered to another first.
    Of(GuardId),
    /// It did not come for a guard. Until its task is polled, the others pass it, and it keeps its place.
    InVain,
}

/// A guard that a waiter was told of and has not collected yet.
#[derive(Clone, Debug)]
pub(super) struct Offer<W> {
    pub(super) waiter: Waiter<W>,
    /// When the guard goes to the next waiter. `None` while the lease has to be confirmed by a renewal first.
    pub(super) until: Option<Moment>,
    /// When others are told of it, too: whoever comes first has it.
    pub(super) opens_at: Moment,
    /// How many of them are told at once.
    pub(super) tells: usize,
    pub(super) guard: GuardRef,
    /// The offer comes from an attach or a downgrade: its waiter has no place in the queue to go back to.
    pub(super) taken_over: bool,
}

impl<W> Offer<W> {
    /// An offer of a guard whose lease has to be confirmed first.
    pub(super) fn unconfirmed(waiter: Waiter<W>, guard: GuardRef) -> Self {
        Self { waiter, until: None, opens_at: Moment::NEVER, tells: 1, guard, taken_over: false }
    }

    /// The waiter is told.
    pub(super) fn begin<L: LeaseCell>(&mut self, lease: &Lease<L>, now: Moment) {
        (self.until, self.opens_at) = (Some(lease.offered_until(now)), lease.opens_at(now));
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
    pub(super) fn asked(&self) -> bool {
        self.ask_at > Moment::default()
    }

    /// Whether its task is polled, as far as is known.
    pub(super) fn is_awake(&self) -> bool {
        self.told != Told::InVain
    }
}
