use std::fmt::{self, Write};

use fred::bytes::Bytes;
use fred::types::Value;

use crate::keyspace::names::KeyNames;

/// The keys, and behind them the arguments, of a [`Script`](crate::Script) or a [`ScriptFunction`](crate::ScriptFunction), in
/// one piece of memory.
#[derive(Clone, Debug)]
pub struct ScriptArguments {
    text: String,
    ends: Vec<usize>,
}

impl ScriptArguments {
    pub(crate) fn with_capacity(words: usize, bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ends: Vec::with_capacity(words) }
    }

    /// Adds the name of a part of a key.
    #[must_use]
    pub fn name(mut self, names: &KeyNames, part: &str) -> Self {
        names.write_part(part, &mut self.text);
        self.end()
    }

    /// Adds the name of the counter of a key.
    #[must_use]
    pub fn counter(mut self, names: &KeyNames) -> Self {
        names.write_counter(&mut self.text);
        self.end()
    }

    /// Adds a text or a number.
    #[must_use]
    pub fn text(mut self, text: impl fmt::Display) -> Self {
        // Writing to a string does not fail.
        let _ = write!(self.text, "{text}");
        self.end()
    }

    /// Adds a text as it is.
    #[must_use]
    pub fn word(mut self, word: &str) -> Self {
        self.push(word);
        self
    }

    fn end(mut self) -> Self {
        self.ends.push(self.text.len());
        self
    }

    pub(crate) fn push(&mut self, word: &str) {
        self.text.push_str(word);
        self.ends.push(self.text.len());
    }

    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn get(&self, index: usize) -> &str {
        &self.text[self.start(index)..self.ends[index]]
    }

    /// The words from this one on, as one text.
    pub(crate) fn from(&self, index: usize) -> &str {
        &self.text[self.start(index)..]
    }

    fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends[index - 1] }
    }

    /// As the driver takes them; cheap to clone.
    pub(crate) fn encode(self) -> EncodedArguments {
        EncodedArguments { text: Bytes::from(self.text), ends: self.ends }
    }
}

impl Default for ScriptArguments {
    fn default() -> Self {
        // Enough for one usual key.
        Self::with_capacity(8, 240)
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
