use std::error::Error as _;

use crate::Error;

/// Everything that an error shows: `Display` and `Debug` of the error, of its copy by `retell`, and of all causes. For tests of what
/// an error must and must not show.
#[must_use]
pub fn error_text(error: &Error) -> String {
    let retold = error.retell();
    let mut text = format!("{error} {error:?} {retold} {retold:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text} {error} {error:?}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn it_shows_what_a_cause_of_a_cause_says() {
        let hidden = std::io::Error::other(std::io::Error::other("hunter2"));
        let error = Error::new(ErrorKind::Backend, "acquire").caused_by(hidden);
        assert!(!error.to_string().contains("hunter2") && error_text(&error).contains("hunter2"));
        let advice = Error::new(ErrorKind::Backend, "acquire").detail("grant it");
        assert!(error_text(&advice).contains("grant it"));
    }
}
