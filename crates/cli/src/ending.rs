use std::time::Duration;

use leasehold_core::LossReason;

/// When the command has to end, so that it is gone before another can hold its lock.
///
/// A guard's deadline is the last moment at which the lock is certainly ours. To tell the command then would have it
/// work beside the next holder for as long as it takes to end, so it is told ahead.
#[derive(Debug)]
pub(crate) struct Ending {
    kill_after: Duration,
    max_hold: Option<Duration>,
    /// The most that was ever left of the lease: a lock that was waited for in the store's own queue begins with a short
    /// one.
    longest: Duration,
}

/// What [`Ending`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Not yet; to be asked again after so long at the latest.
    In(Duration),
    /// Now, and it has so long to end by itself.
    Now { reason: LossReason, grace: Duration },
}

impl Ending {
    pub(crate) fn new(kill_after: Duration, max_hold: Option<Duration>) -> Self {
        Self { kill_after, max_hold, longest: Duration::ZERO }
    }

    /// With so much left of the lock, which was `held` for so long.
    pub(crate) fn look(&mut self, left: Duration, held: Duration) -> Due {
        self.longest = self.longest.max(left);
        let planned = self.max_hold.map(|most| (most.saturating_sub(held), most));
        // The guard ends at `--max-hold`, too, and is a little ahead of our own reading.
        let is_the_plan = planned.is_some_and(|(until, _)| until.saturating_sub(left) <= reserve(self.longest));
        let lease = if is_the_plan { LossReason::MaxHold } else { LossReason::Unreachable };
        let limits =
            [Some((left, self.longest, lease)), planned.map(|(until, most)| (until, most, LossReason::MaxHold))];
        let mut soonest = Duration::MAX;
        for (left, span, reason) in limits.into_iter().flatten() {
            let until = left.saturating_sub(self.patience(span) + reserve(span));
            if until.is_zero() {
                return Due::Now { reason, grace: left.saturating_sub(reserve(span)) };
            }
            soonest = soonest.min(until);
        }
        Due::In(soonest)
    }

    /// What a command gets for its end. A healthy lease is renewed when two thirds are left, and an attempt to renew it
    /// is given up when a third is left: before that, nobody knows that anything is wrong.
    fn patience(&self, span: Duration) -> Duration {
        self.kill_after.min(span / 3)
    }
}

/// What is kept back for the kill itself: this program has to be given a processor, and the kernel has to end the
/// command.
fn reserve(span: Duration) -> Duration {
    span / 20
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);

    fn silent(grace: Duration) -> Due {
        Due::Now { reason: LossReason::Unreachable, grace }
    }

    #[test]
    fn a_lease_that_is_renewed_is_left_alone_whatever_the_command_needs_for_its_end() {
        for kill_after in [Duration::ZERO, 5 * SECOND, 25 * SECOND, HOUR] {
            let mut ending = Ending::new(kill_after, None);
            for left in [30, 20, 30, 13, 30] {
                assert!(matches!(ending.look(left * SECOND, HOUR), Due::In(_)), "{left} left, {kill_after:?}");
            }
        }
    }

    #[test]
    fn the_command_gets_its_time_before_the_lease_is_over_and_a_third_of_it_at_most() {
        for (kill_after, told_at, grace) in
            [(Duration::ZERO, 1500, 0), (5 * SECOND, 6500, 5000), (10 * SECOND, 11_500, 10_000), (HOUR, 11_500, 10_000)]
        {
            let mut ending = Ending::new(kill_after, None);
            let told_at = Duration::from_millis(told_at);
            ending.look(30 * SECOND, SECOND);
            assert_eq!(ending.look(told_at + SECOND, SECOND), Due::In(SECOND), "{kill_after:?}");
            assert_eq!(ending.look(told_at, SECOND), silent(Duration::from_millis(grace)), "{kill_after:?}");
        }
    }

    #[test]
    fn one_that_finds_out_late_has_what_is_left() {
        let mut ending = Ending::new(5 * SECOND, None);
        ending.look(30 * SECOND, SECOND);
        assert_eq!(ending.look(2 * SECOND, SECOND), silent(SECOND / 2));
        assert_eq!(ending.look(SECOND, SECOND), silent(Duration::ZERO));
    }

    #[test]
    fn a_short_first_lease_out_of_the_stores_queue_is_no_alarm() {
        let mut ending = Ending::new(5 * SECOND, None);
        assert_eq!(ending.look(3 * SECOND, Duration::ZERO), Due::In(Duration::from_millis(1850)));
        assert!(matches!(ending.look(29 * SECOND, SECOND), Due::In(_)));
        assert!(matches!(ending.look(6 * SECOND, SECOND), Due::Now { .. }));
    }

    #[test]
    fn the_longest_hold_is_announced_with_and_without_a_lease() {
        let planned = |grace| Due::Now { reason: LossReason::MaxHold, grace };
        for lease in [30 * SECOND, Duration::MAX] {
            let mut ending = Ending::new(60 * SECOND, Some(HOUR));
            assert!(matches!(ending.look(lease, 3359 * SECOND), Due::In(_)));
            assert_eq!(ending.look(lease, 3360 * SECOND), planned(60 * SECOND), "{lease:?}");
        }
        // One that is shorter than the lease.
        let mut ending = Ending::new(5 * SECOND, Some(SECOND));
        assert!(matches!(ending.look(Duration::from_micros(999_990), Duration::ZERO), Due::In(_)));
        assert!(matches!(
            ending.look(Duration::from_micros(333_323), SECOND * 2 / 3),
            Due::Now { reason: LossReason::MaxHold, .. }
        ));
    }

    #[test]
    fn a_lock_without_an_end_never_ends() {
        assert!(matches!(Ending::new(HOUR, None).look(Duration::MAX, HOUR), Due::In(_)));
    }
}
