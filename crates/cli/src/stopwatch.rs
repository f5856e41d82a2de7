use std::time::Duration;

use leasehold::Clock;
use leasehold::clock::Moment;

/// The time since it was started, by the clock that counts through suspend.
#[derive(Clone, Debug)]
pub(crate) struct Stopwatch(Moment);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Clock::system().now())
    }

    pub(crate) fn read(&self) -> Duration {
        Clock::system().now().since(self.0)
    }
}
