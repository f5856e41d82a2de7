//! How a test ends that cannot show anything here.

use std::fmt;
use std::panic::resume_unwind;

/// Why a test is skipped. The test unwinds with this value, and the test harness reports it as ignored.
#[derive(Debug)]
pub enum Skipped {
    /// The machine lacks what the test needs. A failure where everything is required.
    Absent(String),
    /// The test has nothing to check here, whatever is installed.
    Nothing(String),
}

/// Returns what a test needs. If the machine lacks it (`None`), the test ends here and is ignored.
pub fn needs<T>(what: &str, found: Option<T>) -> T {
    found.unwrap_or_else(|| end(Skipped::Absent(format!("no {what} here"))))
}

/// Returns what a test needs. If the machine lacks it, the test ends here and is ignored with this reason.
pub fn needs_or_why<T, E: fmt::Display>(what: &str, found: Result<T, E>) -> T {
    found.unwrap_or_else(|why| end(Skipped::Absent(format!("no {what} here: {why}"))))
}

/// Ends a test that has nothing to check here, such as one that another test runs in a helper process.
pub fn shows_nothing(why: &str) -> ! {
    end(Skipped::Nothing(why.to_owned()))
}

fn end(why: Skipped) -> ! {
    // Unwinds without the message of a panic, which this is not.
    resume_unwind(Box::new(why))
}
