use fred::types::Value;

use crate::client::value::text;

/// What a script answered.
#[derive(Clone, Debug)]
pub struct Reply(pub(super) Value);

impl Reply {
    /// The answers that it is a list of.
    fn each(self) -> Vec<Self> {
        match self.0 {
            Value::Array(items) => items.into_iter().map(Self).collect(),
            _ => Vec::new(),
        }
    }

    /// So many answers. If there are more or fewer, nobody knows which belongs to what, and none has words.
    pub fn each_of(self, count: usize) -> Vec<Self> {
        let answers = self.each();
        if answers.len() == count { answers } else { (0..count).map(|_| Self(Value::Null)).collect() }
    }

    /// Its words. In one text they are divided by a space, of which the last may have more.
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
