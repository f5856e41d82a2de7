use std::borrow::Cow;
use std::cmp::{Ordering, Reverse};
use std::time::{Duration, SystemTime};

use leasehold::{Holder, Holders, LockKey};

use super::column::Column;
use crate::duration::spoken;
use crate::wording;

/// What is written where nothing is known.
pub(super) const UNKNOWN: &str = "-";

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

    /// The cell of a column.
    pub(super) fn cell(&self, column: Column, now: Now) -> Cow<'_, str> {
        match column {
            Column::Key => Cow::Owned(wording::shown(self.key.as_str())),
            Column::Holders => Cow::Owned(self.holders.len().to_string()),
            Column::Waiting => or_unknown(self.waiters.map(|waiters| waiters.to_string())),
            _ => self.holders.first().map_or(UNKNOWN.into(), |first| self.cell_of(first, column, now)),
        }
    }

    /// The cell of a column that tells of one holder.
    pub(super) fn cell_of<'a>(&self, holder: &'a Holder, column: Column, now: Now) -> Cow<'a, str> {
        let age = now.since.saturating_sub(self.seen);
        match column {
            Column::Mode => Cow::Borrowed(holder.mode.as_str()),
            Column::Label => or_unknown(holder.label.as_deref().map(wording::shown)),
            Column::Reason => or_unknown(holder.reason.as_deref().map(wording::shown)),
            Column::Token => or_unknown(holder.token.map(|token| token.to_string())),
            Column::Held => {
                or_unknown(holder.granted_at.map(|at| spoken(now.wall.duration_since(at).unwrap_or_default())))
            }
            Column::Left => match holder.remaining {
                Some(left) if left <= age => Cow::Borrowed("over"),
                left => or_unknown(left.map(|left| spoken(left.saturating_sub(age)))),
            },
            Column::Key | Column::Holders | Column::Waiting => Cow::Borrowed(UNKNOWN),
        }
    }

    /// Compares by a column. What is not known comes after all that is known, in both directions.
    pub(super) fn compare(&self, other: &Self, column: Column, descending: bool) -> Ordering {
        let order = match column {
            Column::Key => known_first(Some(&self.key), Some(&other.key), descending),
            Column::Holders => known_first(Some(self.holders.len()), Some(other.holders.len()), descending),
            Column::Waiting => known_first(self.waiters, other.waiters, descending),
            Column::Mode => self.by(other, |holder| Some(holder.mode.as_str()), descending),
            Column::Label => self.by(other, |holder| holder.label.as_deref(), descending),
            Column::Reason => self.by(other, |holder| holder.reason.as_deref(), descending),
            Column::Token => self.by(other, |holder| holder.token, descending),
            // Who was granted the key first has held it longest.
            Column::Held => self.by(other, |holder| holder.granted_at.map(Reverse), descending),
            Column::Left => self.by(other, |holder| holder.remaining, descending),
        };
        // Rows that are equal keep one order from poll to poll.
        order.then_with(|| self.key.cmp(&other.key))
    }

    fn by<'a, T: Ord>(&'a self, other: &'a Self, of: fn(&'a Holder) -> Option<T>, descending: bool) -> Ordering {
        known_first(self.holders.first().and_then(of), other.holders.first().and_then(of), descending)
    }
}

fn or_unknown(text: Option<String>) -> Cow<'static, str> {
    text.map_or(Cow::Borrowed(UNKNOWN), Cow::Owned)
}

fn known_first<T: Ord>(one: Option<T>, other: Option<T>, descending: bool) -> Ordering {
    match (one, other) {
        (Some(one), Some(other)) if descending => other.cmp(&one),
        (Some(one), Some(other)) => one.cmp(&other),
        (one, other) => other.is_some().cmp(&one.is_some()),
    }
}

#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use leasehold::{FencingToken, Mode};

    /// An hour after 1970, half a minute after the program began.
    pub(in crate::watch) fn now() -> Now {
        Now { since: Duration::from_secs(30), wall: SystemTime::UNIX_EPOCH + Duration::from_secs(3600) }
    }

    pub(in crate::watch) fn holder(label: &str, token: u64) -> Holder {
        let mut holder = Holder::new(Mode::Exclusive);
        holder.label = Some(label.to_owned());
        holder.token = Some(FencingToken::of_epoch(token));
        holder.granted_at = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(3600 - token));
        holder.remaining = Some(Duration::from_secs(20));
        holder
    }

    /// A key that the store said 10 s ago to be held by these.
    pub(in crate::watch) fn row(key: &str, holders: Vec<Holder>) -> Row {
        let key = LockKey::new(key).unwrap();
        Row::new(Holders::new(&key, holders), Duration::from_secs(20)).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{holder, now, row};
    use super::*;

    #[test]
    fn the_cells_tell_of_the_one_who_has_held_it_longest() {
        let row = row("k", vec![holder("bob", 9), holder("ada", 7), holder("eve", 8)]);
        let cells = Column::ALL.map(|column| row.cell(column, now()).into_owned());
        assert_eq!(cells, ["k", "exclusive", "3", "ada", "-", "448", "7.0 s", "10 s", "-"]);
    }

    #[test]
    fn times_go_on_between_two_answers_and_a_lease_that_has_run_out_is_over() {
        let row = row("k", vec![holder("ada", 7)]);
        let later = |seconds| {
            let by = Duration::from_secs(seconds);
            let later = Now { since: now().since + by, wall: now().wall + by };
            [Column::Held, Column::Left].map(|column| row.cell(column, later).into_owned())
        };
        assert_eq!(later(3), ["10 s", "7.0 s"]);
        assert_eq!(later(10), ["17 s", "over"]);
        assert_eq!(later(1000), ["16 m 47 s", "over"]);
    }

    #[test]
    fn what_is_not_known_comes_last_in_both_directions() {
        let nameless = row("a", vec![Holder::new(leasehold::Mode::Exclusive)]);
        let (ada, bob) = (row("c", vec![holder("ada", 8)]), row("b", vec![holder("bob", 7)]));
        for column in [Column::Label, Column::Token, Column::Held, Column::Left] {
            for descending in [false, true] {
                assert_eq!(nameless.compare(&ada, column, descending), Ordering::Greater, "{column:?}");
                assert_eq!(ada.compare(&nameless, column, descending), Ordering::Less, "{column:?}");
            }
        }
        assert_eq!(ada.compare(&bob, Column::Label, false), Ordering::Less);
        assert_eq!(ada.compare(&bob, Column::Label, true), Ordering::Greater);
        assert_eq!(ada.compare(&bob, Column::Held, false), Ordering::Greater, "ada has held it for 8 s, bob for 7 s");
        assert_eq!(
            ada.compare(&bob, Column::Left, true),
            Ordering::Greater,
            "equal ones are in the order of their keys"
        );
    }
}
