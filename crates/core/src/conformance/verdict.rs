//! How a case fails.

/// A failed check, or an error where none may be.
#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

impl Failure {
    /// What was expected, in the words of the check, and what was seen.
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
