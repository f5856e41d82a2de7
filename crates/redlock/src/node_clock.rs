use std::sync::atomic::{AtomicI64, Ordering};

use leasehold_core::clock::Moment;

/// What is known here of the clock of a node, in 1/16 ms: how far it is ahead of our own monotonic clock. Our wall clock decides
/// nothing.
#[derive(Debug)]
pub(crate) struct NodeClock(AtomicI64);

const UNKNOWN: i64 = i64::MIN;

impl NodeClock {
    pub(crate) const fn new() -> Self {
        Self(AtomicI64::new(UNKNOWN))
    }

    /// Notes that the node read its clock at some time between these moments.
    ///
    /// What was noted before stays where it agrees with this, so that what is shown does not go back when an answer is slow.
    pub(crate) fn note(&self, clock: u64, sent_at: Moment, received_at: Moment) {
        let [latest, earliest] = [sent_at, received_at].map(|moment| ahead(clock, moment));
        let known = self.0.load(Ordering::Relaxed);
        let known = if known == UNKNOWN { earliest } else { known.clamp(earliest, latest.max(earliest)) };
        self.0.store(known, Ordering::Relaxed);
    }

    /// What the clock shows at least, unless it was set back or ran slow since it was last noted. `None`: nothing was noted.
    pub(crate) fn at(&self, now: Moment) -> Option<u64> {
        let known = Some(self.0.load(Ordering::Relaxed)).filter(|known| *known != UNKNOWN)?;
        u64::try_from(known.saturating_add(ticks(now))).ok()
    }
}

fn ahead(clock: u64, moment: Moment) -> i64 {
    i64::try_from(clock).unwrap_or(i64::MAX).saturating_sub(ticks(moment))
}

/// The time on our own clock, in 1/16 ms.
fn ticks(moment: Moment) -> i64 {
    i64::try_from(moment.since(Moment::default()).as_nanos() / 62_500).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ms(millis: u64) -> Moment {
        Moment::default().plus(Duration::from_millis(millis))
    }

    #[test]
    fn a_clock_is_shown_from_what_the_node_told_and_the_time_since() {
        let clock = NodeClock::new();
        assert_eq!(clock.at(ms(5)), None);
        clock.note(16_000, ms(10), ms(20));
        // It may have been read as late as it was received.
        assert_eq!(clock.at(ms(20)), Some(16_000));
        assert_eq!(clock.at(ms(1020)), Some(32_000));
        // A slow answer tells nothing new, and a quick one does.
        clock.note(16_160, ms(20), ms(90));
        assert_eq!(clock.at(ms(30)), Some(16_160));
        clock.note(17_600, ms(100), ms(101));
        assert_eq!(clock.at(ms(101)), Some(17_600));
    }

    #[test]
    fn a_clock_that_was_set_back_or_ahead_is_followed_at_once() {
        let clock = NodeClock::new();
        clock.note(160_000, ms(10), ms(11));
        clock.note(1_600, ms(20), ms(21));
        assert_eq!(clock.at(ms(21)), Some(1_616), "set back");
        clock.note(800_000, ms(30), ms(31));
        assert_eq!(clock.at(ms(31)), Some(800_000), "set ahead");
    }
}
