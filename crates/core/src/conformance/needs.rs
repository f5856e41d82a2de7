//! How a test ends that cannot show anything here.

use std::fmt;
use std::panic::resume_unwind;
use std::time::Duration;

/// Why a test shows nothing here. A test unwinds with it, and whoever runs the tests reports it as ignored.
#[derive(Debug)]
pub enum Skipped {
    /// It lacks what it needs: a failure where everything is required.
    Absent(String),
    /// There is nothing to show, whatever is installed.
    Nothing(String),
}

/// What a test needs and the machine may lack. Does not return without it: the test ends there, as ignored.
pub fn needs<T>(what: &str, found: Option<T>) -> T {
    found.unwrap_or_else(|| end(Skipped::Absent(format!("no {what} here"))))
}

/// The same for what says why it is absent.
pub fn needs_or_why<T, E: fmt::Display>(what: &str, found: Result<T, E>) -> T {
    found.unwrap_or_else(|why| end(Skipped::Absent(format!("no {what} here: {why}"))))
}

/// Ends a test that is none here, such as what another test runs in a process of its own.
pub fn shows_nothing(why: &str) -> ! {
    end(Skipped::Nothing(why.to_owned()))
}

/// Ends a test of numbers that run ahead of the clock where they did not: it would pass without having looked.
pub fn ahead_of_the_clock(grants: u64, took: Duration) {
    if u128::from(grants) < took.as_millis() {
        let rate = u128::from(grants) * 1000 / took.as_millis();
        shows_nothing(&format!("the machine made only {rate} grants a second"));
    }
}

fn end(why: Skipped) -> ! {
    // Unwinds without the message of a panic, which this is not.
    resume_unwind(Box::new(why))
}
