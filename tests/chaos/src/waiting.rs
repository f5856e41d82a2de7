//! Waiting for something, and not for ever.

use std::thread;
use std::time::Duration;

use leasehold_testkit::Deadline;

/// Asks, and after each such pause again, until there is an answer. `None`: there was none within this time.
pub(crate) fn within<T>(patience: Duration, pause: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Deadline::after(patience);
    loop {
        let answer = ask();
        if answer.is_some() || deadline.is_over() {
            return answer;
        }
        thread::sleep(pause);
    }
}
