//! A waiter in the wait queue of a key, and what is known that it may be answered with.

use super::backoff::BackOff;
use super::event::{GuardRef, Member, WaiterId};
use crate::clock::Moment;
use crate::{Error, ErrorKind, LockOptions, Mode, SessionId};

/// A caller that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiter<W> {
    pub(super) id: WaiterId,
    pub(super) handle: W,
    pub(super) member: Member,
    pub(super) session: Option<SessionId>,
    pub(super) mode: Mode,
    pub(super) options: LockOptions,
    pub(super) limit: Moment,
    /// It never waited: it takes as long as the backend does.
    pub(super) is_try: bool,
    /// The next answer is its last.
    pub(super) is_over: bool,
    /// A claim of its own is under way.
    pub(super) asks: bool,
    /// It asks the store no earlier.
    pub(super) ask_at: Moment,
    pub(super) polling: BackOff,
    pub(super) failing: BackOff,
    /// What its own last attempt came to.
    pub(super) last: Option<LastAnswer>,
}

/// A guard that waits for its waiter to come.
#[derive(Clone, Debug)]
pub(super) struct Offer<W> {
    pub(super) waiter: Waiter<W>,
    /// None while the first lease has to be confirmed before anybody may have it.
    pub(super) until: Option<Moment>,
    pub(super) guard: GuardRef,
    /// The waiter asked for a detached lease and nothing else: it has no place in the line to go back to.
    pub(super) taken_over: bool,
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
    /// Whether it has asked the store, or was told to wait for an answer to others.
    pub(super) fn asked(&self) -> bool {
        self.ask_at > Moment::default()
    }
}
