use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// The pause between the first two polls of a store that gives no signal.
pub(super) const SHORTEST_POLL: Duration = Duration::from_millis(2);

/// Jittered, growing pauses between attempts.
#[derive(Debug)]
pub(super) struct BackOff {
    step: Duration,
    longest: Duration,
}

impl BackOff {
    /// Between polls of a store that gives no signal.
    pub(super) fn polling() -> Self {
        Self { step: SHORTEST_POLL, longest: Duration::from_millis(50) }
    }

    /// Between polls that are only the safety net below a signal: a lost one costs at most this.
    pub(super) fn beside_signals() -> Self {
        Self { step: Duration::from_millis(100), longest: Duration::from_secs(1) }
    }

    /// Between the times that a listener is asked for, who may take as long as a round trip to fail.
    pub(super) fn between_listeners() -> Self {
        Self { step: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }

    /// Between attempts on a store that does not answer.
    pub(super) fn after_failure() -> Self {
        Self { step: Duration::from_millis(20), longest: Duration::from_secs(1) }
    }

    /// The next pause; at most until just after `bound`, when the lease in the way has run out.
    pub(super) fn next(&mut self, bound: Option<Duration>) -> Duration {
        let pause = jittered(self.step);
        self.step = (self.step * 2).min(self.longest);
        bound.map_or(pause, |bound| pause.min(bound + Duration::from_millis(1)))
    }
}

/// Between a half and the whole of `pause`, so that those who failed together do not come back together.
pub(super) fn jittered(pause: Duration) -> Duration {
    // Not from the generator of this thread: it may be ending, with the guard that is dropped here.
    pause.mul_f64(StdRng::from_os_rng().random_range(0.5..=1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_longest_and_respect_the_bound() {
        let mut back_off = BackOff::polling();
        let pauses: Vec<_> = (0..20).map(|_| back_off.next(None)).collect();
        assert!(pauses[0] <= Duration::from_millis(2));
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_millis(50)));
        assert!(pauses[19] >= Duration::from_millis(25));
        assert!(back_off.next(Some(Duration::from_millis(3))) <= Duration::from_millis(4));
    }
}
