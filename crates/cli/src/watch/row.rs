use std::cmp::{Ordering, Reverse};
use std::time::{Duration, SystemTime};

use leasehold::{Holder, Holders, LockKey};

use super::column::Column;
use crate::duration::spoken;
use crate::wording;

/// The present, as the table needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// The time since the program began.
    pub(super) since: Duration,
    /// What the wall clock reads.
    pub(super) wall: SystemTime,
}

/// A held key. Its cells tell of the holder that has held it longest.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: LockKey,
    /// At least one; the one that has held the key longest is first.
    pub(super) holders: Vec<Holder>,
    pub(super) waiters: Option<u64>,
    /// When the store answered, as a time since the program began.
    seen: Duration,
    /// What a filter looks at, in lower case: key, mode, labels and reasons.
    searched: String,
}

impl Row {
    /// `None` for a key that nobody holds.
    pub(super) fn new(held: Holders, seen: Duration) -> Option<Self> {
        let Holders { key, mut holders, waiters, .. } = held;
        // Tokens grow, so that the smallest is the oldest.
        holders.sort_by_key(|holder| holder.token);
        let mut searched = format!("{}\n{}", key.as_str(), holders.first()?.mode.as_str());
        for text in holders.iter().flat_map(|holder| [&holder.label, &holder.reason]).flatten() {
            searched.push('\n');
            searched.push_str(text);
        }
        Some(Self { key, holders, waiters, seen, searched: searched.to_lowercase() })
    }

    /// Whether key, mode, label or reason contain this text, which is in lower case.
    pub(super) fn contains(&self, text: &str) -> bool {
        self.searched.contains(text)
    }

    /// What is known for a column: of the key, and of this holder of it.
    fn value<'a>(&'a self, holder: &'a Holder, column: Column) -> Option<Value<'a>> {
        match column {
            Column::Key => Some(Value::Text(self.key.as_str())),
            Column::Mode => Some(Value::Text(holder.mode.as_str())),
            Column::Holders => Some(Value::Number(self.holders.len() as u64)),
            Column::Label => holder.label.as_deref().map(Value::Text),
            Column::Reason => holder.reason.as_deref().map(Value::Text),
            Column::Token => holder.token.map(|token| Value::Number(token.into())),
            Column::Held => holder.granted_at.map(|at| Value::Since(Reverse(at))),
            Column::Left => holder.remaining.map(Value::Left),
            Column::Waiting => self.waiters.map(Value::Number),
        }
    }

    /// The cell of a column that tells of this holder. `None`: nothing is known.
    pub(super) fn cell(&self, holder: &Holder, column: Column, now: Now) -> Option<String> {
        let age = now.since.saturating_sub(self.seen);
        Some(match self.value(holder, column)? {
            Value::Text(text) => wording::shown(text),
            Value::Number(number) => number.to_string(),
            Value::Since(Reverse(at)) => spoken(now.wall.duration_since(at).unwrap_or_default()),
            Value::Left(left) if left <= age => "over".to_owned(),
            Value::Left(left) => spoken(left.saturating_sub(age)),
        })
    }

    /// The holder that has held it longest.
    pub(super) fn first(&self) -> &Holder {
        &self.holders[0]
    }

    /// Compares by a column. What is not known comes after all that is known, in both directions.
    pub(super) fn compare(&self, other: &Self, column: Column, descending: bool) -> Ordering {
        let order = match (self.value(self.first(), column), other.value(other.first(), column)) {
            (Some(one), Some(other)) if descending => other.cmp(&one),
            (Some(one), Some(other)) => one.cmp(&other),
            (one, other) => other.is_some().cmp(&one.is_some()),
        };
        // Rows that are equal keep one order from poll to poll.
        order.then_with(|| self.key.cmp(&other.key))
    }
}

/// What is known for a column, by which rows are sorted.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Value<'a> {
    Text(&'a str),
    Number(u64),
    /// Who was granted the key first has held it longest.
    Since(Reverse<SystemTime>),
    /// What was left of the lease when the store answered.
    Left(Duration),
}

#[cfg(test)]
mod tests {
    use super::super::samples::{holder, now, row};
    use super::*;

    #[test]
    fn times_go_on_between_two_answers_and_a_lease_that_has_run_out_is_over() {
        let row = row("k", vec![holder("ada", 7)]);
        let later = |seconds| {
            let by = Duration::from_secs(seconds);
            let later = Now { since: now().since + by, wall: now().wall + by };
            [Column::Held, Column::Left].map(|column| row.cell(row.first(), column, later).unwrap())
        };
        assert_eq!(later(3), ["10 s", "7.0 s"]);
        assert_eq!(later(10), ["17 s", "over"]);
        assert_eq!(later(1000), ["16 m 47 s", "over"]);
    }
}
