use fred::bytes::Bytes;
use fred::types::Value;

use crate::client::value::text;

/// The answer of a script.
#[derive(Clone, Debug)]
pub struct Reply(pub(super) Value);

impl Reply {
    /// The answers of a script that answers for each of `count` locks. If it gave more or fewer, it is not known which belongs
    /// to what, and each is empty.
    pub fn each_of(self, count: usize) -> Vec<Self> {
        let answers = if let Value::Array(items) = self.0 { items } else { Vec::new() };
        Self::all_or_none(answers, count)
    }

    fn all_or_none(answers: Vec<Value>, count: usize) -> Vec<Self> {
        let answers = if answers.len() == count { answers } else { vec![Value::Null; count] };
        answers.into_iter().map(Self).collect()
    }

    /// The lines of a text that has one for each of `count` locks. If there are more or fewer, it is not known which belongs to
    /// what, and each is empty.
    pub(super) fn lines(self, count: usize) -> Vec<Self> {
        let text = match self.0 {
            Value::Bytes(text) => text,
            Value::String(text) => text.into_inner(),
            _ => Bytes::new(),
        };
        if count == 1 {
            return vec![Self(Value::Bytes(text))];
        }
        let mut lines = Vec::with_capacity(count);
        lines.extend(text.split(|byte| *byte == b'\n').map(|line| Value::Bytes(text.slice_ref(line))));
        Self::all_or_none(lines, count)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Reply {
        Reply(Value::Array(items.iter().map(|item| Value::from(*item)).collect()))
    }

    fn bytes(text: &'static str) -> Reply {
        Reply(Value::Bytes(Bytes::from_static(text.as_bytes())))
    }

    fn texts(replies: &[Reply]) -> Vec<String> {
        replies.iter().map(|reply| reply.words().join(" ")).collect()
    }

    #[test]
    fn of_more_or_fewer_answers_than_locks_none_is_believed() {
        for count in [2, 4] {
            for answers in [bytes("a\nb\nc").lines(count), list(&["a", "b", "c"]).each_of(count)] {
                assert_eq!(answers.len(), count);
                assert!(answers.iter().all(|answer| answer.words().is_empty()), "{answers:?}");
            }
        }
        assert_eq!(texts(&list(&["a", "b"]).each_of(2)), ["a", "b"]);
        assert!(bytes("a").each_of(1)[0].words().is_empty());
        assert_eq!(texts(&list(&["a"]).lines(1)), [""]);
    }
}
