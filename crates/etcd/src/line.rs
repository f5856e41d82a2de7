use leasehold_core::{Claim, Error, ErrorKind, FencingToken, LockKey, Mode, OwnerId, Result};
use prost::Message;

use crate::failure::odd;
use crate::names::Names;
use crate::proto::KeyValue;

/// All that the store has of a key at one revision: who holds it, and behind them who waits, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) base: Base,
    pub(crate) entries: Vec<Entry>,
}

/// One grant or one waiter.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) key: LockKey,
    pub(crate) owner: OwnerId,
    pub(crate) mode: Mode,
    /// The revision by which it came into the line.
    pub(crate) position: i64,
    pub(crate) lease: i64,
    pub(crate) modified: i64,
    pub(crate) text: Text,
}

/// The value of an entry.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Text {
    /// In hexadecimal digits. It comes first, so that a transaction can compare it. Empty: the entry is named after its owner.
    #[prost(string, tag = "1")]
    pub(crate) owner: String,
    /// The length of its lease, in seconds.
    #[prost(int64, tag = "2")]
    pub(crate) ttl: i64,
    #[prost(string, optional, tag = "3")]
    pub(crate) label: Option<String>,
    #[prost(string, optional, tag = "4")]
    pub(crate) reason: Option<String>,
    /// The position of the entry that this one took the place of. 0: none.
    #[prost(int64, tag = "5")]
    pub(crate) position: i64,
    /// Whether it is a reader that was the writer.
    #[prost(bool, tag = "6")]
    pub(crate) downgraded: bool,
}

impl Text {
    pub(crate) fn of(claim: &Claim, ttl: i64) -> Self {
        let [label, reason] = [&claim.label, &claim.reason].map(|text| text.as_deref().map(str::to_owned));
        Self { owner: claim.owner.to_hex(), ttl, label, reason, position: 0, downgraded: false }
    }

    /// With what the value of each entry of this owner begins.
    pub(crate) fn beginning(owner: OwnerId) -> Vec<u8> {
        Self { owner: owner.to_hex(), ..Self::default() }.encode_to_vec()
    }
}

/// From where epochs are counted in a namespace: the clock of whoever used the namespace first, so that tokens also grow after
/// etcd lost all of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Base(pub(crate) u64);

impl Base {
    /// The base in whose namespace a grant at this revision has the epoch `clock` or a larger one.
    pub(crate) fn at(clock: u64, revision: i64) -> Self {
        Self(clock.saturating_sub(twice(revision)))
    }

    /// The epoch of an entry at this position. The odd ones are of readers that were writers.
    pub(crate) fn epoch(self, position: i64) -> u64 {
        self.0.saturating_add(twice(position))
    }

    pub(crate) fn text(self) -> Vec<u8> {
        self.0.to_string().into_bytes()
    }

    pub(crate) fn read(value: &[u8]) -> Option<Self> {
        let base = std::str::from_utf8(value).ok()?.parse().ok()?;
        (base <= FencingToken::MAX_EPOCH).then_some(Self(base))
    }
}

fn twice(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0).saturating_mul(2)
}

impl Line {
    /// Reads the answers to two reads: of the base, and of the line.
    pub(crate) fn read(operation: &'static str, names: &Names, reads: Vec<Vec<KeyValue>>) -> Result<Self> {
        let mut reads = reads.into_iter();
        let base = reads.next().unwrap_or_default();
        let Some(base) = base.first().and_then(|base| Base::read(&base.value)) else {
            // Whoever deleted it, or all of the data, deleted it while it was asked for.
            return Err(Error::new(ErrorKind::Unavailable, operation).detail("the namespace has lost its base"));
        };
        let entries = Entry::read_all(operation, names, reads.next().unwrap_or_default())?;
        Ok(Self { base, entries })
    }

    /// The entry of this owner, if the mode is right.
    pub(crate) fn of(&self, owner: OwnerId, mode: Mode) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.owner == owner && entry.mode == mode)
    }

    /// Whether a newcomer would hold the key at once.
    pub(crate) fn admits(&self, mode: Mode) -> bool {
        let excludes = |other: &Entry| other.mode == Mode::Exclusive || mode == Mode::Exclusive;
        !self.entries.iter().any(excludes)
    }

    /// The last of those that have to go before this entry is granted the key. `None`: it holds it.
    pub(crate) fn before(&self, entry: &Entry) -> Option<&Entry> {
        let excludes = |other: &&Entry| {
            other.position < entry.position && (other.mode == Mode::Exclusive || entry.mode == Mode::Exclusive)
        };
        self.entries.iter().rfind(excludes)
    }

    /// Those who hold the key.
    pub(crate) fn holders(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| self.before(entry).is_none())
    }

    pub(crate) fn epoch(&self, entry: &Entry) -> u64 {
        entry.epoch(self.base)
    }

    /// The entry of this owner if it holds the key, under this epoch if one is given.
    pub(crate) fn held(&self, owner: OwnerId, mode: Mode, epoch: Option<u64>) -> Option<&Entry> {
        let entry = self.of(owner, mode).filter(|entry| self.before(entry).is_none())?;
        epoch.is_none_or(|epoch| epoch == self.epoch(entry)).then_some(entry)
    }
}

impl Entry {
    pub(crate) fn epoch(&self, base: Base) -> u64 {
        base.epoch(self.position).saturating_add(u64::from(self.text.downgraded))
    }

    /// Reads the entries of a line, and sorts them by their positions.
    pub(crate) fn read_all(operation: &'static str, names: &Names, kvs: Vec<KeyValue>) -> Result<Vec<Self>> {
        let entries = kvs.into_iter().map(|kv| Self::read(operation, names, kv));
        let mut entries: Vec<_> = entries.collect::<Result<_>>()?;
        entries.sort_by_key(|entry| entry.position);
        Ok(entries)
    }

    pub(crate) fn read(operation: &'static str, names: &Names, kv: KeyValue) -> Result<Self> {
        let read = || {
            let (key, mode, place) = names.read(&kv.key)?;
            let text = Text::decode(kv.value.as_slice()).ok()?;
            let owner = if text.owner.is_empty() { place } else { OwnerId::parse_hex(&text.owner)? };
            Some((key, mode, owner, text))
        };
        let Some((key, mode, owner, text)) = read() else { return Err(odd(operation, &kv.key)) };
        let position = if text.position > 0 { text.position } else { kv.create_revision };
        Ok(Self { name: kv.key, key, owner, mode, position, lease: kv.lease, modified: kv.mod_revision, text })
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::Namespace;
    use leasehold_testkit::corpus_of_text;

    use super::*;

    #[test]
    fn a_store_with_more_revisions_than_the_clock_has_counted_goes_on_from_them() {
        assert_eq!(Base::at(10, 500).epoch(500), 1_000);
    }

    #[test]
    fn whatever_etcd_has_is_read_or_refused() {
        let names = Names::new(&Namespace::default());
        corpus_of_text(include_str!("../corpus/entries.txt"), |text| {
            let (name, value) = text.split_once(' ').unwrap_or((text, ""));
            let kv = KeyValue { key: name.into(), value: value.into(), ..KeyValue::default() };
            if let Err(error) = Entry::read("test", &names, kv.clone()) {
                assert_eq!(error.kind(), ErrorKind::Backend);
            }
            assert!(Base::read(value.as_bytes()).is_none_or(|base| base.epoch(i64::MAX) >= base.0));
        });
    }
}
