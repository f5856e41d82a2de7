use std::time::Duration;

use leasehold::Clock;
use leasehold::clock::Moment;

/// The time since it was started, by the clock that counts through suspend.
#[derive(Clone, Debug)]
pub(crate) struct Stopwatch {
    clock: Clock,
    began: Moment,
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        let clock = Clock::system();
        let began = clock.now();
        Self { clock, began }
    }

    pub(crate) fn read(&self) -> Duration {
        self.clock.now().since(self.began)
    }
}
