use std::time::Duration;

use leasehold::LossReason;

/// Decides when the command has to end, so that it is gone before another can hold the lock.
///
/// A guard's deadline is the last moment at which the lock is certainly ours. A command that were told to end at that
/// moment would run beside the next holder for as long as it takes to end, so it is told earlier.
#[derive(Debug)]
pub(crate) struct Ending {
    kill_after: Duration,
    max_hold: Option<Duration>,
    /// The longest remaining lease that was ever seen. The first one can be short: a lock that was granted out of the store
    /// queue begins with a short lease.
    longest: Duration,
}

/// The decision of [`Ending::look`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Not yet. Look again after this time at the latest.
    In(Duration),
    /// The command has to end now, and has the time `grace` to end by itself.
    Now { reason: LossReason, grace: Duration },
}

impl Ending {
    pub(crate) fn new(kill_after: Duration, max_hold: Option<Duration>) -> Self {
        Self { kill_after, max_hold, longest: Duration::ZERO }
    }

    /// Decides, given that the guard has `left` remaining and has been held for `held`.
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

    /// The time that the command gets to end by itself: `kill_after`, but at most a third of the lease. A healthy lease is
    /// renewed when two thirds are left, and the first renewal has failed for certain only when a third is left.
    fn patience(&self, span: Duration) -> Duration {
        self.kill_after.min(span / 3)
    }
}

/// The time that is reserved for the kill itself, a twentieth of `span`: this program needs a processor, and the kernel has
/// to end the command.
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
    fn a_command_that_is_told_late_gets_the_time_that_is_left() {
        let mut ending = Ending::new(5 * SECOND, None);
        ending.look(30 * SECOND, SECOND);
        assert_eq!(ending.look(2 * SECOND, SECOND), silent(SECOND / 2));
        assert_eq!(ending.look(SECOND, SECOND), silent(Duration::ZERO));
    }

    #[test]
    fn a_short_first_lease_out_of_the_store_queue_does_not_end_the_command() {
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
}
