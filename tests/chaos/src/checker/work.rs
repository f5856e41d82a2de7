//! Counts comparisons, so that a test can hold how the work grows without measuring time.

use std::cell::Cell;

/// The comparisons made so far.
#[derive(Debug, Default)]
pub(super) struct Work(Cell<u64>);

impl Work {
    pub(super) fn count(&self) {
        self.0.set(self.0.get() + 1);
    }

    pub(super) fn counted(&self) -> u64 {
        self.0.get()
    }

    /// Sorts; what is equal stays in its order.
    pub(super) fn sort<T, K: Ord>(&self, items: &mut [T], key: impl Fn(&T) -> K) {
        items.sort_by(|one, other| {
            self.count();
            key(one).cmp(&key(other))
        });
    }

    /// How many of these, which are sorted by it, come before the first for which `before` is false.
    pub(super) fn count_before<T>(&self, sorted: &[T], before: impl Fn(&T) -> bool) -> usize {
        sorted.partition_point(|item| {
            self.count();
            before(item)
        })
    }
}
