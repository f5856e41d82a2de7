//! How many tests of a kind run at a time.

#![allow(clippy::disallowed_methods, reason = "what a thread waits for is the machine, and no clock of a test")]

use std::fs;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A number of turns, each of which blocks its thread until it is there and the machine has a processor to spare.
#[derive(Debug)]
pub struct Turns {
    left: Mutex<usize>,
    given_back: Condvar,
}

impl Turns {
    /// So many at a time.
    pub const fn new(at_once: usize) -> Self {
        Self { left: Mutex::new(at_once), given_back: Condvar::new() }
    }

    /// Waits for a turn. It ends when the value is dropped.
    #[must_use]
    pub fn take(&'static self) -> impl Drop {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = self.given_back.wait_while(left, |left| *left == 0);
        *wait.unwrap_or_else(PoisonError::into_inner) -= 1;
        wait_for_a_processor();
        Turn(self)
    }
}

struct Turn(&'static Turns);

impl Drop for Turn {
    fn drop(&mut self) {
        *self.0.left.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}

/// Waits until few threads of the machine want a processor: tests that begin beside many others fail because they are late. Not
/// for ever: the machine may be busy with something else.
fn wait_for_a_processor() {
    const PAUSE: Duration = Duration::from_millis(10);
    /// The most pauses for one test, and for all of a process.
    const FOR_ONE: usize = 1000;
    const FOR_ALL: usize = 12_000;
    /// The pauses until now. One thread at a time looks, so that what one lets begin is seen by the next.
    static LOOKED: Mutex<usize> = Mutex::new(0);

    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut looked = LOOKED.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..FOR_ONE.min(FOR_ALL.saturating_sub(*looked)) {
        if threads_that_run().is_none_or(|threads| threads <= processors + 1) {
            break;
        }
        *looked += 1;
        thread::sleep(PAUSE);
    }
    thread::sleep(PAUSE);
}

/// How many threads of the machine want a processor now, this one among them. `None` where the system does not say.
fn threads_that_run() -> Option<usize> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').nth(3)?.split_once('/')?.0.parse().ok()
}
