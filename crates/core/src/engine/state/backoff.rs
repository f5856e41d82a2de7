//! The pauses between polls, after failures, and between subscriptions.

use std::time::Duration;

use super::event::Randomness;

/// The pause between the first two polls of a store that gives no signal.
pub(super) const SHORTEST_POLL: Duration = Duration::from_millis(2);

/// Jittered, growing pauses between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct BackOff {
    pub(super) step: Duration,
    pub(super) longest: Duration,
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

    /// Between the times that a subscription is asked for, which may take as long as a round trip to fail.
    pub(super) fn between_subscriptions() -> Self {
        Self { step: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }

    /// Between attempts on a store that does not answer.
    pub(super) fn after_failure() -> Self {
        Self { step: Duration::from_millis(20), longest: Duration::from_secs(1) }
    }

    /// The next pause; at most until just after `bound`, when the lease in the way has run out.
    pub(super) fn next(&mut self, random: &mut dyn Randomness, bound: Option<Duration>) -> Duration {
        let pause = random.jittered(self.step);
        self.step = (self.step * 2).min(self.longest);
        bound.map_or(pause, |bound| pause.min(bound + Duration::from_millis(1)))
    }
}
