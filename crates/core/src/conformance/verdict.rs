//! How a case fails.

use std::any::Any;

/// The text of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_else(|| "it panicked".to_owned())
}

/// Why a case failed: a check that did not hold, or an unexpected error.
#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

impl Failure {
    /// A check that did not hold: its source text, and what was seen instead.
    pub(super) fn unmet(expected: &str, seen: &str) -> Self {
        let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
        Self(format!("expected: {expected}\nseen:     {seen}"))
    }
}

pub(super) type Verdict = Result<(), Failure>;

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self(text)
    }
}

macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::conformance::verdict::Failure::unmet(stringify!($condition), &format!($($text)+)));
        }
    };
}
pub(super) use ensure;
