use fred::types::Value;

use crate::client::value::text;

/// The answer of a script.
#[derive(Clone, Debug)]
pub struct Reply(pub(super) Value);

impl Reply {
    /// The items of a list.
    fn each(self) -> Vec<Self> {
        match self.0 {
            Value::Array(items) => items.into_iter().map(Self).collect(),
            _ => Vec::new(),
        }
    }

    /// The answers of a script that answers for each of `count` locks. If it gave more or fewer, it is not known which belongs
    /// to what, and each is empty.
    pub fn each_of(self, count: usize) -> Vec<Self> {
        let answers = self.each();
        if answers.len() == count { answers } else { (0..count).map(|_| Self(Value::Null)).collect() }
    }

    /// The words of the answer: the texts of a list, or the first two words of one text and its rest (behind `refused`, the
    /// rest alone).
    pub fn words(&self) -> Vec<&str> {
        match &self.0 {
            Value::Array(items) => items.iter().map(text).collect(),
            Value::Null => Vec::new(),
            line => {
                let line = text(line);
                line.splitn(if line.starts_with("refused ") { 2 } else { 3 }, ' ').collect()
            }
        }
    }
}
