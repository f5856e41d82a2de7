//! The callers of this process who wait for one key.

use std::collections::VecDeque;

use super::event::WaiterId;
use super::waiter::{Offer, Waiter};

/// The callers who wait for a key.
#[derive(Clone, Debug)]
pub(super) struct Queue<W> {
    /// In the order in which they came.
    pub(super) waiters: VecDeque<Waiter<W>>,
    /// How many of the waiters end with the next answer (a try, or a wait at its limit).
    pub(super) over: usize,
    /// Waiters that did not come for a guard, or whose runtimes are not driven. Others pass them; they are back in their places when
    /// they are polled.
    pub(super) asleep: Vec<Waiter<W>>,
    /// Guards that waiters were told of and have not collected yet.
    pub(super) offers: Vec<Offer<W>>,
    /// How many offers nobody came for, since somebody did.
    pub(super) vain: u32,
}

impl<W> Queue<W> {
    pub(super) fn new() -> Self {
        Self { waiters: VecDeque::new(), over: 0, asleep: Vec::new(), offers: Vec::new(), vain: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty() && self.asleep.is_empty() && self.offers.is_empty()
    }

    /// Empties it, and keeps the capacity of its lists.
    pub(super) fn clear(&mut self) {
        let Self { waiters, over, asleep, offers, vain } = self;
        waiters.clear();
        asleep.clear();
        offers.clear();
        (*over, *vain) = (0, 0);
    }

    pub(super) fn index(&self, id: WaiterId) -> Option<usize> {
        self.waiters.binary_search_by_key(&id, |waiter| waiter.id).ok()
    }
}
