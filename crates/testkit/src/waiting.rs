//! Waiting for what a test expects, with a deadline.

use std::time::{Duration, Instant};

/// A moment after which a test or a task gives up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// The moment that is `patience` from now.
    pub fn after(patience: Duration) -> Self {
        Self(now() + patience)
    }

    /// Whether that moment has passed.
    pub fn is_over(self) -> bool {
        now() > self.0
    }
}

#[allow(clippy::disallowed_methods, reason = "a deadline of a test must not move with a clock that the test moves")]
fn now() -> Instant {
    Instant::now()
}

/// How long anything may take before a test gives up: far longer than it takes on the busiest machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Polls every 10 ms until `is_so` answers true, within a minute.
#[cfg(feature = "harness")]
pub async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let deadline = Deadline::after(PATIENCE);
    while !is_so().await {
        assert!(!deadline.is_over(), "not within a minute: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Asks every 10 ms until `ask` answers, on this thread: [`eventually`] for a test without a runtime.
#[track_caller]
pub fn eventually_some<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    let Some(answer) = within(PATIENCE, Duration::from_millis(10), ask) else { panic!("not within a minute: {what}") };
    answer
}

/// Asks, and after each such pause again, on this thread, until `ask` answers. `None`: it did not within this time.
#[allow(clippy::disallowed_methods, reason = "it polls with a deadline")]
pub fn within<T>(patience: Duration, pause: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Deadline::after(patience);
    loop {
        let answer = ask();
        if answer.is_some() || deadline.is_over() {
            return answer;
        }
        std::thread::sleep(pause);
    }
}
