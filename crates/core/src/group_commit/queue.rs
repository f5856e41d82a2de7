use std::collections::VecDeque;
use std::fmt;

/// How much goes to a store together, for the authors of backends.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// While so many batches are on their way, the next ones wait for each other: until a batch is answered, or until there are
    /// enough for a full one.
    pub in_flight: usize,
    /// The smallest share of a batch. Each batch on its way takes its share, so that the store works on one while the other
    /// is on its way; but below this number the round trip is most of what they cost.
    pub least: usize,
    /// The largest batch.
    pub most: usize,
}

/// Who waits to be sent, and how much is on its way: what [`GroupCommit`](crate::GroupCommit) decides by.
pub struct Queue<T> {
    limits: Limits,
    /// Fewer than fill a batch; somebody only if something is in flight, which looks here when it is back.
    waiting: VecDeque<T>,
    in_flight: usize,
    /// How much the batches in flight carry.
    carried: usize,
}

impl<T> Queue<T> {
    /// A queue in which nobody waits.
    pub fn new(limits: Limits) -> Self {
        Self { limits, waiting: VecDeque::new(), in_flight: 0, carried: 0 }
    }

    /// Whether one may leave alone and at once. It is a batch in flight then; else it [waits](Self::wait).
    pub fn admits_one(&mut self) -> bool {
        let admits = self.in_flight < self.limits.in_flight && self.waiting.is_empty();
        if admits {
            self.in_flight += 1;
            self.carried += 1;
        }
        admits
    }

    /// Lets one wait, and answers whether another full batch has come together, which is to be sent.
    pub fn wait(&mut self, one: T) -> bool {
        self.waiting.push_back(one);
        self.waiting.len().is_multiple_of(self.limits.most)
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next batch, which is in flight from now on: of those that came first an even share, but nobody who is not `alike` the
    /// first one.
    pub fn next(&mut self, alike: impl Fn(&T, &T) -> bool) -> Option<Vec<T>> {
        let is_beyond = self.in_flight >= self.limits.in_flight;
        let Limits { in_flight, least, most } = self.limits;
        // Only a full batch leaves beside those in flight.
        if is_beyond && self.waiting.len() < most {
            return None;
        }
        let even = (self.waiting.len() + self.carried).div_ceil(in_flight).clamp(least, most);
        let share = if is_beyond { most } else { even };
        let first = self.waiting.front()?;
        let count = self.waiting.iter().take(share).take_while(|one| alike(first, one)).count();
        self.in_flight += 1;
        self.carried += count;
        Some(self.waiting.drain(..count).collect())
    }

    /// A batch that carried so many is answered, or is not waited for any more.
    pub fn landed(&mut self, carried: usize) {
        self.in_flight -= 1;
        self.carried -= carried;
    }

    /// Some of a batch that is in flight go with another one.
    pub fn put_back(&mut self, some: Vec<T>) {
        self.carried -= some.len();
        some.into_iter().rev().for_each(|one| self.waiting.push_front(one));
    }

    /// Only those wait that are `wanted`.
    pub fn retain(&mut self, wanted: impl FnMut(&T) -> bool) {
        self.waiting.retain(wanted);
    }

    /// All who wait, where nothing can be sent any more.
    pub fn give_up(&mut self) -> VecDeque<T> {
        std::mem::take(&mut self.waiting)
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { in_flight, carried, .. } = self;
        write!(f, "Queue({} waiting, {in_flight} in flight with {carried})", self.waiting.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { in_flight: 2, least: 4, most: 32 };

    /// Nobody waits beside so many in flight, which carry so much.
    fn flown((in_flight, carried): (usize, usize)) -> Queue<usize> {
        Queue { in_flight, carried, ..Queue::new(LIMITS) }
    }

    fn counts(queue: &Queue<usize>) -> (usize, usize, usize) {
        (queue.in_flight, queue.carried, queue.waiting.len())
    }

    #[test]
    fn two_leave_at_once_and_the_next_wait_behind_them() {
        let mut queue = Queue::new(LIMITS);
        assert_eq!([1, 2, 3].map(|_| queue.admits_one()), [true, true, false]);
        assert!(!queue.wait(3));
        queue.landed(1);
        assert!(!queue.admits_one(), "it goes ahead of one that waits");
        assert!(!queue.wait(4));
        assert_eq!(counts(&queue), (1, 1, 2));
        assert_eq!(queue.next(|_, _| true), Some(vec![3, 4]));
        queue.landed(2);
        queue.landed(1);
        assert_eq!(counts(&queue), (0, 0, 0));
        // One word for each full batch, and not for each that comes behind it.
        assert_eq!((1..=80).filter(|one| queue.wait(*one)).collect::<Vec<_>>(), [32, 64]);
    }

    #[test]
    fn a_batch_takes_an_even_share_of_what_waits_and_is_on_its_way() {
        for (count, before, expected) in [
            (40, (1, 8), Some(24)),
            (7, (1, 10), Some(7)),
            (10, (1, 0), Some(5)),
            (7, (1, 0), Some(4)),
            (100, (1, 1), Some(32)),
            // Beyond two only full batches leave.
            (31, (2, 0), None),
            (32, (2, 90), Some(32)),
            (0, (1, 0), None),
        ] {
            let mut queue = flown(before);
            queue.waiting.extend(0..count);
            let batch = queue.next(|_, _| true);
            assert_eq!(batch.as_ref().map(Vec::len), expected, "{count} {before:?}");
            let taken = expected.unwrap_or_default();
            let flies = before.0 + usize::from(batch.is_some());
            assert_eq!(counts(&queue), (flies, before.1 + taken, count - taken));
            assert!(batch.is_none_or(|batch| batch == (0..taken).collect::<Vec<_>>()));
        }
    }

    #[test]
    fn a_batch_ends_before_the_first_that_is_not_alike_and_what_it_puts_back_comes_first() {
        let mut queue = flown((1, 0));
        queue.waiting.extend([1, 3, 4, 5]);
        let batch = queue.next(|first, one| first % 2 == one % 2);
        assert_eq!((batch, counts(&queue)), (Some(vec![1, 3]), (2, 2, 2)));
        queue.put_back(vec![1, 3]);
        queue.retain(|one| *one != 4);
        queue.landed(0);
        assert_eq!((counts(&queue), queue.give_up()), ((1, 0, 3), [1, 3, 5].into()));
    }
}
