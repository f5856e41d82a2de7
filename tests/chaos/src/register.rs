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
