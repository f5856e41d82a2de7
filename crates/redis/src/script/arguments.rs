use std::fmt::Write;
use std::time::Duration;

use fred::bytes::Bytes;
use fred::types::Value;
use leasehold_core::OwnerId;

use crate::keyspace::names::KeyNames;

/// The keys and then the arguments of a script or a [`ScriptFunction`](crate::ScriptFunction), in one piece of memory.
#[derive(Debug)]
pub struct ScriptArguments {
    text: String,
    ends: Vec<usize>,
}

impl ScriptArguments {
    /// None yet.
    pub fn new() -> Self {
        // Enough for one usual key.
        Self { text: String::with_capacity(240), ends: Vec::with_capacity(8) }
    }

    /// Adds the name of a part of a key.
    #[must_use]
    pub fn name(mut self, names: &KeyNames, part: &str) -> Self {
        names.write_part(part, &mut self.text);
        self.end()
    }

    /// Adds an owner, as 32 hexadecimal digits.
    #[must_use]
    pub fn owner(self, owner: OwnerId) -> Self {
        self.text(&owner.to_hex())
    }

    /// Adds a duration, in ms.
    #[must_use]
    pub fn millis(mut self, duration: Duration) -> Self {
        self.push_millis(duration);
        self.end()
    }

    /// Adds grants by owner and number with their leases in ms, all in one word, divided by spaces.
    #[must_use]
    pub fn leases(mut self, leases: impl IntoIterator<Item = (OwnerId, u64, Duration)>) -> Self {
        for (owner, number, lease) in leases {
            self.text.push_str(&owner.to_hex());
            let _ = write!(self.text, " {number} ");
            self.push_millis(lease);
            self.text.push(' ');
        }
        self.end()
    }

    /// Adds a text.
    #[must_use]
    pub fn text(mut self, text: &str) -> Self {
        self.text.push_str(text);
        self.end()
    }

    fn push_millis(&mut self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        // Writing to a string does not fail.
        let _ = write!(self.text, "{millis}");
    }

    fn end(mut self) -> Self {
        self.ends.push(self.text.len());
        self
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// As the driver takes them; cheap to clone.
    pub(crate) fn encode(self) -> EncodedArguments {
        EncodedArguments { text: Bytes::from(self.text), ends: self.ends }
    }
}

/// A duration as scripts take it, in ms.
pub fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}

impl Default for ScriptArguments {
    fn default() -> Self {
        Self::new()
    }
}

#[derive(Debug)]
pub(crate) struct EncodedArguments {
    text: Bytes,
    ends: Vec<usize>,
}

impl EncodedArguments {
    pub(crate) fn iter(&self) -> impl Iterator<Item = Value> + Clone {
        let start = |index: usize| if index == 0 { 0 } else { self.ends[index - 1] };
        (0..self.ends.len()).map(move |index| Value::Bytes(self.text.slice(start(index)..self.ends[index])))
    }
}
