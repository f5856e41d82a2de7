//! The pauses between polls, after failures, and between subscriptions.

use std::time::Duration;

use super::event::Randomness;

/// The pause between the first two polls of a store without notifications.
pub(super) const SHORTEST_POLL: Duration = Duration::from_millis(2);

/// Growing pauses with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BackOff {
    pub(super) step: Duration,
    pub(super) longest: Duration,
}

impl BackOff {
    /// Between polls of a store without notifications.
    pub(super) fn polling() -> Self {
        Self { step: SHORTEST_POLL, longest: Duration::from_millis(50) }
    }

    /// Between polls that are the safety net beside notifications: a lost notification costs at most `longest`.
    pub(super) fn beside_signals() -> Self {
        Self { step: Duration::from_millis(100), longest: Duration::from_secs(1) }
    }

    /// Between attempts to subscribe, each of which may take a round trip to fail.
    pub(super) fn between_subscriptions() -> Self {
        Self { step: Duration::from_millis(500), longest: Duration::from_secs(30) }
    }

    /// Between claims or releases after a failure.
    pub(crate) fn after_failure() -> Self {
        Self { step: Duration::from_millis(20), longest: Duration::from_secs(1) }
    }

    /// The next pause, at most until just after `bound`, when the lease in the way has run out.
    pub(crate) fn next(&mut self, random: &mut dyn Randomness, bound: Option<Duration>) -> Duration {
        let pause = random.jittered(self.step);
        self.step = (self.step * 2).min(self.longest);
        bound.map_or(pause, |bound| pause.min(bound + Duration::from_millis(1)))
    }
}
