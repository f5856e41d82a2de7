use std::error::Error as _;

use crate::Error;

/// All that an error shows in any way, with its causes, and as it is retold: for tests of what it must and must not show.
#[must_use]
pub fn shown(error: &Error) -> String {
    let retold = error.retell();
    let mut told = format!("{error} {error:?} {retold} {retold:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        told = format!("{told} {error} {error:?}");
        cause = error.source();
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn it_shows_what_a_cause_of_a_cause_says() {
        let hidden = std::io::Error::other(std::io::Error::other("hunter2"));
        let error = Error::new(ErrorKind::Backend, "acquire").caused_by(hidden);
        assert!(!error.to_string().contains("hunter2") && shown(&error).contains("hunter2"));
        let advice = Error::new(ErrorKind::Backend, "acquire").detail("grant it");
        assert!(shown(&advice).contains("grant it"));
    }
}
