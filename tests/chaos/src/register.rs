//! The resource that the locks protect: one value, and the largest token that came with a request.

use serde::{Deserialize, Serialize};

/// A register with a fence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Register {
    fence: Option<u64>,
    value: Option<u64>,
}

/// What a register answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It took a value.
    Wrote {
        /// The value before; `None` where there was none.
        previous: Option<u64>,
    },
    /// It was read.
    Read {
        /// The value; `None` where there is none.
        value: Option<u64>,
    },
    /// It has taken a larger token, and nothing is changed.
    Refused,
    /// None came: the request may have been carried out, or may still be.
    Unknown,
}

impl Register {
    /// Takes a value, or is read where there is none, and refuses smaller tokens from then on. A request without a token is never
    /// refused.
    pub fn ask(&mut self, token: Option<u64>, writes: Option<u64>) -> Answer {
        if token.is_some() && token < self.fence {
            return Answer::Refused;
        }
        self.fence = self.fence.max(token);
        match writes {
            Some(value) => Answer::Wrote { previous: self.value.replace(value) },
            None => Answer::Read { value: self.value },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_token_than_one_that_was_taken_is_refused_and_changes_nothing() {
        let (mut register, wrote) = (Register::default(), |previous| Answer::Wrote { previous });
        assert_eq!(register.ask(Some(5), Some(50)), wrote(None));
        assert_eq!(register.ask(Some(5), Some(51)), wrote(Some(50)));
        assert_eq!(register.ask(Some(4), Some(40)), Answer::Refused);
        assert_eq!(register.ask(Some(6), None), Answer::Read { value: Some(51) });
        assert_eq!(register.ask(Some(5), Some(52)), Answer::Refused, "a read raises the fence, too");
        assert_eq!(register.ask(None, Some(1)), wrote(Some(51)), "no token, no fence");
    }
}
